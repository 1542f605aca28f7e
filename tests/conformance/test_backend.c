/* One backend against golden cases: every case of the file that it takes, as a partition of one node, with every level of
 * the processor's instructions, on one and on three threads.
 *
 *     test_conformance_backend exact_results_equal_golden_values CpuAcc tests/ops/add.json */
#include "backends/builtin.h"
#include "engine/base/cpu.h"
#include "engine/base/team.h"
#include "tests/conformance/golden.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** What another order of additions may add to the error of a float, as a part of the range that zero and the expected
 *  tensor span. */
#define FLOAT_OF_RANGE 1e-5

struct subject {
    const struct ifd_backend *backend;
    struct ifd_host host;
    struct ifd_device *device;
    struct ifd_team *team;
    bool all_constant; /* every input but the first is made constant, as weights are */
    size_t taken;
};

/** A partition of one node and the memory that it is bound to. */
struct trial {
    struct ifd_partition_value value[2 * GOLDEN_OPERANDS];
    struct ifd_operand operand[GOLDEN_OPERANDS];
    struct ifd_desc out_desc[GOLDEN_OPERANDS];
    uint32_t input_value[GOLDEN_OPERANDS], output_value[GOLDEN_OPERANDS];
    struct ifd_partition_node node;
    struct ifd_partition_view view;
    const void *input[GOLDEN_OPERANDS];
    uint8_t *output[GOLDEN_OPERANDS];
};

static void add_input(struct trial *trial, const struct subject *subject,
                      const struct golden_case *golden, uint32_t i)
{
    const struct golden_tensor *tensor = &golden->input[i];
    trial->input_value[i] = IFD_NO_VALUE;
    if (tensor->is_absent) {
        return;
    }
    const bool is_constant = tensor->is_constant || (subject->all_constant && i > 0);
    struct ifd_partition_value *value = &trial->value[trial->view.value_count];
    *value = (struct ifd_partition_value){.desc = tensor->desc, .role = IFD_VALUE_INPUT};
    trial->operand[i].desc = &tensor->desc;
    if (is_constant) {
        value->role = IFD_VALUE_CONSTANT;
        value->data = (struct ifd_bytes){tensor->data, tensor->bytes};
        trial->operand[i].data = value->data;
    } else {
        value->slot = trial->view.input_count++;
        trial->input[value->slot] = tensor->data;
    }
    trial->input_value[i] = trial->view.value_count++;
}

static void add_output(struct trial *trial, const struct golden_case *golden, uint32_t i)
{
    const struct golden_tensor *tensor = &golden->output[i];
    trial->out_desc[i] = tensor->desc;
    trial->value[trial->view.value_count] = (struct ifd_partition_value){
        .desc = tensor->desc, .role = IFD_VALUE_OUTPUT, .slot = trial->view.output_count};
    trial->output[trial->view.output_count++] =
        ifd_acquire_tensor(ifd_alloc_system(), tensor->bytes);
    REQUIRE(trial->output[i]);
    trial->output_value[i] = trial->view.value_count++;
}

static void build(struct trial *trial, const struct subject *subject,
                  const struct golden_case *golden)
{
    memset(trial, 0, sizeof(*trial));
    for (uint32_t i = 0; i < golden->input_count; i++) {
        add_input(trial, subject, golden, i);
    }
    for (uint32_t i = 0; i < golden->output_count; i++) {
        add_output(trial, golden, i);
    }
    trial->node = (struct ifd_partition_node){
        .view = {.name = golden->name,
                 .op = golden->op,
                 .attrs = golden->attrs,
                 .input = trial->operand,
                 .input_count = golden->input_count,
                 .output = trial->out_desc,
                 .output_count = golden->output_count},
        .input_value = trial->input_value,
        .output_value = trial->output_value,
    };
    trial->view.node = &trial->node;
    trial->view.node_count = 1;
    trial->view.value = trial->value;
    trial->view.max_threads = subject->team->count;
    trial->view.exact = subject->host.exact;
}

