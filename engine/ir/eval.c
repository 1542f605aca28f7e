/* Calls a reference kernel on constants. */
#include "engine/ir/eval.h"

#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/ir/trace.h"

#define WORK_FREE 256 /* shape arithmetic costs nothing */

bool ifd_graph_is_computable(const struct ifd_graph *graph, const struct ifd_node *node)
{
    if (!ifd_op_def(node->op)->ref) {
        return false;
    }
    if (ifd_op_def(node->op)->reads_shape_only) {
        size_t count = 0;
        return ifd_shape_elements(&graph->value[node->input[0]].desc.shape, &count);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE && !graph->value[node->input[i]].is_constant) {
            return false;
        }
    }
    return node->input_count > 0;
}

/* All that one call of a kernel needs, in a scratch arena. */
struct call {
    struct ifd_ref_call ref;
    struct ifd_operand *operand;
    struct ifd_desc *desc; /* copies: values may move while memory is taken */
    const struct ifd_desc **in, **out;
    const void **input;
    void **output;
};

static bool take_call(struct ifd_arena *scratch, const struct ifd_node *node, struct call *call)
{
    *call = (struct call){
        .operand = ifd_arena_take_array(scratch, node->input_count, sizeof(*call->operand)),
        .desc = ifd_arena_take_array(scratch, node->output_count, sizeof(*call->desc)),
        .in = ifd_arena_take_array(scratch, node->input_count, sizeof(*call->in)),
        .out = ifd_arena_take_array(scratch, node->output_count, sizeof(*call->out)),
        .input = ifd_arena_take_array(scratch, node->input_count, sizeof(*call->input)),
        .output = ifd_arena_take_array(scratch, node->output_count, sizeof(*call->output)),
    };
    return call->operand && call->desc && call->in && call->out && call->input && call->output;
}

/* outputs: where they go. */
static enum ifd_code fill_call(const struct ifd_graph *graph, const struct ifd_node *node,
                               struct ifd_arena *outputs, struct call *call, struct ifd_err *err)
{
    ifd_graph_operands(graph, node, call->operand);
    for (uint32_t i = 0; i < node->input_count; i++) {
        call->in[i] = call->operand[i].desc;
        call->input[i] = call->operand[i].data.data;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        size_t bytes = 0;
        call->desc[i] = graph->value[node->output[i]].desc;
        call->out[i] = &call->desc[i];
        if (!ifd_desc_bytes(&call->desc[i], &bytes)) {
            return ifd_fail(err, IFD_TOO_LARGE, "output %u has no size", i);
        }
        call->output[i] = ifd_arena_take_room(outputs, bytes);
        if (!call->output[i]) {
            return ifd_arena_fail(outputs, bytes, err);
        }
        ifd_populate_pages(call->output[i], bytes);
    }
    call->ref = (struct ifd_ref_call){.attrs = node->attrs,
                                      .in = call->in,
                                      .input = call->input,
                                      .input_count = node->input_count,
                                      .out = call->out,
                                      .output = call->output,
                                      .output_count = node->output_count};
    return IFD_OK;
}

static enum ifd_code take_kernel_scratch(const struct ifd_op_def *def, struct call *call,
                                         struct ifd_arena *scratch, struct ifd_err *err)
{
    if (!def->scratch) {
        return IFD_OK;
    }
    const struct ifd_infer question = {.def = def,
                                       .attrs = call->ref.attrs,
                                       .input = call->operand,
                                       .input_count = call->ref.input_count,
                                       .output_count = call->ref.output_count};
    size_t bytes = 0;
    enum ifd_code code = def->scratch(&question, call->desc, &bytes, err);
    if (code != IFD_OK) {
        return code;
    }
    call->ref.scratch = ifd_arena_take_tensor(scratch, bytes);
    return call->ref.scratch ? IFD_OK : ifd_arena_fail(scratch, bytes, err);
}

static enum ifd_code prepare(const struct ifd_graph *graph, const struct ifd_node *node,
                             struct ifd_arena *scratch, struct ifd_arena *outputs, struct call *ret,
                             struct ifd_err *err)
{
    if (!take_call(scratch, node, ret)) {
        return ifd_arena_fail(scratch, node->input_count * sizeof(*ret->operand), err);
    }
    const enum ifd_code code = fill_call(graph, node, outputs, ret, err);
    return code == IFD_OK ? take_kernel_scratch(ifd_op_def(node->op), ret, scratch, err) : code;
}

enum ifd_code ifd_graph_prepare_call(const struct ifd_graph *graph, const struct ifd_node *node,
                                     struct ifd_arena *scratch, struct ifd_ref_call *ret,
                                     struct ifd_err *err)
{
    struct call call;
    const enum ifd_code code = prepare(graph, node, scratch, scratch, &call, err);
    if (code == IFD_OK) {
        *ret = call.ref;
    }
    return code;
}

