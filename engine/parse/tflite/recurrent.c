/* Recurrent layers as their steps: LSTM, RNN, SVDF of floats, with weights of floats or of 8 bits.
 * LSTM of 8-bit numbers is an operator of ours. The basic LSTM kernel is in recurrent_basic.c.
 *
 * State is an input of the format's operator, which it writes, too. Each function leaves what it
 * has become with ifd_tflite_write_state. */
#include <math.h>
#include <string.h>

#include "engine/parse/tflite/composite.h"

#define STEPS_MAX 4096

/* ---- what all have ---- */

/* A fully connected layer as the format's options want inputs of 8-bit weights quantized. */
static uint32_t layer(const struct ifd_composite *c, uint32_t x, uint32_t weights, uint32_t bias)
{
    const struct ifd_fully_connected_attrs attrs = {
        .keep_dims = true, .asymmetric_inputs = c->options->asymmetric_quantize_inputs};
    const uint32_t input[3] = {x, weights, bias};
    const struct ifd_desc output = {.dtype = IFD_F32};
    return ifd_build_node(c->b, IFD_OP_FULLY_CONNECTED, input, bias == IFD_NONE ? 2 : 3, &output,
                          &attrs);
}

static uint32_t add(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_ADD, x, y);
}

static uint32_t mul(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static int32_t tensor_of(const struct ifd_composite *c, uint32_t i)
{
    return i < c->op->input.count ? c->op->input.value[i] : -1;
}

/* State before the layer, [batch, width]. One that begins in every run is that of any batch. */
static uint32_t state_before(const struct ifd_composite *c, uint32_t i, int64_t batch,
                             int64_t width)
{
    const uint32_t given = ifd_composite_input(c, i);
    const bool begins = given == IFD_NONE || ifd_build_content(c->b, given).data;
    const int64_t dim[2] = {batch, width};
    if (begins && (given == IFD_NONE || c->build->g->tensor[tensor_of(c, i)].is_variable)) {
        return ifd_composite_fill(c->b, IFD_F32, 0, dim, 2);
    }
    return ifd_build_reshape(c->b, given, dim, 2);
}

void ifd_composite_keep_state(const struct ifd_composite *c, uint32_t i, uint32_t value)
{
    const uint32_t given = ifd_composite_input(c, i);
    if (given == IFD_NONE || c->b->code != IFD_OK) {
        return;
    }
    const struct ifd_shape before = ifd_build_desc(c->b, given)->shape;
    if (!ifd_build_content(c->b, given).data) {
        value = ifd_build_reshape(c->b, value, before.dim, before.rank);
    }
    if (c->b->code == IFD_OK) {
        c->b->code = ifd_tflite_write_state(c->build, tensor_of(c, i), value);
    }
}

/* A sequence [batch, steps, n], or [steps, batch, n] where time is 0. */
struct sequence {
    uint32_t time;
    int64_t batch, steps;
};

static bool find_sequence(const struct ifd_composite *c, uint32_t x, bool time_major,
                          struct sequence *ret)
{
    const struct ifd_desc *desc = ifd_build_desc(c->b, x);
    ret->time = time_major ? 0 : 1;
    ret->steps = desc->shape.dim[ret->time];
    ret->batch = desc->shape.dim[1 - ret->time];
    if (c->b->code != IFD_OK) {
        return false;
    }
    if (desc->dtype != IFD_F32 || desc->shape.rank != 3) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED,
                       "a sequence of %s with %u dimensions, expected f32, 3",
                       ifd_dtype_name(desc->dtype), desc->shape.rank);
    } else if (ret->steps < 1 || ret->steps > STEPS_MAX) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "a sequence of %lld steps, limit %d",
                       (long long)ret->steps, STEPS_MAX);
    }
    return c->b->code == IFD_OK;
}

/* Step t as [batch, n]. */
static uint32_t cut_step(struct ifd_builder *b, uint32_t x, const struct sequence *s, int64_t t)
{
    const int64_t width = ifd_build_desc(b, x)->shape.dim[2];
    return ifd_build_reshape(b, ifd_build_cut(b, x, s->time, t, 1), (int64_t[]){s->batch, width},
                             2);
}

