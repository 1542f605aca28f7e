/* Scan: a loop whose turns are as many as an input has elements, built in place. In opset 8 each
 * sample of a batch has a loop of its own. */
#include <string.h>

#include "engine/ir/trace.h"
#include "engine/parse/onnx/inner.h"

#define TURNS_MAX IFD_PARSE_INLINED_MAX

struct scan {
    struct ifd_onnx_call *call;
    const struct ifd_onnx_graph *body;
    uint32_t states, ins, outs;
    int64_t turns;
    bool has_batch;  /* opset 8: dimension 0; then time is dimension 1 */
    uint32_t *input; /* states, then what is scanned; with a batch, of one sample */
};

/* Number i of a list attribute; 0 if it is absent. */
static int64_t entry(const struct ifd_onnx_call *call, const char *name, uint32_t i)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    return attr && i < attr->int_count ? attr->ints[i] : 0;
}

/* Turn t of input i. */
static uint32_t slice(struct scan *s, uint32_t i, int64_t t)
{
    struct ifd_onnx_call *call = s->call;
    struct ifd_builder *b = call->b;
    const uint32_t x = s->input[s->states + i];
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    const uint32_t axis = ifd_build_axis(b, entry(call, "scan_input_axes", i), shape.rank);
    const char *directions = s->has_batch ? "directions" : "scan_input_directions";
    const bool is_backward = entry(call, directions, i) == 1;
    int64_t dim[IFD_MAX_RANK];
    uint32_t rank = 0;
    if (b->code != IFD_OK || shape.dim[axis] != s->turns) {
        return ifd_build_fail(b, IFD_CORRUPT, "input %u has not %lld elements along axis %u",
                              s->states + i, (long long)s->turns, axis);
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (d != axis) {
            dim[rank++] = shape.dim[d];
        }
    }
    return ifd_build_reshape(b, ifd_build_cut(b, x, axis, is_backward ? s->turns - 1 - t : t, 1),
                             dim, rank);
}

static void run_turns(struct scan *s, uint32_t *value, uint32_t *next, uint32_t *result)
{
    struct ifd_builder *b = s->call->b;
    for (int64_t t = 0; t < s->turns && b->code == IFD_OK; t++) {
        for (uint32_t i = 0; i < s->ins; i++) {
            value[s->states + i] = slice(s, i, t);
        }
        ifd_onnx_build_inline(s->call, s->body, value, s->states + s->ins, next);
        memcpy(value, next, s->states * sizeof(*value));
        for (uint32_t i = 0; i < s->outs; i++) {
            const bool is_backward = entry(s->call, "scan_output_directions", i) == 1;
            result[i * s->turns + (is_backward ? s->turns - 1 - t : t)] = next[s->states + i];
        }
    }
}

static void build_scan(struct scan *s, uint32_t *output)
{
    struct ifd_onnx_call *call = s->call;
    uint32_t *value = ifd_onnx_take(call, (size_t)s->states + s->ins);
    uint32_t *next = ifd_onnx_take(call, (size_t)s->states + s->outs);
    uint32_t *result = ifd_onnx_take(call, (size_t)s->outs * (size_t)s->turns);
    if (call->b->code != IFD_OK) {
        return;
    }
    memcpy(value, s->input, s->states * sizeof(*value));
    run_turns(s, value, next, result);
    for (uint32_t i = 0; i < call->output_count && call->b->code == IFD_OK; i++) {
        if (i < s->states) {
            output[i] = value[i];
            continue;
        }
        const uint32_t *list = &result[(i - s->states) * s->turns];
        const uint32_t rank = ifd_build_desc(call->b, list[0])->shape.rank + 1;
        const uint32_t axis =
            ifd_build_axis(call->b, entry(call, "scan_output_axes", i - s->states), rank);
        output[i] = ifd_onnx_stack(call, list, (uint32_t)s->turns, axis);
    }
}

