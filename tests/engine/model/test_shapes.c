/* Models whose dimensions a request decides. */
#include "backends/cpuref/cpuref.h"
#include "engine/base/file.h"
#include "inferd/engine.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/graph.h"

#include <math.h>
#include <string.h>

#define ONNX   IFD_SOURCE_DIR "/tests/fuzz/corpus/onnx/"
#define TFLITE IFD_SOURCE_DIR "/tests/fuzz/corpus/tflite/"
#define MOST   1024 /* elements of an input */

struct fixture {
    struct fail_alloc fail;
    struct ifd_bytes file;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    const struct ifd_model_info *info;
    float x[MOST];
    struct ifd_tensor input, out[2];
    enum ifd_code code;
    struct ifd_err err;
};

static enum ifd_code open_model(struct fixture *f, const struct ifd_model_options *options)
{
    static const struct ifd_backend *const backends[] = {&ifd_backend_cpuref};
    const struct ifd_engine_options engine = {
        .alloc = &f->fail.alloc, .backends = backends, .backend_count = 1};
    enum ifd_code code = ifd_engine_create(&engine, &f->engine, &f->err);
    if (code == IFD_OK) {
        code = ifd_model_load(f->engine, f->file, options, &f->model, &f->err);
    }
    if (code == IFD_OK) {
        f->info = ifd_model_info(f->model);
        code =
            ifd_instance_create(f->model, &(struct ifd_instance_options){0}, &f->instance, &f->err);
    }
    return code;
}

static void close_model(struct fixture *f)
{
    ifd_instance_destroy(f->instance);
    ifd_model_destroy(f->model);
    ifd_engine_destroy(f->engine);
    f->instance = NULL;
    f->model = NULL;
    f->engine = NULL;
    fail_alloc_finish(&f->fail);
}

static void read_file(struct fixture *f, const char *path)
{
    *f = (struct fixture){0};
    REQUIRE_OK(ifd_file_read(path, INT32_MAX, ifd_alloc_system(), &f->file, &f->err), &f->err);
}

static void begin(struct fixture *f, const char *path, const struct ifd_model_options *options)
{
    read_file(f, path);
    fail_alloc_init(&f->fail, 0);
    REQUIRE_OK(open_model(f, options), &f->err);
}

static void end(struct fixture *f)
{
    close_model(f);
    ifd_release_tensor(ifd_alloc_system(), (void *)f->file.data, f->file.size);
}

static size_t elements(const struct ifd_shape *shape)
{
    size_t count = 1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        count *= (size_t)shape->dim[d];
    }
    return count;
}

/* Runs 1, 2, 3 … in a shape; x[i] = i + 1. */
static enum ifd_code run(struct fixture *f, struct ifd_shape shape)
{
    const size_t count = elements(&shape);
    REQUIRE(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        f->x[i] = (float)(i + 1);
    }
    f->input = (struct ifd_tensor){.dtype = IFD_F32,
                                   .shape = shape,
                                   .data = f->x,
                                   .bytes = count * sizeof(float),
                                   .capacity = sizeof(f->x)};
    memset(f->out, 0, sizeof(f->out));
    const struct ifd_io io = {.input = &f->input, .output = f->out, .batch = 1};
    return ifd_instance_run(f->instance, &io, 1, &f->err);
}

/* Of open_width: y = 2x, z = the sum over dimension 1. */
static void expect_width(struct fixture *f, int64_t n, int64_t w)
{
    REQUIRE_OK(run(f, SHAPE(n, w, 2)), &f->err);
    EXPECT(ifd_shape_equal(&f->out[0].shape, &SHAPE(n, w, 2)));
    EXPECT(ifd_shape_equal(&f->out[1].shape, &SHAPE(n, 2)));
    const float *y = f->out[0].data, *z = f->out[1].data;
    for (int64_t i = 0; i < n * w * 2; i++) {
        EXPECT_CLOSE(y[i], 2 * f->x[i], 0);
    }
    for (int64_t i = 0; i < n * 2; i++) {
        float sum = 0;
        for (int64_t k = 0; k < w; k++) {
            sum += f->x[(i / 2 * w + k) * 2 + i % 2];
        }
        EXPECT_CLOSE(z[i], sum, 0);
    }
}

