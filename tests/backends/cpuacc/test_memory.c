/* Running a model allocates nothing from the first run on: counts all calls of the system's
 * allocator, by this program and by libraries. */
#include "backends/cpuacc/cpuacc.h"
#include "tests/support/model_file.h"

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

enum { RUNS = 2 };

static void expect_no_allocation(const char *path)
{
    static const struct ifd_backend *const backend = &ifd_backend_cpuacc;
    for (uint32_t round = 0; round < 4; round++) {
        struct model_file f;
        struct model_file_options options = {
            .engine = {.backends = &backend, .backend_count = 1, .exact = round % 2 != 0},
            .threads = 1 + round / 2};
        options.model.max_threads = options.threads;
        model_file_begin(&f, path, &options);
        model_file_fill(&f);
        const long before = requests;
        EXPECT(!IS_COUNTED || before > 0);
        for (int i = 0; i < RUNS; i++) {
            REQUIRE_OK(model_file_run(&f), &f.err);
        }
        EXPECT_INT(requests, before);
        model_file_end(&f);
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