/** Runs once and compares; the bytes after every output must be left alone. */
static void run(struct trial *trial, const struct subject *subject,
                const struct golden_case *golden, struct ifd_partition *partition,
                const struct ifd_partition_info *info)
{
    void *scratch = ifd_acquire_tensor(ifd_alloc_system(), info->scratch_bytes);
    REQUIRE(scratch);
    for (uint32_t i = 0; i < golden->output_count; i++) {
        memset(trial->output[i], 0xA5, golden->output[i].bytes + IFD_TENSOR_PAD);
    }
    const struct ifd_binding binding = {.input = trial->input,
                                        .output = (void *const *)trial->output,
                                        .scratch = scratch,
                                        .team = subject->team};
    struct ifd_err err = {0};
    EXPECT_CODE(subject->backend->run(partition, &binding, &err), IFD_OK, &err);
    ifd_release_tensor(ifd_alloc_system(), scratch, info->scratch_bytes);
    for (uint32_t i = 0; i < golden->output_count; i++) {
        golden_compare(golden, i, trial->output[i]);
        for (size_t k = 0; k < IFD_TENSOR_PAD; k++) {
            EXPECT_INT(trial->output[i][golden->output[i].bytes + k], 0xA5);
        }
    }
}

/** Widens the case's tolerance to what a backend may do: exact mode, bits of floats only; fast, a step of a quantized
 *  number as well. */
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
    static struct trial trial; /* large */
    build(&trial, subject, golden);
    if (subject->backend->cost(subject->device, &trial.node.view, NULL) > 0) {
        widen(golden, subject->host.exact);
        struct ifd_partition *partition = NULL;
        struct ifd_partition_info info = {0};
        struct ifd_err err = {0};
        const enum ifd_code code =
            subject->backend->compile(subject->device, &trial.view, NULL, &partition, &info, &err);
        if (code != IFD_OK) {
            (void)fprintf(stderr, "%s: %s\n", golden->name, err.text);
        }
        EXPECT_CODE(code, IFD_OK, &err);
        if (code == IFD_OK) {
            run(&trial, subject, golden, partition, &info);
            subject->taken++;
        }
        subject->backend->release(partition);
    }
    for (uint32_t i = 0; i < golden->output_count; i++) {
        ifd_release_tensor(ifd_alloc_system(), trial.output[i], golden->output[i].bytes);
    }
}

static const struct ifd_backend *backend_by_name(const char *name)
{
    uint32_t count = 0;
    const struct ifd_backend *const *backends = ifd_backends_builtin(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (name && strcmp(backends[i]->name, name) == 0) {
            return backends[i];
        }
    }
    test_skip("this backend is not built in");
}

/** All cases of the file at one level of instructions. */
static size_t run_level(const struct ifd_backend *backend, bool exact, uint32_t mask,
                        uint32_t threads)
{
    struct subject subject = {.backend = backend};
    subject.host = (struct ifd_host){
        .bytes = sizeof(struct ifd_host), .alloc = ifd_alloc_system(), .exact = exact};
    ifd_cpu_detect(&subject.host.cpu);
    subject.host.cpu.flags &= mask;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(threads, ifd_alloc_system(), &subject.team, &err), &err);
    REQUIRE_OK(backend->open(&subject.host, &subject.device, &err), &err);
    for (int constant = 0; constant < 2; constant++) {
        subject.all_constant = constant != 0;
        EXPECT(golden_for_each(test_arg(1), run_case, &subject) > 0);
    }
    backend->close(subject.device);
    ifd_team_destroy(subject.team);
    return subject.taken;
}

static void run_all(bool exact)
{
    static const uint32_t masks[] = {UINT32_MAX, IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_NEON,
                                     IFD_CPU_AVX2, 0};
    const struct ifd_backend *backend = backend_by_name(test_arg(0));
    size_t taken = 0;
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        taken += run_level(backend, exact, masks[i], i == 0 ? 3 : 1);
    }
    if (taken == 0) {
        test_skip("the backend takes none of these cases");
    }
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
