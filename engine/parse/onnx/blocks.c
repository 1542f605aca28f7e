/* Weights of com.microsoft of a few bits each, whose blocks have a scale each: products with them,
 * and rows of tables. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

/* Number i of packed ones, the lowest bits first. */
static uint32_t unpack(const uint8_t *data, size_t i, int64_t bits)
{
    const uint32_t numbers = 8 / (uint32_t)bits; /* of a byte */
    return (uint32_t)data[i / numbers] >> (i % numbers * (uint32_t)bits) & ((1U << bits) - 1);
}

struct blocks {
    int64_t n, k, bits, size, count;  /* count: of a row */
    const uint8_t *packed, *zeros;    /* zeros NULL: the middle */
    const float *scales, *real_zeros; /* real_zeros: in place of zeros; NULL: none */
};

static bool take_blocks(struct ifd_onnx_call *call, struct blocks *ret)
{
    struct ifd_builder *b = call->b;
    struct blocks w = {.n = ifd_onnx_int(call, "N", 0),
                       .k = ifd_onnx_int(call, "K", 0),
                       .bits = ifd_onnx_int(call, "bits", 4),
                       .size = ifd_onnx_int(call, "block_size", 0)};
    const uint32_t zero = ifd_onnx_input(call, 3);
    const struct ifd_bytes packed = ifd_build_content(b, call->input[1]),
                           scales = ifd_build_content(b, call->input[2]),
                           zeros = ifd_build_content(b, zero);
    const bool is_power = w.size >= 16 && (w.size & (w.size - 1)) == 0; /* blocks are whole bytes */
    if (w.n < 1 || w.k < 1 || !is_power || w.n > INT32_MAX || w.k > INT32_MAX ||
        w.size > INT32_MAX || (w.bits != 2 && w.bits != 4 && w.bits != 8) ||
        ifd_onnx_input(call, 4) != IFD_NONE) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%lld x %lld weights of %lld bits in blocks of %lld",
                       (long long)w.n, (long long)w.k, (long long)w.bits, (long long)w.size);
        return false;
    }
    w.count = (w.k + w.size - 1) / w.size;
    const uint64_t rows = (uint64_t)w.n, blocks = rows * (uint64_t)w.count;
    const uint64_t row_zeros = ((uint64_t)w.count * (uint64_t)w.bits + 7) / 8;
    const enum ifd_dtype zero_type = ifd_build_desc(b, zero)->dtype;
    const bool has_zeros = zero != IFD_NONE, are_real = has_zeros && zero_type == IFD_F32;
    const uint64_t zeros_wanted = are_real ? blocks * sizeof(float) : rows * row_zeros;
    const uint64_t block_bytes = (uint64_t)(w.size * w.bits / 8);
    if (packed.size % blocks != 0 || packed.size / blocks != block_bytes ||
        ifd_build_desc(b, call->input[2])->dtype != IFD_F32 ||
        scales.size != blocks * sizeof(float) ||
        (has_zeros && ((zero_type != IFD_U8 && !are_real) || zeros.size != zeros_wanted))) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "weights, scales or zero points are not constant, "
                       "or not as many as \"N\", \"K\" and \"block_size\" say");
        return false;
    }
    w.packed = packed.data;
    w.zeros = has_zeros && !are_real ? zeros.data : NULL;
    w.real_zeros = are_real ? (const float *)(const void *)zeros.data : NULL;
    w.scales = (const float *)(const void *)scales.data;
    *ret = w;
    return true;
}

static void unpack_row(const struct blocks *w, int64_t n, float *to)
{
    const size_t row_zeros = (size_t)(w->count * w->bits + 7) / 8;
    for (int64_t block = 0; block < w->count; block++) {
        const int64_t at = n * w->count + block;
        const uint8_t *zeros = w->zeros ? w->zeros + (size_t)n * row_zeros : NULL;
        const float zero = w->real_zeros ? w->real_zeros[at]
                           : zeros       ? (float)unpack(zeros, (size_t)block, w->bits)
                                         : (float)(1 << (w->bits - 1));
        const uint8_t *from = w->packed + at * (w->size * w->bits / 8);
        for (int64_t i = 0; i < w->size && block * w->size + i < w->k; i++) {
            const float number = (float)unpack(from, (size_t)i, w->bits);
            to[block * w->size + i] = (number - zero) * w->scales[at];
        }
    }
}

