/* Models whose dimensions a request decides. */
#include "tests/support/graph.h"
#include "tests/support/model_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ONNX   IFD_SOURCE_DIR "/tests/fuzz/corpus/onnx/"
#define TFLITE IFD_SOURCE_DIR "/tests/fuzz/corpus/tflite/"
#define MOST   1024 /* elements of an input */

static float x[MOST];

static size_t elements(const struct ifd_shape *shape)
{
    size_t count = 1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        count *= (size_t)shape->dim[d];
    }
    return count;
}

/* Runs 1, 2, 3 … in a shape; x[i] = i + 1. */
static enum ifd_code run(struct model_file *f, struct ifd_shape shape)
{
    const size_t count = elements(&shape);
    REQUIRE(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)(i + 1);
    }
    f->in[0] = (struct ifd_tensor){.dtype = IFD_F32,
                                   .shape = shape,
                                   .data = x,
                                   .bytes = count * sizeof(float),
                                   .capacity = sizeof(x)};
    return model_file_run(f);
}

/* Of open_width: y = 2x, z = the sum over dimension 1. */
static void expect_width(struct model_file *f, int64_t n, int64_t w)
{
    REQUIRE_OK(run(f, SHAPE(n, w, 2)), &f->err);
    EXPECT(ifd_shape_equal(&f->out[0].shape, &SHAPE(n, w, 2)));
    EXPECT(ifd_shape_equal(&f->out[1].shape, &SHAPE(n, 2)));
    const float *y = f->out[0].data, *z = f->out[1].data;
    for (int64_t i = 0; i < n * w * 2; i++) {
        EXPECT_CLOSE(y[i], 2 * x[i], 0);
    }
    for (int64_t i = 0; i < n * 2; i++) {
        float sum = 0;
        for (int64_t k = 0; k < w; k++) {
            sum += x[(i / 2 * w + k) * 2 + i % 2];
        }
        EXPECT_CLOSE(z[i], sum, 0);
    }
}

static void a_request_decides_open_dimensions(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx",
                     &(struct model_file_options){.model = {.releases_weights = true}});
    EXPECT(f.info->has_open_dims);
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, -1, 2)));
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(-1, -1, 2)));
    EXPECT(ifd_shape_equal(&f.info->output[1].desc.shape, &SHAPE(-1, 2)));
    expect_width(&f, 1, 5);
    expect_width(&f, 3, 1);
    expect_width(&f, 1, f.info->input[0].example.dim[1]);
    expect_width(&f, 1, 5);
    expect_width(&f, 1, 0);
    model_file_end(&f);
}

static void shapes_that_were_there_take_no_memory(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx", NULL);
    expect_width(&f, 1, 5);
    expect_width(&f, 2, 5);
    const long before = atomic_load(&f.fail.requests);
    expect_width(&f, 1, 5);
    expect_width(&f, 2, 5);
    EXPECT_INT(atomic_load(&f.fail.requests), before);
    model_file_end(&f);
}

static void the_latest_shapes_are_kept_within_the_limit(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx",
                     &(struct model_file_options){.model = {.shape_bytes = 1000000}});
    const long before = atomic_load(&f.fail.live_bytes);
    for (int64_t w = 1; w < 100; w++) {
        expect_width(&f, 1, w);
        EXPECT(atomic_load(&f.fail.live_bytes) - before <= 1300000); /* and the next one's plan */
    }
    model_file_end(&f);
}

/* Results of a batch that takes several runs have memory of their own: variants share it, too. */
static void so_is_the_memory_for_results_of_many_samples(void)
{
    struct model_file f;
    model_file_begin(
        &f, ONNX "open_width.onnx",
        &(struct model_file_options){.model = {.shape_bytes = 8000000}, .batch = 1024});
    const long before = atomic_load(&f.fail.live_bytes);
    for (int64_t w = 401; w < 420; w++) {
        f.batch = 1;
        expect_width(&f, 1, w);
        EXPECT(atomic_load(&f.fail.live_bytes) - before <= 9000000);
    }
    model_file_end(&f);
}

