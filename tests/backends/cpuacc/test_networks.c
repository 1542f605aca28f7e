/* Random networks equal the reference kernels, node by node: 8-bit numbers bit for bit where
 * results are exact, floats closely. With instruction sets of all kinds, caches of all sizes, any
 * number of threads and samples; none of these changes 8-bit results, exact or not.
 *
 * test_backends_cpuacc_networks CASE [FIRST-SEED COUNT] runs others than ctest's. */
#include "backends/cpuacc/cpuacc.h"
#include "engine/ir/shape.h"
#include "tests/support/model.h"
#include "tests/support/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a network is run. */
struct way {
    const char *cpu;
    uint32_t cpu_mask; /* ~0: all */
    bool halves;       /* computes 512 bits in two turns, or not */
    size_t l2_bytes;
    uint32_t threads;
    bool exact, releases; /* the latter: weights are released when they are packed */
};

static const struct {
    const char *name;
    uint32_t mask;
} cpus[] = {
    {"all", UINT32_MAX},
    {"without AMX", ~(uint32_t)(IFD_CPU_AMX_INT8 | IFD_CPU_AMX_BF16)},
    {"without VNNI", IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_NEON | IFD_CPU_DOTPROD},
    {"base", IFD_CPU_AVX2 | IFD_CPU_NEON},
    {"none", 0},
};

/* All outputs, one after the other. */
struct result {
    uint8_t *data;
    size_t bytes, output[TEST_RUN_OUTPUTS];
    uint32_t count;
};

static struct way pick_way(uint64_t seed, bool exact)
{
    static const uint32_t threads[] = {1, 2, 3, 5};
    struct test_random random = {.state = seed * 40503 + 9};
    const size_t cpu = (size_t)test_random_int(&random, 0, 6);
    const size_t at = cpu < sizeof(cpus) / sizeof(cpus[0]) ? cpu : 0;
    return (struct way){
        .cpu = cpus[at].name,
        .cpu_mask = cpus[at].mask,
        .halves = test_random_int(&random, 0, 1) == 1,
        .l2_bytes = (size_t)1 << test_random_int(&random, test_random_int(&random, 14, 20), 21),
        .threads = threads[test_random_int(&random, 0, 3)],
        .exact = exact};
}

/* ---- results ---- */

static struct result make_result(const struct ifd_graph *graph)
{
    struct result result = {.count = graph->output_count};
    for (uint32_t i = 0; i < graph->output_count; i++) {
        REQUIRE(ifd_desc_bytes(&graph->value[graph->output[i]].desc, &result.output[i]));
        result.bytes += result.output[i];
    }
    result.data = ifd_acquire(ifd_alloc_system(), result.bytes);
    REQUIRE(result.data);
    return result;
}

static void drop_result(struct result *result)
{
    ifd_release(ifd_alloc_system(), result->data, result->bytes);
}

static void interpret(const struct test_run *run, struct result *result)
{
    void *output[TEST_RUN_OUTPUTS];
    size_t at = 0;
    for (uint32_t i = 0; i < result->count; at += result->output[i++]) {
        output[i] = result->data + at;
    }
    test_graph_interpret(&run->model->graph, (const void *const[]){run->in.data}, output);
}

static bool is_close(const float *got, const float *want, size_t count, size_t all)
{
    float most = 1e-6f;
    for (size_t i = 0; i < all; i++) {
        most = fmaxf(most, fabsf(want[i]));
    }
    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(got[i] - want[i]) <= 2e-4f * most)) {
            return false;
        }
    }
    return true;
}

/* The latest run's results, of its first samples. */
static void expect_result(const struct test_run *run, const struct result *want, uint32_t batch,
                          bool is_float, const char *what)
{
    size_t at = 0;
    for (uint32_t i = 0; i < want->count; at += want->output[i++]) {
        const size_t bytes = want->output[i] / run->batch * batch;
        const uint8_t *data = want->data + at;
        const bool is_right =
            run->out[i].bytes == bytes &&
            (is_float ? is_close(run->out[i].data, (const float *)(const void *)data,
                                 bytes / sizeof(float), want->output[i] / sizeof(float))
                      : memcmp(run->out[i].data, data, bytes) == 0);
        if (!is_right) {
            char text[256];
            (void)snprintf(text, sizeof(text), "output %u of %u, %u samples of %u: %s", i,
                           want->count, batch, run->batch, what);
            EXPECT_TEXT(text, "");
        }
    }
}

