/* A multiplication or addition of constants per output channel, behind a convolution or fully
 * connected layer, goes into weights and bias of the layer: batch normalization, scales, separate
 * biases. Floats only. */
#include "engine/opt/pass_impl.h"

#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"

/* y = scale * conv + shift; of channel c: scale[c % scale_count]. NULL means 1 or 0. */
struct affine {
    const struct ifd_node *node;
    uint32_t conv_value;
    const float *scale, *shift;
    size_t scale_count, shift_count;
    bool divides;                 /* by scale */
    float scale_sign, shift_sign; /* of y = shift - conv and y = conv - shift */
};

static bool affine_of(const struct ifd_graph *graph, const struct ifd_node *node,
                      struct affine *ret)
{
    if (node->op != IFD_OP_MUL && node->op != IFD_OP_DIV && node->op != IFD_OP_ADD &&
        node->op != IFD_OP_SUB) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        size_t count = 0;
        const float *data = ifd_rewrite_floats(graph, node->input[1 - i], &count);
        const struct ifd_shape *shape = &graph->value[node->input[i]].desc.shape;
        const bool divides_constant = node->op == IFD_OP_DIV && i == 1;
        if (!data || divides_constant ||
            !ifd_shape_equal(shape, &graph->value[node->output[0]].desc.shape) ||
            !ifd_rewrite_is_per_channel(graph, node->input[1 - i], shape)) {
            continue;
        }
        *ret = (struct affine){
            .node = node, .conv_value = node->input[i], .scale_sign = 1, .shift_sign = 1};
        if (node->op == IFD_OP_MUL || node->op == IFD_OP_DIV) {
            ret->scale = data;
            ret->scale_count = count;
            ret->divides = node->op == IFD_OP_DIV;
        } else {
            ret->shift = data;
            ret->shift_count = count;
            ret->scale_sign = node->op == IFD_OP_SUB && i == 1 ? -1.0f : 1.0f;
            ret->shift_sign = node->op == IFD_OP_SUB && i == 0 ? -1.0f : 1.0f;
        }
        return true;
    }
    return false;
}

static float scale_at(const struct affine *a, size_t c)
{
    const float x = a->scale ? a->scale[c % a->scale_count] : 1.0f;
    return a->scale_sign * (a->divides ? 1.0f / x : x);
}

static float shift_at(const struct affine *a, size_t c)
{
    return a->shift ? a->shift_sign * a->shift[c % a->shift_count] : 0.0f;
}

/* The layer that takes the constants, and its own before. */
struct job {
    const struct ifd_op_weights *operands;
    uint32_t filter, bias; /* values; bias IFD_NONE if there is none */
    bool channel_is_last;  /* of the filter's dimensions; else first */
    const float *weights, *old_bias;
    size_t weight_count, channels;
};

static size_t channel_of(const struct job *job, size_t i)
{
    return job->channel_is_last ? i % job->channels : i / (job->weight_count / job->channels);
}

static float new_weight(const struct job *job, const struct affine *a, size_t i)
{
    return job->weights[i] * scale_at(a, channel_of(job, i));
}

static float new_bias(const struct job *job, const struct affine *a, size_t c)
{
    return (job->old_bias ? job->old_bias[c] * scale_at(a, c) : 0.0f) + shift_at(a, c);
}

/* A shift leaves them as they are. */
static bool changes_weights(const struct affine *a)
{
    return a->scale || a->scale_sign < 0;
}

/* Do all weights stay finite? */
static bool is_finite(const struct job *job, const struct affine *a)
{
    bool ok = true;
    for (size_t i = 0; i < job->weight_count && changes_weights(a); i++) {
        ok &= isfinite(new_weight(job, a, i)) != 0;
    }
    for (size_t c = 0; c < job->channels; c++) {
        ok &= isfinite(new_bias(job, a, c)) != 0;
    }
    return ok;
}