/* The caller hands in what the run before set, in another shape each time. */
static void results_may_be_where_the_last_run_left_them(void)
{
    static const int64_t wide[] = {6, 500, 7, 400, 450, 3};
    struct model_file f;
    struct ifd_tensor out[MODEL_FILE_PORTS] = {0};
    model_file_begin(&f, ONNX "open_width.onnx", NULL);
    for (size_t k = 0; k < sizeof(wide) / sizeof(wide[0]); k++) {
        const size_t count = (size_t)wide[k] * 2, bytes = count * sizeof(float);
        x[count - 1] = (float)count;
        f.in[0] = (struct ifd_tensor){.dtype = IFD_F32,
                                      .shape = SHAPE(1, wide[k], 2),
                                      .data = x,
                                      .bytes = bytes,
                                      .capacity = sizeof(x)};
        const struct ifd_io io = {.input = f.in, .output = out, .batch = 1};
        REQUIRE_OK(ifd_instance_run(f.instance, &io, 1, &f.err), &f.err);
        EXPECT_INT(out[0].bytes, bytes);
        EXPECT_CLOSE(((const float *)out[0].data)[2 * wide[k] - 1], 4 * (double)wide[k], 0);
    }
    model_file_end(&f);
}

static void hundreds_of_small_plans_are_kept(void)
{
    struct model_file f;
    long before = 0;
    model_file_begin(&f, ONNX "open_width.onnx", NULL);
    for (int turn = 0; turn < 2; turn++) {
        before = atomic_load(&f.fail.requests);
        for (int64_t w = 1; w < 300; w++) {
            expect_width(&f, 1, w);
        }
    }
    EXPECT_INT(atomic_load(&f.fail.requests), before);
    model_file_end(&f);
}

/* What the last run left may be read by the next one, which would write there. */
static void results_may_be_inputs_of_the_next_run(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx", NULL);
    expect_width(&f, 1, 6);
    f.in[0] = f.out[0];
    REQUIRE_OK(model_file_run(&f), &f.err);
    for (int i = 0; i < 12; i++) {
        EXPECT_CLOSE(((const float *)f.out[0].data)[i], 4 * (i + 1), 0);
    }
    model_file_end(&f);
}

static void a_shape_beyond_the_limit_is_refused(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx",
                     &(struct model_file_options){.model = {.shape_bytes = 1000}});
    EXPECT_CODE(run(&f, SHAPE(1, 500, 2)), IFD_TOO_LARGE, &f.err);
    EXPECT_HAS(f.err.text, "the limit of");
    model_file_end(&f);
}

static void a_shape_that_contradicts_the_file_is_refused(void)
{
    static const struct ifd_shape shapes[] = {SHAPE(1, 5, 3), SHAPE(5, 2)};
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx", NULL);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        EXPECT_CODE(run(&f, shapes[i]), IFD_INVALID, &f.err);
        EXPECT_HAS(f.err.text, "expected [-1,-1,2], any size for -1");
    }
    expect_width(&f, 1, 5);
    model_file_end(&f);
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
    struct model_file f;
    struct holder holder = {.limit = UINT64_MAX};
    model_file_begin(
        &f, ONNX "open_width.onnx",
        &(struct model_file_options){.model = {.hold_shapes = hold, .hold_context = &holder}});
    expect_width(&f, 1, 5);
    const uint64_t one = holder.held;
    EXPECT(one > 0);
    expect_width(&f, 1, 6);
    const uint64_t two = holder.held;
    EXPECT(two > one && two < 2 * one); /* they share memory for tensors */
    holder.limit = two;                 /* the older one gives way */
    expect_width(&f, 1, 7);
    EXPECT(holder.held > one && holder.held <= two);
    model_file_end(&f);
    EXPECT_INT(holder.held, 0);
}

static void without_memory_for_shapes_the_examples_still_run(void)
{
    struct model_file f;
    struct holder holder = {.limit = 0};
    model_file_begin(
        &f, ONNX "open_width.onnx",
        &(struct model_file_options){.model = {.hold_shapes = hold, .hold_context = &holder}});
    EXPECT_CODE(run(&f, SHAPE(1, 8, 2)), IFD_NOMEM, &f.err);
    EXPECT_HAS(f.err.text, "held enough");
    expect_width(&f, 1, f.info->input[0].example.dim[1]);
    model_file_end(&f);
}

/* With one step a sequence looks like a sample: y[t] = tanh(x[t] + y[t-1]). */
static void time_is_no_batch(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_time.onnx", NULL);
    EXPECT(f.info->has_open_dims);
    EXPECT(!f.info->batch_is_free);
    REQUIRE_OK(run(&f, SHAPE(3, 1, 1)), &f.err);
    const float *y = f.out[0].data;
    double state = 0;
    for (int t = 0; t < 3; t++) {
        state = tanh(t + 1 + state);
        EXPECT_CLOSE(y[t], state, 1e-6);
    }
    model_file_end(&f);
}

