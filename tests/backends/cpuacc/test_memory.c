/* Running a model allocates nothing from the first run on: counts all calls of the system's
 * allocator, by this program and by libraries. */
#include "backends/cpuacc/cpuacc.h"
#include "engine/base/file.h"
#include "inferd/engine.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers replace the allocator. */
#if defined(__GLIBC__) && !defined(IFD_SANITIZED)
#define IS_COUNTED 1
#else
#define IS_COUNTED 0
#endif

static atomic_long requests;

#if IS_COUNTED
#define EXPORTED __attribute__((visibility("default"))) /* or libraries would not call these */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);

EXPORTED void *malloc(size_t size)
{
    requests++;
    return __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    requests++;
    return __libc_calloc(count, size);
}

EXPORTED void *realloc(void *ptr, size_t size)
{
    requests++;
    return __libc_realloc(ptr, size);
}

EXPORTED void *aligned_alloc(size_t align, size_t size)
{
    requests++;
    return __libc_memalign(align, size);
}

EXPORTED int posix_memalign(void **ret, size_t align, size_t size)
{
    requests++;
    *ret = __libc_memalign(align, size);
    return *ret ? 0 : 12; /* ENOMEM */
}
#endif

enum { INPUTS_MAX = 2, OUTPUTS_MAX = 4, RUNS = 2 };

struct loaded {
    struct ifd_bytes file;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    struct ifd_tensor in[INPUTS_MAX];
};

static struct loaded load(const char *path, bool is_exact, uint32_t threads)
{
    static const struct ifd_backend *const backend = &ifd_backend_cpuacc;
    const struct ifd_alloc *alloc = ifd_alloc_system();
    const struct ifd_engine_options options = {
        .alloc = alloc, .backends = &backend, .backend_count = 1, .exact = is_exact};
    const struct ifd_model_options how = {.max_threads = threads};
    struct loaded m = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_file_read(path, INT32_MAX, alloc, &m.file, &err), &err);
    REQUIRE_OK(ifd_engine_create(&options, &m.engine, &err), &err);
    REQUIRE_OK(ifd_model_load(m.engine, m.file, &how, &m.model, &err), &err);
    REQUIRE_OK(ifd_instance_create(m.model, &(struct ifd_instance_options){.threads = threads},
                                   &m.instance, &err),
               &err);
    const struct ifd_model_info *info = ifd_model_info(m.model);
    REQUIRE(info->input_count <= INPUTS_MAX && info->output_count <= OUTPUTS_MAX);
    for (uint32_t i = 0; i < info->input_count; i++) {
        struct ifd_tensor *in = &m.in[i];
        *in = (struct ifd_tensor){.dtype = info->input[i].desc.dtype,
                                  .shape = info->input[i].desc.shape};
        in->bytes = ifd_dtype_bytes(in->dtype);
        for (uint32_t d = 0; d < in->shape.rank; d++) {
            in->shape.dim[d] = in->shape.dim[d] > 0 ? in->shape.dim[d] : 1;
            in->bytes *= (size_t)in->shape.dim[d];
        }
        in->capacity = in->bytes;
        in->data = calloc(in->bytes, 1);
        REQUIRE(in->data != NULL);
    }
    return m;
}

static void unload(struct loaded *m)
{
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        free(m->in[i].data);
    }
    ifd_instance_destroy(m->instance);
    ifd_model_destroy(m->model);
    ifd_engine_destroy(m->engine);
    ifd_release_tensor(ifd_alloc_system(), (void *)m->file.data, m->file.size);
}

static void expect_no_allocation(const char *path)
{
    for (uint32_t round = 0; round < 4; round++) {
        struct loaded m = load(path, round % 2 != 0, 1 + round / 2);
        struct ifd_tensor out[OUTPUTS_MAX] = {0};
        struct ifd_err err = {0};
        const struct ifd_io io = {.input = m.in, .output = out, .batch = 1};
        const long before = requests;
        EXPECT(!IS_COUNTED || before > 0);
        for (int i = 0; i < RUNS; i++) {
            REQUIRE_OK(ifd_instance_run(m.instance, &io, 1, &err), &err);
        }
        EXPECT_INT(requests, before);
        unload(&m);
    }
}

static void running_models_allocates_nothing(void)
{
    static const char *const shared[] = {
        "mobilenet_v1_0.25_128_quant.tflite",
        "resnet8_cifar10_int8.tflite",
        "resnet8_cifar10_float.tflite",
        "kws_ref_model.tflite",
        "vww_96_float.tflite",
        "face_detection_short_range.tflite",
        "hand_landmark_lite.tflite",
        "yamnet.tflite",
    };
    if (!IS_COUNTED) {
        test_does_not_apply("the allocator is the sanitizer's");
    }
    expect_no_allocation(test_source("models/digits/1/model.tflite"));
    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        char path[128] = "models/tflite/";
        strncat(path, shared[i], sizeof(path) - strlen(path) - 1);
        expect_no_allocation(test_shared(path));
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(running_models_allocates_nothing),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