static void a_request_decides_open_dimensions(void)
{
    struct fixture f;
    begin(&f, ONNX "open_width.onnx", &(struct ifd_model_options){.releases_weights = true});
    EXPECT(f.info->has_open_dims);
    EXPECT(!f.info->input[0].batched);
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, -1, 2)));
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(-1, -1, 2)));
    EXPECT(ifd_shape_equal(&f.info->output[1].desc.shape, &SHAPE(-1, 2)));
    expect_width(&f, 1, 5);
    expect_width(&f, 3, 1);
    expect_width(&f, 1, f.info->input[0].example.dim[1]);
    expect_width(&f, 1, 5);
    expect_width(&f, 1, 0);
    end(&f);
}

static void shapes_that_were_there_take_no_memory(void)
{
    struct fixture f;
    begin(&f, ONNX "open_width.onnx", &(struct ifd_model_options){0});
    expect_width(&f, 1, 5);
    expect_width(&f, 2, 5);
    const long before = atomic_load(&f.fail.requests);
    expect_width(&f, 1, 5);
    expect_width(&f, 2, 5);
    EXPECT_INT(atomic_load(&f.fail.requests), before);
    end(&f);
}

static void the_latest_shapes_are_kept_within_the_limit(void)
{
    struct fixture f;
    begin(&f, ONNX "open_width.onnx", &(struct ifd_model_options){.shape_bytes = 1000000});
    const long before = atomic_load(&f.fail.live_bytes);
    for (int64_t w = 1; w < 100; w++) {
        expect_width(&f, 1, w);
        EXPECT(atomic_load(&f.fail.live_bytes) - before <= 1300000); /* and the next one's plan */
    }
    end(&f);
}

static void a_shape_beyond_the_limit_is_refused(void)
{
    struct fixture f;
    begin(&f, ONNX "open_width.onnx", &(struct ifd_model_options){.shape_bytes = 1000});
    EXPECT_CODE(run(&f, SHAPE(1, 500, 2)), IFD_TOO_LARGE, &f.err);
    EXPECT_HAS(f.err.text, "the limit of");
    end(&f);
}

static void a_shape_that_contradicts_the_file_is_refused(void)
{
    static const struct ifd_shape shapes[] = {SHAPE(1, 5, 3), SHAPE(5, 2)};
    struct fixture f;
    begin(&f, ONNX "open_width.onnx", &(struct ifd_model_options){0});
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        EXPECT_CODE(run(&f, shapes[i]), IFD_INVALID, &f.err);
        EXPECT_HAS(f.err.text, "expected [-1,-1,2], any size for -1");
    }
    expect_width(&f, 1, 5);
    end(&f);
}

struct holder {
    uint64_t limit, held;
};

static enum ifd_code hold(void *context, uint64_t *held, uint64_t bytes, struct ifd_err *err)
{
    struct holder *holder = context;
    if (bytes > *held && bytes > holder->limit) {
        return ifd_fail(err, IFD_NOMEM, "held enough");
    }
    *held = holder->held = bytes;
    return IFD_OK;
}

static void memory_for_shapes_is_asked_for(void)
{
    struct fixture f;
    struct holder holder = {.limit = UINT64_MAX};
    begin(&f, ONNX "open_width.onnx",
          &(struct ifd_model_options){.hold_shapes = hold, .hold_context = &holder});
    expect_width(&f, 1, 5);
    const uint64_t one = holder.held;
    EXPECT(one > 0);
    expect_width(&f, 1, 6);
    EXPECT_INT(holder.held, 2 * one);
    holder.limit = 2 * one; /* the older one gives way */
    expect_width(&f, 1, 7);
    EXPECT_INT(holder.held, 2 * one);
    end(&f);
    EXPECT_INT(holder.held, 0);
}

static void without_memory_for_shapes_the_examples_still_run(void)
{
    struct fixture f;
    struct holder holder = {.limit = 0};
    begin(&f, ONNX "open_width.onnx",
          &(struct ifd_model_options){.hold_shapes = hold, .hold_context = &holder});
    EXPECT_CODE(run(&f, SHAPE(1, 8, 2)), IFD_NOMEM, &f.err);
    EXPECT_HAS(f.err.text, "held enough");
    expect_width(&f, 1, f.info->input[0].example.dim[1]);
    end(&f);
}