/* The first dimension of x is the second one of h. */
static void dimensions_of_one_symbol_have_one_size(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_shared.onnx", NULL);
    EXPECT(ifd_shape_equal(&f.info->input[1].desc.shape, &SHAPE(2, -1, 2)));
    EXPECT_INT(f.info->input[1].example.dim[1], f.info->input[0].example.dim[0]);
    model_file_end(&f);
}

static void run_apart(struct model_file *f, int64_t n, int64_t m)
{
    REQUIRE(f->info->input_count == 2);
    f->in[1] = (struct ifd_tensor){.dtype = IFD_F32,
                                   .shape = SHAPE(m, 2),
                                   .data = x,
                                   .bytes = (size_t)m * 2 * sizeof(float),
                                   .capacity = sizeof(x)};
    REQUIRE_OK(run(f, SHAPE(n, 2)), &f->err);
    const int64_t most = n > m ? n : m;
    const float *y = f->out[0].data, *z = f->out[1].data;
    EXPECT(ifd_shape_equal(&f->out[0].shape, &SHAPE(most, 2)));
    EXPECT(ifd_shape_equal(&f->out[1].shape, &SHAPE(m, 2)));
    for (int64_t i = 0; i < 2 * most; i++) {
        EXPECT_CLOSE(y[i], x[i % (2 * n)] + x[i % (2 * m)], 0);
    }
    for (int64_t i = 0; i < 2 * m; i++) {
        EXPECT_CLOSE(z[i], -x[i], 0);
    }
}

/* y = x + k, z = -k: nothing says that x has as many samples as k. */
static void first_dimensions_of_other_names_have_sizes_of_their_own(void)
{
    for (uint32_t batch = 1; batch <= 4; batch += 3) {
        struct model_file f;
        model_file_begin(&f, ONNX "open_apart.onnx", &(struct model_file_options){.batch = batch});
        EXPECT(f.info->has_open_dims);
        run_apart(&f, 1, 1);
        run_apart(&f, 3, 1);
        run_apart(&f, 1, 3);
        run_apart(&f, 3, 3);
        model_file_end(&f);
    }
}

/* With a batch of one, Squeeze leaves no dimension. */
static void an_output_has_the_rank_of_more_samples(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_squeezed.onnx", NULL);
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(-1)));
    REQUIRE_OK(run(&f, SHAPE(3, 1)), &f.err);
    EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(3)));
    EXPECT_CLOSE(((const float *)f.out[0].data)[2], 3, 0);
    REQUIRE_OK(run(&f, SHAPE(1, 1)), &f.err);
    EXPECT_INT(f.out[0].shape.rank, 0);
    EXPECT_CLOSE(((const float *)f.out[0].data)[0], 1, 0);
    model_file_end(&f);
}

static void a_batch_alone_is_open_and_free(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "conv.onnx", NULL);
    EXPECT(!f.info->has_open_dims);
    EXPECT(f.info->batch_is_free);
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, 2, 6, 6)));
    model_file_end(&f);
}

static void the_caller_may_bind_what_the_file_leaves_open(void)
{
    const struct ifd_input_shape shape = {.name = "x", .shape = SHAPE(-1, 7, 2)};
    struct model_file f;
    model_file_begin(
        &f, ONNX "open_width.onnx",
        &(struct model_file_options){.model = {.input_shape = &shape, .input_shape_count = 1}});
    EXPECT(!f.info->has_open_dims);
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, 7, 2)));
    expect_width(&f, 1, 7);
    model_file_end(&f);
}

/* Of signature_of_open_sizes: "other" and "b" are the second input, though the signature calls the
 * first one b. */
static void the_caller_may_bind_by_the_name_of_a_signature(void)
{
    static const char *const names[] = {"other", "b"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct ifd_input_shape shape = {.name = names[i], .shape = SHAPE(-1, 7)};
        struct model_file f;
        model_file_begin(
            &f, TFLITE "good_signature_of_open_sizes.tflite",
            &(struct model_file_options){.model = {.input_shape = &shape, .input_shape_count = 1}});
        EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, -1)));
        EXPECT(ifd_shape_equal(&f.info->input[1].desc.shape, &SHAPE(-1, 7)));
        model_file_end(&f);
    }
}

static void the_caller_may_open_what_the_file_fixes(void)
{
    const struct ifd_input_shape shape = {.name = "x", .shape = SHAPE(-1, -1, 4, 2)};
    struct model_file f;
    model_file_begin(
        &f, TFLITE "good_relu.tflite",
        &(struct model_file_options){.model = {.input_shape = &shape, .input_shape_count = 1}});
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(1, -1, 4, 2)));
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(1, -1, 4, 2)));
    REQUIRE_OK(run(&f, SHAPE(1, 9, 4, 2)), &f.err);
    EXPECT_CLOSE(((const float *)f.out[0].data)[71], 72, 0);
    model_file_end(&f);
}

