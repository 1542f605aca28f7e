/* Operators of the file that are several of ours: LSTM of floats as its steps, MediaPipe's
 * transposed convolution. */
#include <string.h>

#include "engine/build/builder.h"
#include "engine/parse/tflite/tflite_build.h"

#define STEPS_MAX 512

enum { LSTM = 16, CUSTOM = 32, UNIDIRECTIONAL_SEQUENCE_LSTM = 44 };
static const char transposed_name[] = "Convolution2DTransposeBias";

static const struct ifd_tflite_opcode *opcode_of(const struct ifd_tflite_build *b, uint32_t index)
{
    return &b->model->opcode[b->g->op[index].opcode_index];
}

static bool is_real(const struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    enum ifd_dtype dtype = IFD_S8;
    return op->input.count > 0 && op->input.value[0] >= 0 &&
           ifd_tflite_dtype(b->g->tensor[op->input.value[0]].type, &dtype) && dtype == IFD_F32;
}

bool ifd_tflite_is_composite(const struct ifd_tflite_build *b, uint32_t index)
{
    const struct ifd_tflite_opcode *opcode = opcode_of(b, index);
    return (opcode->builtin == CUSTOM && strcmp(opcode->custom, transposed_name) == 0) ||
           opcode->builtin == LSTM ||
           (opcode->builtin == UNIDIRECTIONAL_SEQUENCE_LSTM && is_real(b, &b->g->op[index]));
}

/* ---- LSTM: inputs of the format ---- */

enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, GATES };
enum {
    INPUT = 0,
    WEIGHTS = 1,   /* of the four gates */
    RECURRENT = 5, /* of the four gates */
    PEEPHOLES = 9, /* of the gates but that of the cell */
    BIAS = 12,     /* of the four gates */
    PROJECTION = 16,
    PROJECTION_BIAS = 17,
    STATES = 18,     /* they begin at 0 */
    NORMALIZER = 20, /* of the four gates */
    INPUTS = 24
};

struct lstm {
    struct ifd_builder *b;
    const struct ifd_tflite_options *options;
    uint32_t input[INPUTS];
    int64_t batch, steps, cells;
    uint32_t time; /* the axis */
    uint32_t h, c;
};

static uint32_t add(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_ADD, x, y);
}