/* Of what the arena has left, one result takes half at most: a graph has more to keep. */
static bool fits(const struct ifd_graph *graph, const struct ifd_node *node, size_t limit_bytes)
{
    const struct ifd_arena *arena = graph->arena;
    if (arena->cap_bytes > 0) {
        const size_t left =
            arena->cap_bytes > arena->used_bytes ? arena->cap_bytes - arena->used_bytes : 0;
        limit_bytes = left / 2 < limit_bytes ? left / 2 : limit_bytes;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct ifd_desc *desc = &graph->value[node->output[i]].desc;
        size_t bytes = 0;
        if (desc->dtype == IFD_STR || !ifd_desc_bytes(desc, &bytes) || bytes > limit_bytes) {
            return false;
        }
    }
    return true;
}

/* ---- what it costs ---- */

static double elements(const struct ifd_desc *desc)
{
    double count = 1;
    for (uint32_t d = 0; d < desc->shape.rank; d++) {
        count *= (double)desc->shape.dim[d];
    }
    return count;
}

/* Each element of the result is a sum over the weights of its channel. */
static double products_of(const struct ifd_op_weights *weights, const struct ifd_desc *w)
{
    const double channels =
        w->shape.rank > 0 ? (double)w->shape.dim[weights->axis == 0 ? 0 : w->shape.rank - 1] : 0;
    return channels > 0 ? elements(w) / channels : 1;
}

/* A regular expression may take as many steps for each byte of a text. */
#define TEXT_STEPS 1000

static double text_work(const struct ifd_value *value)
{
    double bytes = 0;
    for (size_t at = 0; value->desc.dtype == IFD_STR && value->is_constant &&
                        at + sizeof(struct ifd_str) <= value->data.size;
         at += sizeof(struct ifd_str)) {
        struct ifd_str text;
        memcpy(&text, value->data.data + at, sizeof(text));
        bytes += (double)text.size;
    }
    return bytes * TEXT_STEPS;
}

/* An estimate in doubles, which do not overflow. */
double ifd_node_work(const struct ifd_graph *graph, const struct ifd_node *node)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    double in = 0, largest = 1, out = 0;
    for (uint32_t i = 0; i < node->input_count && !def->reads_shape_only; i++) {
        if (node->input[i] != IFD_NONE) {
            const double count = elements(&graph->value[node->input[i]].desc);
            in += count + text_work(&graph->value[node->input[i]]);
            largest = count > largest ? count : largest;
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        out += elements(&graph->value[node->output[i]].desc);
    }
    if (def->weights && def->weights->input < node->input_count &&
        node->input[def->weights->input] != IFD_NONE) {
        const uint32_t w = node->input[def->weights->input];
        return in + out * products_of(def->weights, &graph->value[w].desc);
    }
    double terms = def->multiplies ? largest : 1;
    if (def->terms) {
        const struct ifd_shape *input = &graph->value[node->input[0]].desc.shape;
        terms = fmin(terms, def->terms(node->attrs, input));
    }
    return in + out * terms;
}

double ifd_graph_work(const struct ifd_graph *graph)
{
    double work = 0;
    for (; graph; graph = graph->next) {
        for (uint32_t n = 0; n < graph->node_count; n++) {
            work += ifd_node_work(graph, &graph->node[n]);
        }
    }
    return work;
}

/* Whether the model has as much left to be computed; it is spent then. */
static bool spend(struct ifd_graph *graph, const struct ifd_node *node)
{
    struct ifd_graph *whole = graph->main ? graph->main : graph;
    const double work = ifd_node_work(graph, node);
    if (whole->work_limit == 0 || work <= WORK_FREE) {
        return true;
    }
    const bool has_left = whole->work + work <= whole->work_limit;
    whole->work += has_left ? work : 0;
    return has_left;
}

static enum ifd_code compute(struct ifd_graph *graph, const struct ifd_node *node,
                             struct ifd_arena *scratch, bool *ret_done, struct ifd_err *err)
{
    struct call call;
    const enum ifd_code code = prepare(graph, node, scratch, graph->arena, &call, err);
    if (code != IFD_OK) {
        return code;
    }
    /* A kernel that refuses its data (an index out of range) leaves its node: the run reports
     * it. */
    bool done = ifd_op_def(node->op)->ref(&call.ref, NULL) == IFD_OK;
    for (uint32_t i = 0; done && i < node->output_count; i++) {
        struct ifd_value *value = &graph->value[node->output[i]];
        size_t bytes = 0;
        if (ifd_desc_bytes(&value->desc, &bytes)) {
            value->data = (struct ifd_bytes){.data = call.output[i], .size = bytes};
            value->is_constant = true;
            value->producer = IFD_NONE;
        }
    }
    if (done) {
        ifd_trace_computed(graph, node);
    }
    *ret_done = done;
    return IFD_OK;
}

enum ifd_code ifd_graph_compute_node(struct ifd_graph *graph, uint32_t node, size_t limit_bytes,
                                     bool *ret_done, struct ifd_err *err)
{
    const struct ifd_node *n = &graph->node[node];
    if (!ifd_graph_is_computable(graph, n) || !fits(graph, n, limit_bytes) || !spend(graph, n)) {
        *ret_done = false;
        return IFD_OK;
    }
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, graph->arena->alloc, graph->arena->cap_bytes);
    enum ifd_code code = compute(graph, n, &scratch, ret_done, err);
    ifd_arena_finish(&scratch);
    return code;
}