/* Steps [batch, n] as a sequence. */
static uint32_t join_steps(struct ifd_builder *b, uint32_t *y, const struct sequence *s)
{
    const struct ifd_axis_attrs attrs = {.axis = (int32_t)s->time};
    for (int64_t t = 0; t < s->steps; t++) {
        const int64_t width = ifd_build_desc(b, y[t])->shape.dim[1];
        const int64_t first[3] = {1, s->batch, width}, second[3] = {s->batch, 1, width};
        y[t] = ifd_build_reshape(b, y[t], s->time == 0 ? first : second, 3);
    }
    return s->steps == 1 ? y[0]
                         : ifd_build_node(b, IFD_OP_CONCAT, y, (uint32_t)s->steps, NULL, &attrs);
}

/* Outputs of both directions, or one after the other along the last axis. */
static void put_directions(struct ifd_composite *c, const uint32_t *y)
{
    const struct ifd_axis_attrs attrs = {.axis = 2};
    if (c->options->merge_outputs) {
        c->output[0] = ifd_build_node(c->b, IFD_OP_CONCAT, y, 2, NULL, &attrs);
    } else {
        for (uint32_t i = 0; i < 2 && i < c->output_count; i++) {
            c->output[i] = y[i];
        }
    }
}

/* ---- LSTM ---- */

enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, GATES };

/* Inputs of the format's operator. */
enum {
    INPUT = 0,
    WEIGHTS = 1,   /* of the four gates */
    RECURRENT = 5, /* of the four gates */
    PEEPHOLES = 9, /* of the gates but that of the cell */
    BIAS = 12,     /* of the four gates */
    PROJECTION = 16,
    PROJECTION_BIAS = 17,
    STATES = 18,     /* that of the output, the cell */
    NORMALIZER = 20, /* of the four gates */
    INPUTS = 24
};

/* Intermediates of the 8-bit operator: sums of the four gates, results of the cells. */
enum { HIDDEN = 4, INSIDE };

/* Inputs of the bidirectional operator: those of the forward layer up to PROJECTION_BIAS, those of
 * the backward layer, states, a second sequence with its weights for both. */
enum { BACKWARD = 17, BOTH_STATES = 35, SECOND = 39, SECOND_WEIGHTS = 40 };

struct lstm {
    const struct ifd_composite *c;
    struct ifd_builder *b;
    uint32_t input[INPUTS]; /* but for the states */
    uint32_t second, second_weights[GATES];
    struct sequence s;
    int64_t cells;
    bool is_backward;
    uint32_t h, cell;
};

static bool has(const struct lstm *l, uint32_t i)
{
    return l->input[i] != IFD_NONE;
}

static bool are_floats(const struct lstm *l, const uint32_t *weights)
{
    bool floats = true;
    for (uint32_t g = 0; g < GATES; g++) {
        floats = floats &&
                 (weights[g] == IFD_NONE || ifd_build_desc(l->b, weights[g])->dtype == IFD_F32);
    }
    return floats;
}

/* x by the weights of every gate: floats in one product, whose parts lie along the last axis; 8-bit
 * weights, which have a scale each, one by one. */
static void multiply(const struct lstm *l, uint32_t x, const uint32_t *weights, uint32_t *ret)
{
    struct ifd_builder *b = l->b;
    const uint32_t begin = weights[INPUT_GATE] != IFD_NONE ? INPUT_GATE : FORGET_GATE;
    const struct ifd_axis_attrs rows = {.axis = 0};
    ret[INPUT_GATE] = IFD_NONE;
    if (!are_floats(l, weights)) {
        for (uint32_t g = begin; g < GATES; g++) {
            ret[g] = layer(l->c, x, weights[g], IFD_NONE);
        }
        return;
    }
    const uint32_t all =
        ifd_build_node(b, IFD_OP_CONCAT, weights + begin, GATES - begin, NULL, &rows);
    const uint32_t sums = layer(l->c, x, all, IFD_NONE);
    const uint32_t rank = ifd_build_desc(b, sums)->shape.rank;
    for (uint32_t g = begin; g < GATES; g++) {
        ret[g] = ifd_build_cut(b, sums, rank - 1, (int64_t)(g - begin) * l->cells, l->cells);
    }
}

/* h by the recurrent weights; diagonal ones are a vector. */
static void multiply_state(const struct lstm *l, uint32_t *ret)
{
    const uint32_t *weights = l->input + RECURRENT;
    if (!l->c->options->is_diagonal) {
        multiply(l, l->h, weights, ret);
        return;
    }
    for (uint32_t g = 0; g < GATES; g++) {
        ret[g] = weights[g] == IFD_NONE ? IFD_NONE
                                        : mul(l->b, ifd_composite_real(l->b, weights[g]), l->h);
    }
}

