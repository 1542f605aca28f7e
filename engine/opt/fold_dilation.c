/* TensorFlow writes a dilated convolution as space_to_batch → convolution → batch_to_space: it
 * becomes one node again. In one dimension there is a reshape before and behind the convolution,
 * which makes images of one line. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

/* The reader of every value with one reader; IFD_NONE for others and for outputs of the graph. */
static void find_readers(const struct ifd_graph *graph, const uint32_t *uses, uint32_t *reader)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            const uint32_t v = graph->node[n].input[i];
            if (v != IFD_NONE && uses[v] == 1) {
                reader[v] = n;
            }
        }
    }
}

struct pattern {
    struct ifd_node *to_batch, *conv, *to_space;
    struct ifd_node *expand, *squeeze; /* NULL for images */
};

static struct ifd_node *next(const struct ifd_graph *graph, const uint32_t *reader,
                             const struct ifd_node *node)
{
    const uint32_t n = node->output_count == 1 ? reader[node->output[0]] : IFD_NONE;
    struct ifd_node *found = n == IFD_NONE ? NULL : &graph->node[n];
    return found && found->input[0] == node->output[0] ? found : NULL;
}

/* The layer finds a scale for each image of the batch from its numbers: blocks have their own. */
static bool finds_scales(const struct ifd_graph *graph, const struct ifd_node *conv)
{
    return graph->value[conv->input[0]].desc.dtype == IFD_F32 &&
           graph->value[conv->input[1]].desc.dtype != IFD_F32;
}

static bool find(const struct ifd_graph *graph, const uint32_t *reader, struct ifd_node *to_batch,
                 struct pattern *ret)
{
    struct ifd_node *node = next(graph, reader, to_batch);
    struct pattern p = {.to_batch = to_batch};
    if (node && node->op == IFD_OP_RESHAPE) {
        p.expand = node;
        node = next(graph, reader, node);
    }
    if (!node || (node->op != IFD_OP_CONV2D && node->op != IFD_OP_DEPTHWISE_CONV2D) ||
        finds_scales(graph, node)) {
        return false;
    }
    p.conv = node;
    node = next(graph, reader, node);
    if (node && p.expand && node->op == IFD_OP_RESHAPE) {
        p.squeeze = node;
        node = next(graph, reader, node);
    }
    if (!node || node->op != IFD_OP_BATCH_TO_SPACE || (p.expand && !p.squeeze) ||
        node->input_count != 1 || to_batch->input_count != 1 ||
        !ifd_rewrite_keeps_quant(graph, to_batch) || !ifd_rewrite_keeps_quant(graph, node) ||
        (p.expand && !(ifd_rewrite_keeps_quant(graph, p.expand) &&
                       ifd_rewrite_keeps_quant(graph, p.squeeze)))) {
        return false;
    }
    p.to_space = node;
    *ret = p;
    return true;
}

/* One of the two dimensions of an image. */
struct side {
    int64_t block, before, after, crop_before, crop_after;
    int64_t image, blocks, result; /* sizes: whole, of a block, behind the crops */
    int64_t filter;
    int32_t extra; /* padding that the crops remove */
};