/* Reshape to [2,3,5]. */
static void a_request_brings_sizes_that_no_trial_found(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_sized.onnx", NULL);
    EXPECT(f.info->has_open_dims);
    EXPECT_HAS(f.info->unsized, "target [2,3,5] does not fit");
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, -1)));
    EXPECT(ifd_shape_equal(&f.info->output[0].desc.shape, &SHAPE(2, 3, -1)));
    for (int64_t n = 1; n <= 6; n++) {
        if (30 % n != 0) {
            EXPECT_CODE(run(&f, SHAPE(n, 6)), IFD_INVALID, &f.err);
            EXPECT_HAS(f.err.text, "cannot take these shapes: Reshape (node 0");
            continue;
        }
        REQUIRE_OK(run(&f, SHAPE(n, 30 / n)), &f.err);
        EXPECT(ifd_shape_equal(&f.out[0].shape, &SHAPE(2, 3, 5)));
        EXPECT_CLOSE(((const float *)f.out[0].data)[29], 30, 0);
    }
    EXPECT_CODE(run(&f, f.info->input[0].example), IFD_INVALID, &f.err);
    model_file_end(&f);
}

/* A matrix [1,3] times x. */
static void a_first_dimension_may_be_no_batch(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_third.onnx", NULL);
    EXPECT_INT(f.info->unsized[0], '\0');
    EXPECT(f.info->has_open_dims);
    EXPECT(ifd_shape_equal(&f.info->input[0].desc.shape, &SHAPE(-1, 2)));
    EXPECT_INT(f.info->input[0].example.dim[0], 3);
    REQUIRE_OK(run(&f, SHAPE(3, 2)), &f.err);
    EXPECT_CLOSE(((const float *)f.out[0].data)[0], 1 + 3 + 5, 0);
    EXPECT_CODE(run(&f, SHAPE(2, 2)), IFD_INVALID, &f.err);
    model_file_end(&f);
}

/* Its Reshape of a constant fits no size of x. */
static void a_fault_that_is_the_same_in_every_size_is_of_the_file(void)
{
    struct model_file f;
    model_file_read(&f, ONNX "open_faulty.onnx");
    EXPECT_CODE(model_file_open(&f, &(struct model_file_options){0}), IFD_CORRUPT, &f.err);
    EXPECT_HAS(f.err.text, "Reshape (node 1");
    model_file_close(&f);
    model_file_forget(&f);
}

static void a_fault_of_the_file_is_found_without_sizes(void)
{
    static const char old[] = "Reshape", new[] = "Reshaqe";
    struct model_file f;
    model_file_read(&f, ONNX "open_sized.onnx");
    uint8_t *at = memmem((void *)(uintptr_t)f.content.data, f.content.size, old, strlen(old));
    REQUIRE(at);
    memcpy(at, new, strlen(new));
    EXPECT_CODE(model_file_open(&f, &(struct model_file_options){0}), IFD_UNSUPPORTED, &f.err);
    EXPECT_HAS(f.err.text, "operators that are not supported: Reshaqe (1, first node 0)");
    model_file_close(&f);
    model_file_forget(&f);
}

static enum ifd_code run_2_15(struct model_file *f)
{
    return run(f, SHAPE(2, 15));
}

static void every_failed_allocation_without_sizes_is_reported(void)
{
    model_file_torture(&(struct model_file_torture){
        .path = ONNX "open_sized.onnx", .run = run_2_15, .rounds_at_least = 20});
}

/* Requests of these samples and widths, in one run of open_width; x counts through all of them. */
static enum ifd_code run_together(struct model_file *f, const int64_t (*size)[2], uint32_t count)
{
    static struct ifd_tensor in[4], out[4][2];
    struct ifd_io io[4];
    size_t at = 0;
    REQUIRE(count <= 4);
    memset(out, 0, sizeof(out));
    for (uint32_t k = 0; k < count; k++) {
        const size_t elements_of = (size_t)(size[k][0] * size[k][1] * 2);
        in[k] = (struct ifd_tensor){.dtype = IFD_F32,
                                    .shape = SHAPE(size[k][0], size[k][1], 2),
                                    .data = x + at,
                                    .bytes = elements_of * sizeof(float),
                                    .capacity = elements_of * sizeof(float)};
        io[k] = (struct ifd_io){.input = &in[k], .output = out[k], .batch = size[k][0]};
        at += elements_of;
    }
    for (size_t i = 0; i < at; i++) {
        x[i] = (float)(i + 1);
    }
    const enum ifd_code code = ifd_instance_run(f->instance, io, count, &f->err);
    for (uint32_t k = 0; k < count && code == IFD_OK; k++) {
        EXPECT(ifd_shape_equal(&out[k][0].shape, &in[k].shape));
        EXPECT(ifd_shape_equal(&out[k][1].shape, &SHAPE(size[k][0], 2)));
        const float *y = out[k][0].data, *from = in[k].data;
        for (size_t i = 0; i < in[k].bytes / sizeof(float); i++) {
            EXPECT_CLOSE(y[i], 2 * from[i], 0);
        }
    }
    return code;
}