/* Sums of a gate with what the cell, the norm and the bias add. */
static uint32_t complete(const struct lstm *l, uint32_t gate, uint32_t sums, uint32_t cell)
{
    struct ifd_builder *b = l->b;
    const uint32_t hole = PEEPHOLES + (gate < CELL_GATE ? gate : 2);
    const struct ifd_ints last = {.count = 1, .value = {1}};
    if (gate != CELL_GATE && has(l, hole)) {
        sums = add(b, sums, mul(b, ifd_composite_real(b, l->input[hole]), cell));
    }
    if (has(l, NORMALIZER + gate)) {
        sums = mul(b, ifd_build_standardize(b, sums, &last, 1e-8, NULL),
                   ifd_composite_real(b, l->input[NORMALIZER + gate]));
    }
    return has(l, BIAS + gate) ? add(b, sums, l->input[BIAS + gate]) : sums;
}

static uint32_t clipped(struct ifd_builder *b, uint32_t x, float limit)
{
    return limit > 0 ? ifd_build_clamp(b, x, (double)-limit, (double)limit) : x;
}

static uint32_t activated(const struct lstm *l, uint32_t x)
{
    return ifd_composite_activate(l->b, x, l->c->options->activation);
}

static uint32_t sigmoid_of(const struct lstm *l, uint32_t gate, uint32_t sums)
{
    return ifd_build_unary(l->b, IFD_OP_LOGISTIC, complete(l, gate, sums, l->cell));
}

static void step(struct lstm *l, const uint32_t *of_input)
{
    struct ifd_builder *b = l->b;
    const struct ifd_tflite_options *options = l->c->options;
    uint32_t sums[GATES];
    multiply_state(l, sums);
    for (uint32_t g = 0; g < GATES; g++) {
        sums[g] = sums[g] == IFD_NONE ? IFD_NONE : add(b, sums[g], of_input[g]);
    }
    const uint32_t forget = sigmoid_of(l, FORGET_GATE, sums[FORGET_GATE]);
    const uint32_t in =
        sums[INPUT_GATE] == IFD_NONE
            ? ifd_build_binary(b, IFD_OP_SUB, ifd_build_number(b, IFD_F32, 1), forget)
            : sigmoid_of(l, INPUT_GATE, sums[INPUT_GATE]);
    const uint32_t candidate = activated(l, complete(l, CELL_GATE, sums[CELL_GATE], IFD_NONE));
    l->cell =
        clipped(b, add(b, mul(b, forget, l->cell), mul(b, in, candidate)), options->cell_clip);
    const uint32_t out = sigmoid_of(l, OUTPUT_GATE, sums[OUTPUT_GATE]);
    l->h = mul(b, out, activated(l, l->cell));
    if (has(l, PROJECTION)) {
        l->h = layer(l->c, l->h, l->input[PROJECTION], l->input[PROJECTION_BIAS]);
        l->h = clipped(b, l->h, options->proj_clip);
    }
}

/* Sums of the whole sequence for every gate. */
static void multiply_inputs(const struct lstm *l, uint32_t *ret)
{
    uint32_t more[GATES];
    multiply(l, l->input[INPUT], l->input + WEIGHTS, ret);
    if (l->second == IFD_NONE) {
        return;
    }
    multiply(l, l->second, l->second_weights, more);
    for (uint32_t g = 0; g < GATES; g++) {
        ret[g] = ret[g] == IFD_NONE ? IFD_NONE : add(l->b, ret[g], more[g]);
    }
}

static uint32_t run_lstm(struct lstm *l)
{
    struct ifd_builder *b = l->b;
    uint32_t of_input[GATES], y[STEPS_MAX];
    multiply_inputs(l, of_input);
    for (int64_t i = 0; b->code == IFD_OK && i < l->s.steps; i++) {
        const int64_t t = l->is_backward ? l->s.steps - 1 - i : i;
        uint32_t now[GATES];
        for (uint32_t g = 0; g < GATES; g++) {
            now[g] = of_input[g] == IFD_NONE ? IFD_NONE : cut_step(b, of_input[g], &l->s, t);
        }
        step(l, now);
        y[t] = l->h;
    }
    return b->code == IFD_OK ? join_steps(b, y, &l->s) : IFD_NONE;
}