static uint32_t mul(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static bool has(const struct lstm *l, uint32_t i)
{
    return l->input[i] != IFD_NONE;
}

static bool are_floats(const struct lstm *l, uint32_t first)
{
    bool floats = true;
    for (uint32_t g = 0; g < GATES; g++) {
        floats = floats && (!has(l, first + g) ||
                            ifd_build_desc(l->b, l->input[first + g])->dtype == IFD_F32);
    }
    return floats;
}

/* x by the weights of every gate: floats in one product, whose parts lie along the last axis; 8-bit
 * weights, which have a scale each, one by one. */
static void multiply(const struct lstm *l, uint32_t x, uint32_t first, uint32_t *ret)
{
    struct ifd_builder *b = l->b;
    const uint32_t begin = has(l, first) ? INPUT_GATE : FORGET_GATE;
    const struct ifd_axis_attrs rows = {.axis = 0};
    ret[INPUT_GATE] = IFD_NONE;
    if (!are_floats(l, first)) {
        for (uint32_t g = begin; g < GATES; g++) {
            ret[g] = ifd_build_layer(b, x, l->input[first + g], IFD_NONE);
        }
        return;
    }
    const uint32_t weights =
        ifd_build_node(b, IFD_OP_CONCAT, &l->input[first + begin], GATES - begin, NULL, &rows);
    const uint32_t sums = ifd_build_layer(b, x, weights, IFD_NONE);
    const uint32_t rank = ifd_build_desc(b, sums)->shape.rank;
    for (uint32_t g = begin; g < GATES; g++) {
        ret[g] = ifd_build_cut(b, sums, rank - 1, (int64_t)(g - begin) * l->cells, l->cells);
    }
}

static uint32_t real(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_desc output = {.dtype = IFD_F32};
    return ifd_build_desc(b, x)->dtype == IFD_F32
               ? x
               : ifd_build_node(b, IFD_OP_DEQUANTIZE, &x, 1, &output, NULL);
}

/* Sums of a gate with what the cell, the norm and the bias add. */
static uint32_t complete(const struct lstm *l, uint32_t gate, uint32_t sums, uint32_t cell)
{
    struct ifd_builder *b = l->b;
    const uint32_t hole = PEEPHOLES + (gate < CELL_GATE ? gate : 2);
    const struct ifd_ints last = {.count = 1, .value = {1}};
    if (gate != CELL_GATE && has(l, hole)) {
        sums = add(b, sums, mul(b, real(b, l->input[hole]), cell));
    }
    if (has(l, NORMALIZER + gate)) {
        sums = mul(b, ifd_build_standardize(b, sums, &last, 1e-8, NULL),
                   real(b, l->input[NORMALIZER + gate]));
    }
    return has(l, BIAS + gate) ? add(b, sums, l->input[BIAS + gate]) : sums;
}

static uint32_t clipped(struct ifd_builder *b, uint32_t x, float limit)
{
    return limit > 0 ? ifd_build_clamp(b, x, (double)-limit, (double)limit) : x;
}

static uint32_t activated(const struct lstm *l, uint32_t x)
{
    static const enum ifd_op functions[] = {
        [1] = IFD_OP_RELU, [3] = IFD_OP_RELU6, [4] = IFD_OP_TANH};
    const int32_t which = l->options->activation;
    return which == 0 ? x : ifd_build_unary(l->b, functions[which], x);
}

static void step(struct lstm *l, const uint32_t *of_input)
{
    struct ifd_builder *b = l->b;
    uint32_t sums[GATES];
    multiply(l, l->h, RECURRENT, sums);
    for (uint32_t g = 0; g < GATES; g++) {
        sums[g] = sums[g] == IFD_NONE ? IFD_NONE : add(b, sums[g], of_input[g]);
    }
    const uint32_t forget =
        ifd_build_unary(b, IFD_OP_LOGISTIC, complete(l, FORGET_GATE, sums[FORGET_GATE], l->c));
    const uint32_t in =
        sums[INPUT_GATE] == IFD_NONE
            ? ifd_build_binary(b, IFD_OP_SUB, ifd_build_number(b, IFD_F32, 1), forget)
            : ifd_build_unary(b, IFD_OP_LOGISTIC, complete(l, INPUT_GATE, sums[INPUT_GATE], l->c));
    const uint32_t candidate = activated(l, complete(l, CELL_GATE, sums[CELL_GATE], IFD_NONE));
    l->c = clipped(b, add(b, mul(b, forget, l->c), mul(b, in, candidate)), l->options->cell_clip);
    const uint32_t out =
        ifd_build_unary(b, IFD_OP_LOGISTIC, complete(l, OUTPUT_GATE, sums[OUTPUT_GATE], l->c));
    l->h = mul(b, out, activated(l, l->c));
    if (has(l, PROJECTION)) {
        l->h = ifd_build_layer(b, l->h, l->input[PROJECTION], l->input[PROJECTION_BIAS]);
        l->h = clipped(b, l->h, l->options->proj_clip);
    }
}

static uint32_t zeros(struct ifd_builder *b, int64_t rows, int64_t columns)
{
    const struct ifd_broadcast_to_attrs attrs = {.shape = {.count = 2, .value = {rows, columns}}};
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
    return ifd_build_node(b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &attrs);
}

static uint32_t run_lstm(struct lstm *l)
{
    struct ifd_builder *b = l->b;
    uint32_t of_input[GATES], y[STEPS_MAX];
    multiply(l, l->input[INPUT], WEIGHTS, of_input);
    for (int64_t t = 0; b->code == IFD_OK && t < l->steps; t++) {
        uint32_t now[GATES];
        for (uint32_t g = 0; g < GATES; g++) {
            const int64_t row[2] = {l->batch, l->cells};
            now[g] =
                of_input[g] == IFD_NONE
                    ? IFD_NONE
                    : ifd_build_reshape(b, ifd_build_cut(b, of_input[g], l->time, t, 1), row, 2);
        }
        step(l, now);
        const int64_t width = ifd_build_desc(b, l->h)->shape.dim[1];
        const int64_t first[3] = {1, l->batch, width}, second[3] = {l->batch, 1, width};
        y[t] = ifd_build_reshape(b, l->h, l->time == 0 ? first : second, 3);
    }
    const struct ifd_axis_attrs attrs = {.axis = (int32_t)l->time};
    return l->steps == 1 ? y[0]
                         : ifd_build_node(b, IFD_OP_CONCAT, y, (uint32_t)l->steps, NULL, &attrs);
}

static uint32_t build_lstm(struct ifd_builder *b, const struct ifd_tflite_operator *op,
                           const uint32_t *input, bool is_sequence)
{
    struct lstm l = {.b = b, .options = op->options, .time = op->options->time_major ? 0 : 1};
    for (uint32_t i = 0; i < INPUTS; i++) {
        l.input[i] = i < op->input.count ? input[i] : IFD_NONE;
    }
    struct ifd_shape x = ifd_build_desc(b, l.input[INPUT])->shape;
    const struct ifd_shape r = ifd_build_desc(b, l.input[RECURRENT + OUTPUT_GATE])->shape;
    const int32_t activation = op->options->activation;
    if (!is_sequence && x.rank == 2) {
        l.time = 0;
        l.input[INPUT] =
            ifd_build_reshape(b, l.input[INPUT], (const int64_t[]){1, x.dim[0], x.dim[1]}, 3);
        x = ifd_build_desc(b, l.input[INPUT])->shape;
    }
    bool is_whole =
        x.rank == 3 && r.rank == 2 && ifd_build_desc(b, l.input[INPUT])->dtype == IFD_F32;
    for (uint32_t g = FORGET_GATE; g < GATES; g++) {
        is_whole = is_whole && has(&l, WEIGHTS + g) && has(&l, RECURRENT + g);
    }
    if (!is_whole || has(&l, WEIGHTS) != has(&l, RECURRENT) ||
        (activation != 0 && activation != 1 && activation != 3 && activation != 4)) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "an LSTM of other types, kernels or functions");
    }
    l.steps = x.dim[l.time];
    l.batch = x.dim[1 - l.time];
    l.cells = r.dim[0];
    if (l.steps < 1 || l.steps > STEPS_MAX) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "a sequence of %lld steps, limit %d",
                              (long long)l.steps, STEPS_MAX);
    }
    l.h = zeros(b, l.batch, r.dim[1]);
    l.c = zeros(b, l.batch, l.cells);
    const uint32_t y = run_lstm(&l);
    const struct ifd_shape shape = ifd_build_desc(b, y)->shape;
    return is_sequence ? y : ifd_build_reshape(b, y, shape.dim + 1, 2);
}

