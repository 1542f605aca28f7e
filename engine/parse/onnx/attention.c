/* Attention of com.microsoft: heads side by side, softmax(scale * q k' + mask) v for each. */
#include <float.h>
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t add(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_ADD, x, y);
}

/* [n, t, heads * size] as [n, heads, t, size]. */
static uint32_t split_heads(struct ifd_builder *b, uint32_t x, int64_t heads)
{
    const struct ifd_shape shape = shape_of(b, x);
    if (shape.rank != 3 || heads < 1 || shape.dim[2] % heads != 0) {
        return ifd_build_fail(b, IFD_INVALID, "%lld heads of shape %s", (long long)heads,
                              ifd_shape_text(&shape).s);
    }
    const int64_t dim[4] = {shape.dim[0], shape.dim[1], heads, shape.dim[2] / heads};
    return ifd_build_swap(b, ifd_build_reshape(b, x, dim, 4), 1, 2);
}

static uint32_t join_heads(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_shape shape = shape_of(b, x);
    const int64_t dim[3] = {shape.dim[0], shape.dim[2], shape.dim[1] * shape.dim[3]};
    return ifd_build_reshape(b, ifd_build_swap(b, x, 1, 2), dim, 3);
}

/* ---- masks: what is added to the products, [n, heads, t, s] or what broadcasts to that ---- */

/* 0 where numbers are not 0, else the filter. */
static uint32_t filtered(struct ifd_onnx_call *call, uint32_t keeps)
{
    struct ifd_builder *b = call->b;
    const double filter = ifd_onnx_f32(call, "mask_filter_value", -10000);
    const uint32_t is_kept = ifd_onnx_compared(
        b, IFD_OP_NOT_EQUAL, ifd_build_cast(b, keeps, IFD_S32), ifd_build_number(b, IFD_S32, 0));
    return ifd_onnx_selected(b, is_kept, ifd_build_number(b, IFD_F32, 0),
                             ifd_build_number(b, IFD_F32, filter));
}

/* 0, 1, 2 … count - 1 */
static uint32_t ramp(struct ifd_builder *b, int64_t count)
{
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                ifd_build_number(b, IFD_S64, (double)count),
                                ifd_build_number(b, IFD_S64, 1)};
    return ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL);
}

/* A mask of [n] lengths, of [n, s] or of [n, t, s]. */
static uint32_t mask_of(struct ifd_onnx_call *call, uint32_t given, int64_t batch, int64_t length)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(b, given);
    if (shape.rank == 1 && shape.dim[0] == batch) {
        const uint32_t ends = ifd_build_reshape(b, ifd_build_cast(b, given, IFD_S64),
                                                (const int64_t[]){batch, 1, 1, 1}, 4);
        return filtered(call, ifd_onnx_compared(b, IFD_OP_LESS, ramp(b, length), ends));
    }
    if (shape.rank == 2 && shape.dim[0] == batch && shape.dim[1] == length) {
        const int64_t dim[4] = {batch, 1, 1, length};
        return filtered(call, ifd_build_reshape(b, given, dim, 4));
    }
    if (shape.rank == 3 && shape.dim[0] == batch && shape.dim[2] == length) {
        const int64_t dim[4] = {batch, 1, shape.dim[1], length};
        return filtered(call, ifd_build_reshape(b, given, dim, 4));
    }
    return ifd_build_fail(b, IFD_UNSUPPORTED, "a mask of shape %s", ifd_shape_text(&shape).s);
}

/* Each of the last t of s elements sees itself and what is before. */
static uint32_t causal(struct ifd_builder *b, int64_t t, int64_t s)
{
    const uint32_t row =
        ifd_build_with(b, IFD_OP_ADD, ifd_build_reshape(b, ramp(b, t), (const int64_t[]){t, 1}, 2),
                       (double)(s - t));
    const uint32_t is_seen = ifd_onnx_compared(b, IFD_OP_LESS_EQUAL, ramp(b, s), row);
    return ifd_onnx_selected(b, is_seen, ifd_build_number(b, IFD_F32, 0),
                             ifd_build_number(b, IFD_F32, (double)-FLT_MAX));
}

/* ---- the products ---- */

