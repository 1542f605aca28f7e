/* LSTM, GRU and RNN as their steps: the length of the sequence is known, so each step is nodes of
 * its own. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

#define STEPS_MAX 512 /* of all directions */

/* One direction of one layer. */
struct cell {
    enum ifd_onnx_recurrent kind;
    int64_t steps, batch, hidden;
    bool is_reverse, resets_after; /* GRU: linear_before_reset */
    uint32_t inputs;        /* [t, n, gates * hidden]: products with the input, biases added */
    uint32_t weights, bias; /* of the state: [gates * hidden, hidden], [gates * hidden] */
    uint32_t h, c;          /* the state, [n, hidden]; c of LSTM alone */
};

static const uint32_t gates[] = {[IFD_ONNX_LSTM] = 4, [IFD_ONNX_GRU] = 3, [IFD_ONNX_RNN] = 1};

/* The same without that dimension, which has one element there. */
static uint32_t element(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t at)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    int64_t dim[IFD_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (d != axis) {
            dim[rank++] = shape.dim[d];
        }
    }
    return ifd_build_reshape(b, ifd_build_cut(b, x, axis, at, 1), dim, rank);
}

static uint32_t add(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_ADD, x, y);
}

static uint32_t mul(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static uint32_t gate(struct ifd_builder *b, const struct cell *cell, uint32_t sums, uint32_t i)
{
    return ifd_build_cut(b, sums, 1, i * cell->hidden, cell->hidden);
}

static uint32_t sigmoid_gate(struct ifd_builder *b, const struct cell *cell, uint32_t sums,
                             uint32_t i)
{
    return ifd_build_unary(b, IFD_OP_LOGISTIC, gate(b, cell, sums, i));
}

/* ---- one step: sums is what the input gives ---- */

/* Gates in the format's order: input, output, forget, cell. */
static void lstm_step(struct ifd_builder *b, struct cell *cell, uint32_t sums)
{
    sums = add(b, sums, ifd_build_layer(b, cell->h, cell->weights, cell->bias));
    const uint32_t in = sigmoid_gate(b, cell, sums, 0);
    const uint32_t out = sigmoid_gate(b, cell, sums, 1);
    const uint32_t forget = sigmoid_gate(b, cell, sums, 2);
    const uint32_t candidate = ifd_build_unary(b, IFD_OP_TANH, gate(b, cell, sums, 3));
    cell->c = add(b, mul(b, forget, cell->c), mul(b, in, candidate));
    cell->h = mul(b, out, ifd_build_unary(b, IFD_OP_TANH, cell->c));
}

/* Gates: update, reset, hidden. */
static void gru_step(struct ifd_builder *b, struct cell *cell, uint32_t sums)
{
    const int64_t two = 2 * cell->hidden;
    const uint32_t state = ifd_build_layer(b, cell->h, cell->weights, cell->bias);
    const uint32_t both =
        add(b, ifd_build_cut(b, sums, 1, 0, two), ifd_build_cut(b, state, 1, 0, two));
    const uint32_t update = sigmoid_gate(b, cell, both, 0);
    const uint32_t reset = sigmoid_gate(b, cell, both, 1);
    uint32_t memory = mul(b, reset, gate(b, cell, state, 2));
    if (!cell->resets_after) {
        memory = ifd_build_layer(b, mul(b, reset, cell->h),
                                 ifd_build_cut(b, cell->weights, 0, two, cell->hidden),
                                 ifd_build_cut(b, cell->bias, 0, two, cell->hidden));
    }
    const uint32_t candidate =
        ifd_build_unary(b, IFD_OP_TANH, add(b, gate(b, cell, sums, 2), memory));
    /* (1 - z) n + z h = n + z (h - n) */
    cell->h =
        add(b, candidate, mul(b, update, ifd_build_binary(b, IFD_OP_SUB, cell->h, candidate)));
}

static void rnn_step(struct ifd_builder *b, struct cell *cell, uint32_t sums)
{
    sums = add(b, sums, ifd_build_layer(b, cell->h, cell->weights, cell->bias));
    cell->h = ifd_build_unary(b, IFD_OP_TANH, sums);
}

/* Runs over the sequence. Returns [t, 1, n, hidden]. */
static uint32_t run(struct ifd_builder *b, struct cell *cell, uint32_t *scratch)
{
    static void (*const step[])(struct ifd_builder *, struct cell *, uint32_t) = {
        [IFD_ONNX_LSTM] = lstm_step, [IFD_ONNX_GRU] = gru_step, [IFD_ONNX_RNN] = rnn_step};
    for (int64_t i = 0; b->code == IFD_OK && i < cell->steps; i++) {
        const int64_t t = cell->is_reverse ? cell->steps - 1 - i : i;
        step[cell->kind](b, cell, element(b, cell->inputs, 0, t));
        scratch[t] =
            ifd_build_reshape(b, cell->h, (const int64_t[]){1, 1, cell->batch, cell->hidden}, 4);
    }
    const struct ifd_axis_attrs attrs = {.axis = 0};
    return cell->steps == 1
               ? scratch[0]
               : ifd_build_node(b, IFD_OP_CONCAT, scratch, (uint32_t)cell->steps, NULL, &attrs);
}

/* ---- the node ---- */

/* The functions of the gates are those that the format takes if nothing is said. */
static bool has_usual_functions(struct ifd_onnx_call *call, enum ifd_onnx_recurrent kind)
{
    static const char *const usual[][3] = {[IFD_ONNX_LSTM] = {"Sigmoid", "Tanh", "Tanh"},
                                           [IFD_ONNX_GRU] = {"Sigmoid", "Tanh"},
                                           [IFD_ONNX_RNN] = {"Tanh"}};
    static const uint32_t count[] = {[IFD_ONNX_LSTM] = 3, [IFD_ONNX_GRU] = 2, [IFD_ONNX_RNN] = 1};
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "activations");
    bool is_usual = true;
    for (uint32_t i = 0; attr && i < attr->string_count; i++) {
        is_usual = is_usual && ifd_str_is(attr->strings[i], usual[kind][i % count[kind]]);
    }
    return is_usual;
}