/* ---- transposed convolution ---- */

/* Options: padding (1 SAME, 2 VALID), strides of width and height, as 32-bit numbers. */
static uint32_t build_transposed(struct ifd_builder *b, const struct ifd_tflite_operator *op,
                                 const uint32_t *input)
{
    int32_t option[3] = {0};
    if (op->input.count != 3 || op->custom_options.size < sizeof(option)) {
        return ifd_build_fail(b, IFD_CORRUPT, "%u inputs and %zu bytes of options", op->input.count,
                              op->custom_options.size);
    }
    memcpy(option, op->custom_options.data, sizeof(option));
    const struct ifd_shape x = ifd_build_desc(b, input[0])->shape;
    const struct ifd_shape f = ifd_build_desc(b, input[1])->shape;
    const bool is_same = option[0] == 1;
    const int64_t stride[2] = {option[2], option[1]};
    int64_t shape[4] = {x.dim[0], 0, 0, f.dim[0]};
    if (x.rank != 4 || f.rank != 4 || (!is_same && option[0] != 2) || stride[0] < 1 ||
        stride[1] < 1) {
        return ifd_build_fail(b, IFD_INVALID, "padding %d, strides %d and %d", option[0], option[1],
                              option[2]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t over = f.dim[1 + i] > stride[i] ? f.dim[1 + i] - stride[i] : 0;
        shape[1 + i] = x.dim[1 + i] * stride[i] + (is_same ? 0 : over);
    }
    const struct ifd_transpose_conv2d_attrs attrs = {
        .window = {.padding = is_same ? IFD_PAD_SAME : IFD_PAD_VALID,
                   .stride_h = option[2],
                   .stride_w = option[1],
                   .dilation_h = 1,
                   .dilation_w = 1}};
    const struct ifd_desc desc = {.dtype = IFD_F32};
    const uint32_t operand[4] = {ifd_build_list(b, shape, 4), real(b, input[1]), input[0],
                                 input[2] == IFD_NONE ? IFD_NONE : real(b, input[2])};
    return ifd_build_node(b, IFD_OP_TRANSPOSE_CONV2D, operand, input[2] == IFD_NONE ? 3 : 4, &desc,
                          &attrs);
}

/* ---- the node ---- */

/* States are not read: a run begins with zeros. */
static enum ifd_code take_inputs(struct ifd_tflite_build *b, const struct ifd_tflite_operator *op,
                                 bool has_states, uint32_t *ret)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < op->input.count; i++) {
        ret[i] = IFD_NONE;
        if (!has_states || (i != STATES && i != STATES + 1)) {
            code = ifd_tflite_value_of(b, op->input.value[i], &ret[i]);
        }
    }
    return code;
}

enum ifd_code ifd_tflite_build_composite(struct ifd_tflite_build *b, uint32_t index,
                                         struct ifd_arena *scratch)
{
    const struct ifd_tflite_operator *op = &b->g->op[index];
    const struct ifd_tflite_opcode *opcode = opcode_of(b, index);
    const bool is_lstm = opcode->builtin != CUSTOM;
    uint32_t *input = ifd_arena_take_array(scratch, op->input.count, sizeof(*input));
    if (!input) {
        return ifd_arena_fail(scratch, op->input.count * sizeof(*input), b->err);
    }
    if (op->output.count == 0) {
        return ifd_fail(b->err, IFD_CORRUPT, "no outputs");
    }
    const enum ifd_code code = take_inputs(b, op, is_lstm, input);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_builder builder;
    ifd_builder_init(&builder, b->graph, b->options->limits->tensor_bytes, b->err);
    builder.source_index = index;
    builder.source_name = is_lstm ? opcode->builtin_name : transposed_name;
    const uint32_t y = is_lstm ? build_lstm(&builder, op, input, opcode->builtin != LSTM)
                               : build_transposed(&builder, op, input);
    if (builder.code == IFD_OK) {
        const char *name = b->g->tensor[op->output.value[0]].name;
        b->graph->value[y].name = ifd_arena_text(b->graph->arena, name, strlen(name));
        b->value_of[op->output.value[0]] = y;
    }
    return builder.code == IFD_OK && !b->graph->value[y].name
               ? ifd_arena_fail(b->graph->arena, sizeof(*input), b->err)
               : builder.code;
}
