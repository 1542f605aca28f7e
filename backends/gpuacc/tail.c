/* Texts of element-wise operators, and the search for those that follow a value. */
#include "backends/gpuacc/tail.h"

#include "backends/lowering/requantize.h"
#include "inferd/op_attrs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* x and y are float4, the operands in their order; p and q are floats. The functions that are not
 * OpenCL's are in kernels/common.cl. */
struct row {
    const char *text;
    bool (*params)(const void *attrs, float *ret_p, float *ret_q); /* NULL: p and q are unused */
};

static bool clamp_params(const void *attrs, float *ret_p, float *ret_q)
{
    const struct ifd_clamp_attrs *clamp = attrs;
    *ret_p = clamp->min;
    *ret_q = clamp->max;
    return true;
}

static bool leaky_params(const void *attrs, float *ret_p, float *ret_q)
{
    *ret_p = ((const struct ifd_leaky_relu_attrs *)attrs)->alpha;
    *ret_q = 0;
    return true;
}

static bool gelu_params(const void *attrs, float *ret_p, float *ret_q)
{
    *ret_p = ((const struct ifd_gelu_attrs *)attrs)->approximate ? 1 : 0;
    *ret_q = 0;
    return true;
}

static const struct row *row_of(enum ifd_op op)
{
    static const struct row rows[IFD_OP_COUNT] = {
        [IFD_OP_ADD] = {"x + y", NULL},
        [IFD_OP_SUB] = {"x - y", NULL},
        [IFD_OP_MUL] = {"x * y", NULL},
        [IFD_OP_DIV] = {"x / y", NULL},
        [IFD_OP_MINIMUM] = {"(x < y ? x : y)", NULL},
        [IFD_OP_MAXIMUM] = {"(x > y ? x : y)", NULL},
        [IFD_OP_SQUARED_DIFFERENCE] = {"(x - y) * (x - y)", NULL},
        [IFD_OP_POW] = {"pow(x, y)", NULL},
        [IFD_OP_ATAN2] = {"atan2(x, y)", NULL},
        [IFD_OP_FLOOR_DIV] = {"floor(x / y)", NULL},
        [IFD_OP_FLOOR_MOD] = {"floor_mod4(x, y)", NULL},
        [IFD_OP_PRELU] = {"(x < 0.0f ? x * y : x)", NULL},
        [IFD_OP_ABS] = {"fabs(x)", NULL},
        [IFD_OP_NEG] = {"-x", NULL},
        [IFD_OP_EXP] = {"exp(x)", NULL},
        [IFD_OP_LOG] = {"log(x)", NULL},
        [IFD_OP_SQRT] = {"sqrt(x)", NULL},
        [IFD_OP_RSQRT] = {"1.0f / sqrt(x)", NULL},
        [IFD_OP_RELU] = {"clamp4(x, 0.0f, INFINITY)", NULL},
        [IFD_OP_RELU6] = {"clamp4(x, 0.0f, 6.0f)", NULL},
        [IFD_OP_RELU_N1_TO_1] = {"clamp4(x, -1.0f, 1.0f)", NULL},
        [IFD_OP_CLAMP] = {"clamp4(x, p, q)", clamp_params},
        [IFD_OP_LEAKY_RELU] = {"(x > 0.0f ? x : x * p)", leaky_params},
        [IFD_OP_HARD_SWISH] = {"x * clamp4(x + 3.0f, 0.0f, 6.0f) / 6.0f", NULL},
        [IFD_OP_LOGISTIC] = {"1.0f / (1.0f + exp(-x))", NULL},
        [IFD_OP_TANH] = {"tanh(x)", NULL},
        [IFD_OP_FLOOR] = {"floor(x)", NULL},
        [IFD_OP_CEIL] = {"ceil(x)", NULL},
        [IFD_OP_ROUND] = {"rint(x)", NULL},
        [IFD_OP_SIN] = {"sin(x)", NULL},
        [IFD_OP_COS] = {"cos(x)", NULL},
        [IFD_OP_SQUARE] = {"x * x", NULL},
        [IFD_OP_SIGN] = {"(x < 0.0f ? (float4)(-1.0f) : x > 0.0f ? (float4)(1.0f) : x)", NULL},
        [IFD_OP_ELU] = {"(x < 0.0f ? expm1(x) : x)", NULL},
        [IFD_OP_GELU] = {"gelu4(x, p)", gelu_params},
        [IFD_OP_ERF] = {"erf(x)", NULL},
    };
    return (unsigned)op < IFD_OP_COUNT && rows[op].text ? &rows[op] : NULL;
}