static void requests_of_equal_shapes_share_a_run(void)
{
    static const int64_t wide[3][2] = {{1, 5}, {2, 5}, {1, 5}}, narrow[2][2] = {{1, 1}, {3, 1}};
    static const int64_t mixed[2][2] = {{1, 5}, {1, 6}}, many[2][2] = {{3, 5}, {2, 5}};
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx", &(struct model_file_options){.batch = 4});
    EXPECT(f.info->has_open_dims && f.info->batch_is_free && f.info->input[0].batched);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(run_together(&f, wide, 3), &f.err);
        REQUIRE_OK(run_together(&f, narrow, 2), &f.err);
        REQUIRE_OK(run_together(&f, wide, 1), &f.err);
    }
    EXPECT_CODE(run_together(&f, mixed, 2), IFD_INVALID, &f.err);
    EXPECT_HAS(f.err.text, "shape [1,6,2], expected [-1,5,2]");
    EXPECT_CODE(run_together(&f, many, 2), IFD_INVALID, &f.err);
    REQUIRE_OK(run_together(&f, many, 1), &f.err);
    model_file_end(&f);
}

static enum ifd_code run_with(size_t limit, uint32_t batch, const int64_t (*size)[2],
                              uint32_t count, struct ifd_err *ret_err)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx",
                     &(struct model_file_options){.model = {.shape_bytes = limit}, .batch = batch});
    const enum ifd_code code = run_together(&f, size, count);
    *ret_err = f.err;
    model_file_end(&f);
    return code;
}

/* With the least limit that is enough for it. */
static void a_request_alone_runs_where_a_shared_plan_is_too_large(void)
{
    static const int64_t size[2][2] = {{1, 5}, {1, 5}};
    struct ifd_err err = {0};
    size_t limit = 1000;
    while (run_with(limit, 1, size, 1, &err) == IFD_TOO_LARGE && limit < 1000000) {
        limit += 1000;
    }
    REQUIRE_OK(run_with(limit, 1, size, 1, &err), &err);
    REQUIRE_OK(run_with(limit, 4, size, 1, &err), &err);
    EXPECT_CODE(run_with(limit, 4, size, 2, &err), IFD_TOO_LARGE, &err);
}

/* The holder has as much as a request alone needs. */
static void a_request_alone_runs_where_memory_for_a_shared_plan_is_refused(void)
{
    static const int64_t size[2][2] = {{1, 5}, {1, 5}};
    struct holder holder = {.limit = UINT64_MAX};
    struct model_file_options options = {.model = {.hold_shapes = hold, .hold_context = &holder}};
    struct model_file f;
    model_file_begin(&f, ONNX "open_width.onnx", &options);
    REQUIRE_OK(run_together(&f, size, 1), &f.err);
    holder.limit = holder.held;
    model_file_end(&f);
    options.batch = 4;
    model_file_begin(&f, ONNX "open_width.onnx", &options);
    REQUIRE_OK(run_together(&f, size, 1), &f.err);
    EXPECT_INT(holder.held, holder.limit);
    EXPECT_CODE(run_together(&f, size, 2), IFD_TOO_LARGE, &f.err);
    holder.limit = 0;
    EXPECT_CODE(run_together(&f, &size[1], 1), IFD_OK, &f.err);
    model_file_end(&f);
    EXPECT_INT(holder.held, 0);
}

