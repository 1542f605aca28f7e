/* Scan: a loop whose turns are as many as an input has elements, built in place. */
#include <string.h>

#include "engine/parse/onnx/inner.h"

#define TURNS_MAX IFD_PARSE_INLINED_MAX

struct scan {
    struct ifd_onnx_call *call;
    const struct ifd_onnx_graph *body;
    uint32_t states, ins, outs;
    int64_t turns;
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
    const uint32_t x = ifd_onnx_input(call, s->states + i);
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    const uint32_t axis = ifd_build_axis(b, entry(call, "scan_input_axes", i), shape.rank);
    const bool is_backward = entry(call, "scan_input_directions", i) == 1;
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

static void build_scan(struct scan *s)
{
    struct ifd_onnx_call *call = s->call;
    uint32_t *value = ifd_onnx_take(call, (size_t)s->states + s->ins);
    uint32_t *next = ifd_onnx_take(call, (size_t)s->states + s->outs);
    uint32_t *result = ifd_onnx_take(call, (size_t)s->outs * (size_t)s->turns);
    if (call->b->code != IFD_OK) {
        return;
    }
    for (uint32_t i = 0; i < s->states; i++) {
        value[i] = ifd_onnx_input(call, i);
    }
    run_turns(s, value, next, result);
    for (uint32_t i = 0; i < call->output_count && call->b->code == IFD_OK; i++) {
        if (i < s->states) {
            call->output[i] = value[i];
            continue;
        }
        const uint32_t *list = &result[(i - s->states) * s->turns];
        const uint32_t rank = ifd_build_desc(call->b, list[0])->shape.rank + 1;
        const uint32_t axis =
            ifd_build_axis(call->b, entry(call, "scan_output_axes", i - s->states), rank);
        call->output[i] = ifd_onnx_stack(call, list, (uint32_t)s->turns, axis);
    }
}

void ifd_onnx_scan(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct scan s = {.call = call, .body = ifd_onnx_graph_of(call, "body")};
    const int64_t ins = ifd_onnx_int(call, "num_scan_inputs", 0);
    if (call->b->code != IFD_OK) {
        return;
    }
    if (call->opset < 9 || ins < 1 || ins > call->input_count ||
        s.body->input_count != call->input_count ||
        s.body->output_count < call->input_count - ins ||
        call->output_count > s.body->output_count) {
        ifd_build_fail(call->b, call->opset < 9 ? IFD_UNSUPPORTED : IFD_CORRUPT,
                       "%lld of %u inputs, and a body of %u inputs and %u outputs (opset %lld)",
                       (long long)ins, call->input_count, s.body->input_count, s.body->output_count,
                       (long long)call->opset);
        return;
    }
    s.ins = (uint32_t)ins;
    s.states = call->input_count - s.ins;
    s.outs = s.body->output_count - s.states;
    const struct ifd_shape shape = ifd_build_desc(call->b, ifd_onnx_input(call, s.states))->shape;
    const uint32_t axis = ifd_build_axis(call->b, entry(call, "scan_input_axes", 0), shape.rank);
    s.turns = call->b->code == IFD_OK ? shape.dim[axis] : 0;
    if (call->b->code == IFD_OK && (s.turns < 1 || s.turns > TURNS_MAX)) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "%lld turns, expected 1 to %d", (long long)s.turns,
                       TURNS_MAX);
        return;
    }
    build_scan(&s);
}