static bool has_activation(enum ifd_op op)
{
    return op == IFD_OP_ADD || op == IFD_OP_SUB || op == IFD_OP_MUL || op == IFD_OP_DIV;
}

/* The clamp of an operator's activation: none is -infinity … infinity. False: it is no clamp. */
static bool activation_of(const struct ifd_node_view *node, float *ret_min, float *ret_max)
{
    const struct ifd_binary_attrs *attrs = node->attrs;
    return ifd_low_clamp_f32(has_activation(node->op) ? attrs->activation : IFD_ACT_NONE, ret_min,
                             ret_max);
}

bool ifd_gpu_tail_takes(const struct ifd_node_view *node)
{
    float min = 0, max = 0;
    bool takes = row_of(node->op) && node->output[0].dtype == IFD_F32 &&
                 activation_of(node, &min, &max) && node->input_count <= 2;
    for (uint32_t i = 0; takes && i < node->input_count; i++) {
        takes = node->input[i].desc && node->input[i].desc->dtype == IFD_F32;
    }
    return takes;
}

/* ---- writing ---- */

static bool append_text(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    const int written = vsnprintf(text + used, size - used, format, args);
    va_end(args);
    return written >= 0 && (size_t)written < size - used;
}

static void add_arg(struct ifd_gpu_tail *tail, const struct ifd_gpu_arg *arg)
{
    tail->arg[tail->arg_count++] = *arg;
}

static void add_float(struct ifd_gpu_tail *tail, float number)
{
    add_arg(tail, &(struct ifd_gpu_arg){.kind = IFD_GPU_ARG_NUMBER, .number = {.real = number}});
}

/* The other operand as a float4 named o<i>. */
static bool write_operand(struct ifd_gpu_tail *tail, const struct ifd_low_follower *follower)
{
    static const char *const at[] = {
        [IFD_LOW_OPERAND_NUMBER] = "(float4)(CAT(load1_, REAL_T%u)(t%u + t%u_at))",
        [IFD_LOW_OPERAND_ROW] = "CAT(load4_, REAL_T%u)(t%u + t%u_at + (c), n)",
        [IFD_LOW_OPERAND_SAME] = "CAT(load4_, REAL_T%u)(t%u + t%u_at + (e), n)"};
    uint32_t i = 0; /* among the operands: ifd_gpu_define_reals counts them likewise */
    char load[64];
    for (uint32_t k = 0; k < tail->arg_count; k++) {
        i += tail->arg[k].kind == IFD_GPU_ARG_IN;
    }
    (void)snprintf(load, sizeof(load), at[follower->kind], i, i, i);
    add_arg(tail, &(struct ifd_gpu_arg){.kind = IFD_GPU_ARG_IN, .value = follower->other});
    tail->has_rows |= follower->kind == IFD_LOW_OPERAND_ROW;
    return append_text(tail->params, sizeof(tail->params),
                       ", global const REAL_T%u *t%u, const uint t%u_at", i, i, i) &&
           append_text(tail->body, sizeof(tail->body), "const float4 o = %s; ", load);
}

static bool write_params(struct ifd_gpu_tail *tail, const struct row *row, const void *attrs)
{
    const uint32_t i = tail->count;
    float p = 0, q = 0;
    if (!row->params || !row->params(attrs, &p, &q)) {
        return true;
    }
    add_float(tail, p);
    add_float(tail, q);
    return append_text(tail->params, sizeof(tail->params), ", const float p%u, const float q%u", i,
                       i) &&
           append_text(tail->body, sizeof(tail->body), "const float p = p%u, q = q%u; ", i, i);
}

static bool write_activation(struct ifd_gpu_tail *tail, const struct ifd_node_view *node)
{
    const uint32_t i = tail->count;
    float min = 0, max = 0;
    (void)activation_of(node, &min, &max);
    if (isinf(min) && isinf(max)) {
        return true;
    }
    add_float(tail, min);
    add_float(tail, max);
    return append_text(tail->params, sizeof(tail->params), ", const float lo%u, const float hi%u",
                       i, i) &&
           append_text(tail->body, sizeof(tail->body), "v = clamp4(v, lo%u, hi%u); ", i, i);
}

