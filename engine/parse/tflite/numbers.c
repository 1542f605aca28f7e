/* Types that our operators lack: f16 is computed in f32 and rounded, whole numbers of 16 bits in
 * s32 and of u32 in s64, whose high bits go, and indices of s16 become s32. Complex numbers are
 * pairs of floats. */
#include "engine/parse/tflite/composite.h"

enum { MUL = 18, GATHER = 36, CAST = 53 };                                 /* of the format */
enum { FLOAT16 = 1, INT16 = 7, COMPLEX64 = 8, UINT32 = 15, NO_TYPE = -1 }; /* of the file's types */

struct row {
    int32_t builtin;
    enum ifd_op op;
    uint32_t inputs;
    bool is_comparison, is_real, is_whole; /* of f16; of s16 */
};

/* LiteRT gives nothing for NOT_EQUAL of s16. */
static const struct row rows[] = {
    {0, IFD_OP_ADD, 2, false, true, true},        {8, IFD_OP_FLOOR, 1, false, true, false},
    {14, IFD_OP_LOGISTIC, 1, false, true, false}, {MUL, IFD_OP_MUL, 2, false, true, true},
    {25, IFD_OP_SOFTMAX, 1, false, true, false},  {28, IFD_OP_TANH, 1, false, true, false},
    {55, IFD_OP_MAXIMUM, 2, false, true, false},  {57, IFD_OP_MINIMUM, 2, false, true, false},
    {58, IFD_OP_LESS, 2, true, true, true},       {59, IFD_OP_NEG, 1, false, true, true},
    {61, IFD_OP_GREATER, 2, true, true, true},    {62, IFD_OP_GREATER_EQUAL, 2, true, true, true},
    {63, IFD_OP_LESS_EQUAL, 2, true, true, true}, {66, IFD_OP_SIN, 1, false, true, false},
    {71, IFD_OP_EQUAL, 2, true, true, true},      {72, IFD_OP_NOT_EQUAL, 2, true, true, false},
    {101, IFD_OP_ABS, 1, false, false, true},     {108, IFD_OP_COS, 1, false, true, false},
    {116, IFD_OP_ROUND, 1, false, true, false},   {150, IFD_OP_GELU, 1, false, true, false},
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

static int32_t type_of(const struct ifd_tflite_build *b, const struct ifd_tflite_ints *list,
                       uint32_t i)
{
    const int32_t tensor = list->count > i ? list->value[i] : -1;
    return tensor < 0 ? NO_TYPE : b->g->tensor[tensor].type;
}

bool ifd_composite_has_numbers(const struct ifd_tflite_build *b,
                               const struct ifd_tflite_operator *op)
{
    const int32_t builtin = b->model->opcode[op->opcode_index].builtin;
    const struct row *row = find_row(builtin);
    const int32_t type = type_of(b, &op->input, builtin == GATHER ? 1 : 0);
    if (builtin == CAST) {
        return type != NO_TYPE && type_of(b, &op->output, 0) == COMPLEX64;
    }
    if (type == INT16) { /* without a scale these are whole numbers */
        return builtin == GATHER ||
               (row && row->is_whole && b->g->tensor[op->input.value[0]].scale_count == 0);
    }
    return (type == FLOAT16 && row && row->is_real) ||
           ((type == UINT32 || type == COMPLEX64) && builtin == MUL);
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

/* ---- complex numbers ---- */

static uint32_t part_of(struct ifd_builder *b, uint32_t pairs, const struct ifd_shape *shape,
                        int64_t i)
{
    return ifd_build_reshape(b, ifd_build_cut(b, pairs, shape->rank, i, 1), shape->dim,
                             shape->rank);
}

static uint32_t from_parts(struct ifd_builder *b, uint32_t real, uint32_t imaginary)
{
    const uint32_t part[2] = {real, imaginary};
    const struct ifd_desc complex = {.dtype = IFD_C64};
    const struct ifd_axis_attrs last = {.axis = (int32_t)ifd_build_desc(b, real)->shape.rank};
    const uint32_t pairs = ifd_build_node(b, IFD_OP_PACK, part, 2, NULL, &last);
    return ifd_build_node(b, IFD_OP_BITCAST, &pairs, 1, &complex, NULL);
}

static void cast_to_complex(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    if (c->input_count != 1 || !ifd_composite_has_inputs(c, 1)) {
        ifd_build_fail(b, IFD_CORRUPT, "%u inputs, expected 1", c->input_count);
        return;
    }
    const uint32_t x = c->input[0];
    const struct ifd_desc from = *ifd_build_desc(b, x);
    c->output[0] =
        from.dtype == IFD_C64
            ? x
            : from_parts(b, ifd_build_cast(b, x, IFD_F32),
                         ifd_composite_fill(b, IFD_F32, 0, from.shape.dim, from.shape.rank));
}

static void multiply_complex(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    const struct ifd_desc real = {.dtype = IFD_F32};
    uint32_t part[2][2] = {{IFD_NONE}};
    for (uint32_t i = 0; i < 2; i++) {
        const struct ifd_desc desc = *ifd_build_desc(b, c->input[i]);
        if (desc.dtype != IFD_C64 || c->options->activation != IFD_ACT_NONE) {
            ifd_build_fail(b, IFD_INVALID, "complex numbers by %s, activation %d",
                           ifd_dtype_name(desc.dtype), c->options->activation);
            return;
        }
        const uint32_t pairs = ifd_build_node(b, IFD_OP_BITCAST, &c->input[i], 1, &real, NULL);
        part[i][0] = part_of(b, pairs, &desc.shape, 0);
        part[i][1] = part_of(b, pairs, &desc.shape, 1);
    }
    uint32_t product[2][2];
    for (uint32_t i = 0; i < 4; i++) {
        product[i / 2][i % 2] = ifd_build_binary(b, IFD_OP_MUL, part[0][i / 2], part[1][i % 2]);
    }
    c->output[0] = from_parts(b, ifd_build_binary(b, IFD_OP_SUB, product[0][0], product[1][1]),
                              ifd_build_binary(b, IFD_OP_ADD, product[0][1], product[1][0]));
}

/* ---- other numbers ---- */

/* Of whole numbers, as LiteRT does it: the high bits go first, and bounds have the type of the
 * numbers, in which -1 is the largest one of u32. */
static uint32_t activate_whole(struct ifd_builder *b, uint32_t y, enum ifd_dtype given,
                               int32_t activation)
{
    const enum ifd_dtype own = ifd_build_desc(b, y)->dtype;
    const bool is_below = activation == IFD_ACT_RELU_N1_TO_1, is_signed = given == IFD_S16;
    y = ifd_build_cast(b, y, given);
    if (activation == IFD_ACT_NONE) {
        return y;
    }
    if (!is_below && activation != IFD_ACT_RELU && activation != IFD_ACT_RELU6) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "activation %d of %s", activation,
                              ifd_dtype_name(given));
    }
    const double low = !is_below ? 0.0 : is_signed ? -1.0 : (double)UINT32_MAX;
    y = ifd_build_with(b, IFD_OP_MAXIMUM, ifd_build_cast(b, y, own), low);
    if (activation != IFD_ACT_RELU) {
        y = ifd_build_with(b, IFD_OP_MINIMUM, y, is_below ? 1 : 6);
    }
    return ifd_build_cast(b, y, given);
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
    if (given == IFD_C64) {
        multiply_complex(c);
        return;
    }
    const enum ifd_dtype own = given == IFD_F16 ? IFD_F32 : given == IFD_S16 ? IFD_S32 : IFD_S64;
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
    const bool activates = row->op == IFD_OP_ADD || row->op == IFD_OP_MUL;
    if (activates && given == IFD_F16) {
        y = ifd_composite_activate(b, y, c->options->activation);
    } else if (activates) {
        y = activate_whole(b, y, given, c->options->activation);
    }
    c->output[0] = row->is_comparison || ifd_build_desc(b, y)->dtype == given
                       ? y
                       : ifd_build_cast(b, y, given);
}

void ifd_composite_numbers(struct ifd_composite *c)
{
    const int32_t builtin = c->build->model->opcode[c->op->opcode_index].builtin;
    if (builtin == CAST) {
        cast_to_complex(c);
    } else if (builtin == GATHER) {
        gather_by_s16(c);
    } else {
        compute(c, find_row(builtin));
    }
}
