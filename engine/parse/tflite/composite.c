/* The table of operators that are several of ours. */
#include "engine/parse/tflite/composite.h"

#include <string.h>

#define CUSTOM    32
#define CAST      53
#define PADV2     60
#define COMPLEX64 8 /* of the file's types */

struct row {
    int32_t builtin;
    const char *custom;
    uint32_t min_inputs, max_inputs, outputs; /* outputs: most */
    void (*build)(struct ifd_composite *c);
};

static const struct row rows[] = {
    {10, NULL, 3, 3, 2, ifd_composite_hashtable_lookup},
    {12, NULL, 1, 1, 1, ifd_composite_l2_pool},
    {16, NULL, 5, 24, 4, ifd_composite_lstm},
    {24, NULL, 5, 5, 1, ifd_composite_rnn},
    {27, NULL, 5, 5, 1, ifd_composite_svdf},
    {33, NULL, 5, 5, 1, ifd_composite_embedding_sparse},
    {35, NULL, 5, 5, 1, ifd_composite_sequence_rnn},
    {44, NULL, 20, 24, 1, ifd_composite_sequence_lstm},
    {46, NULL, 12, 12, 2, ifd_composite_bidirectional_rnn},
    {52, NULL, 48, 48, 2, ifd_composite_bidirectional_lstm},
    {CAST, NULL, 1, 1, 1, ifd_composite_complex_part},
    {PADV2, NULL, 3, 3, 1, ifd_composite_pad},
    {68, NULL, 4, 4, 1, ifd_composite_sparse_to_dense},
    {80, NULL, 1, 1, 1, ifd_composite_fake_quant},
    {103, NULL, 1, 1, 2, ifd_composite_unique},
    {106, NULL, 1, UINT32_MAX, 1, ifd_composite_add_n},
    {109, NULL, 1, 1, 1, ifd_composite_where},
    {124, NULL, 1, 1, 1, ifd_composite_densify},
    {133, NULL, 1, 1, 1, ifd_composite_complex_part},
    {134, NULL, 1, 1, 1, ifd_composite_complex_part},
    {136, NULL, 0, 0, 1, ifd_composite_hashtable},
    {137, NULL, 3, 3, 1, ifd_composite_hashtable_find},
    {138, NULL, 3, 3, 0, ifd_composite_hashtable_import},
    {139, NULL, 1, 1, 1, ifd_composite_hashtable_size},
    {141, NULL, 3, 4, 1, ifd_composite_conv3d_transpose},
    {145, NULL, 2, 2, 1, ifd_composite_broadcast_args},
    {147, NULL, 1, 1, 1, ifd_composite_bucketize},
    {153, NULL, 3, 3, 1, ifd_composite_unsorted_segment},
    {154, NULL, 3, 3, 1, ifd_composite_unsorted_segment},
    {155, NULL, 3, 3, 1, ifd_composite_unsorted_segment},
    {157, NULL, 3, 3, 1, ifd_composite_unsorted_segment},
    {163, NULL, 2, 2, 1, ifd_composite_hlo_binary},
    {165, NULL, 2, 2, 1, ifd_composite_hlo_binary},
    {166, NULL, 2, 2, 1, ifd_composite_hlo_binary},
    {168, NULL, 3, 3, 1, ifd_composite_hlo_clamp},
    {176, NULL, 2, 2, 1, ifd_composite_hlo_and},
    {181, NULL, 2, 2, 1, ifd_composite_hlo_binary},
    {190, NULL, 3, 3, 1, ifd_composite_hlo_scatter},
    {195, NULL, 2, 2, 1, ifd_composite_hlo_pad},
    {198, NULL, 2, 2, 1, ifd_composite_hlo_reduce_window},
    {201, NULL, 2, 2, 1, ifd_composite_hlo_gather},
    {203, NULL, 3, 3, 1, ifd_composite_dilate},
    {205, NULL, 5, 5, 1, ifd_composite_reduce_window},
    {207, NULL, 2, 2, 1, ifd_composite_hlo_shift_left},
    {CUSTOM, "Convolution2DTransposeBias", 3, 3, 1, ifd_composite_transposed},
    {CUSTOM, "Landmarks2TransformMatrix", 1, 1, 1, ifd_composite_landmarks_matrix},
    {CUSTOM, "MaxPoolingWithArgmax2D", 1, 1, 2, ifd_composite_max_pool_places},
    {CUSTOM, "MaxUnpooling2D", 2, 2, 1, ifd_composite_max_unpool},
    {CUSTOM, "Resampler", 2, 2, 1, ifd_composite_resampler},
    {CUSTOM, "TransformLandmarks", 2, 2, 1, ifd_composite_transform_landmarks},
    {CUSTOM, "TransformTensor", 2, 2, 1, ifd_composite_transform},
    {CUSTOM, "TransformTensorBilinear", 2, 2, 1, ifd_composite_transform},
};