static bool find_job(const struct ifd_graph *graph, const struct ifd_node *conv,
                     const struct affine *a, struct job *ret)
{
    struct job job = {.operands = ifd_op_def(conv->op)->weights};
    size_t bias_count = 0;
    if (!job.operands || ifd_rewrite_activation(conv) != IFD_ACT_NONE) {
        return false;
    }
    job.filter = conv->input[job.operands->input];
    job.bias = job.operands->bias < conv->input_count ? conv->input[job.operands->bias] : IFD_NONE;
    job.channel_is_last = job.operands->axis > 0;
    job.weights = ifd_rewrite_floats(graph, job.filter, &job.weight_count);
    job.old_bias = ifd_rewrite_floats(graph, job.bias, &bias_count);
    const struct ifd_shape *out = &graph->value[conv->output[0]].desc.shape;
    job.channels = (size_t)out->dim[out->rank - 1];
    *ret = job;
    return job.weights && (job.bias == IFD_NONE || bias_count == job.channels) &&
           job.weight_count % job.channels == 0 &&
           ifd_rewrite_has_room(graph,
                                ((changes_weights(a) ? job.weight_count : 0) + job.channels) *
                                    sizeof(float)) &&
           is_finite(&job, a);
}

/* The layer's operands, with weights and bias replaced. */
static enum ifd_code set_operands(struct ifd_graph *graph, struct ifd_node *conv,
                                  const struct ifd_op_weights *operands, uint32_t filter,
                                  uint32_t bias, struct ifd_err *err)
{
    const uint32_t count = operands->bias + 1;
    uint32_t *input = ifd_arena_take_array(graph->arena, count, sizeof(*input));
    if (!input) {
        return ifd_arena_fail(graph->arena, count * sizeof(*input), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        input[i] = i < conv->input_count ? conv->input[i] : IFD_NONE;
    }
    input[operands->input] = filter;
    input[operands->bias] = bias;
    conv->input = input;
    conv->input_count = count;
    return IFD_OK;
}

static enum ifd_code fold(struct ifd_graph *graph, struct ifd_node *conv, const struct job *job,
                          const struct affine *a, struct ifd_err *err)
{
    uint32_t filter = job->filter, bias = job->bias;
    float *data = NULL;
    enum ifd_code code = IFD_OK;
    if (changes_weights(a)) {
        const struct ifd_shape shape = graph->value[filter].desc.shape;
        code = ifd_rewrite_add_floats(graph, job->filter, &shape, &data, &filter, err);
        for (size_t i = 0; code == IFD_OK && i < job->weight_count; i++) {
            data[i] = new_weight(job, a, i);
        }
    }
    if (code == IFD_OK && (job->old_bias || a->shift)) {
        const struct ifd_shape shape = {.rank = 1, .dim = {(int64_t)job->channels}};
        code = ifd_rewrite_add_floats(graph, a->node->output[0], &shape, &data, &bias, err);
        for (size_t c = 0; code == IFD_OK && c < job->channels; c++) {
            data[c] = new_bias(job, a, c);
        }
    }
    return code == IFD_OK ? set_operands(graph, conv, job->operands, filter, bias, err) : code;
}

/* The layer makes the value of the node behind it, with the activation of that node. */
static enum ifd_code take_over(struct ifd_graph *graph, struct ifd_node *conv,
                               const struct ifd_node *affine, struct ifd_err *err)
{
    const int32_t activation = ifd_rewrite_activation(affine);
    uint8_t *attrs = ifd_rewrite_own_attrs(graph, conv);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, ifd_op_def(conv->op)->attrs_bytes, err);
    }
    memcpy(attrs + ifd_rewrite_activation_offset(conv->op), &activation, sizeof(activation));
    ifd_rewrite_store_instead(graph, conv, affine);
    return IFD_OK;
}

enum ifd_code ifd_pass_fold_scale(struct ifd_graph *graph, struct ifd_arena *scratch,
                                  uint32_t *ret_changes, struct ifd_err *err)
{
    uint32_t *uses = ifd_arena_take_array(scratch, graph->value_count, sizeof(*uses));
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    if (!uses || !drop) {
        return ifd_arena_fail(scratch, graph->value_count * sizeof(*uses), err);
    }
    ifd_rewrite_count_uses(graph, uses);
    enum ifd_code code = IFD_OK;
    *ret_changes = 0;
    for (uint32_t n = 0; code == IFD_OK && n < graph->node_count; n++) {
        struct affine a;
        const struct ifd_node *node = &graph->node[n];
        if (!affine_of(graph, node, &a) || uses[a.conv_value] != 1) {
            continue;
        }
        struct ifd_node *conv = ifd_rewrite_producer(graph, a.conv_value);
        struct job job;
        if (!conv || !find_job(graph, conv, &a, &job)) {
            continue;
        }
        code = fold(graph, conv, &job, &a, err);
        if (code == IFD_OK) {
            code = take_over(graph, conv, node, err);
            drop[n] = true;
            (*ret_changes)++;
        }
    }
    ifd_rewrite_drop_nodes(graph, drop);
    return code;
}