/* Room for [n, k] floats. */
static float *take_floats(struct ifd_builder *b, int64_t n, int64_t k, struct ifd_desc *ret_desc)
{
    *ret_desc = (struct ifd_desc){.dtype = IFD_F32, .shape = {.rank = 2, .dim = {n, k}}};
    if (!ifd_desc_fits(ret_desc, b->tensor_bytes)) {
        ifd_build_fail(b, IFD_TOO_LARGE, "weights %s as floats have more than %zu bytes",
                       ifd_shape_text(&ret_desc->shape).s, b->tensor_bytes);
        return NULL;
    }
    const size_t bytes = (size_t)n * (size_t)k * sizeof(float);
    float *data = ifd_arena_take_tensor(b->graph->arena, bytes);
    if (!data) {
        b->code = ifd_arena_fail(b->graph->arena, bytes, b->err);
    }
    return data;
}

static uint32_t weights_of(struct ifd_builder *b, const struct ifd_desc *desc, const float *data)
{
    const struct ifd_bytes content = {.data = (const uint8_t *)data,
                                      .size = (size_t)desc->shape.dim[0] *
                                              (size_t)desc->shape.dim[1] * sizeof(*data)};
    return ifd_build_constant(b, desc, content, IFD_TENSOR_PAD);
}

/* Zero points of rows, so many an expert, as floats; NULL: no memory. */
static const float *zeros_of_rows(struct ifd_builder *b, struct ifd_bytes zeros, int64_t experts,
                                  int64_t rows, int64_t bits)
{
    const size_t count = (size_t)(experts * rows), stride = (size_t)((rows * bits + 7) / 8);
    float *real = ifd_arena_take_array(b->graph->arena, count, sizeof(*real));
    for (size_t i = 0; real && i < count; i++) {
        const uint8_t *of_expert = zeros.data + i / (size_t)rows * stride;
        real[i] = (float)unpack(of_expert, i % (size_t)rows, bits);
    }
    if (!real) {
        b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*real), b->err);
    }
    return real;
}

uint32_t ifd_onnx_unpacked_experts(struct ifd_onnx_call *call, uint32_t i, uint32_t zero,
                                   uint32_t layer)
{
    struct ifd_builder *b = call->b;
    const uint32_t weights = ifd_onnx_input(call, i), scale = ifd_onnx_input(call, i + 1),
                   zero_value = ifd_onnx_input(call, zero);
    const struct ifd_desc given = *ifd_build_desc(b, weights);
    const struct ifd_bytes packed = ifd_build_content(b, weights),
                           scales = ifd_build_content(b, scale),
                           zeros = ifd_build_content(b, zero_value);
    const int64_t bits =
        ifd_onnx_int(call, layer == 1 ? "fc1_expert_weight_bits" : "fc2_expert_weight_bits",
                     ifd_onnx_int(call, "expert_weight_bits", 4));
    const int64_t experts = given.shape.dim[0], rows = given.shape.dim[1];
    bool fits = b->code == IFD_OK && given.shape.rank == 3 && given.dtype == IFD_U8 &&
                packed.size > 0 && (bits == 2 || bits == 4 || bits == 8) &&
                ifd_onnx_text_is(call, "quant_type", "int", true) &&
                ifd_build_desc(b, scale)->dtype == IFD_F32;
    struct blocks w = {.bits = bits, .packed = packed.data};
    if (fits) {
        const int64_t size = ifd_onnx_int(call, "block_size", 0);
        w.n = experts * rows; /* has fewer than its bytes */
        w.k = given.shape.dim[2] * (8 / bits);
        w.size = size > 0 ? size : w.k;
        w.count = w.k / w.size;
        w.scales = (const float *)(const void *)scales.data;
        const size_t row_zeros = (size_t)((w.count * bits + 7) / 8);
        const size_t expert_zeros = (size_t)((rows * bits + 7) / 8);
        fits =
            w.k % w.size == 0 && w.size * bits % 8 == 0 &&
            scales.size / sizeof(float) == (size_t)(w.n * w.count) &&
            (zero_value == IFD_NONE ||
             (zeros.size == (size > 0 ? (size_t)w.n * row_zeros : (size_t)experts * expert_zeros)));
        w.zeros = size > 0 ? zeros.data : NULL;
        w.real_zeros = fits && size <= 0 && zero_value != IFD_NONE
                           ? zeros_of_rows(b, zeros, experts, rows, bits)
                           : NULL;
    }
    struct ifd_desc desc;
    if (!fits) {
        return ifd_build_fail(b, IFD_UNSUPPORTED,
                              "weights %s of %lld bits, their scales or zero points are not "
                              "constant, or not as many as \"block_size\" says",
                              ifd_shape_text(&given.shape).s, (long long)bits);
    }
    float *data = b->code == IFD_OK ? take_floats(b, w.n, w.k, &desc) : NULL;
    for (int64_t n = 0; data && n < w.n; n++) {
        unpack_row(&w, n, data + (size_t)n * (size_t)w.k);
    }
    const int64_t dim[3] = {experts, rows, w.k};
    return data ? ifd_build_reshape(b, weights_of(b, &desc, data), dim, 3) : IFD_NONE;
}

