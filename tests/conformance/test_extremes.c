/* Quantized elementwise operators at extreme scales: where the shape rule accepts a node, every
 * level of CpuAcc's instructions gives, in exact mode, the bits of the reference kernel. Models
 * have ordinary scales, so golden cases and networks do not come near the ends of the fixed-point
 * arithmetic.
 *
 *     test_conformance_extremes elementwise_results_equal_the_reference [ROUNDS]     rounds per
 *                                                                                    operator and
 *                                                                                    type */
#include "backends/builtin.h"
#include "engine/base/cpu.h"
#include "engine/ir/attrs.h"
#include "engine/ops/infer_util.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 100 /* per operator and pair of types */
#define PAIRS  35  /* of types, in all operators, that CpuAcc computes */
#define LEVELS 5
#define ROWS   41 /* of the two operands that broadcast against each other */
#define COUNT  (ROWS * 67)

static struct test_random rng = {.state = 2463534242u};

/** A call with one or two operands. */
struct call {
    enum ifd_op op;
    struct ifd_desc in[2], out;
    float scale[3];
    int32_t zero_point[3];
    _Alignas(16) char attrs[64];
    uint32_t input_count;
    void *data[2]; /* COUNT elements, aligned and padded as a tensor */
};

struct levels {
    const struct ifd_backend *backend;
    struct ifd_host host[LEVELS];
    struct ifd_device *device[LEVELS];
    struct ifd_team *team;
};

static bool is_q8(enum ifd_dtype dtype)
{
    return dtype == IFD_S8 || dtype == IFD_U8;
}

/** From 2^-40 to 2^40; near 1 and exact powers of two as likely as the rest together. Some are 0,
 *  denormal or enormous. */
static float extreme_scale(void)
{
    static const float odd[] = {0, 0x1p-149f, 0x3p-140f, 0x1.8p-127f, 1e30f, 3e38f};
    if (test_random_int(&rng, 0, 15) == 0) {
        return odd[test_random_int(&rng, 0, 5)];
    }
    const int range = test_random_int(&rng, 0, 1) ? 40 : 6;
    const float fraction = test_random_int(&rng, 0, 1) ? 1.0f : test_random_f32(&rng, 1.0f, 2.0f);
    return ldexpf(fraction, (int)test_random_int(&rng, -range, range));
}

static void set_desc(struct ifd_desc *desc, enum ifd_dtype dtype, float *scale, int32_t *zero_point)
{
    int32_t min = 0;
    int32_t max = 0;
    *desc = (struct ifd_desc){.dtype = dtype};
    if (!ifd_dtype_is_quantized(dtype)) {
        return;
    }
    ifd_dtype_range(dtype, &min, &max);
    *scale = extreme_scale();
    *zero_point = !is_q8(dtype) ? 0 : (int32_t)test_random_int(&rng, min, max);
    desc->quant = (struct ifd_quant){.scale = scale, .zero_point = zero_point, .count = 1};
}

/** Every number of a small type, and floats of all sizes; NaN where it is promised what becomes of
 *  it. */
static void fill(const struct ifd_desc *desc, void *data, bool has_nan)
{
    const float odd[] = {0.0f,  -0.0f, INFINITY, -INFINITY,           0.5f,
                         -0.5f, 1e38f, 1e-38f,   has_nan ? NAN : 1.0f};
    for (size_t i = 0; i < COUNT; i++) {
        if (desc->dtype == IFD_F32) {
            const int exponent = (int)test_random_int(&rng, -44, 44);
            const float real = ldexpf(test_random_f32(&rng, -2.0f, 2.0f), exponent);
            const size_t at = (size_t)test_random_int(&rng, 0, 99);
            ((float *)data)[i] = at < sizeof(odd) / sizeof(odd[0]) ? odd[at] : real;
        } else {
            ((uint8_t *)data)[i] = (uint8_t)(i < 256 ? i : test_random_u64(&rng));
        }
    }
}

