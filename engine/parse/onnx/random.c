/* Random numbers as constants: drawn while the file is read, so every run of a shape gets the same
 * ones. ONNX leaves seeds that a file does not give to whoever runs it. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"

#define TWO_PI 6.283185307179586

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In (0, 1). */
static double uniform(uint64_t *state)
{
    return ((double)(next(state) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    const double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(TWO_PI * uniform(state));
}

/* The shape of input 0, or of attribute "shape". */
static bool take_shape(struct ifd_onnx_call *call, struct ifd_shape *ret)
{
    struct ifd_ints sizes = {.count = 0};
    if (call->input_count > 0) {
        *ret = ifd_build_desc(call->b, call->input[0])->shape;
    } else if (ifd_onnx_ints(call, "shape", &sizes)) {
        *ret = (struct ifd_shape){.rank = sizes.count};
        for (uint32_t d = 0; d < sizes.count; d++) {
            ret->dim[d] = sizes.value[d];
            if (ret->dim[d] < 0) {
                ifd_build_fail(call->b, IFD_CORRUPT, "attribute \"shape\" has the number %lld",
                               (long long)ret->dim[d]);
            }
        }
    } else {
        ifd_build_fail(call->b, IFD_CORRUPT, "no shape");
    }
    return call->b->code == IFD_OK;
}

/* The attribute, else the place of the node: nodes differ. */
static uint64_t seed_of(const struct ifd_onnx_call *call)
{
    const struct ifd_builder *b = &call->build->b;
    uint64_t seed = (uint64_t)b->source_index << 32 | b->graph->value_count; /* functions repeat */
    const double given = ifd_onnx_f32(call, "seed", 0);
    if (ifd_onnx_attr(call, "seed")) {
        memcpy(&seed, &given, sizeof(seed));
    }
    return seed;
}

static uint32_t draw(struct ifd_onnx_call *call, const struct ifd_shape *shape, bool is_normal,
                     double first, double second)
{
    struct ifd_builder *b = call->b;
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = *shape};
    size_t count = 0;
    if (!ifd_desc_fits(&desc, b->tensor_bytes) || !ifd_shape_elements(shape, &count)) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "random numbers %s have more than %zu bytes",
                              ifd_shape_text(shape).s, b->tensor_bytes);
    }
    float *data = ifd_arena_take_tensor(b->graph->arena, count * sizeof(*data));
    if (!data) {
        b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*data), b->err);
        return IFD_NONE;
    }
    uint64_t state = seed_of(call);
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)(is_normal ? first + second * normal(&state)
                                    : first + (second - first) * uniform(&state));
    }
    const struct ifd_bytes content = {.data = (const uint8_t *)data, .size = count * sizeof(*data)};
    return ifd_build_constant(b, &desc, content, IFD_TENSOR_PAD);
}

void ifd_onnx_random(struct ifd_onnx_call *call, int which)
{
    struct ifd_builder *b = call->b;
    struct ifd_shape shape;
    if (!take_shape(call, &shape)) {
        return;
    }
    const bool is_normal = which == IFD_ONNX_RANDOM_NORMAL;
    const bool is_flag = which == IFD_ONNX_BERNOULLI;
    const double first = is_flag ? 0 : ifd_onnx_f32(call, is_normal ? "mean" : "low", 0);
    const double second = is_flag ? 1 : ifd_onnx_f32(call, is_normal ? "scale" : "high", 1);
    const int64_t type = ifd_onnx_int(call, "dtype", 0);
    enum ifd_dtype dtype = is_flag ? ifd_build_desc(b, call->input[0])->dtype : IFD_F32;
    if (type != 0 && !ifd_onnx_dtype(type, &dtype)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "attribute \"dtype\" is %lld", (long long)type);
        return;
    }
    uint32_t x = draw(call, &shape, is_normal, first, second);
    if (is_flag) {
        x = ifd_onnx_compared(b, IFD_OP_LESS, x, ifd_build_cast(b, call->input[0], IFD_F32));
    }
    call->output[0] = ifd_build_cast(b, x, dtype);
}