/* Are all parts there? Writes the number of cells. */
static bool check_lstm(struct lstm *l)
{
    const uint32_t *in = l->input;
    bool is_whole = has(l, WEIGHTS) == has(l, RECURRENT);
    for (uint32_t g = FORGET_GATE; g < GATES; g++) {
        is_whole = is_whole && has(l, WEIGHTS + g) && has(l, RECURRENT + g) &&
                   (l->second == IFD_NONE || l->second_weights[g] != IFD_NONE);
    }
    is_whole = is_whole && (l->second == IFD_NONE ||
                            (l->second_weights[INPUT_GATE] != IFD_NONE) == has(l, WEIGHTS));
    const struct ifd_shape w =
        ifd_build_desc(l->b, is_whole ? in[WEIGHTS + OUTPUT_GATE] : 0)->shape;
    l->cells = w.dim[0];
    if (!is_whole || w.rank != 2) {
        ifd_build_fail(l->b, IFD_CORRUPT, "weights of a gate are missing");
    }
    return l->b->code == IFD_OK;
}

/* Width of the output: of the recurrent weights. */
static int64_t output_width(const struct lstm *l)
{
    const struct ifd_shape r = ifd_build_desc(l->b, l->input[RECURRENT + OUTPUT_GATE])->shape;
    return r.rank == 2 ? r.dim[1] : l->cells;
}

/* One direction, whose states are inputs states and states + 1. */
static uint32_t build_lstm(struct lstm *l, uint32_t states)
{
    const struct ifd_composite *c = l->c;
    if (!check_lstm(l)) {
        return IFD_NONE;
    }
    l->h = state_before(c, states, l->s.batch, output_width(l));
    l->cell = state_before(c, states + 1, l->s.batch, l->cells);
    const uint32_t y = run_lstm(l);
    ifd_composite_keep_state(c, states, l->h);
    ifd_composite_keep_state(c, states + 1, l->cell);
    return y;
}

static struct lstm lstm_of(const struct ifd_composite *c)
{
    struct lstm l = {.c = c, .b = c->b, .second = IFD_NONE};
    for (uint32_t i = 0; i < INPUTS; i++) {
        l.input[i] = ifd_composite_input(c, i);
    }
    return l;
}

/* ---- LSTM of 8-bit numbers ---- */

/* Quantization of what the file calls an intermediate: sums of the gates, results of the cells. */
static const struct ifd_tflite_tensor *intermediate(const struct ifd_composite *c, uint32_t i)
{
    const struct ifd_tflite_ints *list = &c->op->intermediate;
    const struct ifd_tflite_tensor *t =
        i < list->count ? &c->build->g->tensor[list->value[i]] : NULL;
    return t && t->scale_count == 1 ? t : NULL;
}

/* Reads the quantization inside the layer. That of sums counts where they are normalized. */
static bool read_inside(const struct ifd_composite *c, struct ifd_lstm_attrs *attrs)
{
    bool is_whole = true;
    for (uint32_t g = 0; g < GATES; g++) {
        const struct ifd_tflite_tensor *sums = intermediate(c, g);
        const bool is_normalized = ifd_composite_input(c, NORMALIZER + g) != IFD_NONE;
        attrs->gate_scale[g] = is_normalized && sums ? sums->scale[0] : 0x1p-12f;
        is_whole = is_whole && (sums || !is_normalized);
    }
    const struct ifd_tflite_tensor *hidden = intermediate(c, HIDDEN);
    const bool projects = ifd_composite_input(c, PROJECTION) != IFD_NONE;
    if (hidden) { /* LiteRT stores what it projects around the opposite of its zero point */
        const int32_t zero = (int32_t)ifd_tflite_zero_point(hidden, 0);
        attrs->hidden_scale = hidden->scale[0];
        attrs->hidden_zero = projects ? -zero : zero;
    }
    return is_whole && (hidden || !projects);
}

/* Checks what the operator computes: the cell's scale is a power of two; the state has the
 * quantization of the output. */
