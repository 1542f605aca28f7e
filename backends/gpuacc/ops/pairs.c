/* Pairs of numbers; arithmetic of integers and of quantized numbers of 16 bits, operators of
 * bits. */
#include "backends/gpuacc/ops/pairs.h"
#include "backends/gpuacc/ops/layer.h"
#include "engine/tensor/fixed.h"
#include "inferd/op_attrs.h"

#include <math.h>
#include <stdio.h>

#define RANK 6 /* of kernels/pairs.cl */

static struct ifd_low_broadcast broadcast_of(const struct ifd_node_view *node)
{
    struct ifd_low_broadcast broadcast;
    ifd_low_broadcast_init(&node->input[0].desc->shape, &node->input[1].desc->shape,
                           &node->output[0].shape, &broadcast);
    return broadcast;
}

bool ifd_gpu_pairs_fit(const struct ifd_node_view *node)
{
    return broadcast_of(node).rank <= RANK;
}

enum ifd_code ifd_gpu_pairs_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, const char *in,
                                  const char *out, const char *combine, struct ifd_err *err)
{
    const struct ifd_low_broadcast broadcast = broadcast_of(&node->view);
    const size_t count = ifd_gpu_elements(&node->view.output[0].shape);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_pairs);
    ifd_gpu_define(&call, "#define IN %s\n#define OUT %s\n#define COMBINE(a, b) (%s)\n", in, out,
                   combine);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_in(&call, node->input_value[1]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_broadcast(&call, &broadcast, RANK);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

/* ---- integers ---- */

/* What the result of a and b (or of v alone) is; NULL: it is not here. */
struct formula {
    const char *combine, *convert;
    bool compares; /* signed numbers; else unsigned ones, which wrap around */
    bool takes_bytes;
    bool divides;
};

/* The least number by -1 wraps around; as a quotient it is undefined in C. */
#define NEGATED  "(b) == -1 ? (IN)(0 - (ulong)(a)) : "
#define GOES_OFF "((a) % (b) != 0 && ((a) < 0) != ((b) < 0))" /* truncated is not floored */

static struct formula formula_of(enum ifd_op op)
{
    switch ((unsigned)op) {
    case IFD_OP_ADD:
        return (struct formula){.combine = "(a) + (b)"};
    case IFD_OP_SUB:
        return (struct formula){.combine = "(a) - (b)"};
    case IFD_OP_MUL:
        return (struct formula){.combine = "(a) * (b)"};
    case IFD_OP_SQUARED_DIFFERENCE:
        return (struct formula){.combine = "((a) - (b)) * ((a) - (b))"};
    case IFD_OP_MINIMUM: /* of quantized numbers, too: all have the same scale */
        return (struct formula){
            .combine = "(a) < (b) ? (a) : (b)", .compares = true, .takes_bytes = true};
    case IFD_OP_MAXIMUM:
        return (struct formula){
            .combine = "(a) > (b) ? (a) : (b)", .compares = true, .takes_bytes = true};
    case IFD_OP_BITWISE_AND:
        return (struct formula){.combine = "(a) & (b)", .takes_bytes = true};
    case IFD_OP_BITWISE_OR:
        return (struct formula){.combine = "(a) | (b)", .takes_bytes = true};
    case IFD_OP_BITWISE_XOR:
        return (struct formula){.combine = "(a) ^ (b)", .takes_bytes = true};
    case IFD_OP_DIV:
        return (struct formula){.combine = NEGATED "(a) / (b)", .compares = true, .divides = true};
    case IFD_OP_FLOOR_DIV: /* of stored numbers, if they are quantized */
        return (struct formula){.combine = NEGATED "(a) / (b) - " GOES_OFF,
                                .compares = true,
                                .takes_bytes = true,
                                .divides = true};
    case IFD_OP_FLOOR_MOD:
        return (struct formula){.combine = "(b) == -1 ? 0 : (a) % (b) + (" GOES_OFF " ? (b) : 0)",
                                .compares = true,
                                .takes_bytes = true,
                                .divides = true};
    case IFD_OP_NEG:
        return (struct formula){.convert = "0 - (v)"};
    case IFD_OP_ABS:
        return (struct formula){.convert = "(v) < 0 ? (OUT)0 - (v) : (v)", .compares = true};
    case IFD_OP_SIGN:
        return (struct formula){.convert = "((v) > 0) - ((v) < 0)", .compares = true};
    default:
        return (struct formula){NULL, NULL, false, false, false};
    }
}

static bool has_activation(const struct ifd_node_view *node)
{
    const struct ifd_binary_attrs *attrs = node->attrs;
    const bool is_arithmetic = node->op == IFD_OP_ADD || node->op == IFD_OP_SUB ||
                               node->op == IFD_OP_MUL || node->op == IFD_OP_DIV ||
                               node->op == IFD_OP_SQUARED_DIFFERENCE ||
                               node->op == IFD_OP_MINIMUM || node->op == IFD_OP_MAXIMUM;
    return is_arithmetic && attrs->activation != IFD_ACT_NONE;
}

/* Division by zero is an error that a kernel cannot report: divisors must be known. */
static bool has_divisors(const struct ifd_node_view *node)
{
    const struct ifd_bytes *content = &node->input[1].data;
    const size_t size = ifd_dtype_bytes(node->input[1].desc->dtype);
    bool has = content->data != NULL;
    for (size_t at = 0; has && at < content->size; at += size) {
        bool is_zero = true;
        for (size_t i = 0; i < size; i++) {
            is_zero &= content->data[at + i] == 0;
        }
        has = !is_zero;
    }
    return has;
}

bool ifd_gpu_integers_take(const struct ifd_node_view *node)
{
    const enum ifd_dtype dtype = node->output[0].dtype;
    const struct formula formula = formula_of(node->op);
    const bool has_type = dtype == IFD_S32 || dtype == IFD_S64 ||
                          (formula.takes_bytes && ifd_gpu_number_type(dtype) && dtype != IFD_F32);
    return has_type && node->input[0].desc->dtype == dtype && !has_activation(node) &&
           (!formula.divides || has_divisors(node)) &&
           (formula.convert != NULL || (formula.combine != NULL && ifd_gpu_pairs_fit(node)));
}

enum ifd_code ifd_gpu_integers_lower(struct ifd_gpu_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *out = &node->view.output[0];
    const struct formula formula = formula_of(node->view.op);
    const char *type = formula.compares ? ifd_gpu_number_type(out->dtype)
                                        : ifd_gpu_element_type(ifd_dtype_bytes(out->dtype));
    const size_t count = ifd_gpu_elements(&out->shape);
    if (formula.combine) {
        return ifd_gpu_pairs_lower(lowering, node, type, type, formula.combine, err);
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_cast);
    ifd_gpu_define(&call, "#define IN %s\n#define OUT %s\n#define CONVERT(v) ((OUT)(%s))\n", type,
                   type, formula.convert);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

/* ---- quantized numbers of 16 bits ---- */

/* s16 has no zero points. */
#define SUM_BITS 15 /* that a sum has more than its operands (engine/ops/sum.c) */

/* Factors of the operands (of a sum) and of the result. */
struct factors {
    int32_t multiplier[3];
    int shift[3];
};

static double scale_of(const struct ifd_desc *desc)
{
    return (double)desc->quant.scale[0];
}

/* Of products and quotients in float, as the reference has it. */
static double result_factor(const struct ifd_node_view *node, double common)
{
    const float a = node->input[0].desc->quant.scale[0], b = node->input[1].desc->quant.scale[0];
    const float y = node->output[0].quant.scale[0];
    return node->op == IFD_OP_MUL   ? (double)(a * b / y)
           : node->op == IFD_OP_DIV ? (double)(a / (b * y))
                                    : common / ldexp((double)y, SUM_BITS);
}

static struct factors factors_of(const struct ifd_node_view *node)
{
    const struct ifd_desc *a = node->input[0].desc, *b = node->input[1].desc;
    const double common = 2 * fmax(scale_of(a), scale_of(b));
    const double real[] = {scale_of(a) / common, scale_of(b) / common, result_factor(node, common)};
    struct factors factors;
    for (int i = 0; i < 3; i++) {
        ifd_fixed_from_any(real[i], &factors.multiplier[i], &factors.shift[i]);
    }
    return factors;
}

/* LiteRT adds such numbers by shifts alone, if the file asks for it. */
static bool adds_by_shifts(const struct ifd_node_view *node)
{
    const struct ifd_binary_attrs *attrs = node->attrs;
    const double scale[] = {scale_of(node->input[0].desc), scale_of(node->input[1].desc),
                            scale_of(&node->output[0])};
    bool shifts = attrs->pot_scale_int16;
    for (int i = 0; shifts && i < 3; i++) {
        const double exponent = log2(scale[i]);
        shifts = fabs(exponent - round(exponent)) < 1e-3;
    }
    return shifts;
}

bool ifd_gpu_words_take(const struct ifd_node_view *node)
{
    const bool is_sum = node->op == IFD_OP_ADD || node->op == IFD_OP_SUB;
    const bool has_formula = is_sum || node->op == IFD_OP_MUL || node->op == IFD_OP_DIV;
    if (!has_formula || node->output[0].dtype != IFD_S16 || !ifd_gpu_pairs_fit(node)) {
        return false;
    }
    /* other sums saturate between the roundings */
    return !is_sum || (!adds_by_shifts(node) && factors_of(node).shift[2] <= 0);
}

enum ifd_code ifd_gpu_words_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_binary_attrs *attrs = node->view.attrs;
    const struct factors f = factors_of(&node->view);
    char inner[128], combine[256];
    int32_t lo = 0, hi = 0;
    ifd_gpu_stored_bounds(attrs->activation, &node->view.output[0], &lo, &hi);
    if (node->view.op == IFD_OP_DIV) { /* of any divisor: one of 0 has a result */
        (void)snprintf(combine, sizeof(combine), "clamp(quotient(a, b, %d, %d), %d, %d)",
                       (int)f.multiplier[2], f.shift[2], (int)lo, (int)hi);
        return ifd_gpu_pairs_lower(lowering, node, "short", "short", combine, err);
    }
    if (node->view.op == IFD_OP_MUL) {
        (void)snprintf(inner, sizeof(inner), "(a) * (b)");
    } else {
        (void)snprintf(inner, sizeof(inner),
                       "scale_double((a) * %d, %d, %d) %c scale_double((b) * %d, %d, %d)",
                       1 << SUM_BITS, (int)f.multiplier[0], f.shift[0],
                       node->view.op == IFD_OP_ADD ? '+' : '-', 1 << SUM_BITS, (int)f.multiplier[1],
                       f.shift[1]);
    }
    (void)snprintf(combine, sizeof(combine), "clamp(scale_double(%s, %d, %d), %d, %d)", inner,
                   (int)f.multiplier[2], f.shift[2], (int)lo, (int)hi);
    return ifd_gpu_pairs_lower(lowering, node, "short", "short", combine, err);
}

/* ---- operators of bits ---- */

static bool bitwise_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (!ifd_gpu_integers_take(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(node->output[0].dtype));
        return false;
    }
    return true;
}

const struct ifd_gpu_driver ifd_gpu_driver_bitwise = {bitwise_takes, ifd_gpu_integers_lower};
