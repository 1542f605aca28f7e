/* LSTM, GRU and RNN as their steps: the length of the sequence is known, so each step is nodes of
 * its own. */
#include "engine/base/str.h"
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

#define STEPS_MAX 4096 /* of all directions */

struct function {
    const struct ifd_onnx_activation *known;
    double number[2];
};

/* One direction of one layer. */
struct cell {
    enum ifd_onnx_recurrent kind;
    int64_t steps, batch, hidden;
    bool is_reverse, resets_after; /* GRU: linear_before_reset */
    bool couples;                  /* LSTM: input_forget */
    bool is_dynamic;               /* the state is quantized before it is multiplied */
    struct function function[3];   /* of the gates, of the candidate, of the cell */
    double clip;                   /* of sums, 0: none */
    uint32_t peepholes;            /* LSTM: [3 * hidden], IFD_NONE: none */
    uint32_t lengths;              /* of each sequence, s64 [n, 1]; IFD_NONE: all steps */
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

static uint32_t call_function(struct ifd_builder *b, const struct function *f, uint32_t x)
{
    return f->known->apply(b, x, f->number[0], f->number[1]);
}

static uint32_t applied(struct ifd_builder *b, const struct cell *cell, uint32_t function,
                        uint32_t sums)
{
    const uint32_t x = cell->clip > 0 ? ifd_build_clamp(b, sums, -cell->clip, cell->clip) : sums;
    return call_function(b, &cell->function[function], x);
}

/* Gate i of LSTM, which may look at the cell through a peephole. */
static uint32_t open_gate(struct ifd_builder *b, const struct cell *cell, uint32_t sums, uint32_t i,
                          uint32_t c)
{
    uint32_t x = gate(b, cell, sums, i);
    if (cell->peepholes != IFD_NONE) {
        const uint32_t hole = ifd_build_cut(b, cell->peepholes, 0, i * cell->hidden, cell->hidden);
        x = add(b, x, mul(b, hole, c));
    }
    return applied(b, cell, 0, x);
}

/* ---- one step: sums is what the input gives ---- */

/* Gates in the format's order: input, output, forget, cell. */
static void lstm_step(struct ifd_builder *b, struct cell *cell, uint32_t sums)
{
    const uint32_t h = cell->is_dynamic ? ifd_onnx_in_steps(b, cell->h) : cell->h;
    sums = add(b, sums, ifd_build_layer(b, h, cell->weights, cell->bias));
    const uint32_t in = open_gate(b, cell, sums, 0, cell->c);
    const uint32_t one = ifd_build_number(b, IFD_F32, 1);
    const uint32_t forget = cell->couples ? ifd_build_binary(b, IFD_OP_SUB, one, in)
                                          : open_gate(b, cell, sums, 2, cell->c);
    const uint32_t candidate = applied(b, cell, 1, gate(b, cell, sums, 3));
    cell->c = add(b, mul(b, forget, cell->c), mul(b, in, candidate));
    const uint32_t out = open_gate(b, cell, sums, 1, cell->c);
    cell->h = mul(b, out, call_function(b, &cell->function[2], cell->c));
}

/* Gates: update, reset, hidden. */
static void gru_step(struct ifd_builder *b, struct cell *cell, uint32_t sums)
{
    const int64_t two = 2 * cell->hidden;
    const uint32_t state = ifd_build_layer(b, cell->h, cell->weights, cell->bias);
    const uint32_t both =
        add(b, ifd_build_cut(b, sums, 1, 0, two), ifd_build_cut(b, state, 1, 0, two));
    const uint32_t update = applied(b, cell, 0, gate(b, cell, both, 0));
    const uint32_t reset = applied(b, cell, 0, gate(b, cell, both, 1));
    uint32_t memory = mul(b, reset, gate(b, cell, state, 2));
    if (!cell->resets_after) {
        memory = ifd_build_layer(b, mul(b, reset, cell->h),
                                 ifd_build_cut(b, cell->weights, 0, two, cell->hidden),
                                 ifd_build_cut(b, cell->bias, 0, two, cell->hidden));
    }
    const uint32_t candidate = applied(b, cell, 1, add(b, gate(b, cell, sums, 2), memory));
    /* (1 - z) n + z h = n + z (h - n) */
    cell->h =
        add(b, candidate, mul(b, update, ifd_build_binary(b, IFD_OP_SUB, cell->h, candidate)));
}

static void rnn_step(struct ifd_builder *b, struct cell *cell, uint32_t sums)
{
    sums = add(b, sums, ifd_build_layer(b, cell->h, cell->weights, cell->bias));
    cell->h = applied(b, cell, 0, sums);
}

/* Beyond the end of a sequence its state stays and its output is 0. */
static uint32_t end_sequences(struct ifd_builder *b, struct cell *cell, const struct cell *before,
                              int64_t t)
{
    if (cell->lengths == IFD_NONE) {
        return cell->h;
    }
    const uint32_t goes_on = ifd_onnx_compared(b, IFD_OP_GREATER, cell->lengths,
                                               ifd_build_number(b, IFD_S64, (double)t));
    const uint32_t y = ifd_onnx_selected(b, goes_on, cell->h, ifd_build_number(b, IFD_F32, 0));
    cell->h = ifd_onnx_selected(b, goes_on, cell->h, before->h);
    if (cell->kind == IFD_ONNX_LSTM) {
        cell->c = ifd_onnx_selected(b, goes_on, cell->c, before->c);
    }
    return y;
}

/* Runs over the sequence. Returns [t, 1, n, hidden]. */
static uint32_t run(struct ifd_builder *b, struct cell *cell, uint32_t *scratch)
{
    static void (*const step[])(struct ifd_builder *, struct cell *, uint32_t) = {
        [IFD_ONNX_LSTM] = lstm_step, [IFD_ONNX_GRU] = gru_step, [IFD_ONNX_RNN] = rnn_step};
    for (int64_t i = 0; b->code == IFD_OK && i < cell->steps; i++) {
        const int64_t t = cell->is_reverse ? cell->steps - 1 - i : i;
        const struct cell before = *cell;
        step[cell->kind](b, cell, element(b, cell->inputs, 0, t));
        const uint32_t y = end_sequences(b, cell, &before, t);
        scratch[t] = ifd_build_reshape(b, y, (const int64_t[]){1, 1, cell->batch, cell->hidden}, 4);
    }
    const struct ifd_axis_attrs attrs = {.axis = 0};
    return cell->steps == 1
               ? scratch[0]
               : ifd_build_node(b, IFD_OP_CONCAT, scratch, (uint32_t)cell->steps, NULL, &attrs);
}

/* ---- the node ---- */

/* The numbers of a function: the next ones of the lists of alphas and betas, of which those before
 * it took some. */
static void take_numbers(const struct ifd_onnx_call *call, struct function *f, uint32_t *taken)
{
    static const char *const lists[] = {"activation_alpha", "activation_beta"};
    for (uint32_t n = 0; n < f->known->numbers; n++) {
        const struct ifd_onnx_attr *list = ifd_onnx_attr(call, lists[n]);
        const uint32_t at = taken[n]++;
        f->number[n] = f->known->usual[n];
        if (list && at < list->float_count) {
            f->number[n] = (double)list->floats[at];
        } else if (!f->known->has_usual) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED, "activation \"%s\" without %s", f->known->name,
                           lists[n]);
        }
    }
}