/* With one step a sequence looks like a sample: y[t] = tanh(x[t] + y[t-1]). */
static void time_is_no_batch(void)
{
    struct fixture f;
    begin(&f, ONNX "open_time.onnx", &(struct ifd_model_options){0});
    EXPECT(f.info->has_open_dims);
    EXPECT(!f.info->batch_is_free);
    REQUIRE_OK(run(&f, SHAPE(3, 1, 1)), &f.err);
    const float *y = f.out[0].data;
    double state = 0;
    for (int t = 0; t < 3; t++) {
        state = tanh(t + 1 + state);
        EXPECT_CLOSE(y[t], state, 1e-6);
    }
    end(&f);
}

/* The first dimension of x is the second one of h. */
static void dimensions_of_one_symbol_have_one_size(void)
{
    struct fixture f;
    begin(&f, ONNX "open_shared.onnx", &(struct ifd_model_options){0});
    EXPECT(ifd_shape_equal(&f.info->input[1].desc.shape, &SHAPE(2, -1, 2)));
    EXPECT_INT(f.info->input[1].example.dim[1], f.info->input[0].example.dim[0]);
    end(&f);
}

static void a_batch_alone_is_open_and_free(void)
{
    struct fixture f;
    begin(&f, ONNX "conv.onnx", &(struct ifd_model_options){0});
    EXPECT(!f.info->has_open_dims);
    EXPECT(f.info->batch_is_free);
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, 2, 6, 6)));
    end(&f);
}

static void the_caller_may_bind_what_the_file_leaves_open(void)
{
    const struct ifd_input_shape shape = {.name = "x", .shape = SHAPE(-1, 7, 2)};
    struct fixture f;
    begin(&f, ONNX "open_width.onnx",
          &(struct ifd_model_options){.input_shape = &shape, .input_shape_count = 1});
    EXPECT(!f.info->has_open_dims);
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, 7, 2)));
    expect_width(&f, 1, 7);
    end(&f);
}

static void the_caller_may_open_what_the_file_fixes(void)
{
    const struct ifd_input_shape shape = {.name = "x", .shape = SHAPE(-1, -1, 4, 2)};
    struct fixture f;
    begin(&f, TFLITE "good_relu.tflite",
          &(struct ifd_model_options){.input_shape = &shape, .input_shape_count = 1});
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(1, -1, 4, 2)));
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(1, -1, 4, 2)));
    REQUIRE_OK(run(&f, SHAPE(1, 9, 4, 2)), &f.err);
    EXPECT_CLOSE(((const float *)f.out[0].data)[71], 72, 0);
    end(&f);
}

static void every_failed_allocation_is_reported(void)
{
    struct fixture f;
    long k = 0;
    read_file(&f, ONNX "open_width.onnx");
    do {
        fail_alloc_init(&f.fail, ++k);
        f.code = open_model(&f, &(struct ifd_model_options){0});
        if (f.code == IFD_OK) {
            f.code = run(&f, SHAPE(2, 3, 2));
        }
        EXPECT_CODE(f.code, f.fail.failed ? IFD_NOMEM : IFD_OK, &f.err);
        const bool failed = f.fail.failed;
        close_model(&f);
        if (!failed) {
            break;
        }
    } while (true);
    EXPECT(k > 20);
    ifd_release_tensor(ifd_alloc_system(), (void *)f.file.data, f.file.size);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_request_decides_open_dimensions),
        T(shapes_that_were_there_take_no_memory),
        T(the_latest_shapes_are_kept_within_the_limit),
        T(a_shape_beyond_the_limit_is_refused),
        T(a_shape_that_contradicts_the_file_is_refused),
        T(memory_for_shapes_is_asked_for),
        T(without_memory_for_shapes_the_examples_still_run),
        T(time_is_no_batch),
        T(dimensions_of_one_symbol_have_one_size),
        T(a_batch_alone_is_open_and_free),
        T(the_caller_may_bind_what_the_file_leaves_open),
        T(the_caller_may_open_what_the_file_fixes),
        T(every_failed_allocation_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