static bool fits_integer(const struct ifd_composite *c, const struct ifd_desc *output,
                         struct ifd_lstm_attrs *attrs)
{
    int exponent = 0;
    const struct ifd_quant h = ifd_build_desc(c->b, c->input[STATES])->quant;
    const struct ifd_quant cell = ifd_build_desc(c->b, c->input[STATES + 1])->quant;
    if (c->options->activation != IFD_ACT_TANH || c->options->is_diagonal) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "8-bit numbers with another function than tanh");
    } else if (c->op->intermediate.count > INSIDE) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED, "%u intermediates, limit %d",
                       c->op->intermediate.count, INSIDE);
    } else if (!read_inside(c, attrs)) {
        ifd_build_fail(c->b, IFD_CORRUPT, "no quantization of what lies inside");
    } else if (h.count != 1 || cell.count != 1 || output->quant.count != 1 ||
               h.scale[0] != output->quant.scale[0] ||
               h.zero_point[0] != output->quant.zero_point[0] ||
               frexpf(cell.scale[0], &exponent) != 0.5f) {
        ifd_build_fail(c->b, IFD_UNSUPPORTED,
                       "a state whose quantization is not that of the output, or a cell whose "
                       "scale is no power of two");
    }
    attrs->cell_exponent = exponent - 1;
    return c->b->code == IFD_OK;
}

/* The results of sequence x. */
static uint32_t build_integer(const struct ifd_composite *c, uint32_t x, bool time_major)
{
    enum {
        X,
        OF_INPUT = 1,
        OF_STATE = 5,
        OF_BIAS = 9,
        BEFORE = 13,
        OF_CELL = 15,
        OF_NORM = 18,
        OF_HIDDEN = 22,
        OPERANDS = 24
    };
    struct ifd_desc output[3] = {ifd_composite_output(c, 0)};
    struct ifd_lstm_attrs attrs = {.time_major = time_major,
                                   .hidden_scale = -1,
                                   .cell_clip = c->options->cell_clip,
                                   .proj_clip = c->options->proj_clip};
    uint32_t operand[OPERANDS], y[3];
    if (c->input[STATES] == IFD_NONE || c->input[STATES + 1] == IFD_NONE) {
        ifd_build_fail(c->b, IFD_CORRUPT, "no state");
        return IFD_NONE;
    }
    if (!fits_integer(c, &output[0], &attrs)) {
        return IFD_NONE;
    }
    operand[X] = x;
    for (uint32_t g = 0; g < GATES; g++) {
        operand[OF_INPUT + g] = c->input[WEIGHTS + g];
        operand[OF_STATE + g] = c->input[RECURRENT + g];
        operand[OF_BIAS + g] = c->input[BIAS + g];
        operand[OF_NORM + g] = ifd_composite_input(c, NORMALIZER + g);
    }
    memcpy(operand + OF_CELL, c->input + PEEPHOLES, 3 * sizeof(*operand));
    memcpy(operand + OF_HIDDEN, c->input + PROJECTION, 2 * sizeof(*operand));
    const bool begins = ifd_build_content(c->b, c->input[STATES]).data && c->build->depth == 0;
    for (uint32_t i = 0; i < 2; i++) {
        operand[BEFORE + i] = begins ? IFD_NONE : c->input[STATES + i];
        output[1 + i] = *ifd_build_desc(c->b, c->input[STATES + i]);
    }
    ifd_build_nodes(c->b, IFD_OP_LSTM, operand, OPERANDS, output, begins ? 1 : 3, &attrs, y);
    for (uint32_t i = 0; i < 2 && !begins; i++) {
        ifd_composite_keep_state(c, STATES + i, y[1 + i]);
    }
    return y[0];
}

/* ---- the operators ---- */

void ifd_composite_sequence_lstm(struct ifd_composite *c)
{
    struct lstm l = lstm_of(c);
    if (ifd_build_desc(c->b, l.input[INPUT])->dtype == IFD_S8) {
        c->output[0] = build_integer(c, l.input[INPUT], c->options->time_major);
    } else if (find_sequence(c, l.input[INPUT], c->options->time_major, &l.s)) {
        c->output[0] = build_lstm(&l, STATES);
    }
}

/* x [batch, n] as a sequence of one step. */
static uint32_t one_step(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    return shape.rank != 2 ? x
                           : ifd_build_reshape(b, x, (int64_t[]){1, shape.dim[0], shape.dim[1]}, 3);
}