static bool write_operator(struct ifd_gpu_tail *tail, const struct ifd_low_follower *follower)
{
    const struct ifd_node_view *node = &follower->node->view;
    const struct row *row = row_of(node->op);
    const bool is_binary = follower->kind != IFD_LOW_OPERAND_NONE;
    const char *x = is_binary && follower->comes_first ? "o" : "v";
    const char *y = is_binary && !follower->comes_first ? "o" : "v";
    return append_text(tail->body, sizeof(tail->body), "{ ") &&
           (!is_binary || write_operand(tail, follower)) && write_params(tail, row, node->attrs) &&
           append_text(tail->body, sizeof(tail->body), "const float4 x = %s, y = %s; v = %s; ", x,
                       y, row->text) &&
           write_activation(tail, node) && append_text(tail->body, sizeof(tail->body), "} ");
}

static bool append_silu(struct ifd_gpu_tail *tail)
{
    return append_text(tail->body, sizeof(tail->body), "v = v / (1.0f + exp(-v)); ") &&
           append_text(tail->name, sizeof(tail->name), "+silu");
}

bool ifd_gpu_tail_append(struct ifd_gpu_tail *tail, const struct ifd_low_follower *follower)
{
    struct ifd_gpu_tail next = *tail;
    const bool fits = next.arg_count + 5 <= IFD_GPU_TAIL_ARGS;
    if (!fits) {
        return false;
    }
    if (!follower->node) {
        if (!append_silu(&next)) {
            return false;
        }
    } else if (!ifd_gpu_tail_takes(&follower->node->view) ||
               (follower->node->view.input_count == 2 && follower->kind == IFD_LOW_OPERAND_NONE) ||
               !write_operator(&next, follower) ||
               !append_text(next.name, sizeof(next.name), "+%s",
                            ifd_gpu_op_name(follower->node->view.op))) {
        return false;
    }
    next.count++;
    *tail = next;
    return true;
}

void ifd_gpu_tail_operator(const struct ifd_node_view *node, struct ifd_gpu_call *call)
{
    const struct row *row = row_of(node->op);
    float p = 0, q = 0, min = 0, max = 0;
    if (row->params) {
        (void)row->params(node->attrs, &p, &q);
    }
    (void)activation_of(node, &min, &max);
    ifd_gpu_define(call, "#define OPERATOR(x, y) (%s)\n", row->text);
    ifd_gpu_float(call, p);
    ifd_gpu_float(call, q);
    ifd_gpu_float(call, min);
    ifd_gpu_float(call, max);
}

/* ---- finding ---- */

static bool holds_reals(const struct ifd_lowering *base, uint32_t value)
{
    const enum ifd_dtype dtype = base->value[value].view->desc.dtype;
    return dtype == IFD_F32 || dtype == IFD_F16;
}

uint32_t ifd_gpu_take_tail(struct ifd_gpu_lowering *lowering, uint32_t value,
                           struct ifd_gpu_tail *tail)
{
    struct ifd_lowering *base = &lowering->base;
    const size_t row = ifd_low_row_of(&base->value[value].view->desc.shape);
    struct ifd_low_follower next;
    while (holds_reals(base, value) && ifd_low_find_follower(base, value, row, &next) &&
           ifd_gpu_tail_append(tail, &next)) {
        for (uint32_t i = 0; i < next.fused_count; i++) {
            ifd_low_fuse_node(base, next.fused[i]);
        }
        value = next.out;
    }
    return value;
}

void ifd_gpu_tail_finish(const struct ifd_gpu_tail *tail, struct ifd_gpu_call *call)
{
    ifd_gpu_define(call, "#define TAIL_PARAMS %s\n#define TAIL(v, e, c, n) %s\n", tail->params,
                   tail->body);
    for (uint32_t i = 0; i < tail->arg_count; i++) {
        if (tail->arg[i].kind == IFD_GPU_ARG_IN) {
            ifd_gpu_in(call, tail->arg[i].value);
        } else {
            ifd_gpu_float(call, tail->arg[i].number.real);
        }
    }
}
