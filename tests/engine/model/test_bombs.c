/* Small files that ask for much (tests/fuzz/make_bombs.py): each is refused with a reason, or loads
 * because its runs are what takes long; within 64 MiB and soon. The CPU time of all is limited to
 * what one of them would exceed alone if its loops were turned, or its matrices multiplied. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

#include "backends/builtin.h"
#include "tests/support/model_file.h"
#include "tests/support/parse_file.h"

#define MEMORY_BYTES ((size_t)56 << 20) /* with those of the process it began as: 64 MiB */
#define CPU_SECONDS  30

/* The heap with a limit: what goes beyond it is refused. */
struct purse {
    struct ifd_alloc alloc;
    atomic_size_t taken, total; /* now; in all */
};

static void *acquire(void *context, size_t size, size_t align)
{
    struct purse *purse = context;
    const struct ifd_alloc *heap = ifd_alloc_system();
    const bool fits = size <= MEMORY_BYTES - atomic_load(&purse->taken);
    void *memory = fits ? heap->acquire(heap->context, size, align) : NULL;
    atomic_fetch_add(&purse->taken, memory ? size : 0);
    atomic_fetch_add(&purse->total, memory ? size : 0);
    return memory;
}

static void release(void *context, void *memory, size_t size)
{
    struct purse *purse = context;
    const struct ifd_alloc *heap = ifd_alloc_system();
    heap->release(heap->context, memory, size);
    atomic_fetch_sub(&purse->taken, size);
}

/* ret_total: bytes that it took, those that it gave back included. */
static enum ifd_code load_and_sum(const char *path, size_t *ret_total, struct ifd_err *err)
{
    struct purse purse = {.alloc = {.context = &purse, .acquire = acquire, .release = release}};
    struct ifd_engine_options options = {.alloc = &purse.alloc};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct model_file f;
    model_file_read(&f, path);
    options.backends = ifd_backends_builtin(&options.backend_count);
    REQUIRE_OK(ifd_engine_create(&options, &engine, err), err);
    const enum ifd_code code =
        ifd_model_load(engine, f.content, &(struct ifd_model_options){0}, &model, err);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
    EXPECT_INT(atomic_load(&purse.taken), 0);
    model_file_forget(&f);
    *ret_total = atomic_load(&purse.total);
    return code;
}

static enum ifd_code load(const char *path, struct ifd_err *err)
{
    size_t total = 0;
    return load_and_sum(path, &total, err);
}

static void expect_refused(const char *path, const char *name)
{
    struct ifd_err err = {0};
    const enum ifd_code code = load(path, &err);
    if (code != IFD_CORRUPT && code != IFD_UNSUPPORTED && code != IFD_TOO_LARGE) {
        printf("     %s\n", name);
        EXPECT_CODE(code, IFD_TOO_LARGE, &err);
    }
    EXPECT(err.text[0] != '\0');
}

static void expect_loaded(const char *path, const char *name)
{
    struct ifd_err err = {0};
    (void)name;
    EXPECT_CODE(load(path, &err), IFD_OK, &err);
}

static void limit_cpu_time(void)
{
    struct rlimit limit = {0};
    REQUIRE(getrlimit(RLIMIT_CPU, &limit) == 0);
    limit.rlim_cur = CPU_SECONDS;
    REQUIRE(setrlimit(RLIMIT_CPU, &limit) == 0);
}

static void bombs_of_onnx_are_refused(void)
{
    limit_cpu_time();
    parse_each_file(test_source("tests/fuzz/corpus/onnx"), "bomb_", expect_refused);
}

static void bombs_of_tflite_are_refused(void)
{
    limit_cpu_time();
    parse_each_file(test_source("tests/fuzz/corpus/tflite"), "bomb_", expect_refused);
}

/* Nor is any other file whose first reading took as much before it failed. */
static void a_bomb_is_not_read_in_many_sizes(void)
{
    static const char scan[] = "tests/fuzz/corpus/onnx/bomb_scan.onnx";
    static const char open[] = "tests/fuzz/corpus/onnx/bomb_scan_open.onnx";
    size_t once = 0, in_all = 0;
    struct ifd_err err = {0};
    EXPECT_CODE(load_and_sum(test_source(scan), &once, &err), IFD_TOO_LARGE, &err);
    EXPECT_CODE(load_and_sum(test_source(open), &in_all, &err), IFD_TOO_LARGE, &err);
    EXPECT(once > 0 && in_all <= 2 * once);
}

/* Of 14. What it allocates is little beside the time of 3,000 nodes; in 32 bits it is less. */
static void many_nodes_are_not_read_in_many_sizes(void)
{
    static const char deep[] = "tests/fuzz/corpus/onnx/bomb_deep.onnx";
    static const char open[] = "tests/fuzz/corpus/onnx/deep_open.onnx";
    size_t once = 0, in_all = 0;
    struct ifd_err err = {0};
    EXPECT_CODE(load_and_sum(test_source(deep), &once, &err), IFD_CORRUPT, &err);
    EXPECT_CODE(load_and_sum(test_source(open), &in_all, &err), IFD_OK, &err);
    EXPECT(once > 0 && in_all <= 7 * once);
}

static void what_takes_long_to_compute_is_left_to_runs(void)
{
    limit_cpu_time();
    parse_each_file(test_source("tests/fuzz/corpus/onnx"), "slow_", expect_loaded);
    parse_each_file(test_source("tests/fuzz/corpus/tflite"), "slow_", expect_loaded);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(bombs_of_onnx_are_refused),
        T(bombs_of_tflite_are_refused),
        T(a_bomb_is_not_read_in_many_sizes),
        T(many_nodes_are_not_read_in_many_sizes),
        T(what_takes_long_to_compute_is_left_to_runs),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