void ifd_composite_lstm(struct ifd_composite *c)
{
    struct lstm l = lstm_of(c);
    if (c->options->is_basic) {
        ifd_composite_basic_lstm(c);
        return;
    }
    if (c->input_count < NORMALIZER || c->output_count != 1) {
        ifd_build_fail(c->b, IFD_CORRUPT, "%u inputs, %u outputs", c->input_count, c->output_count);
        return;
    }
    const uint32_t x = one_step(c->b, l.input[INPUT]);
    uint32_t y = IFD_NONE;
    l.input[INPUT] = x;
    if (ifd_build_desc(c->b, x)->dtype == IFD_S8) {
        y = build_integer(c, x, true);
    } else if (find_sequence(c, x, true, &l.s)) {
        y = build_lstm(&l, STATES);
    }
    if (c->b->code == IFD_OK) {
        const struct ifd_shape shape = ifd_build_desc(c->b, y)->shape;
        c->output[0] = ifd_build_reshape(c->b, y, shape.dim + 1, 2);
    }
}

/* A second sequence with weights adds to the first; without them the backward layer reads it
 * instead. */
void ifd_composite_bidirectional_lstm(struct ifd_composite *c)
{
    const uint32_t second = c->input[SECOND];
    const bool is_added = c->input[SECOND_WEIGHTS + OUTPUT_GATE] != IFD_NONE;
    uint32_t y[2] = {IFD_NONE, IFD_NONE};
    for (uint32_t k = 0; k < 2 && c->b->code == IFD_OK; k++) {
        struct lstm l = {.c = c, .b = c->b, .is_backward = k == 1};
        for (uint32_t i = 0; i < INPUTS; i++) {
            l.input[i] = i == INPUT || i > PROJECTION_BIAS ? IFD_NONE : c->input[i + k * BACKWARD];
        }
        l.input[INPUT] = k == 1 && !is_added && second != IFD_NONE ? second : c->input[INPUT];
        l.second = is_added ? second : IFD_NONE;
        memcpy(l.second_weights, c->input + SECOND_WEIGHTS + k * GATES, sizeof(l.second_weights));
        if (find_sequence(c, l.input[INPUT], c->options->time_major, &l.s)) {
            y[k] = build_lstm(&l, BOTH_STATES + 2 * k);
        }
    }
    put_directions(c, y);
}

/* ---- RNN ---- */

/* One direction of a layer: inputs first … first+3 are weights, recurrent weights, bias, state. */
struct rnn {
    const struct ifd_composite *c;
    uint32_t first;
    uint32_t second_weights, second; /* IFD_NONE */
    bool is_backward;
};

static uint32_t build_rnn(const struct rnn *r, uint32_t x, const struct sequence *s)
{
    const struct ifd_composite *c = r->c;
    struct ifd_builder *b = c->b;
    const uint32_t *in = c->input + r->first;
    uint32_t y[STEPS_MAX];
    if (in[0] == IFD_NONE || in[1] == IFD_NONE) {
        return ifd_build_fail(b, IFD_CORRUPT, "weights are missing");
    }
    const int64_t width = ifd_build_desc(b, in[0])->shape.dim[0];
    uint32_t sums = layer(c, x, in[0], in[2]);
    if (r->second != IFD_NONE) {
        sums = add(b, sums, layer(c, r->second, r->second_weights, IFD_NONE));
    }
    uint32_t h = state_before(c, r->first + 3, s->batch, width);
    for (int64_t i = 0; b->code == IFD_OK && i < s->steps; i++) {
        const int64_t t = r->is_backward ? s->steps - 1 - i : i;
        h = ifd_composite_activate(b, add(b, cut_step(b, sums, s, t), layer(c, h, in[1], IFD_NONE)),
                                   c->options->activation);
        y[t] = h;
    }
    ifd_composite_keep_state(c, r->first + 3, h);
    return b->code == IFD_OK ? join_steps(b, y, s) : IFD_NONE;
}

void ifd_composite_sequence_rnn(struct ifd_composite *c)
{
    const struct rnn r = {.c = c, .first = 1, .second = IFD_NONE};
    struct sequence s;
    if (find_sequence(c, c->input[0], c->options->time_major, &s)) {
        c->output[0] = build_rnn(&r, c->input[0], &s);
    }
}

void ifd_composite_rnn(struct ifd_composite *c)
{
    const struct rnn r = {.c = c, .first = 1, .second = IFD_NONE};
    const uint32_t x = one_step(c->b, c->input[0]);
    struct sequence s;
    if (find_sequence(c, x, true, &s)) {
        const uint32_t y = build_rnn(&r, x, &s);
        const struct ifd_shape shape = ifd_build_desc(c->b, y)->shape;
        c->output[0] = ifd_build_reshape(c->b, y, shape.dim + 1, 2);
    }
}