static void a_shared_plan_that_is_too_large_is_not_made_for_each_batch(void)
{
    static const int64_t size[2][2] = {{1, 5}, {1, 5}};
    struct ifd_err err = {0};
    struct model_file f;
    size_t limit = 1000;
    while (run_with(limit, 1, size, 1, &err) == IFD_TOO_LARGE && limit < 1000000) {
        limit += 1000;
    }
    model_file_begin(&f, ONNX "open_width.onnx",
                     &(struct model_file_options){.model = {.shape_bytes = limit}, .batch = 4});
    EXPECT_CODE(run_together(&f, size, 2), IFD_TOO_LARGE, &f.err);
    REQUIRE_OK(run_together(&f, size, 1), &f.err);
    const long before = atomic_load(&f.fail.requests);
    EXPECT_CODE(run_together(&f, size, 2), IFD_TOO_LARGE, &f.err);
    REQUIRE_OK(run_together(&f, size, 1), &f.err);
    EXPECT_INT(atomic_load(&f.fail.requests), before);
    model_file_end(&f);
}

static void requests_share_no_run_where_samples_depend_on_each_other(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_shared.onnx", NULL); /* n is also a second dimension */
    EXPECT(f.info->has_open_dims && !f.info->batch_is_free && !f.info->input[0].batched);
    model_file_end(&f);
}

/* y of x = 2. */
static void expect_of_2(const char *path, int64_t n, double y)
{
    struct model_file f;
    model_file_begin(&f, path, &(struct model_file_options){.batch = 4});
    f.batch = n;
    REQUIRE_OK(run(&f, SHAPE(n, 2)), &f.err);
    EXPECT_CLOSE(((const float *)f.out[0].data)[1], y, 0);
    model_file_end(&f);
}

/* x times the number of samples; to its power, which are other operators for 2 and 3; another
 * branch for one. */
static void what_is_computed_with_the_number_of_samples_is_not_shared(void)
{
    for (int64_t n = 1; n <= 4; n++) {
        expect_of_2(ONNX "open_counted.onnx", n, 2 * (double)n);
        expect_of_2(ONNX "open_powers.onnx", n, pow(2, (double)n));
        expect_of_2(ONNX "open_branch.onnx", n, n > 1 ? -2 : -4);
    }
}

/* Requests of one sample and this width, alone or two in a run, of open_counted_wide. */
static enum ifd_code run_wide(struct model_file *f, uint32_t count, int64_t width)
{
    static const float twos[400] = {2};
    struct ifd_tensor in[2], out[2] = {{0}};
    struct ifd_io io[2];
    for (uint32_t k = 0; k < count; k++) {
        in[k] = (struct ifd_tensor){.dtype = IFD_F32,
                                    .shape = SHAPE(1, width),
                                    .data = (void *)(uintptr_t)twos,
                                    .bytes = (size_t)width * sizeof(float),
                                    .capacity = sizeof(twos)};
        io[k] = (struct ifd_io){.input = &in[k], .output = &out[k], .batch = 1};
    }
    const enum ifd_code code = ifd_instance_run(f->instance, io, count, &f->err);
    for (uint32_t k = 0; k < count && code == IFD_OK; k++) {
        EXPECT_CLOSE(*(const float *)out[k].data, 2, 0);
    }
    return code;
}

/* However many came before. */
static void shapes_that_cannot_be_shared_do_not_keep_others_from_it(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "open_counted_wide.onnx", &(struct model_file_options){.batch = 4});
    EXPECT(f.info->has_open_dims && f.info->batch_is_free);
    REQUIRE_OK(run_wide(&f, 1, 200), &f.err);
    EXPECT_CODE(run_wide(&f, 2, 200), IFD_TOO_LARGE, &f.err);
    REQUIRE_OK(run_wide(&f, 1, 5), &f.err);
    REQUIRE_OK(run_wide(&f, 1, 5), &f.err);
    REQUIRE_OK(run_wide(&f, 2, 5), &f.err);
    for (int64_t width = 201; width < 400; width++) {
        REQUIRE_OK(run_wide(&f, 1, width), &f.err);
    }
    uint32_t alone = 0;
    while (run_wide(&f, 2, 6) != IFD_OK && alone < 1000) {
        REQUIRE_OK(run_wide(&f, 1, 6), &f.err);
        alone++;
    }
    REQUIRE_OK(run_wide(&f, 2, 6), &f.err);
    EXPECT(alone > 0 && alone <= 64);
    model_file_end(&f);
}

