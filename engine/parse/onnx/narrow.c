/* Numbers of 8 bits and less that no other type of the engine is: floats are computed as f32, like
 * all floats, and rounded where the file makes them narrow; whole numbers of 4 and 2 bits are kept
 * in 8. Outside, where the protocol has no name for them either, each is a byte: of a float its
 * bits, of a whole number its value. */
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"

/* Sign, exponent and fraction in the low bits of a byte: the code of a number. */
struct format {
    int32_t type;
    int bits, bias, fraction;
    int most;             /* code of the largest number */
    int beyond, not_real; /* codes of what is larger where nothing saturates, and of NaN */
    bool has_infinity;
    bool has_one_zero; /* the code of -0 is NaN, which has no sign */
    bool is_power;     /* of 2, the exponent alone: without sign, fraction and 0 */
};

static const struct format formats[] = {
    {IFD_ONNX_FLOAT8E4M3FN, 8, 7, 3, 0x7e, 0x7f, 0x7f, false, false, false},
    {IFD_ONNX_FLOAT8E4M3FNUZ, 8, 8, 3, 0x7f, 0x80, 0x80, false, true, false},
    {IFD_ONNX_FLOAT8E5M2, 8, 15, 2, 0x7b, 0x7c, 0x7e, true, false, false},
    {IFD_ONNX_FLOAT8E5M2FNUZ, 8, 16, 2, 0x7f, 0x80, 0x80, false, true, false},
    {IFD_ONNX_FLOAT4E2M1, 4, 1, 1, 7, 7, 8, false, false, false}, /* no NaN: it becomes -0 */
    {IFD_ONNX_FLOAT8E8M0, 8, 127, 0, 0xfe, 0xff, 0xff, false, false, true},
};

static const struct format *format_of(int64_t type)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].type == type) {
            return &formats[i];
        }
    }
    return NULL;
}

/* Bits of a whole number, 0 for other types. */
static int whole_bits(int64_t type)
{
    return type == IFD_ONNX_INT4 || type == IFD_ONNX_UINT4   ? 4
           : type == IFD_ONNX_INT2 || type == IFD_ONNX_UINT2 ? 2
                                                             : 0;
}

static bool is_signed(int64_t type)
{
    return type == IFD_ONNX_INT4 || type == IFD_ONNX_INT2;
}

bool ifd_onnx_is_narrow(int64_t type)
{
    return format_of(type) || whole_bits(type) > 0;
}

bool ifd_onnx_is_narrow_real(int64_t type)
{
    return format_of(type) != NULL;
}

bool ifd_onnx_outer_dtype(int64_t type, enum ifd_dtype *ret)
{
    if (!ifd_onnx_is_narrow(type)) {
        return ifd_onnx_port_dtype(type, ret);
    }
    *ret = is_signed(type) ? IFD_S8 : IFD_U8;
    return true;
}

/* ---- floats ---- */

static float number_of(const struct format *f, int code)
{
    if (f->is_power) {
        return code == f->not_real ? NAN : (float)ldexp(1, code - f->bias);
    }
    const int sign = 1 << (f->bits - 1);
    const int size = code & (sign - 1);
    const int exponent = size >> f->fraction, rest = size & ((1 << f->fraction) - 1);
    double number = exponent == 0
                        ? ldexp(rest, 1 - f->bias - f->fraction)
                        : ldexp((1 << f->fraction) + rest, exponent - f->bias - f->fraction);
    if (size > f->most || (f->has_one_zero && (code & (2 * sign - 1)) == sign)) {
        number = f->has_infinity && size == f->beyond ? HUGE_VAL : NAN;
    }
    return (float)copysign(number, code & sign ? -1 : 1);
}

/* Bytes of codes as f32. */
static uint32_t decoded(struct ifd_builder *b, uint32_t codes, const struct format *f)
{
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = {.rank = 1, .dim = {256}}};
    float number[256];
    for (int i = 0; i < 256; i++) {
        number[i] = number_of(f, i);
    }
    const uint32_t table = ifd_build_constant(
        b, &desc, (struct ifd_bytes){(const uint8_t *)number, sizeof(number)}, 0);
    return ifd_build_node(b, IFD_OP_GATHER,
                          (const uint32_t[]){table, ifd_build_cast(b, codes, IFD_S32)}, 2, NULL,
                          &(const struct ifd_gather_attrs){.axis = 0});
}

static uint32_t shifted(struct ifd_builder *b, uint32_t x, int bits)
{
    return ifd_build_with(b, IFD_OP_RIGHT_SHIFT, x, bits);
}

/* The size of a number (bits: of its f32) as a code, rounded to the even neighbour: what the f32
 * has too many of is cut off. Below the least number with a full fraction codes are steps. */