/* A [..., K] times weights [N, K] of 4 or 8 bits, whose blocks along K have a scale each. */
void ifd_onnx_matmul_blocks(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    struct ifd_desc desc;
    struct blocks w;
    float *data = take_blocks(call, &w) ? take_floats(b, w.n, w.k, &desc) : NULL;
    for (int64_t n = 0; data && n < w.n; n++) {
        unpack_row(&w, n, data + (size_t)n * (size_t)w.k);
    }
    if (data) {
        call->output[0] =
            ifd_build_layer(b, call->input[0], weights_of(b, &desc, data), ifd_onnx_input(call, 5));
    }
}

/* The same of 4 bits that are places in a table: floats of 4 bits, or quantiles of the normal
 * distribution (Dettmers et al.: QLoRA). Blocks lie in the flat weights, the first number of two in
 * the high bits. */
void ifd_onnx_matmul_bnb4(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    static const float tables[2][16] = {
        {0, 0.0052083333F, 2 / 3.0F, 1, 1 / 3.0F, 0.5F, 1 / 6.0F, 0.25F, 0, -0.0052083333F,
         -2 / 3.0F, -1, -1 / 3.0F, -0.5F, -1 / 6.0F, -0.25F},
        {-1, -0.6961928F, -0.52507305F, -0.3949175F, -0.28444138F, -0.18477343F, -0.09105004F, 0,
         0.0795803F, 0.1609302F, 0.2461123F, 0.33791524F, 0.44070983F, 0.562617F, 0.72295684F, 1}};
    struct ifd_builder *b = call->b;
    const int64_t k = ifd_onnx_int(call, "K", 0), n = ifd_onnx_int(call, "N", 0);
    const int64_t size = ifd_onnx_int(call, "block_size", 0);
    const int64_t kind = ifd_onnx_int(call, "quant_type", 0);
    const struct ifd_bytes packed = ifd_build_content(b, call->input[1]),
                           most = ifd_build_content(b, call->input[2]);
    int64_t all = 0;
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || size < 1 || size > INT32_MAX ||
        kind < 0 || kind > 1 || __builtin_mul_overflow(k, n, &all) ||
        ifd_onnx_int(call, "transB", 1) != 1 || packed.size != (uint64_t)(all + 1) / 2 ||
        ifd_build_desc(b, call->input[2])->dtype != IFD_F32 ||
        most.size / sizeof(float) != (uint64_t)((all + size - 1) / size)) {
        ifd_build_fail(
            b, IFD_UNSUPPORTED,
            "%lld x %lld weights in blocks of %lld that are not constant, or not as many",
            (long long)n, (long long)k, (long long)size);
        return;
    }
    struct ifd_desc desc;
    float *data = take_floats(b, n, k, &desc);
    for (int64_t i = 0; data && i < all; i++) {
        const unsigned code = packed.data[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15;
        data[i] = tables[kind][code] * ((const float *)(const void *)most.data)[i / size];
    }
    if (data) {
        call->output[0] = ifd_build_layer(b, call->input[0], weights_of(b, &desc, data), IFD_NONE);
    }
}

/* ---- rows of tables ---- */

static uint32_t rows(struct ifd_builder *b, uint32_t table, uint32_t indices)
{
    const struct ifd_gather_attrs attrs = {.axis = 0};
    return ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){table, indices}, 2, NULL, &attrs);
}