/* Likewise where the number of samples alone is open. Further requests find what others left. */
static void what_the_number_of_samples_decides_is_decided_by_each_request(void)
{
    static const int64_t batch[] = {1, 2, 3, 4, 2, 1};
    struct model_file factor, branch, rows, columns;
    const struct model_file_options options = {.batch = 4};
    model_file_begin(&factor, ONNX "batch_factor.onnx", &options);
    model_file_begin(&branch, ONNX "batch_branch.onnx", &options);
    model_file_begin(&rows, ONNX "batch_rows.onnx", &options);
    model_file_begin(&columns, ONNX "batch_columns.onnx", &options);
    for (size_t i = 0; i < sizeof(batch) / sizeof(batch[0]); i++) {
        const int64_t n = batch[i];
        factor.batch = branch.batch = rows.batch = columns.batch = n;
        REQUIRE_OK(run(&factor, SHAPE(n, 2)), &factor.err);
        EXPECT_CLOSE(((const float *)factor.out[0].data)[1], 2 * (double)n, 0); /* x = 2 */
        REQUIRE_OK(run(&branch, SHAPE(n, 2)), &branch.err);
        EXPECT_CLOSE(((const float *)branch.out[0].data)[1], n > 1 ? -2 : -4, 0);
        REQUIRE_OK(run(&rows, SHAPE(n, 2)), &rows.err);
        EXPECT(ifd_shape_equal(&rows.out[0].shape, &SHAPE(n < 2 ? n : 2, 2)));
        REQUIRE_OK(run(&columns, SHAPE(n, 6)), &columns.err);
        EXPECT(ifd_shape_equal(&columns.out[0].shape, &SHAPE(n, n)));
    }
    model_file_end(&factor);
    model_file_end(&branch);
    model_file_end(&rows);
    model_file_end(&columns);
}

/* Twice x from the fifth sample on, or with five; else -3 x. Numbers that no reading has had. */
static void a_threshold_of_samples_is_that_of_each_request(void)
{
    static const char *const way[] = {
        "batch_above",  "batch_least",    "batch_part",     "batch_listed", "batch_turned",
        "batch_filled", "batch_diagonal", "batch_windowed", "batch_fifth",  "open_above"};
    static const int64_t batch[] = {1, 6, 2, 5, 4, 16, 3};
    for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
        struct model_file f;
        char path[256];
        (void)snprintf(path, sizeof(path), ONNX "%s.onnx", way[i]);
        model_file_begin(&f, path, &(struct model_file_options){.batch = 16});
        EXPECT(f.info->has_open_dims);
        for (size_t k = 0; k < sizeof(batch) / sizeof(batch[0]); k++) {
            const int64_t n = f.batch = batch[k];
            const bool is_above = strcmp(way[i], "batch_fifth") == 0 ? n == 5 : n > 4;
            REQUIRE_OK(run(&f, SHAPE(n, 2)), &f.err);
            EXPECT_CLOSE(((const float *)f.out[0].data)[1], is_above ? 4 : -6, 0); /* x = 2 */
        }
        model_file_end(&f);
    }
}

/* What is the same for every number of samples keeps none from another. */
static void a_condition_that_always_holds_leaves_the_batch_free(void)
{
    struct model_file f;
    model_file_begin(&f, ONNX "batch_always.onnx", &(struct model_file_options){.batch = 16});
    EXPECT(f.info->batch_is_free && !f.info->has_open_dims);
    f.batch = 16;
    REQUIRE_OK(run(&f, SHAPE(16, 2)), &f.err);
    EXPECT_CLOSE(((const float *)f.out[0].data)[1], 4, 0);
    model_file_end(&f);
}

/* Axes, scales, and constants whose size is that number. */
static void sizes_and_scales_follow_the_number_of_samples(void)
{
    static const int64_t batch[] = {1, 3, 2};
    struct model_file axis, axes, scale, row, weights;
    const struct model_file_options options = {.batch = 4};
    model_file_begin(&axis, ONNX "batch_axis.onnx", &options);
    model_file_begin(&axes, ONNX "batch_axes.onnx", &options);
    model_file_begin(&scale, ONNX "batch_scale.onnx", &options);
    model_file_begin(&row, ONNX "batch_row.onnx", &options);
    model_file_begin(&weights, ONNX "batch_weights.onnx", &options);
    for (size_t i = 0; i < sizeof(batch) / sizeof(batch[0]); i++) {
        const int64_t n = batch[i];
        axis.batch = axes.batch = scale.batch = row.batch = weights.batch = n;
        REQUIRE_OK(run(&axis, SHAPE(n, 3, 3, 3)), &axis.err);
        EXPECT_CLOSE(((const float *)axis.out[0].data)[2], n == 3 ? 24 : n == 2 ? 18 : 36, 0);
        REQUIRE_OK(run(&axes, SHAPE(n, 3, 3, 3)), &axes.err);
        EXPECT(ifd_shape_equal(&axes.out[0].shape, &SHAPE(n, 1, n > 1 ? 1 : 3, n > 2 ? 1 : 3)));
        REQUIRE_OK(run(&scale, SHAPE(n, 2)), &scale.err);
        EXPECT_CLOSE(((const float *)scale.out[0].data)[1], n == 3 ? 3 : 2, 0);
        const enum ifd_code code = run(&row, SHAPE(n, 3));
        EXPECT_CODE(code, n == 2 ? IFD_INVALID : IFD_OK, &row.err);
        if (code == IFD_OK) {
            EXPECT_CLOSE(((const float *)row.out[0].data)[2], n == 3 ? 5 : 3, 0);
        }
        REQUIRE_OK(run(&weights, SHAPE(n, 3)), &weights.err);
        EXPECT(ifd_shape_equal(&weights.out[0].shape, &SHAPE(n, n)));
    }
    model_file_end(&axis);
    model_file_end(&axes);
    model_file_end(&scale);
    model_file_end(&row);
    model_file_end(&weights);
}