/* The loops of a batch, one after the other; their results side by side. */
static void build_samples(struct scan *s, const uint32_t *whole, int64_t samples)
{
    struct ifd_onnx_call *call = s->call;
    struct ifd_builder *b = call->b;
    const uint32_t outputs = call->output_count;
    uint32_t *one = ifd_onnx_take(call, outputs);
    uint32_t *all = ifd_onnx_take(call, (size_t)outputs * (size_t)samples);
    for (int64_t n = 0; n < samples && b->code == IFD_OK; n++) {
        for (uint32_t i = 0; i < s->states + s->ins; i++) {
            const struct ifd_shape shape = ifd_build_desc(b, whole[i])->shape;
            if (shape.rank < 1 || shape.dim[0] != samples) {
                ifd_build_fail(b, IFD_CORRUPT, "input %u has not %lld samples", i + 1,
                               (long long)samples);
                return;
            }
            const uint32_t sample = ifd_build_cut(b, whole[i], 0, n, 1);
            s->input[i] = ifd_build_reshape(b, sample, shape.dim + 1, shape.rank - 1);
        }
        build_scan(s, one);
        for (uint32_t i = 0; i < outputs && b->code == IFD_OK; i++) {
            all[i * samples + n] = one[i];
        }
    }
    for (uint32_t i = 0; i < outputs && b->code == IFD_OK; i++) {
        call->output[i] = ifd_onnx_stack(call, &all[i * samples], (uint32_t)samples, 0);
    }
}

void ifd_onnx_scan(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    struct scan s = {
        .call = call, .body = ifd_onnx_graph_of(call, "body"), .has_batch = call->opset < 9};
    const uint32_t first = s.has_batch ? 1 : 0; /* behind the lengths of the samples */
    const uint32_t count = call->input_count > first ? call->input_count - first : 0;
    const int64_t ins = ifd_onnx_int(call, "num_scan_inputs", 0);
    if (b->code != IFD_OK) {
        return;
    }
    if (ins < 1 || ins > count || s.body->input_count != count ||
        s.body->output_count < count - ins || call->output_count > s.body->output_count ||
        (s.has_batch && ifd_onnx_input(call, 0) != IFD_NONE)) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "%lld of %u inputs, and a body of %u inputs and %u outputs, or lengths of "
                       "samples",
                       (long long)ins, count, s.body->input_count, s.body->output_count);
        return;
    }
    s.ins = (uint32_t)ins;
    s.states = count - s.ins;
    s.outs = s.body->output_count - s.states;
    uint32_t *whole = ifd_onnx_take(call, count);
    s.input = ifd_onnx_take(call, count);
    for (uint32_t i = 0; i < count && b->code == IFD_OK; i++) {
        whole[i] = s.input[i] = ifd_onnx_input(call, first + i);
        if (whole[i] == IFD_NONE) {
            ifd_build_fail(b, IFD_CORRUPT, "input %u is missing", first + i);
        }
    }
    const struct ifd_shape shape = ifd_build_desc(b, ifd_onnx_input(call, first + s.states))->shape;
    const uint32_t axis = s.has_batch
                              ? ifd_build_axis(b, 1, shape.rank)
                              : ifd_build_axis(b, entry(call, "scan_input_axes", 0), shape.rank);
    s.turns = b->code == IFD_OK ? shape.dim[axis] : 0;
    for (uint32_t i = s.states; b->code == IFD_OK && i < count; i++) { /* they decide the turns */
        ifd_trace_read(b->graph, whole[i], false, b->source_index);
    }
    const int64_t samples = s.has_batch ? shape.dim[0] : 1;
    if (b->code == IFD_OK &&
        (s.turns < 1 || s.turns > TURNS_MAX || samples < 1 || samples > TURNS_MAX / s.turns)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%lld times %lld turns, expected 1 to %d",
                       (long long)samples, (long long)s.turns, TURNS_MAX);
    }
    if (b->code != IFD_OK) {
        return;
    }
    if (s.has_batch) {
        build_samples(&s, whole, samples);
    } else {
        build_scan(&s, call->output);
    }
}