/* q, k, v: [n, heads, t or s, size]; mask and bias may be IFD_NONE. */
static uint32_t attend(struct ifd_onnx_call *call, const uint32_t qkv[3], uint32_t mask,
                       uint32_t bias)
{
    struct ifd_builder *b = call->b;
    const struct ifd_batch_matmul_attrs turned = {.adj_y = true};
    const struct ifd_shape q = shape_of(b, qkv[0]);
    const struct ifd_shape k = shape_of(b, qkv[1]);
    const double given = ifd_onnx_f32(call, "scale", 0);
    const double scale = given != 0 ? given : 1 / sqrt((double)q.dim[3]);
    uint32_t x = ifd_build_node(b, IFD_OP_BATCH_MATMUL, qkv, 2, NULL, &turned);
    x = ifd_build_with(b, IFD_OP_MUL, x, scale);
    x = bias == IFD_NONE ? x : add(b, x, bias);
    x = mask == IFD_NONE ? x : add(b, x, mask);
    if (ifd_onnx_int(call, "unidirectional", 0) != 0) {
        x = add(b, x, causal(b, q.dim[2], k.dim[2]));
    }
    x = ifd_build_softmax(b, IFD_OP_SOFTMAX, x, 3);
    return join_heads(b, ifd_build_binary(b, IFD_OP_BATCH_MATMUL, x, qkv[2]));
}

/* past before now, along the time. */
static uint32_t appended(struct ifd_builder *b, uint32_t past, uint32_t now)
{
    const struct ifd_axis_attrs attrs = {.axis = 2};
    return past == IFD_NONE
               ? now
               : ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){past, now}, 2, NULL, &attrs);
}

/* Row i of a tensor [2, …], and back. */
static uint32_t half(struct ifd_builder *b, uint32_t x, int64_t i)
{
    const struct ifd_shape shape = shape_of(b, x);
    return ifd_build_reshape(b, ifd_build_cut(b, x, 0, i, 1), shape.dim + 1, shape.rank - 1);
}

/* Stored numbers as floats: scale in input i, zero point in input k, both of the whole or of each
 * column. */
static uint32_t real_of(struct ifd_onnx_call *call, uint32_t stored, uint32_t i, uint32_t k)
{
    struct ifd_builder *b = call->b;
    const uint32_t zero = ifd_onnx_input(call, k);
    uint32_t x = ifd_build_cast(b, stored, IFD_F32);
    if (zero != IFD_NONE) {
        x = ifd_build_binary(b, IFD_OP_SUB, x, ifd_build_cast(b, zero, IFD_F32));
    }
    return ifd_build_binary(b, IFD_OP_MUL, x, call->input[i]);
}

/* input [n, t, k], weights [k, 3 * hidden], bias, mask, past [2, n, heads, t, size], bias of the
 * products. Quantized (QAttention): input, weights, bias, scales of both, mask, zero points of
 * both, past. */
void ifd_onnx_attention(struct ifd_onnx_call *call, int is_quantized)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]);
    const struct ifd_shape w = shape_of(b, call->input[1]);
    const uint32_t bias = ifd_onnx_input(call, 2);
    const uint32_t mask = ifd_onnx_input(call, is_quantized ? 5 : 3);
    const uint32_t past = ifd_onnx_input(call, is_quantized ? 8 : 4);
    struct ifd_ints sizes = {.count = 3};
    if (x.rank != 3 || w.rank != 2 || ifd_onnx_int(call, "do_rotary", 0) != 0 ||
        ifd_onnx_int(call, "past_present_share_buffer", 0) != 0) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "input %s and weights %s, rotary or a shared past",
                       ifd_shape_text(&x).s, ifd_shape_text(&w).s);
        return;
    }
    if (!ifd_onnx_ints(call, "qkv_hidden_sizes", &sizes) || sizes.count != 3) {
        sizes = (struct ifd_ints){.count = 3, .value = {w.dim[1] / 3, w.dim[1] / 3, w.dim[1] / 3}};
    }
    uint32_t all = is_quantized ? ifd_build_matmul(b, real_of(call, call->input[0], 3, 6),
                                                   real_of(call, call->input[1], 4, 7))
                                : ifd_build_matmul(b, call->input[0], call->input[1]);
    all = bias == IFD_NONE ? all : add(b, all, bias);
    const int64_t heads = ifd_onnx_int(call, "num_heads", 1);
    uint32_t qkv[3];
    int64_t at = 0;
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] = split_heads(b, ifd_build_cut(b, all, 2, at, sizes.value[i]), heads);
        at += sizes.value[i];
    }
    for (uint32_t i = 1; i < 3; i++) {
        qkv[i] = appended(b, past == IFD_NONE ? IFD_NONE : half(b, past, i - 1), qkv[i]);
    }
    const int64_t length = shape_of(b, qkv[1]).dim[2];
    if (call->output_count > 1) {
        const struct ifd_axis_attrs attrs = {.axis = 0};
        call->output[1] = ifd_build_node(b, IFD_OP_PACK, qkv + 1, 2, NULL, &attrs);
    }
    call->output[0] =
        attend(call, qkv, mask == IFD_NONE ? IFD_NONE : mask_of(call, mask, x.dim[0], length),
               is_quantized ? IFD_NONE : ifd_onnx_input(call, 5));
}

