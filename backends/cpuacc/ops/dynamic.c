/* Quantization of f32 images at run time. */
#include "backends/cpuacc/ops/dynamic.h"

#include <math.h>

struct quantize_params {
    size_t count, elements;
    bool as_floats;
    bool is_whole;     /* one range, divided by and rounded as ONNX does */
    bool is_symmetric; /* around 0, where one scale serves all channels of a conv2d */
};

size_t ifd_acc_quantized_bytes(size_t count)
{
    return (count * sizeof(struct ifd_acc_quantized) + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN *
           IFD_TENSOR_ALIGN;
}

/* Scale and zero point of numbers between min <= 0 and max >= 0, and the factor to multiply with.
 * The zero point comes from the end of -128 … 127 that rounds less. */
static struct ifd_acc_quantized choose(const struct quantize_params *p, float min, float max,
                                       float *ret_factor)
{
    struct ifd_acc_quantized image = {.scale = 1, .zero = IFD_Q8_SHIFT_S8};
    *ret_factor = 0;
    if (min == max) {
        return image;
    }
    if (p->is_symmetric) {
        const float most = max > -min ? max : -min;
        image.scale = most / 127;
        *ret_factor = 127 / most;
        return image;
    }
    image.scale = (max - min) / 255;
    if (p->is_whole) {
        const float zero = 0 - min / image.scale;
        image.zero += (int32_t)rintf(zero > 255 ? 255 : zero > 0 ? zero : 0) - 128;
        return image;
    }
    *ret_factor = 1.0f / image.scale;
    const float low = min / image.scale, high = max / image.scale;
    const float zero = 128 + fabsf(low) < 127 + fabsf(high) ? -128 - low : 127 - high;
    image.zero += zero >= 127 ? 127 : zero > -128 ? (int32_t)roundf(zero) : -128;
    return image;
}

static void quantize(const struct quantize_params *p, const struct ifd_kern_quant *quant,
                     const struct ifd_acc_quantized *to, float factor, size_t n, const float *in,
                     ifd_q8 *out)
{
    if (p->is_whole) {
        quant->quantize_even(n, in, to->scale, to->zero, (struct ifd_q8_beyond){0}, out);
    } else {
        quant->quantize_by(n, in, factor, to->zero, out);
    }
}

/* Elements that are quantized and become floats again at a time. */
#define CHUNK 1024

static void run_quantize_input(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct quantize_params *p = step->params;
    const struct ifd_kern_quant *quant = &step->kernels->quant;
    const float *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    struct ifd_acc_quantized *images = (struct ifd_acc_quantized *)(void *)out;
    ifd_q8 *bytes = (ifd_q8 *)out + ifd_acc_quantized_bytes(p->count);
    float *floats = (float *)(void *)out;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->elements, 64);
    float min = 0, max = 0, factor = 0;
    struct ifd_acc_quantized to = {0};
    for (size_t i = 0; i < p->count; i++) {
        const float *image = in + i * p->elements;
        if (i == 0 || !p->is_whole) { /* by each thread: cheaper than to meet */
            quant->range(p->elements * (p->is_whole ? p->count : 1), image, &min, &max);
            to = choose(p, min, max, &factor);
        }
        if (!p->as_floats) {
            if (frame->chunk.begin == 0) {
                images[i] = to;
            }
            quantize(p, quant, &to, factor, range.end - range.begin, image + range.begin,
                     bytes + i * p->elements + range.begin);
            continue;
        }
        ifd_q8 chunk[CHUNK + IFD_TENSOR_PAD];
        for (size_t at = range.begin; at < range.end; at += CHUNK) {
            const size_t n = range.end - at < CHUNK ? range.end - at : CHUNK;
            quantize(p, quant, &to, factor, n, image + at, chunk);
            quant->dequantize(n, chunk, to.scale, to.zero, floats + i * p->elements + at);
        }
    }
}

static bool scales_differ(const struct ifd_quant *quant)
{
    for (uint32_t i = 1; i < quant->count; i++) {
        if (quant->scale[i] != quant->scale[0]) {
            return true;
        }
    }
    return false;
}

enum ifd_acc_quantize_form ifd_acc_conv_form(const struct ifd_acc_product *product)
{
    return product->is_whole                        ? IFD_ACC_QUANTIZE_WHOLE
           : scales_differ(product->scales.weights) ? IFD_ACC_QUANTIZE_ASYMMETRIC
                                                    : IFD_ACC_QUANTIZE_SYMMETRIC;
}

enum ifd_code ifd_acc_quantize_input(struct ifd_acc_lowering *lowering, uint32_t value,
                                     size_t count, size_t elements, enum ifd_acc_quantize_form form,
                                     uint32_t *ret_value, struct ifd_err *err)
{
    const bool is_whole =
        form == IFD_ACC_QUANTIZE_WHOLE || form == IFD_ACC_QUANTIZE_WHOLE_AS_FLOATS;
    const bool as_floats =
        form == IFD_ACC_QUANTIZE_AS_FLOATS || form == IFD_ACC_QUANTIZE_WHOLE_AS_FLOATS;
    const bool is_symmetric = form == IFD_ACC_QUANTIZE_SYMMETRIC;
    if (lowering->base.value[value].quantized[form] &&
        lowering->base.value[value].quantized_elements[form] == elements) { /* of another layer */
        *ret_value = lowering->base.value[value].quantized[form] - 1;
        return IFD_OK;
    }
    struct quantize_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const size_t bytes = as_floats ? count * elements * sizeof(float)
                                   : ifd_acc_quantized_bytes(count) + count * elements;
    enum ifd_code code = ifd_low_add_value(&lowering->base, bytes, ret_value, err);
    if (code == IFD_OK) {
        code = ifd_acc_add_step(lowering, run_quantize_input, p, &value, 1, *ret_value, &step, err);
    }
    if (code == IFD_OK) {
        *p = (struct quantize_params){.count = count,
                                      .elements = elements,
                                      .as_floats = as_floats,
                                      .is_whole = is_whole,
                                      .is_symmetric = is_symmetric};
        lowering->base.value[value].quantized[form] = *ret_value + 1;
        lowering->base.value[value].quantized_elements[form] = elements;
        step->max_threads = (uint32_t)(count * elements / 4096) + 1;
        step->chunks = 1; /* each call looks at all of them */
        ifd_acc_name_step(lowering, "quantize", 0, "to 8 bits");
    }
    return code;
}