static uint32_t size_code(struct ifd_builder *b, uint32_t x, uint32_t bits, const struct format *f)
{
    const int cut = 23 - f->fraction;
    const uint32_t odd = ifd_build_with(b, IFD_OP_BITWISE_AND, shifted(b, bits, cut), 1);
    const uint32_t up = ifd_build_with(b, IFD_OP_ADD, odd, (1 << (cut - 1)) - 1);
    const uint32_t kept = shifted(b, ifd_build_binary(b, IFD_OP_ADD, bits, up), cut);
    const uint32_t code = ifd_build_with(b, IFD_OP_SUB, kept, (127 - f->bias) << f->fraction);
    const double least = ldexp(1, 1 - f->bias);
    const uint32_t small = ifd_build_clamp(b, ifd_build_unary(b, IFD_OP_ABS, x), 0, least);
    const uint32_t steps = ifd_build_unary(
        b, IFD_OP_ROUND, ifd_build_with(b, IFD_OP_MUL, small, ldexp(1 / least, f->fraction)));
    const uint32_t is_small = ifd_onnx_compared(
        b, IFD_OP_LESS, bits, ifd_build_number(b, IFD_S32, (128 - f->bias) << 23));
    return ifd_onnx_selected(b, is_small, ifd_build_cast(b, steps, IFD_S32), code);
}

/* A code that is no number, with a sign where it has none of its own. */
static uint32_t with_sign(struct ifd_builder *b, int code, uint32_t sign)
{
    return ifd_build_binary(b, IFD_OP_BITWISE_OR, sign, ifd_build_number(b, IFD_S32, code));
}

enum rounding { UP, DOWN, NEAREST }; /* of a number's size, to a power of 2 */

/* The size of an f32 as the exponent of a power of 2. A code of 0 is 2^-127; as in the definition,
 * any fraction is rounded, also that of 2^-127 itself. */
static uint32_t power_code(struct ifd_builder *b, uint32_t size, enum rounding rounding,
                           bool saturates)
{
    const uint32_t exponent = shifted(b, size, 23);
    const uint32_t up =
        rounding == NEAREST
            ? ifd_build_with(b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MINIMUM, exponent, 1),
                             0x3fffff)
            : ifd_build_number(b, IFD_S32, rounding == UP ? 0x7fffff : 0);
    const uint32_t code = shifted(b, ifd_build_binary(b, IFD_OP_ADD, size, up), 23);
    const uint32_t is_real =
        ifd_onnx_compared(b, IFD_OP_LESS, exponent, ifd_build_number(b, IFD_S32, 0xff));
    return ifd_onnx_selected(b, is_real,
                             ifd_build_with(b, IFD_OP_MINIMUM, code, saturates ? 0xfe : 0xff),
                             ifd_build_number(b, IFD_S32, 0xff));
}

/* f32 as codes, s32. saturates: what is larger than all numbers becomes the largest. */
static uint32_t encoded(struct ifd_builder *b, uint32_t x, const struct format *f, bool saturates,
                        enum rounding rounding)
{
    const struct ifd_desc word = {.dtype = IFD_S32};
    const uint32_t bits = ifd_build_node(b, IFD_OP_BITCAST, &x, 1, &word, NULL);
    const uint32_t size =
        ifd_build_with(/* at most infinity: sums do not overflow */
                       b, IFD_OP_MINIMUM, ifd_build_with(b, IFD_OP_BITWISE_AND, bits, INT32_MAX),
                       0x7f800000);
    if (f->is_power) {
        const uint32_t is_real = ifd_onnx_compared(b, IFD_OP_EQUAL, x, x);
        return ifd_onnx_selected(b, is_real, power_code(b, size, rounding, saturates),
                                 ifd_build_number(b, IFD_S32, f->not_real));
    }
    const int top = 1 << (f->bits - 1);
    const uint32_t sign =
        ifd_build_with(b, IFD_OP_BITWISE_AND, shifted(b, bits, 32 - f->bits), top);
    const uint32_t code = size_code(b, x, size, f);
    const uint32_t own_sign =
        f->has_one_zero
            ? ifd_build_binary(b, IFD_OP_MUL, sign, ifd_build_with(b, IFD_OP_MINIMUM, code, 1))
            : sign;
    uint32_t y =
        ifd_build_binary(b, IFD_OP_ADD, own_sign, ifd_build_with(b, IFD_OP_MINIMUM, code, f->most));
    if (!saturates) {
        const uint32_t is_beyond =
            ifd_onnx_compared(b, IFD_OP_GREATER, code, ifd_build_number(b, IFD_S32, f->most));
        y = ifd_onnx_selected(b, is_beyond, with_sign(b, f->beyond, sign), y);
    }
    const uint32_t is_real = ifd_onnx_compared(b, IFD_OP_EQUAL, x, x);
    return ifd_onnx_selected(b, is_real, y, with_sign(b, f->not_real, sign));
}

/* ---- casts ---- */

/* The low bits, as a number of the type. */
static uint32_t wrapped(struct ifd_builder *b, uint32_t x, int64_t type)
{
    const int bits = whole_bits(type), top = 1 << (bits - 1);
    const uint32_t low =
        ifd_build_with(b, IFD_OP_BITWISE_AND, ifd_build_cast(b, x, IFD_S32), (1 << bits) - 1);
    if (!is_signed(type)) {
        return ifd_build_cast(b, low, IFD_U8);
    }
    const uint32_t turned =
        ifd_build_binary(b, IFD_OP_BITWISE_XOR, low, ifd_build_number(b, IFD_S32, top));
    return ifd_build_cast(b, ifd_build_with(b, IFD_OP_SUB, turned, top), IFD_S8);
}