/* Number i of the parts in the dimension before the last of [n, t, heads, parts, size], as
 * [n, t, heads * size]. */
static uint32_t part_of(struct ifd_builder *b, uint32_t x, int64_t i)
{
    const struct ifd_shape s = shape_of(b, x);
    const int64_t dim[3] = {s.dim[0], s.dim[1], s.dim[2] * s.dim[4]};
    return ifd_build_reshape(b, ifd_build_cut(b, x, 3, i, 1), dim, 3);
}

/* Query, key and value in one input, or key and value: apart. False if they fit no form. */
static bool take_apart(struct ifd_onnx_call *call, uint32_t x[3])
{
    struct ifd_builder *b = call->b;
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = ifd_onnx_input(call, i);
    }
    const struct ifd_shape q = shape_of(b, x[0]), k = x[1] == IFD_NONE ? q : shape_of(b, x[1]);
    if (q.rank == 5 && x[1] == IFD_NONE && q.dim[3] == 3) {
        for (uint32_t i = 3; i-- > 0;) {
            x[i] = part_of(b, x[0], i);
        }
    } else if (x[1] != IFD_NONE && x[2] == IFD_NONE && k.rank == 5 && k.dim[3] == 2) {
        x[2] = part_of(b, x[1], 1);
        x[1] = part_of(b, x[1], 0);
    }
    bool fits = b->code == IFD_OK;
    for (uint32_t i = 0; fits && i < 3; i++) {
        const uint32_t rank = x[i] == IFD_NONE ? 0 : shape_of(b, x[i]).rank;
        fits = rank == 3 || (i > 0 && rank == 4);
    }
    return fits;
}

/* query, key and value [n, t, hidden] (key and value also [n, heads, s, size]), bias [3 * hidden],
 * mask, bias of the products, past key and value. */
void ifd_onnx_multi_head_attention(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const int64_t heads = ifd_onnx_int(call, "num_heads", 1);
    const uint32_t bias = ifd_onnx_input(call, 3), mask = ifd_onnx_input(call, 4);
    uint32_t qkv[3], x[3];
    int64_t at = 0;
    if (!take_apart(call, x)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "query, key and value of another form");
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        const struct ifd_shape shape = shape_of(b, x[i]);
        if (shape.rank == 4) {
            qkv[i] = x[i];
            continue;
        }
        qkv[i] =
            bias == IFD_NONE ? x[i] : add(b, x[i], ifd_build_cut(b, bias, 0, at, shape.dim[2]));
        qkv[i] = split_heads(b, qkv[i], heads);
        at += shape.dim[2];
    }
    for (uint32_t i = 1; i < 3; i++) {
        qkv[i] = appended(b, ifd_onnx_input(call, 5 + i), qkv[i]);
        if (i < call->output_count) {
            call->output[i] = qkv[i];
        }
    }
    const struct ifd_shape k = shape_of(b, qkv[1]);
    call->output[0] =
        attend(call, qkv, mask == IFD_NONE ? IFD_NONE : mask_of(call, mask, k.dim[0], k.dim[2]),
               ifd_onnx_input(call, 5));
}
