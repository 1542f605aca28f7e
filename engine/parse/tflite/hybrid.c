/* Layers of floats with weights of s8: LiteRT quantizes what it multiplies. */
#include "engine/parse/tflite/composite.h"

#include "engine/ops/ref_util.h"

#define BATCH_MATMUL 126
#define BATCHES_MAX  4096

enum ifd_code ifd_tflite_without_zero_points(struct ifd_tflite_build *b, uint32_t *value)
{
    const struct ifd_value *v = &b->graph->value[*value];
    const uint32_t count = v->desc.quant.count;
    bool is_zero = true;
    for (uint32_t i = 0; i < count; i++) {
        is_zero = is_zero && v->desc.quant.zero_point[i] == 0;
    }
    if (is_zero || v->desc.dtype != IFD_S8 || !v->is_constant) {
        return IFD_OK;
    }
    struct ifd_desc desc = v->desc;
    const struct ifd_bytes content = v->data;
    const char *name = v->name;
    int32_t *zeros = ifd_arena_take_array(b->graph->arena, count, sizeof(*zeros)); /* zeroed */
    if (!zeros) {
        return ifd_arena_fail(b->graph->arena, count * sizeof(*zeros), b->err);
    }
    desc.quant.zero_point = zeros;
    const enum ifd_code code = ifd_graph_add_value(b->graph, name, &desc, value, b->err);
    if (code == IFD_OK) {
        b->graph->value[*value].data = content;
        b->graph->value[*value].is_constant = true;
    }
    return code;
}

bool ifd_composite_is_hybrid(const struct ifd_tflite_build *b, const struct ifd_tflite_operator *op,
                             int32_t builtin)
{
    enum ifd_dtype x = IFD_DTYPE_COUNT, w = IFD_DTYPE_COUNT;
    return builtin == BATCH_MATMUL && op->input.count == 2 && op->input.value[0] >= 0 &&
           op->input.value[1] >= 0 && ifd_tflite_dtype(b->g->tensor[op->input.value[0]].type, &x) &&
           ifd_tflite_dtype(b->g->tensor[op->input.value[1]].type, &w) && x == IFD_F32 &&
           w == IFD_S8;
}

/* [..., rows, columns] as [batches, rows, columns]. */
static uint32_t as_batches(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_shape s = ifd_build_desc(b, x)->shape;
    int64_t batches = 1;
    for (uint32_t d = 0; d + 2 < s.rank; d++) {
        batches *= s.dim[d]; /* of a tensor whose bytes can be counted */
    }
    return ifd_build_reshape(b, x, (int64_t[]){batches, s.dim[s.rank - 2], s.dim[s.rank - 1]}, 3);
}

static uint32_t layer(const struct ifd_composite *c, uint32_t x, uint32_t weights)
{
    const struct ifd_fully_connected_attrs attrs = {
        .keep_dims = true, .asymmetric_inputs = c->options->asymmetric_quantize_inputs};
    const struct ifd_desc output = {.dtype = IFD_F32};
    return ifd_build_node(c->b, IFD_OP_FULLY_CONNECTED, (const uint32_t[]){x, weights}, 2, &output,
                          &attrs);
}

/* Batch i of a tensor [batches, rows, columns] as a matrix. */
static uint32_t matrix(struct ifd_builder *b, uint32_t x, int64_t i)
{
    const struct ifd_shape s = ifd_build_desc(b, x)->shape;
    return ifd_build_reshape(b, s.dim[0] == 1 ? x : ifd_build_cut(b, x, 0, i, 1), &s.dim[1], 2);
}

/* Product of each matrix of x with the one of w that belongs to it. */
static uint32_t multiply_each(const struct ifd_composite *c, uint32_t x, uint32_t w,
                              const struct ifd_shape *batch)
{
    struct ifd_builder *b = c->b;
    const struct ifd_shape of_x = ifd_build_desc(b, x)->shape, of_w = ifd_build_desc(b, w)->shape;
    const struct ifd_axis_attrs attrs = {.axis = 0};
    struct ifd_shape lead_x = of_x, lead_w = of_w, whole = *batch;
    uint32_t y[BATCHES_MAX], count = 0;
    struct ifd_walk walk;
    lead_x.rank -= 2;
    lead_w.rank -= 2;
    x = as_batches(b, x);
    w = as_batches(b, w);
    ifd_walk_init(&walk, batch);
    ifd_walk_broadcast(&walk, 0, &lead_x);
    ifd_walk_broadcast(&walk, 1, &lead_w);
    for (; walk.left > 0 && b->code == IFD_OK; ifd_walk_next(&walk)) {
        y[count++] = layer(c, matrix(b, x, walk.offset[0]), matrix(b, w, walk.offset[1]));
    }
    whole.dim[whole.rank++] = of_x.dim[of_x.rank - 2];
    whole.dim[whole.rank++] = of_w.dim[of_w.rank - 2];
    const uint32_t all =
        count == 1 ? y[0] : ifd_build_node(b, IFD_OP_CONCAT, y, count, NULL, &attrs);
    return ifd_build_reshape(b, all, whole.dim, whole.rank);
}

/* f32 by s8: a fully connected layer for each matrix of the weights. */
void ifd_composite_hybrid_matmul(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    uint32_t x = c->input[0], w = c->input[1];
    const uint32_t rank = ifd_build_desc(b, x)->shape.rank,
                   rank_w = ifd_build_desc(b, w)->shape.rank;
    if (rank < 2 || rank_w < 2 || ifd_build_desc(b, w)->quant.count != 1) {
        ifd_build_fail(b, IFD_INVALID,
                       "matrices of %u and %u dimensions and %u scales, expected 2 or more and 1",
                       rank, rank_w, ifd_build_desc(b, w)->quant.count);
        return;
    }
    b->code = b->code == IFD_OK ? ifd_tflite_without_zero_points(c->build, &w) : b->code;
    x = c->options->adj_x ? ifd_build_swap(b, x, rank - 2, rank - 1) : x;
    w = c->options->adj_y ? w : ifd_build_swap(b, w, rank_w - 2, rank_w - 1);
    if (b->code != IFD_OK) {
        return;
    }
    struct ifd_shape lead_x = ifd_build_desc(b, x)->shape, lead_w = ifd_build_desc(b, w)->shape,
                     batch;
    lead_x.rank -= 2;
    lead_w.rank -= 2;
    size_t matrices = 0, of_weights = 0;
    if (!ifd_shape_broadcast(&lead_x, &lead_w, &batch) || !ifd_shape_elements(&batch, &matrices) ||
        !ifd_shape_elements(&lead_w, &of_weights) || matrices == 0) {
        ifd_build_fail(b, IFD_INVALID, "batches %s and %s do not broadcast",
                       ifd_shape_text(&lead_x).s, ifd_shape_text(&lead_w).s);
    } else if (of_weights == 1 && lead_w.rank <= lead_x.rank) {
        c->output[0] = layer(c, x, matrix(b, as_batches(b, w), 0));
    } else if (matrices > BATCHES_MAX) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%zu products of f32 and s8, limit %d", matrices,
                       BATCHES_MAX);
    } else {
        c->output[0] = multiply_each(c, x, w, &batch);
    }
}