static const struct row of_hybrids = {
    .min_inputs = 2, .max_inputs = 2, .outputs = 1, .build = ifd_composite_hybrid_matmul};

static const struct row of_numbers = {
    .min_inputs = 1, .max_inputs = 2, .outputs = 1, .build = ifd_composite_numbers};

/* Of complex numbers a cast takes the real part. */
static bool is_complex(const struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    const int32_t first = op->input.count > 0 ? op->input.value[0] : -1;
    return first >= 0 && b->g->tensor[first].type == COMPLEX64;
}

/* One of ours pads with a constant of up to 24 bits, which an attribute holds. */
static bool is_plain_pad(const struct ifd_tflite_build *b, const struct ifd_tflite_operator *op)
{
    const uint32_t plain = IFD_BIT(IFD_F32) | IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16);
    enum ifd_dtype dtype = IFD_DTYPE_COUNT;
    struct ifd_bytes content;
    if (op->input.count != 3 || op->input.value[0] < 0 || op->input.value[2] < 0) {
        return true; /* refused there */
    }
    return ifd_tflite_dtype(b->g->tensor[op->input.value[0]].type, &dtype) &&
           (plain & IFD_BIT(dtype)) != 0 &&
           ifd_tflite_has_content(b, (uint32_t)op->input.value[2], &content);
}

static const struct row *find_row(const struct ifd_tflite_build *b, uint32_t index)
{
    const struct ifd_tflite_operator *op = &b->g->op[index];
    const struct ifd_tflite_opcode *opcode = &b->model->opcode[op->opcode_index];
    if (ifd_composite_has_numbers(b, op)) {
        return &of_numbers;
    }
    if (ifd_composite_is_hybrid(b, op, opcode->builtin)) {
        return &of_hybrids;
    }
    if (opcode->builtin == CAST && !is_complex(b, op)) {
        return NULL; /* one of ours */
    }
    if (opcode->builtin == PADV2 && is_plain_pad(b, op)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].builtin == opcode->builtin &&
            (!rows[i].custom || strcmp(rows[i].custom, opcode->custom) == 0)) {
            return &rows[i];
        }
    }
    return NULL;
}

bool ifd_tflite_is_composite(const struct ifd_tflite_build *b, uint32_t index)
{
    return find_row(b, index) != NULL;
}

/* ---- what several of them need ---- */

bool ifd_composite_has_inputs(const struct ifd_composite *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (c->input[i] == IFD_NONE) {
            ifd_build_fail(c->b, IFD_CORRUPT, "input %u is missing", i);
        }
    }
    return c->b->code == IFD_OK;
}

struct ifd_desc ifd_composite_output(const struct ifd_composite *c, uint32_t i)
{
    const struct ifd_tflite_tensor *t = &c->build->g->tensor[c->op->output.value[i]];
    struct ifd_desc desc = {.dtype = IFD_F32};
    const enum ifd_code code = ifd_tflite_describe(c->build, t, &desc);
    if (code != IFD_OK && c->b->code == IFD_OK) {
        c->b->code = code;
    }
    return desc;
}

uint32_t ifd_composite_real(struct ifd_builder *b, uint32_t x)
{
    const struct ifd_desc output = {.dtype = IFD_F32};
    return x == IFD_NONE || ifd_build_desc(b, x)->dtype == IFD_F32
               ? x
               : ifd_build_node(b, IFD_OP_DEQUANTIZE, &x, 1, &output, NULL);
}

