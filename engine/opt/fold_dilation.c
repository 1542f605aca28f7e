/* space_to_batch → convolution → batch_to_space is how TensorFlow writes a dilated convolution: it becomes one again. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

/* The only reader of a value that is no output of the graph, NULL if there is none or more. */
static struct ifd_node *only_reader(const struct ifd_graph *graph, uint32_t value)
{
    struct ifd_node *reader = NULL;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (graph->output[i] == value) {
            return NULL;
        }
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->node[n].input_count; i++) {
            if (graph->node[n].input[i] == value) {
                if (reader) {
                    return NULL;
                }
                reader = &graph->node[n];
            }
        }
    }
    return reader;
}

struct pattern {
    struct ifd_node *to_batch, *conv, *to_space;
};

static bool find(const struct ifd_graph *graph, struct ifd_node *to_batch, struct pattern *ret)
{
    struct ifd_node *conv = only_reader(graph, to_batch->output[0]);
    if (!conv || (conv->op != IFD_OP_CONV2D && conv->op != IFD_OP_DEPTHWISE_CONV2D) ||
        conv->input[0] != to_batch->output[0] || to_batch->input_count != 1) {
        return false;
    }
    struct ifd_node *to_space = only_reader(graph, conv->output[0]);
    if (!to_space || to_space->op != IFD_OP_BATCH_TO_SPACE || to_space->input_count != 1) {
        return false;
    }
    *ret = (struct pattern){to_batch, conv, to_space};
    return true;
}

/* A dilated convolution without padding over the padded image gives what the three give before the crops; so the crops
 * at the beginning must be none, and those at the end must be what the blocks had too much. */
static bool fits(const struct ifd_graph *graph, const struct pattern *p, struct ifd_window *window)
{
    const struct ifd_space_batch_attrs *in = p->to_batch->attrs, *out = p->to_space->attrs;
    const struct ifd_shape *image = &graph->value[p->to_batch->input[0]].desc.shape;
    const struct ifd_shape *filter = &graph->value[p->conv->input[1]].desc.shape;
    const struct ifd_shape *result = &graph->value[p->to_space->output[0]].desc.shape;
    if (in->block.count != 2 || out->block.count != 2 || image->rank != 4 ||
        window->stride_h != 1 || window->stride_w != 1 || window->dilation_h != 1 ||
        window->dilation_w != 1) {
        return false;
    }
    struct ifd_window_size inner;
    const struct ifd_shape *small = &graph->value[p->conv->input[0]].desc.shape;
    if (!ifd_window_resolve(window, filter->dim[1], filter->dim[2], small->dim[1], small->dim[2],
                            &inner) ||
        inner.pad_top + inner.pad_left + inner.pad_bottom + inner.pad_right != 0) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (in->block.value[i] != out->block.value[i] || in->block.value[i] > INT16_MAX ||
            out->before.value[i] != 0) {
            return false;
        }
    }
    /* rows that a dilated window can take over the padded image; the crop takes the last of them */
    const int64_t pad_h = in->before.value[0] + in->after.value[0],
                  pad_w = in->before.value[1] + in->after.value[1];
    const int64_t reach_h = (filter->dim[1] - 1) * in->block.value[0],
                  reach_w = (filter->dim[2] - 1) * in->block.value[1];
    const int64_t extra_h = image->dim[1] + pad_h - reach_h - result->dim[1];
    const int64_t extra_w = image->dim[2] + pad_w - reach_w - result->dim[2];
    if (extra_h < 0 || extra_w < 0 || extra_h > in->after.value[0] ||
        extra_w > in->after.value[1] || pad_h > INT16_MAX || pad_w > INT16_MAX) {
        return false;
    }
    window->padding = IFD_PAD_EXPLICIT;
    window->dilation_h = (int32_t)in->block.value[0];
    window->dilation_w = (int32_t)in->block.value[1];
    window->pad_top = (int32_t)in->before.value[0];
    window->pad_left = (int32_t)in->before.value[1];
    window->pad_bottom = (int32_t)(in->after.value[0] - extra_h);
    window->pad_right = (int32_t)(in->after.value[1] - extra_w);
    return true;
}

enum ifd_code ifd_pass_fold_dilation(struct ifd_graph *graph, struct ifd_arena *scratch,
                                     uint32_t *ret_changes, struct ifd_err *err)
{
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    if (!drop) {
        return ifd_arena_fail(scratch, graph->node_count, err);
    }
    uint32_t changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct pattern p;
        if (graph->node[n].op != IFD_OP_SPACE_TO_BATCH || !find(graph, &graph->node[n], &p)) {
            continue;
        }
        struct ifd_conv2d_attrs attrs = *(const struct ifd_conv2d_attrs *)p.conv->attrs;
        if (!fits(graph, &p, &attrs.window)) {
            continue;
        }
        struct ifd_conv2d_attrs *dilated = ifd_arena_take(graph->arena, sizeof(*dilated));
        if (!dilated) {
            return ifd_arena_fail(graph->arena, sizeof(*dilated), err);
        }
        *dilated = attrs;
        p.conv->attrs = dilated;
        p.conv->input[0] = p.to_batch->input[0];
        graph->value[p.conv->output[0]].producer = IFD_NONE;
        p.conv->output[0] = p.to_space->output[0];
        graph->value[p.conv->output[0]].producer = (uint32_t)(p.conv - graph->node);
        drop[n] = true;
        drop[p.to_space - graph->node] = true;
        changes++;
    }
    ifd_rewrite_drop_nodes(graph, drop);
    *ret_changes = changes;
    return IFD_OK;
}