static void random_attrs(struct call *call, const struct ifd_op_def *def)
{
    REQUIRE(def->attrs_bytes <= sizeof(call->attrs));
    ifd_attrs_defaults(def, call->attrs);
    for (uint32_t i = 0; i < def->attr_count; i++) {
        const struct ifd_attr_def *attr = &def->attrs[i];
        void *field = call->attrs + attr->offset;
        if (attr->kind == IFD_ATTR_F32) {
            *(float *)field =
                ldexpf(test_random_f32(&rng, -2, 2), (int)test_random_int(&rng, -8, 8));
        } else if (attr->kind == IFD_ATTR_BOOL) {
            *(bool *)field = test_random_int(&rng, 0, 1) == 1;
        } else if (attr->kind == IFD_ATTR_ENUM) {
            *(int32_t *)field =
                (int32_t)test_random_int(&rng, (long long)attr->min, (long long)attr->max);
        }
    }
}

static void random_call(struct call *call, const struct ifd_op_def *def, enum ifd_dtype from,
                        enum ifd_dtype to)
{
    const int64_t columns = COUNT / ROWS;
    const bool outer = def->min_inputs == 2 && test_random_int(&rng, 0, 2) == 0;
    call->input_count = def->min_inputs;
    for (uint32_t i = 0; i < call->input_count; i++) {
        set_desc(&call->in[i], from, &call->scale[i], &call->zero_point[i]);
        call->in[i].shape = (struct ifd_shape){.rank = 2, .dim = {ROWS, columns}};
        fill(&call->in[i], call->data[i], def == ifd_op_def(IFD_OP_QUANTIZE));
    }
    if (outer) {
        call->in[0].shape.dim[1] = 1;
    }
    if (call->input_count == 2 && (outer || test_random_int(&rng, 0, 2) == 0)) {
        call->in[1].shape.dim[0] = 1;
        call->in[1].shape.dim[1] = outer || test_random_int(&rng, 0, 1) ? columns : 1;
    }
    set_desc(&call->out, to, &call->scale[2], &call->zero_point[2]);
    random_attrs(call, def);
}

/** Runs the node at one level and compares; false if the backend does not take it. */
static bool equals(const struct call *call, const struct levels *levels, size_t level,
                   const void *want)
{
    static struct one_node node; /* large */
    struct ifd_err err = {0};
    one_node_init(&node, "extreme", call->op, call->attrs);
    for (uint32_t i = 0; i < call->input_count; i++) {
        one_node_add_input(&node, &call->in[i], call->data[i], false);
    }
    one_node_add_output(&node, &call->out);
    const bool takes = levels->backend->cost(levels->device[level], &node.node.view, NULL) > 0;
    if (takes) {
        const enum ifd_code code =
            one_node_run(&node, levels->backend, levels->device[level], levels->team, true, &err);
        EXPECT_CODE(code, IFD_OK, &err);
        if (memcmp(node.output[0], want, node.output_bytes[0]) != 0) {
            (void)fprintf(stderr, "%s %s to %s, level %zu: scales %a %a %a, zero points %d %d %d\n",
                          ifd_op_def(call->op)->name, ifd_dtype_name(call->in[0].dtype),
                          ifd_dtype_name(call->out.dtype), level, (double)call->scale[0],
                          (double)call->scale[1], (double)call->scale[2], call->zero_point[0],
                          call->zero_point[1], call->zero_point[2]);
            EXPECT_BYTES(node.output[0], want, node.output_bytes[0]);
        }
    }
    one_node_finish(&node);
    return takes;
}

/** True if the shape rule accepts the call, which is then computed by all levels. */
static bool judge(struct call *call, const struct ifd_op_def *def, const struct levels *levels,
                  size_t *taken)
{
    static float want[COUNT];
    struct ifd_operand operand[2] = {{.desc = &call->in[0]}, {.desc = &call->in[1]}};
    const struct ifd_infer infer = {.def = def,
                                    .attrs = call->attrs,
                                    .input = operand,
                                    .input_count = call->input_count,
                                    .output_count = 1};
    struct ifd_err err = {0};
    if (def->infer(&infer, &call->out, &err) != IFD_OK) {
        return false;
    }
    const struct ifd_desc *const in[] = {&call->in[0], &call->in[1]}, *const out[] = {&call->out};
    const struct ifd_ref_call ref = {.attrs = call->attrs,
                                     .in = in,
                                     .input = (const void *const *)call->data,
                                     .input_count = call->input_count,
                                     .out = out,
                                     .output = (void *const[]){want},
                                     .output_count = 1};
    if (def->ref(&ref, &err) != IFD_OK) { /* the root of a negative number */
        return false;
    }
    for (size_t level = 0; level < LEVELS; level++) {
        *taken += equals(call, levels, level, want);
    }
    return true;
}