/* Inputs: x, those of both directions, a second sequence, its weights for both. */
void ifd_composite_bidirectional_rnn(struct ifd_composite *c)
{
    enum { X = 0, FORWARD = 1, LAYER = 4, OTHER = 9, OTHER_WEIGHTS = 10 };
    const uint32_t other = c->input[OTHER];
    uint32_t y[2] = {IFD_NONE, IFD_NONE};
    for (uint32_t k = 0; k < 2 && c->b->code == IFD_OK; k++) {
        const uint32_t weights = c->input[OTHER_WEIGHTS + k];
        const struct rnn r = {.c = c,
                              .first = FORWARD + k * LAYER,
                              .second = weights == IFD_NONE ? IFD_NONE : other,
                              .second_weights = weights,
                              .is_backward = k == 1};
        const uint32_t x = k == 1 && weights == IFD_NONE && other != IFD_NONE ? other : c->input[X];
        struct sequence s;
        if (find_sequence(c, x, c->options->time_major, &s)) {
            y[k] = build_rnn(&r, x, &s);
        }
    }
    put_directions(c, y);
}

/* ---- SVDF ---- */

/* Of 8-bit numbers: an operator of ours. */
static void build_integer_svdf(struct ifd_composite *c)
{
    const struct ifd_desc output[2] = {ifd_composite_output(c, 0),
                                       *ifd_build_desc(c->b, c->input[4])};
    const struct ifd_svdf_attrs attrs = {.rank = c->options->rank};
    uint32_t y[2] = {IFD_NONE, IFD_NONE};
    if (attrs.rank < 1 || c->input[4] == IFD_NONE) {
        ifd_build_fail(c->b, IFD_CORRUPT, "rank %d, or no state", attrs.rank);
        return;
    }
    ifd_build_nodes(c->b, IFD_OP_SVDF, c->input, 5, output, 2, &attrs, y);
    c->output[0] = y[0];
    ifd_composite_keep_state(c, 4, y[1]);
}

/* Inputs: x [batch, n]; weights of features [filters, n]; weights of time [filters, memory]; bias
 * [filters / rank]; state [batch, filters * memory], the latest features last. */
void ifd_composite_svdf(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_shape x = ifd_build_desc(b, c->input[0])->shape;
    const struct ifd_shape time = ifd_build_desc(b, c->input[2])->shape;
    const int64_t batch = x.dim[0], filters = time.dim[0], memory = time.dim[1];
    const int64_t rank = c->options->rank;
    const struct ifd_ints last = {.count = 1, .value = {2}};
    const struct ifd_axis_attrs attrs = {.axis = 2};
    if (ifd_build_desc(b, c->input[0])->dtype == IFD_S8) {
        build_integer_svdf(c);
        return;
    }
    if (b->code != IFD_OK || x.rank != 2 || time.rank != 2 || rank < 1 || filters % rank != 0 ||
        memory < 1 || ifd_build_desc(b, c->input[0])->dtype != IFD_F32) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%s %s with weights %s and rank %lld",
                       ifd_dtype_name(ifd_build_desc(b, c->input[0])->dtype), ifd_shape_text(&x).s,
                       ifd_shape_text(&time).s, (long long)rank);
        return;
    }
    const int64_t cube[3] = {batch, filters, memory}, thin[3] = {batch, filters, 1};
    const uint32_t features = layer(c, c->input[0], c->input[1], IFD_NONE);
    const uint32_t before =
        ifd_build_reshape(b, state_before(c, 4, batch, filters * memory), cube, 3);
    const uint32_t parts[2] = {ifd_build_cut(b, before, 2, 1, memory - 1),
                               ifd_build_reshape(b, features, thin, 3)};
    const uint32_t state =
        memory == 1 ? parts[1] : ifd_build_node(b, IFD_OP_CONCAT, parts, 2, NULL, &attrs);
    const uint32_t weighted = mul(b, state, ifd_composite_real(b, c->input[2]));
    const uint32_t sums = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, weighted, &last, false);
    const uint32_t ranks = ifd_build_reshape(b, sums, (int64_t[]){batch, filters / rank, rank}, 3);
    const uint32_t units = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ranks, &last, false);
    const uint32_t biased = c->input[3] == IFD_NONE ? units : add(b, units, c->input[3]);
    ifd_composite_keep_state(c, 4, state);
    c->output[0] = ifd_composite_activate(b, biased, c->options->activation);
}
