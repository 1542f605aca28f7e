/** What convolutions and fully connected layers share: rows of output channels that are sums of products of an input
 *  with a filter, plus a bias, scaled to the output's quantization and clamped by an activation.
 *
 *  Types: f32; u8 with a u8 filter; s8 and s16 with an s8 filter (per channel or per tensor); and f32 with an s8 filter
 *  ("dynamic range"): every image is then quantized by its own range before its numbers are multiplied.
 *
 *  f32 sums run in f32 in the order of the filter's elements. Sums of quantized numbers are exact (64 bits) and then
 *  taken modulo 2^32, which is what the int32 accumulators of LiteRT's reference kernels give; s16 with a 64-bit bias,
 *  or none, keeps 64 bits.
 *
 *  A reference kernel begins a contraction, and per output row clears it, adds products, and stores it. Nothing here
 *  allocates; after a shape rule said OK, nothing can fail. Thread: any, on different contractions. */
#ifndef INFERD_ENGINE_OPS_CONTRACT_H
#define INFERD_ENGINE_OPS_CONTRACT_H

#include "inferd/op.h"
#include "inferd/op_attrs.h"

/** How a sum becomes a stored number. */
enum ifd_contract_rounding {
    IFD_CONTRACT_FIXED, /* 31-bit multiplier, rounded twice; 15-bit multiplier, rounded once, for 64-bit sums */
    IFD_CONTRACT_REAL /* multiplied in double precision, rounded half away from zero (fully connected) */
};

/** Which operands of a node take part, and along which axis of the filter the output channels lie. */
struct ifd_contract_roles {
    uint32_t input;                /* index */
    struct ifd_op_weights weights; /* the filter and its bias */
    enum ifd_contract_rounding rounding;
    bool may_be_dynamic; /* takes f32 with an s8 filter, and calls ifd_contract_image */
};

/** Checks types, quantization, bias and activation of such a node against each other. The caller has checked that input
 *  and filter are present and that filter_axis exists. */
IFD_NODISCARD enum ifd_code ifd_contract_infer(const struct ifd_op_def *def,
                                               const struct ifd_infer *in,
                                               const struct ifd_contract_roles *roles,
                                               int32_t activation, const struct ifd_desc *output,
                                               struct ifd_err *err);

/** Sizes of the memory that a contraction works in. */
struct ifd_contract_sizes {
    int64_t channels; /* of the output */
    int64_t window;   /* input numbers multiplied at a time */
    int64_t image;    /* input numbers of one image; 0 if the layer may not be dynamic */
};

/** Bytes of scratch. TOO_LARGE if they overflow. */
IFD_NODISCARD enum ifd_code ifd_contract_scratch(const struct ifd_op_def *def,
                                                 const struct ifd_infer *in,
                                                 const struct ifd_contract_roles *roles,
                                                 const struct ifd_contract_sizes *sizes,
                                                 size_t *ret_bytes, struct ifd_err *err);

/** The scale of one output channel in the two forms that rounding may want. */
struct ifd_contract_scale {
    double real;
    int32_t multiplier; /* 31-bit fraction of base/fixed.h */
    int shift;
};

/** A contraction that is running. Fields are for contract.c, except window. */
struct ifd_contraction {
    enum ifd_dtype dtype; /* of input and output */
    bool is_float;        /* sums and window hold floats */
    bool is_dynamic;      /* f32 by s8 */
    bool scales_differ;   /* is_dynamic: from channel to channel */
    bool scales_first; /* is_dynamic: filter scale and image scale are multiplied before the sum */
    enum ifd_dtype filter_dtype;
    enum ifd_contract_rounding rounding;
    bool is_wide; /* 64-bit sums */
    int64_t channels;
    const void *input, *filter, *bias;
    enum ifd_dtype bias_dtype;
    void *output;
    int32_t input_zero, filter_zero, output_zero;
    int32_t min, max;
    float min_f32, max_f32;
    struct ifd_contract_scale *scale; /* channels, where sums are integers */
    float image_scale;   /* is_dynamic: of the current image, whose zero is input_zero */
    int64_t image_first; /* its first element in the input */
    int8_t *image;       /* its quantized numbers */
    union {
        float *f32;
        int64_t *s64;
    } sum; /* channels */
    union {
        float *f32;
        int32_t *s32; /* input number minus its zero point */
    } window;         /* numbers to multiply; set by ifd_contract_load and ifd_contract_pad */
};

void ifd_contract_begin(struct ifd_contraction *contraction, const struct ifd_ref_call *call,
                        const struct ifd_contract_roles *roles,
                        const struct ifd_contract_sizes *sizes, int32_t activation);

/** The next numbers come from the image of count elements from element first on. Dynamic layers quantize it: around 0
 *  if one scale serves all of the filter and is_asymmetric is false, else around a zero of its own. */
void ifd_contract_image(struct ifd_contraction *contraction, int64_t first, int64_t count,
                        bool is_asymmetric);

/** Copies count input numbers from element first on to position at of the window; pad fills in "nothing" instead. */
void ifd_contract_load(struct ifd_contraction *contraction, int64_t at, int64_t first,
                       int64_t count);
void ifd_contract_pad(struct ifd_contraction *contraction, int64_t at, int64_t count);

/** Sets every channel's sum to 0. */
void ifd_contract_clear(struct ifd_contraction *contraction);

/** For channels first … first + count - 1: adds the products of the window's first n numbers with n filter numbers from
 *  element filter_first on; each further channel's lie stride elements on. */
void ifd_contract_dot(struct ifd_contraction *contraction, int64_t first, int64_t count, int64_t n,
                      int64_t filter_first, int64_t stride);

/** Adds to channel i * multiplier + m the product of window number i with filter element filter_first + that channel,
 *  for i < n, m < multiplier. */
void ifd_contract_multiply(struct ifd_contraction *contraction, int64_t n, int64_t multiplier,
                           int64_t filter_first);

/** Adds the bias, scales, clamps and writes all channels to the output from element first on. */
void ifd_contract_store(struct ifd_contraction *contraction, int64_t first);

#endif