static enum ifd_code run_4_3_together(struct model_file *f)
{
    static const int64_t size[2][2] = {{1, 3}, {3, 3}};
    return run_together(f, size, 2);
}

static void every_failed_allocation_of_a_shared_run_is_reported(void)
{
    model_file_torture(&(struct model_file_torture){.path = ONNX "open_width.onnx",
                                                    .options = {.batch = 4},
                                                    .run = run_4_3_together,
                                                    .rounds_at_least = 20});
}

static enum ifd_code run_2_2(struct model_file *f)
{
    f->batch = 2;
    return run(f, SHAPE(2, 2));
}

static void every_failed_allocation_of_a_comparison_is_reported(void)
{
    model_file_torture(&(struct model_file_torture){.path = ONNX "batch_always.onnx",
                                                    .options = {.batch = 4},
                                                    .run = run_2_2,
                                                    .rounds_at_least = 20});
}

static enum ifd_code run_2_3(struct model_file *f)
{
    return run(f, SHAPE(2, 3, 2));
}

static void every_failed_allocation_is_reported(void)
{
    model_file_torture(&(struct model_file_torture){
        .path = ONNX "open_width.onnx", .run = run_2_3, .rounds_at_least = 20});
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_request_decides_open_dimensions),
        T(shapes_that_were_there_take_no_memory),
        T(the_latest_shapes_are_kept_within_the_limit),
        T(so_is_the_memory_for_results_of_many_samples),
        T(results_may_be_where_the_last_run_left_them),
        T(hundreds_of_small_plans_are_kept),
        T(results_may_be_inputs_of_the_next_run),
        T(a_shape_beyond_the_limit_is_refused),
        T(a_shape_that_contradicts_the_file_is_refused),
        T(memory_for_shapes_is_asked_for),
        T(without_memory_for_shapes_the_examples_still_run),
        T(time_is_no_batch),
        T(dimensions_of_one_symbol_have_one_size),
        T(first_dimensions_of_other_names_have_sizes_of_their_own),
        T(an_output_has_the_rank_of_more_samples),
        T(a_batch_alone_is_open_and_free),
        T(the_caller_may_bind_what_the_file_leaves_open),
        T(the_caller_may_bind_by_the_name_of_a_signature),
        T(the_caller_may_open_what_the_file_fixes),
        T(a_request_brings_sizes_that_no_trial_found),
        T(a_first_dimension_may_be_no_batch),
        T(a_fault_of_the_file_is_found_without_sizes),
        T(a_fault_that_is_the_same_in_every_size_is_of_the_file),
        T(every_failed_allocation_without_sizes_is_reported),
        T(requests_of_equal_shapes_share_a_run),
        T(a_request_alone_runs_where_a_shared_plan_is_too_large),
        T(a_request_alone_runs_where_memory_for_a_shared_plan_is_refused),
        T(a_shared_plan_that_is_too_large_is_not_made_for_each_batch),
        T(requests_share_no_run_where_samples_depend_on_each_other),
        T(what_is_computed_with_the_number_of_samples_is_not_shared),
        T(shapes_that_cannot_be_shared_do_not_keep_others_from_it),
        T(what_the_number_of_samples_decides_is_decided_by_each_request),
        T(a_threshold_of_samples_is_that_of_each_request),
        T(a_condition_that_always_holds_leaves_the_batch_free),
        T(sizes_and_scales_follow_the_number_of_samples),
        T(every_failed_allocation_of_a_shared_run_is_reported),
        T(every_failed_allocation_of_a_comparison_is_reported),
        T(every_failed_allocation_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