/* The functions that attribute "activations" names for a direction. */
static void take_functions(struct ifd_onnx_call *call, struct cell *cell, uint32_t direction)
{
    static const char *const usual[][3] = {[IFD_ONNX_LSTM] = {"Sigmoid", "Tanh", "Tanh"},
                                           [IFD_ONNX_GRU] = {"Sigmoid", "Tanh"},
                                           [IFD_ONNX_RNN] = {"Tanh"}};
    static const uint32_t count[] = {[IFD_ONNX_LSTM] = 3, [IFD_ONNX_GRU] = 2, [IFD_ONNX_RNN] = 1};
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "activations");
    const uint32_t each = count[cell->kind];
    uint32_t taken[2] = {0};
    for (uint32_t i = 0; i < (direction + 1) * each; i++) {
        const struct ifd_str name = attr && i < attr->string_count
                                        ? attr->strings[i]
                                        : ifd_str(usual[cell->kind][i % each]);
        struct function *f = &cell->function[i % each];
        f->known = ifd_onnx_activation(name);
        if (!f->known) {
            ifd_build_fail(call->b, IFD_UNSUPPORTED, "activation \"%s\"", ifd_onnx_text(name).s);
            return;
        }
        take_numbers(call, f, taken);
    }
}

static bool is_batch_first(const struct ifd_onnx_call *call)
{
    return ifd_onnx_int(call, "layout", 0) != 0;
}

/* Row direction of a tensor of states [d, n, hidden], or zeros. */
static uint32_t first_state(struct ifd_onnx_call *call, uint32_t i, uint32_t direction,
                            const struct cell *cell)
{
    struct ifd_builder *b = call->b;
    const uint32_t given = ifd_onnx_input(call, i);
    if (given != IFD_NONE) {
        return element(b, given, is_batch_first(call) ? 1 : 0, direction);
    }
    const struct ifd_broadcast_to_attrs attrs = {
        .shape = {.count = 2, .value = {cell->batch, cell->hidden}}};
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
    return ifd_build_node(b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &attrs);
}