static bool is_plain(struct ifd_onnx_call *call, enum ifd_onnx_recurrent kind)
{
    if (!has_usual_functions(call, kind) || ifd_onnx_attr(call, "clip")) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"%s\"",
                       ifd_onnx_attr(call, "clip") ? "clip" : "activations");
    }
    if (ifd_onnx_int(call, "input_forget", 0) != 0 || ifd_onnx_int(call, "layout", 0) != 0) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"input_forget\" or \"layout\" is 1");
    }
    if (ifd_onnx_input(call, 4) != IFD_NONE ||
        (kind == IFD_ONNX_LSTM && ifd_onnx_input(call, 7) != IFD_NONE)) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "lengths of sequences, or peepholes");
    }
    return call->b->code == IFD_OK;
}

/* Row direction of a tensor of states [d, n, hidden], or zeros. */
static uint32_t first_state(struct ifd_onnx_call *call, uint32_t i, uint32_t direction,
                            const struct cell *cell)
{
    struct ifd_builder *b = call->b;
    const uint32_t given = ifd_onnx_input(call, i);
    if (given != IFD_NONE) {
        return element(b, given, 0, direction);
    }
    const struct ifd_broadcast_to_attrs attrs = {
        .shape = {.count = 2, .value = {cell->batch, cell->hidden}}};
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
    return ifd_build_node(b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &attrs);
}

static void begin(struct ifd_onnx_call *call, struct cell *cell, uint32_t direction)
{
    struct ifd_builder *b = call->b;
    const int64_t width = gates[cell->kind] * cell->hidden;
    const uint32_t bias = ifd_onnx_input(call, 3);
    const uint32_t none = ifd_build_number(b, IFD_F32, 0);
    const uint32_t zeros = ifd_build_node(
        b, IFD_OP_BROADCAST_TO, &none, 1, NULL,
        &(const struct ifd_broadcast_to_attrs){.shape = {.count = 1, .value = {width}}});
    const uint32_t both = bias == IFD_NONE ? IFD_NONE : element(b, bias, 0, direction);
    const uint32_t of_input = bias == IFD_NONE ? zeros : ifd_build_cut(b, both, 0, 0, width);
    cell->inputs =
        ifd_build_layer(b, call->input[0], element(b, call->input[1], 0, direction), of_input);
    cell->weights = element(b, call->input[2], 0, direction);
    cell->bias = bias == IFD_NONE ? zeros : ifd_build_cut(b, both, 0, width, width);
    cell->h = first_state(call, 5, direction, cell);
    if (cell->kind == IFD_ONNX_LSTM) {
        cell->c = first_state(call, 6, direction, cell);
    }
}

/* Directions side by side along an axis. */
static uint32_t join(struct ifd_builder *b, const uint32_t *x, uint32_t count, int32_t axis)
{
    const struct ifd_axis_attrs attrs = {.axis = axis};
    return count == 1 ? x[0] : ifd_build_node(b, IFD_OP_CONCAT, x, count, NULL, &attrs);
}

void ifd_onnx_recurrent(struct ifd_onnx_call *call, int which)
{
    struct ifd_builder *b = call->b;
    const enum ifd_onnx_recurrent kind = (enum ifd_onnx_recurrent)which;
    const struct ifd_shape x = ifd_build_desc(b, call->input[0])->shape;
    const struct ifd_shape r = ifd_build_desc(b, call->input[2])->shape;
    const bool is_reverse = ifd_onnx_text_is(call, "direction", "reverse", false);
    const uint32_t directions = ifd_onnx_text_is(call, "direction", "bidirectional", false) ? 2 : 1;
    if (!is_plain(call, kind)) {
        return;
    }
    if (x.rank != 3 || r.rank != 3 || r.dim[0] != directions || x.dim[0] < 1 ||
        x.dim[0] * directions > STEPS_MAX) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "a sequence of shape %s with weights %s; at most %d steps are supported",
                       ifd_shape_text(&x).s, ifd_shape_text(&r).s, STEPS_MAX);
        return;
    }
    uint32_t y[2], h[2], c[2], states[STEPS_MAX];
    for (uint32_t d = 0; b->code == IFD_OK && d < directions; d++) {
        struct cell cell = {.kind = kind,
                            .steps = x.dim[0],
                            .batch = x.dim[1],
                            .hidden = r.dim[2],
                            .is_reverse = is_reverse || d == 1,
                            .resets_after = ifd_onnx_int(call, "linear_before_reset", 0) != 0};
        begin(call, &cell, d);
        y[d] = run(b, &cell, states);
        const int64_t dim[3] = {1, cell.batch, cell.hidden};
        h[d] = ifd_build_reshape(b, cell.h, dim, 3);
        c[d] = kind == IFD_ONNX_LSTM ? ifd_build_reshape(b, cell.c, dim, 3) : IFD_NONE;
    }
    if (b->code != IFD_OK) {
        return;
    }
    call->output[0] = join(b, y, directions, 1);
    if (call->output_count > 1) {
        call->output[1] = join(b, h, directions, 0);
    }
    if (call->output_count > 2) {
        call->output[2] = join(b, c, directions, 0);
    }
}