/* ---- runs ---- */

static struct test_run open_run(const struct test_network *network, const struct way *way)
{
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc,
        .falls_back = true,
        .engine = {.exact = way->exact,
                   .fast = !way->exact,
                   .cpu_mask = way->cpu_mask,
                   .no_cpu_features = way->cpu_mask == 0},
        .model = {.max_threads = way->threads, .releases_weights = way->releases},
        .l2_bytes = way->l2_bytes,
        .l3_bytes = 8 * way->l2_bytes});
    struct ifd_cpu cpu = run.engine->registry.host.cpu;
    if (way->halves && (cpu.flags & IFD_CPU_AVX512)) {
        cpu.flags ^= IFD_CPU_AVX512_HALVES;
        test_engine_set_cpu(run.engine, &cpu);
    }
    test_network_build(network, &run.model->graph);
    test_run_input(&run, 0);
    test_network_fill(network, run.in.data, run.in.bytes);
    return run;
}

static void check_run(struct test_run *run, const struct result *want, bool is_float,
                      const char *what)
{
    struct ifd_err err = {0};
    test_run_once(run);
    test_run_once(run); /* in memory that has been used */
    expect_result(run, want, run->batch, is_float, what);
    if (run->batch > 1) {
        REQUIRE_OK(test_run_try(run, run->batch - 1, &err), &err);
        expect_result(run, want, run->batch - 1, is_float, what);
    }
    test_run_alone(run);
    test_run_once(run);
    expect_result(run, want, run->batch, is_float, what);
}

/* Exact numbers and floats are compared with the definitions; others with the results of one
 * thread. */
static void check_network(const struct test_network *network, const struct way *way)
{
    char what[160];
    (void)snprintf(what, sizeof(what), "seed %llu, %s, CPU: %s%s, L2 %zu, %u threads%s",
                   (unsigned long long)network->seed, way->exact ? "exact" : "fast", way->cpu,
                   way->halves ? " (halves)" : "", way->l2_bytes, way->threads,
                   way->releases ? ", releases" : "");
    struct test_run run = open_run(network, way);
    struct result want = make_result(&run.model->graph);
    if (way->exact || network->dtype == IFD_F32) {
        interpret(&run, &want);
    } else {
        struct way alone = *way;
        alone.threads = 1;
        struct test_run one = open_run(network, &alone);
        test_run_plan(&one, 0);
        test_run_once(&one);
        size_t at = 0;
        for (uint32_t i = 0; i < want.count; at += want.output[i++]) {
            memcpy(want.data + at, one.out[i].data, want.output[i]);
        }
        test_run_close(&one);
    }
    test_run_plan(&run, 0);
    check_run(&run, &want, network->dtype == IFD_F32, what);
    test_run_close(&run);
    drop_result(&want);
}

static void check_many(enum ifd_dtype dtype, bool exact, uint64_t seed)
{
    const uint64_t first = test_arg(0) ? strtoull(test_arg(0), NULL, 10) : seed;
    const uint64_t count = test_arg(1) ? strtoull(test_arg(1), NULL, 10) : 60;
    for (uint64_t i = first; i < first + count; i++) {
        /* exact floats use neither Winograd's nor Strassen's algorithm */
        const struct way way = pick_way(i, dtype == IFD_F32 ? i % 4 == 0 : exact);
        check_network(&(struct test_network){.dtype = dtype,
                                             .seed = i,
                                             .nodes = (uint32_t)(1 + i % 11),
                                             .is_wide = i % 3 == 0,
                                             .macs_most = i % 3 == 0 ? 1.5e8 : 2e7},
                      &way);
    }
}

static void floats_are_close(void)
{
    check_many(IFD_F32, false, 1000);
}

static void signed_numbers_are_equal(void)
{
    check_many(IFD_S8, true, 2000);
}

static void unsigned_numbers_are_equal(void)
{
    check_many(IFD_U8, true, 3000);
}

static void threads_change_no_fast_signed_number(void)
{
    check_many(IFD_S8, false, 4000);
}

static void threads_change_no_fast_unsigned_number(void)
{
    check_many(IFD_U8, false, 5000);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(floats_are_close),
        T(signed_numbers_are_equal),
        T(unsigned_numbers_are_equal),
        T(threads_change_no_fast_signed_number),
        T(threads_change_no_fast_unsigned_number),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