static void open_levels(struct levels *levels)
{
    static const uint32_t masks[LEVELS] = {
        UINT32_MAX, IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_AVX512_VNNI | IFD_CPU_NEON,
        IFD_CPU_AVX2 | IFD_CPU_AVX512 | IFD_CPU_NEON, IFD_CPU_AVX2, 0};
    uint32_t count = 0;
    struct ifd_err err = {0};
    const struct ifd_backend *const *backends = ifd_backends_builtin(&count);
    for (uint32_t i = 0; i < count; i++) {
        levels->backend = strcmp(backends[i]->name, "CpuAcc") == 0 ? backends[i] : levels->backend;
    }
    if (!levels->backend) {
        test_does_not_apply("CpuAcc is not built in");
    }
    REQUIRE_OK(ifd_team_create(1, ifd_alloc_system(), &levels->team, &err), &err);
    for (size_t i = 0; i < LEVELS; i++) {
        levels->host[i] = (struct ifd_host){
            .bytes = sizeof(struct ifd_host), .alloc = ifd_alloc_system(), .exact = true};
        ifd_cpu_detect(&levels->host[i].cpu);
        levels->host[i].cpu.flags &= masks[i];
        REQUIRE_OK(levels->backend->open(&levels->host[i], &levels->device[i], &err), &err);
    }
}

static void close_levels(struct levels *levels)
{
    for (size_t i = 0; i < LEVELS; i++) {
        levels->backend->close(levels->device[i]);
    }
    ifd_team_destroy(levels->team);
}

/** All rounds of one operator between two types; those that CpuAcc computes. */
static size_t sweep(enum ifd_op op, enum ifd_dtype from, enum ifd_dtype to, int rounds,
                    struct call *call, const struct levels *levels)
{
    const struct ifd_op_def *def = ifd_op_def(op);
    size_t taken = 0;
    call->op = op;
    for (int round = 0; round < rounds; round++) {
        random_call(call, def, from, to);
        (void)judge(call, def, levels, &taken);
    }
    return taken;
}

static void elementwise_results_equal_the_reference(void)
{
    static const enum ifd_dtype types[] = {IFD_S8, IFD_U8, IFD_F32};
    static struct call call; /* large */
    struct levels levels = {.backend = NULL};
    size_t pairs = 0;
    const int rounds = test_arg(0) ? (int)strtol(test_arg(0), NULL, 10) : ROUNDS;
    open_levels(&levels);
    for (size_t i = 0; i < 2; i++) {
        call.data[i] = ifd_acquire_tensor(ifd_alloc_system(), COUNT * sizeof(float));
        REQUIRE(call.data[i]);
    }
    for (int op = 0; op < IFD_OP_COUNT; op++) {
        const struct ifd_op_def *def = ifd_op_def((enum ifd_op)op);
        for (size_t t = 0; def->is_elementwise && t < 9; t++) {
            const enum ifd_dtype from = types[t / 3], to = types[t % 3];
            /* roots of negative 8-bit numbers are an error */
            if ((!is_q8(from) && !is_q8(to)) || op == IFD_OP_RSQRT || op == IFD_OP_SQRT) {
                continue;
            }
            const size_t taken = sweep((enum ifd_op)op, from, to, rounds, &call, &levels);
            if (taken > 0) {
                (void)printf("%s %s to %s: %zu runs\n", def->name, ifd_dtype_name(from),
                             ifd_dtype_name(to), taken);
            }
            pairs += taken > 0;
        }
    }
    EXPECT(pairs >=
           PAIRS); /* fewer: an operator fell back to CpuRef, and the test compares nothing */
    for (size_t i = 0; i < 2; i++) {
        ifd_release_tensor(ifd_alloc_system(), call.data[i], COUNT * sizeof(float));
    }
    close_levels(&levels);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(elementwise_results_equal_the_reference)};
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