/* Weights of a direction, [gates * hidden, columns]. Of com.microsoft.DynamicQuantizeLSTM they are
 * [columns, gates * hidden] of 8 bits, with scale and zero point in inputs i and i + 1. */
static uint32_t weights_of(struct ifd_onnx_call *call, const struct cell *cell, uint32_t which,
                           uint32_t i, uint32_t direction)
{
    struct ifd_builder *b = call->b;
    const uint32_t stored = element(b, call->input[which], 0, direction);
    if (!cell->is_dynamic) {
        return stored;
    }
    uint32_t real = ifd_build_cast(b, stored, IFD_F32);
    if (ifd_onnx_input(call, i) == IFD_NONE) {
        return ifd_build_fail(b, IFD_CORRUPT, "input %u is missing", i);
    }
    for (uint32_t k = 0; k < 2; k++) { /* of the direction, or of each of its columns */
        const uint32_t number = ifd_onnx_input(call, i + 1 - k);
        if (number != IFD_NONE) {
            real = ifd_build_binary(b, k == 0 ? IFD_OP_SUB : IFD_OP_MUL, real,
                                    ifd_build_cast(b, element(b, number, 0, direction), IFD_F32));
        }
    }
    return ifd_build_swap(b, real, 0, 1);
}

static void begin(struct ifd_onnx_call *call, struct cell *cell, uint32_t x, uint32_t direction)
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
    cell->inputs = ifd_build_layer(b, cell->is_dynamic ? ifd_onnx_in_steps(b, x) : x,
                                   weights_of(call, cell, 1, 8, direction), of_input);
    cell->weights = weights_of(call, cell, 2, 10, direction);
    cell->bias = bias == IFD_NONE ? zeros : ifd_build_cut(b, both, 0, width, width);
    cell->h = first_state(call, 5, direction, cell);
    if (cell->kind == IFD_ONNX_LSTM) {
        cell->c = first_state(call, 6, direction, cell);
    }
    const uint32_t holes = cell->kind == IFD_ONNX_LSTM ? ifd_onnx_input(call, 7) : IFD_NONE;
    const uint32_t lengths = ifd_onnx_input(call, 4);
    cell->peepholes = holes == IFD_NONE ? IFD_NONE : element(b, holes, 0, direction);
    cell->lengths = lengths == IFD_NONE ? IFD_NONE
                                        : ifd_build_reshape(b, ifd_build_cast(b, lengths, IFD_S64),
                                                            (const int64_t[]){cell->batch, 1}, 2);
    cell->clip = ifd_onnx_f32(call, "clip", 0);
    cell->couples = ifd_onnx_int(call, "input_forget", 0) != 0;
    take_functions(call, cell, direction);
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
    const bool is_dynamic = which == IFD_ONNX_DYNAMIC_LSTM;
    const enum ifd_onnx_recurrent kind =
        is_dynamic ? IFD_ONNX_LSTM : (enum ifd_onnx_recurrent)which;
    const bool is_turned = is_batch_first(call);
    const uint32_t input = is_turned ? ifd_build_swap(b, call->input[0], 0, 1) : call->input[0];
    const struct ifd_shape x = ifd_build_desc(b, input)->shape;
    const struct ifd_shape r = ifd_build_desc(b, call->input[2])->shape;
    const bool is_reverse = ifd_onnx_text_is(call, "direction", "reverse", false);
    const uint32_t directions = ifd_onnx_text_is(call, "direction", "bidirectional", false) ? 2 : 1;
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
                            .hidden = r.dim[is_dynamic ? 1 : 2],
                            .is_dynamic = is_dynamic,
                            .is_reverse = is_reverse || d == 1,
                            .resets_after = ifd_onnx_int(call, "linear_before_reset", 0) != 0};
        begin(call, &cell, input, d);
        y[d] = run(b, &cell, states);
        const int64_t dim[3] = {1, cell.batch, cell.hidden};
        h[d] = ifd_build_reshape(b, cell.h, dim, 3);
        c[d] = kind == IFD_ONNX_LSTM ? ifd_build_reshape(b, cell.c, dim, 3) : IFD_NONE;
    }
    if (b->code != IFD_OK) {
        return;
    }
    /* [t, directions, n, hidden]; with the batch first [n, t, directions, hidden] */
    const uint32_t whole = join(b, y, directions, 1);
    const uint32_t turned[4] = {2, 0, 1, 3};
    call->output[0] = is_turned ? ifd_build_transpose(b, whole, turned) : whole;
    const uint32_t *state[3] = {NULL, h, c};
    for (uint32_t i = 1; i < call->output_count; i++) {
        const uint32_t last = join(b, state[i], directions, 0);
        call->output[i] = is_turned ? ifd_build_swap(b, last, 0, 1) : last;
    }
}
