/* One backend against golden cases: every case of the file that it takes, as a partition of one
 * node, with every level of the processor's instructions, on one and on three threads.
 *
 *     test_conformance_backend exact_results_equal_golden_values CpuAcc tests/ops/add.json */
#include "engine/base/cpu.h"
#include "tests/conformance/golden.h"
#include "tests/conformance/one_node.h"
#include "tests/support/backends.h"
#include "tests/support/test.h"

#ifdef IFD_HAVE_GPUACC
#include "backends/gpuacc/gpuacc.h"
#include "tests/backends/gpuacc/programs.h"
#endif

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Error that another order of additions may add to a float, as a share of the range from zero
 *  to the expected tensor's values. */
#define FLOAT_OF_RANGE 1e-5

#define ALL_AS_GIVEN UINT32_MAX

struct subject {
    const struct ifd_backend *backend;
    struct ifd_host host;
    struct ifd_device *device;
    struct ifd_team *team;
    /** The only input that is not made constant, as weights are: the first, or the second (indices
     *  may come first); ALL_AS_GIVEN: none is. */
    uint32_t free_input;
    size_t taken;
};

static void build(struct one_node *node, const struct subject *subject,
                  const struct golden_case *golden)
{
    one_node_init(node, golden->name, golden->op, golden->attrs);
    for (uint32_t i = 0; i < golden->input_count; i++) {
        const struct golden_tensor *tensor = &golden->input[i];
        one_node_add_input(node, tensor->is_absent ? NULL : &tensor->desc, tensor->data,
                           tensor->is_constant ||
                               (subject->free_input != ALL_AS_GIVEN && i != subject->free_input));
    }
    for (uint32_t i = 0; i < golden->output_count; i++) {
        one_node_add_output(node, &golden->output[i].desc);
    }
}

/** Widens the case's tolerance to what a backend may do. Exact mode: rounding of floats only.
 *  Fast mode: also one step of a quantized number. */
static void widen(struct golden_case *golden, bool exact)
{
    const struct ifd_desc *out = &golden->output[0].desc;
    if (out->dtype == IFD_F32) {
        const float *want = golden->output[0].data;
        double low = 0;
        double high = 0;
        for (size_t i = 0; i < golden->output[0].bytes / sizeof(float); i++) {
            low = isfinite(want[i]) ? fmin(low, (double)want[i]) : low;
            high = isfinite(want[i]) ? fmax(high, (double)want[i]) : high;
        }
        golden->absolute += FLOAT_OF_RANGE * (high - low);
    } else if (!exact && (out->dtype == IFD_U8 || out->dtype == IFD_S8 || out->dtype == IFD_S16)) {
        golden->absolute += 1;
    }
}

static void run_case(struct golden_case *golden, void *context)
{
    struct subject *subject = context;
    static struct one_node node; /* large */
    if (subject->free_input == 1 && golden->input_count < 2) {
        return; /* the engine computes what is constant */
    }
    build(&node, subject, golden);
    if (subject->backend->cost(subject->device, &node.node.view, NULL) > 0) {
        struct ifd_err err = {0};
        widen(golden, subject->host.exact);
        const enum ifd_code code = one_node_run(&node, subject->backend, subject->device,
                                                subject->team, subject->host.exact, &err);
        if (code != IFD_OK) {
            (void)fprintf(stderr, "%s: %s\n", golden->name, err.text);
        }
        EXPECT_CODE(code, IFD_OK, &err);
        for (uint32_t i = 0; code == IFD_OK && i < golden->output_count; i++) {
            golden_compare(golden, i, node.output[i]);
        }
        subject->taken += code == IFD_OK ? 1 : 0;
    }
    one_node_finish(&node);
}

static const struct ifd_backend *backend_by_name(const char *name)
{
    uint32_t count = 0;
    const struct ifd_backend *const *backends = test_backends(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (name && strcmp(backends[i]->name, name) == 0) {
            return backends[i];
        }
    }
    test_does_not_apply("this backend is not built in");
}

/** All cases of the file at one level of instructions. */
static size_t run_level(const struct ifd_backend *backend, bool exact, uint32_t mask,
                        uint32_t threads)
{
    struct subject subject = {.backend = backend};
    subject.host = (struct ifd_host){.bytes = sizeof(struct ifd_host),
                                     .alloc = ifd_alloc_system(),
                                     .exact = exact,
                                     .op_def = ifd_op_def,
                                     .fail = ifd_fail};
    ifd_cpu_detect(&subject.host.cpu);
    subject.host.cpu.flags &= mask;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(threads, ifd_alloc_system(), &subject.team, &err), &err);
    REQUIRE_OK(backend->open(&subject.host, &subject.device, &err), &err);
    static const uint32_t free_inputs[] = {ALL_AS_GIVEN, 0, 1};
    for (size_t i = 0; i < sizeof(free_inputs) / sizeof(free_inputs[0]); i++) {
        subject.free_input = free_inputs[i];
        EXPECT(golden_for_each(test_arg(1), run_case, &subject) > 0);
    }
#ifdef IFD_HAVE_GPUACC
    if (backend == &ifd_backend_gpuacc) {
        print_programs(subject.device);
    }
#endif
    backend->close(subject.device);
    ifd_team_destroy(subject.team);
    return subject.taken;
}

static void run_all(bool exact)
{
    static const uint32_t masks[] = {
        UINT32_MAX,
        ~(uint32_t)(IFD_CPU_AMX_INT8 | IFD_CPU_AMX_BF16 | IFD_CPU_I8MM | IFD_CPU_BF16),
        IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_NEON,
        IFD_CPU_AVX2,
        0,
    };
    const struct ifd_backend *backend = backend_by_name(test_arg(0));
    const bool has_levels = strcmp(backend->name, "CpuAcc") == 0; /* the others have no kernels of
                                                                     their own for a processor */
    const size_t levels = has_levels ? sizeof(masks) / sizeof(masks[0]) : 1;
    size_t taken = 0;
    for (size_t i = 0; i < levels; i++) {
        taken += run_level(backend, exact, masks[i], i == 0 ? 3 : 1);
    }
    REQUIRE(taken > 0);
    (void)printf("%zu runs\n", taken);
}

static void exact_results_equal_golden_values(void)
{
    run_all(true);
}

static void fast_results_are_close_to_golden_values(void)
{
    run_all(false);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(exact_results_equal_golden_values),
        T(fast_results_are_close_to_golden_values),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