/* Numbers of 8 bits, or of 4, two in a byte: the last dimension doubles. */
static uint32_t unpacked(struct ifd_builder *b, uint32_t x, bool is_packed)
{
    x = ifd_build_cast(b, x, IFD_S32);
    if (!is_packed || b->code != IFD_OK) {
        return x;
    }
    struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    const struct ifd_axis_attrs last = {.axis = (int32_t)shape.rank};
    const uint32_t sixteen = ifd_build_number(b, IFD_S32, 16);
    const uint32_t part[2] = {ifd_build_binary(b, IFD_OP_FLOOR_MOD, x, sixteen),
                              ifd_build_binary(b, IFD_OP_FLOOR_DIV, x, sixteen)};
    const uint32_t both = ifd_build_node(b, IFD_OP_PACK, part, 2, NULL, &last);
    shape.dim[shape.rank - 1] *= 2;
    return ifd_build_reshape(b, both, shape.dim, shape.rank);
}

/* data [n, columns], indices, scales [n, blocks], zero points [n, blocks]: rows as floats. */
void ifd_onnx_gather_blocks(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_desc data = *ifd_build_desc(b, call->input[0]),
                          scale = *ifd_build_desc(b, call->input[2]);
    const uint32_t zero = ifd_onnx_input(call, 3);
    const int64_t bits = ifd_onnx_int(call, "bits", 4),
                  size = ifd_onnx_int(call, "block_size", 128);
    const int64_t axis = ifd_onnx_int(call, "quantize_axis", 1);
    /* numbers of 4 bits of the file's own type have a byte each by now */
    const bool is_packed = bits == 4 && ifd_onnx_narrow_type(call, 0) == 0;
    const bool is_plain = ifd_onnx_int(call, "gather_axis", 0) == 0 && data.shape.rank == 2 &&
                          scale.shape.rank == 2 && (axis == 1 || axis == -1);
    const int64_t columns = data.shape.dim[1] * (is_packed ? 2 : 1), blocks = scale.shape.dim[1];
    const struct ifd_shape zeros = ifd_build_desc(b, zero)->shape;
    if (!is_plain || (bits != 4 && bits != 8) || size < 1 || size > INT32_MAX || columns < 1 ||
        blocks != (columns + size - 1) / size || scale.shape.dim[0] != data.shape.dim[0] ||
        (zero != IFD_NONE && (zeros.rank != 2 || zeros.dim[0] != data.shape.dim[0]))) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "data %s of %lld bits in blocks of %lld, scales %s, zero points %s",
                       ifd_shape_text(&data.shape).s, (long long)bits, (long long)size,
                       ifd_shape_text(&scale.shape).s, ifd_shape_text(&zeros).s);
        return;
    }
    const uint32_t at = call->input[1];
    uint32_t x = unpacked(b, rows(b, call->input[0], at), is_packed);
    uint32_t steps = zero == IFD_NONE
                         ? ifd_build_number(b, IFD_S32, data.dtype == IFD_U8 ? 1 << (bits - 1) : 0)
                         : unpacked(b, rows(b, zero, at), is_packed);
    uint32_t factor = rows(b, call->input[2], at);
    if (b->code != IFD_OK) {
        return;
    }
    struct ifd_shape y = ifd_build_desc(b, x)->shape, apart = y;
    const uint32_t last = y.rank - 1;
    if (y.rank == IFD_MAX_RANK) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "indices of %u dimensions", y.rank - 1);
        return;
    }
    struct ifd_pad_attrs more = {.before = {.count = y.rank}, .after = {.count = y.rank}};
    more.after.value[last] = blocks * size - columns;
    x = more.after.value[last] > 0 ? ifd_build_node(b, IFD_OP_PAD, &x, 1, NULL, &more) : x;
    apart.rank = y.rank + 1;
    apart.dim[last] = blocks;
    apart.dim[last + 1] = 1;
    if (zero != IFD_NONE) {
        steps =
            ifd_build_reshape(b, ifd_build_cut(b, steps, last, 0, blocks), apart.dim, apart.rank);
    }
    factor = ifd_build_reshape(b, factor, apart.dim, apart.rank);
    apart.dim[last + 1] = size;
    x = ifd_build_binary(b, IFD_OP_SUB, ifd_build_reshape(b, x, apart.dim, apart.rank), steps);
    x = ifd_build_binary(b, IFD_OP_MUL, ifd_build_cast(b, x, IFD_F32), factor);
    y.dim[last] = blocks * size;
    call->output[0] = ifd_build_cut(b, ifd_build_reshape(b, x, y.dim, y.rank), last, 0, columns);
}