uint32_t ifd_onnx_narrowed(struct ifd_onnx_call *call, uint32_t x, int64_t type)
{
    struct ifd_builder *b = call->b;
    const struct format *f = format_of(type);
    const bool saturates = ifd_onnx_int(call, "saturate", 1) != 0 || type == IFD_ONNX_FLOAT4E2M1;
    const enum rounding rounding = ifd_onnx_text_is(call, "round_mode", "down", false) ? DOWN
                                   : ifd_onnx_text_is(call, "round_mode", "nearest", false)
                                       ? NEAREST
                                       : UP;
    return f ? decoded(b, encoded(b, ifd_build_cast(b, x, IFD_F32), f, saturates, rounding), f)
             : wrapped(b, x, type);
}

void ifd_onnx_narrow_range(int64_t type, double *ret_min, double *ret_max)
{
    const double numbers = 1 << whole_bits(type);
    *ret_min = is_signed(type) ? -numbers / 2 : 0;
    *ret_max = *ret_min + numbers - 1;
}

uint32_t ifd_onnx_from_outer(struct ifd_builder *b, uint32_t x, int64_t type)
{
    const struct format *f = format_of(type);
    return f ? decoded(b, x, f) : wrapped(b, x, type);
}

uint32_t ifd_onnx_to_outer(struct ifd_builder *b, uint32_t x, int64_t type)
{
    const struct format *f = format_of(type);
    const bool is_real = ifd_build_desc(b, x)->dtype == IFD_F32;
    return f && is_real ? ifd_build_cast(b, encoded(b, x, f, false, DOWN), IFD_U8) : x;
}

/* ---- types of names ---- */

int64_t ifd_onnx_narrow_type(const struct ifd_onnx_call *call, uint32_t i)
{
    const struct ifd_onnx_graph *g = call->build->scope->g;
    if (i >= call->node->input_count || call->node->input[i].size == 0) {
        return 0;
    }
    const struct ifd_str text = call->node->input[i];
    int64_t type = 0;
    for (uint32_t k = 0; k < g->initializer_count; k++) {
        type = ifd_onnx_is_same(g->initializer[k].name, text) ? g->initializer[k].type : type;
    }
    for (uint32_t k = 0; k < g->input_count; k++) {
        type = ifd_onnx_is_same(g->input[k].name, text) ? g->input[k].type : type;
    }
    const struct ifd_onnx_node *maker = ifd_onnx_maker(call->build, text);
    const struct ifd_onnx_call made = {.build = call->build, .node = maker};
    if (maker && ifd_str_is(maker->op, "Cast")) {
        type = ifd_onnx_int(&made, "to", 0);
    } else if (maker && ifd_str_is(maker->op, "Constant")) {
        const struct ifd_onnx_attr *value = ifd_onnx_attr(&made, "value");
        type = value && value->tensor ? value->tensor->type : 0;
    }
    return ifd_onnx_is_narrow(type) ? type : 0;
}

/* ---- constants ---- */

uint32_t ifd_onnx_narrow_constant(struct ifd_builder *b, const struct ifd_onnx_tensor *tensor)
{
    const struct format *f = format_of(tensor->type);
    const int bits = f ? f->bits : whole_bits(tensor->type), per_byte = 8 / bits;
    const size_t packed = tensor->has_raw ? tensor->raw.size : tensor->integer_count;
    struct ifd_shape shape = {.rank = tensor->dim_count};
    size_t count = 0;
    for (uint32_t d = 0; d < tensor->dim_count && d < IFD_MAX_RANK; d++) {
        shape.dim[d] = tensor->dim[d];
    }
    const size_t room = packed * (size_t)per_byte; /* the last byte may have some to spare */
    if (tensor->dim_count <= IFD_MAX_RANK && ifd_shape_elements(&shape, &count)) {
        count = count > room || room - count >= (size_t)per_byte ? room : count;
    }
    uint8_t *data = ifd_arena_take_tensor(b->graph->arena, count);
    if (!data) {
        b->code = ifd_arena_fail(b->graph->arena, count, b->err);
        return IFD_NONE;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t at = i / (size_t)per_byte;
        const unsigned byte = tensor->has_raw ? tensor->raw.data[at] : (uint8_t)tensor->integer[at];
        const unsigned code = byte >> (i % (size_t)per_byte * (size_t)bits) & ((1U << bits) - 1);
        const bool is_below = is_signed(tensor->type) && code >> (bits - 1) != 0;
        data[i] = (uint8_t)(is_below ? code - (1U << bits) : code);
    }
    struct ifd_onnx_tensor bytes = *tensor;
    bytes.type = is_signed(tensor->type) ? IFD_ONNX_INT8 : IFD_ONNX_UINT8;
    bytes.has_raw = true;
    bytes.raw = (struct ifd_bytes){.data = data, .size = count};
    bytes.room = IFD_TENSOR_PAD;
    const uint32_t value = ifd_onnx_constant(b, &bytes);
    return f ? decoded(b, value, f) : value;
}