/* False if the reshapes of one dimension do not make images of one line. */
static bool find_sides(const struct ifd_graph *graph, const struct pattern *p, struct side side[2])
{
    const struct ifd_space_batch_attrs *in = p->to_batch->attrs, *out = p->to_space->attrs;
    const struct ifd_shape *image = &graph->value[p->to_batch->input[0]].desc.shape;
    const struct ifd_shape *blocks = &graph->value[p->conv->input[0]].desc.shape;
    const struct ifd_shape *convolved = &graph->value[p->conv->output[0]].desc.shape;
    const struct ifd_shape *result = &graph->value[p->to_space->output[0]].desc.shape;
    const struct ifd_shape *filter = &graph->value[p->conv->input[1]].desc.shape;
    const uint32_t count = p->expand ? 1 : 2;
    if (in->block.count != count || out->block.count != count || image->rank != count + 2 ||
        blocks->rank != 4) {
        return false;
    }
    const struct ifd_shape *deep = &graph->value[p->to_batch->output[0]].desc.shape;
    const bool is_line = p->expand && blocks->dim[0] == deep->dim[0] && blocks->dim[1] == 1 &&
                         blocks->dim[2] == deep->dim[1] && blocks->dim[3] == deep->dim[2] &&
                         convolved->dim[1] == 1 &&
                         graph->value[p->squeeze->output[0]].desc.shape.rank == 3 &&
                         graph->value[p->squeeze->output[0]].desc.shape.dim[1] == convolved->dim[2];
    if (p->expand && !is_line) {
        return false;
    }
    side[0] = (struct side){.block = 1, .image = 1, .blocks = 1, .result = 1, .filter = 1};
    for (uint32_t i = 0; i < count; i++) {
        side[2 - count + i] = (struct side){.block = in->block.value[i],
                                            .before = in->before.value[i],
                                            .after = in->after.value[i],
                                            .crop_before = out->before.value[i],
                                            .crop_after = out->after.value[i],
                                            .image = image->dim[1 + i],
                                            .result = result->dim[1 + i]};
        if (in->block.value[i] != out->block.value[i]) {
            return false;
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        side[i].blocks = blocks->dim[1 + i];
        side[i].filter = filter->dim[1 + i];
    }
    return true;
}

/* A dilated convolution without padding, over the padded image, gives the result of the three nodes
 * before the crops. So there must be no crop at the beginning, and the one at the end must remove
 * what pads the last blocks. */
static bool fits(struct side *side)
{
    const int64_t padded = side->image + side->before + side->after;
    const int64_t reach = (side->filter - 1) * side->block;
    const int64_t extra = padded - reach - side->result;
    if (side->crop_before != 0 || side->block > INT16_MAX || extra < 0 || extra > side->after ||
        side->before + side->after > INT16_MAX) {
        return false;
    }
    side->extra = (int32_t)extra;
    return true;
}

static bool dilate(const struct ifd_graph *graph, const struct pattern *p,
                   struct ifd_window *window)
{
    struct side side[2];
    struct ifd_window_size inner;
    if (window->stride_h != 1 || window->stride_w != 1 || window->dilation_h != 1 ||
        window->dilation_w != 1 || !find_sides(graph, p, side) || !fits(&side[0]) ||
        !fits(&side[1]) ||
        !ifd_window_resolve(window, side[0].filter, side[1].filter, side[0].blocks, side[1].blocks,
                            &inner) ||
        inner.pad_top + inner.pad_left + inner.pad_bottom + inner.pad_right != 0) {
        return false;
    }
    *window = (struct ifd_window){.padding = IFD_PAD_EXPLICIT,
                                  .stride_h = 1,
                                  .stride_w = 1,
                                  .dilation_h = (int32_t)side[0].block,
                                  .dilation_w = (int32_t)side[1].block,
                                  .pad_top = (int32_t)side[0].before,
                                  .pad_bottom = (int32_t)side[0].after - side[0].extra,
                                  .pad_left = (int32_t)side[1].before,
                                  .pad_right = (int32_t)side[1].after - side[1].extra};
    return true;
}

/* Lines: the reshapes stay, and make one image of the whole line. */
static enum ifd_code join_line(struct ifd_graph *graph, const struct pattern *p,
                               struct ifd_err *err)
{
    const struct ifd_shape *image = &graph->value[p->to_batch->input[0]].desc.shape;
    const struct ifd_shape *result = &graph->value[p->to_space->output[0]].desc.shape;
    struct ifd_shape *in = &graph->value[p->conv->input[0]].desc.shape;
    struct ifd_shape *out = &graph->value[p->conv->output[0]].desc.shape;
    in->dim[0] = image->dim[0];
    in->dim[2] = image->dim[1];
    out->dim[0] = result->dim[0];
    out->dim[2] = result->dim[1];
    p->expand->input[0] = p->to_batch->input[0];
    ifd_rewrite_store_instead(graph, p->squeeze, p->to_space);
    const enum ifd_code code = ifd_rewrite_to_reshape(graph, p->expand, err);
    return code == IFD_OK ? ifd_rewrite_to_reshape(graph, p->squeeze, err) : code;
}

static enum ifd_code join(struct ifd_graph *graph, const struct pattern *p,
                          const struct ifd_window *window, struct ifd_err *err)
{
    struct ifd_conv2d_attrs *attrs = ifd_rewrite_own_attrs(graph, p->conv);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, sizeof(*attrs), err);
    }
    attrs->window = *window;
    if (p->expand) {
        return join_line(graph, p, err);
    }
    p->conv->input[0] = p->to_batch->input[0];
    ifd_rewrite_store_instead(graph, p->conv, p->to_space);
    return IFD_OK;
}

enum ifd_code ifd_pass_fold_dilation(struct ifd_graph *graph, struct ifd_arena *scratch,
                                     uint32_t *ret_changes, struct ifd_err *err)
{
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    uint32_t *uses = ifd_arena_take_array(scratch, graph->value_count, sizeof(*uses));
    uint32_t *reader = ifd_arena_take_array(scratch, graph->value_count, sizeof(*reader));
    if (!drop || !uses || !reader) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*uses), err);
    }
    for (uint32_t v = 0; v < graph->value_count; v++) {
        reader[v] = IFD_NONE;
    }
    ifd_rewrite_count_uses(graph, uses);
    find_readers(graph, uses, reader);
    enum ifd_code code = IFD_OK;
    *ret_changes = 0;
    for (uint32_t n = 0; code == IFD_OK && n < graph->node_count; n++) {
        struct pattern p;
        if (graph->node[n].op != IFD_OP_SPACE_TO_BATCH ||
            !find(graph, reader, &graph->node[n], &p)) {
            continue;
        }
        struct ifd_window window = ((const struct ifd_conv2d_attrs *)p.conv->attrs)->window;
        if (!dilate(graph, &p, &window)) {
            continue;
        }
        code = join(graph, &p, &window, err);
        drop[n] = true;
        drop[p.to_space - graph->node] = true;
        (*ret_changes)++;
    }
    ifd_rewrite_drop_nodes(graph, drop);
    return code;
}