uint32_t ifd_composite_activate(struct ifd_builder *b, uint32_t x, int32_t activation)
{
    switch (activation) {
    case IFD_ACT_NONE:
        return x;
    case IFD_ACT_RELU:
        return ifd_build_unary(b, IFD_OP_RELU, x);
    case IFD_ACT_RELU_N1_TO_1:
        return ifd_build_unary(b, IFD_OP_RELU_N1_TO_1, x);
    case IFD_ACT_RELU6:
        return ifd_build_unary(b, IFD_OP_RELU6, x);
    case IFD_ACT_TANH:
        return ifd_build_unary(b, IFD_OP_TANH, x);
    default:
        return ifd_build_fail(b, IFD_UNSUPPORTED, "activation %d is not supported", activation);
    }
}

uint32_t ifd_composite_fill(struct ifd_builder *b, enum ifd_dtype dtype, double number,
                            const int64_t *dim, uint32_t rank)
{
    struct ifd_broadcast_to_attrs attrs = {.shape = {.count = rank}};
    if (rank > IFD_MAX_RANK) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "%u dimensions, limit %d", rank, IFD_MAX_RANK);
    }
    for (uint32_t d = 0; d < rank; d++) {
        attrs.shape.value[d] = dim[d];
    }
    const uint32_t one = ifd_build_number(b, dtype, number);
    return ifd_build_node(b, IFD_OP_BROADCAST_TO, &one, 1, NULL, &attrs);
}

/* ---- the node ---- */

static enum ifd_code check_counts(const struct ifd_tflite_build *b,
                                  const struct ifd_tflite_operator *op, const struct row *row)
{
    const uint32_t least = row->outputs > 0 ? 1 : 0;
    if (op->input.count < row->min_inputs || op->input.count > row->max_inputs) {
        return ifd_fail(b->err, IFD_CORRUPT, "%u inputs, expected %s", op->input.count,
                        ifd_count_text(row->min_inputs, row->max_inputs).s);
    }
    if (op->output.count < least || op->output.count > row->outputs) {
        return ifd_fail(b->err, IFD_CORRUPT, "%u outputs, expected %s", op->output.count,
                        ifd_count_text(least, row->outputs).s);
    }
    return IFD_OK;
}

/* Each output becomes the tensor's value, under the tensor's name. */
static enum ifd_code keep_outputs(struct ifd_tflite_build *b, const struct ifd_composite *c)
{
    for (uint32_t i = 0; i < c->output_count; i++) {
        const int32_t tensor = c->op->output.value[i];
        const char *name = b->g->tensor[tensor].name;
        struct ifd_value *value = &b->graph->value[c->output[i]];
        if (value->producer != IFD_NONE) {
            value->name = ifd_arena_text(b->graph->arena, name, strlen(name));
        }
        if (!value->name) {
            return ifd_arena_fail(b->graph->arena, strlen(name), b->err);
        }
        b->value_of[tensor] = c->output[i];
    }
    return IFD_OK;
}

enum ifd_code ifd_tflite_build_composite(struct ifd_tflite_build *b, uint32_t index,
                                         struct ifd_arena *scratch)
{
    const struct row *row = find_row(b, index);
    const struct ifd_tflite_operator *op = &b->g->op[index];
    enum ifd_code code = check_counts(b, op, row);
    uint32_t *value =
        ifd_arena_take_array(scratch, (size_t)op->input.count + op->output.count, sizeof(*value));
    if (code != IFD_OK || !value) {
        return code != IFD_OK ? code : ifd_arena_fail(scratch, sizeof(*value), b->err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < op->input.count; i++) {
        code = ifd_tflite_read_state(b, op->input.value[i], &value[i]);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_builder builder;
    ifd_builder_init(&builder, b->graph, b->options->limits->tensor_bytes, b->err);
    builder.ask = ifd_tflite_ask;
    builder.ask_context = b;
    builder.source_index = index;
    builder.source_name =
        row->custom ? row->custom : b->model->opcode[op->opcode_index].builtin_name;
    struct ifd_composite c = {.build = b,
                              .b = &builder,
                              .op = op,
                              .options = op->options,
                              .input = value,
                              .input_count = op->input.count,
                              .output = value + op->input.count,
                              .output_count = op->output.count};
    for (uint32_t i = 0; i < c.output_count; i++) {
        c.output[i] = IFD_NONE;
    }
    row->build(&c);
    for (uint32_t i = 0; builder.code == IFD_OK && i < c.output_count; i++) {
        if (c.output[i] == IFD_NONE) {
            ifd_build_fail(&builder, IFD_CORRUPT, "%u outputs", c.output_count);
        }
    }
    return builder.code == IFD_OK ? keep_outputs(b, &c) : builder.code;
}
