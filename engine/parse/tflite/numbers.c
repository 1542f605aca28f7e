/* Types that our operators lack: f16 is computed in f32 and rounded, products of u32 in s64, and
 * indices of s16 become s32. */
#include "engine/parse/tflite/composite.h"

#define MUL     18
#define GATHER  36
#define FLOAT16 1 /* of the file's types */
#define INT16   7
#define UINT32  15

struct row {
    int32_t builtin;
    enum ifd_op op;
    uint32_t inputs;
    bool is_comparison;
};

static const struct row rows[] = {
    {0, IFD_OP_ADD, 2, false},        {8, IFD_OP_FLOOR, 1, false},
    {14, IFD_OP_LOGISTIC, 1, false},  {MUL, IFD_OP_MUL, 2, false},
    {25, IFD_OP_SOFTMAX, 1, false},   {28, IFD_OP_TANH, 1, false},
    {55, IFD_OP_MAXIMUM, 2, false},   {57, IFD_OP_MINIMUM, 2, false},
    {58, IFD_OP_LESS, 2, true},       {59, IFD_OP_NEG, 1, false},
    {61, IFD_OP_GREATER, 2, true},    {62, IFD_OP_GREATER_EQUAL, 2, true},
    {63, IFD_OP_LESS_EQUAL, 2, true}, {66, IFD_OP_SIN, 1, false},
    {71, IFD_OP_EQUAL, 2, true},      {72, IFD_OP_NOT_EQUAL, 2, true},
    {108, IFD_OP_COS, 1, false},      {116, IFD_OP_ROUND, 1, false},
    {150, IFD_OP_GELU, 1, false},
};

static const struct row *find_row(int32_t builtin)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].builtin == builtin) {
            return &rows[i];
        }
    }
    return NULL;
}

bool ifd_composite_has_numbers(const struct ifd_tflite_build *b,
                               const struct ifd_tflite_operator *op)
{
    const int32_t builtin = b->model->opcode[op->opcode_index].builtin;
    const uint32_t decides = builtin == GATHER ? 1 : 0;
    const int32_t tensor = op->input.count > decides ? op->input.value[decides] : -1;
    const int32_t type = tensor < 0 ? -1 : b->g->tensor[tensor].type;
    return (type == FLOAT16 && find_row(builtin)) || (type == UINT32 && builtin == MUL) ||
           (type == INT16 && builtin == GATHER);
}

static void gather_by_s16(struct ifd_composite *c)
{
    const struct ifd_gather_attrs attrs = {.axis = c->options->axis,
                                           .batch_dims = c->options->batch_dims};
    const struct ifd_desc output = ifd_composite_output(c, 0);
    if (c->input_count != 2 || !ifd_composite_has_inputs(c, 2)) {
        ifd_build_fail(c->b, IFD_CORRUPT, "%u inputs, expected 2", c->input_count);
        return;
    }
    const uint32_t indices = ifd_build_cast(c->b, c->input[1], IFD_S32);
    c->output[0] = ifd_build_node(c->b, IFD_OP_GATHER, (const uint32_t[]){c->input[0], indices}, 2,
                                  &output, &attrs);
}

static void compute(struct ifd_composite *c, const struct row *row)
{
    struct ifd_builder *b = c->b;
    const struct ifd_gelu_attrs gelu = {.approximate = c->options->approximate};
    const struct ifd_softmax_attrs softmax = {.beta = c->options->beta};
    uint32_t x[2];
    if (c->input_count != row->inputs || !ifd_composite_has_inputs(c, row->inputs)) {
        ifd_build_fail(b, IFD_CORRUPT, "%u inputs, expected %u", c->input_count, row->inputs);
        return;
    }
    const enum ifd_dtype given = ifd_build_desc(b, c->input[0])->dtype;
    const enum ifd_dtype own = given == IFD_F16 ? IFD_F32 : IFD_S64;
    const struct ifd_desc output = {.dtype = row->is_comparison ? IFD_BOOL : own};
    for (uint32_t i = 0; i < row->inputs; i++) {
        const enum ifd_dtype dtype = ifd_build_desc(b, c->input[i])->dtype;
        if (dtype != given) {
            ifd_build_fail(b, IFD_INVALID, "input %u of type %s, expected %s", i,
                           ifd_dtype_name(dtype), ifd_dtype_name(given));
            return;
        }
        x[i] = ifd_build_cast(b, c->input[i], own);
    }
    const void *attrs = row->op == IFD_OP_GELU      ? (const void *)&gelu
                        : row->op == IFD_OP_SOFTMAX ? (const void *)&softmax
                                                    : NULL;
    uint32_t y = ifd_build_node(b, row->op, x, row->inputs, &output, attrs);
    if (row->op == IFD_OP_ADD || row->op == IFD_OP_MUL) {
        y = ifd_composite_activate(b, y, c->options->activation);
    }
    c->output[0] = row->is_comparison ? y : ifd_build_cast(b, y, given);
}

void ifd_composite_numbers(struct ifd_composite *c)
{
    const int32_t builtin = c->build->model->opcode[c->op->opcode_index].builtin;
    if (builtin == GATHER) {
        gather_by_s16(c);
    } else {
        compute(c, find_row(builtin));
    }
}
