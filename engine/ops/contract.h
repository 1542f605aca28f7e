/** The arithmetic of convolutions and fully connected layers. An output row holds all channels
 *  of a pixel: sums of products of input and filter, plus a bias, scaled to the output's
 *  quantization and clamped by an activation.
 *
 *  Types: f32; u8 with a u8 filter; s8 and s16 with an s8 filter (per channel or per tensor);
 *  s16 with an s16 filter in fully connected layers (64-bit sums, whatever the bias is);
 *  8 bits with a filter of either type where the rounding is IFD_CONTRACT_EVEN; and f32 with an
 *  s8 filter ("dynamic range"): every sample of the input is then quantized by
 *  its range first; where the rounding is IFD_CONTRACT_EVEN, the filter is s8 or u8, may have a
 *  zero point, and the whole input is one sample.
 *
 *  f32 sums run in f32 in the order of the filter's elements. Sums of quantized numbers are
 *  taken modulo 2^32, as in the int32 accumulators of LiteRT's reference kernels; s16 with a
 *  64-bit bias, or none, keeps 64 bits.
 *
 *  A reference kernel begins a contraction; per output row it clears it, adds products, and
 *  stores the row. Nothing here allocates, and after the shape rule accepted the node nothing
 *  fails. Thread: any, on different contractions. */
#ifndef INFERD_ENGINE_OPS_CONTRACT_H
#define INFERD_ENGINE_OPS_CONTRACT_H

#include "inferd/op.h"
#include "inferd/op_attrs.h"

/** Rounding from a sum to a stored number. */
enum ifd_contract_rounding {
    /** 31-bit multiplier, rounded twice; for 64-bit sums a 15-bit multiplier, rounded once. */
    IFD_CONTRACT_FIXED,
    /** Multiplied in double precision, rounded half away from zero (fully connected); an s16 filter
     *  as FIXED. */
    IFD_CONTRACT_REAL,
    /** ONNX Runtime's: sum and factor are floats, halves to the even neighbour. Not of s16. */
    IFD_CONTRACT_EVEN
};

/** The operands of a node, and the filter's axis of output channels. */
struct ifd_contract_roles {
    uint32_t input;                /* index */
    struct ifd_op_weights weights; /* the filter and its bias */
    enum ifd_contract_rounding rounding;
    bool may_be_dynamic; /* supports f32 with an 8-bit filter: calls ifd_contract_sample */
};

/** Checks types, quantization, bias and activation of the node. The caller has checked that
 *  input and filter are present and that filter_axis exists. */
IFD_NODISCARD enum ifd_code ifd_contract_infer(const struct ifd_op_def *def,
                                               const struct ifd_infer *in,
                                               const struct ifd_contract_roles *roles,
                                               int32_t activation, const struct ifd_desc *output,
                                               struct ifd_err *err);

/** Sizes of a contraction's buffers. */
struct ifd_contract_sizes {
    int64_t channels; /* of the output */
    int64_t window;   /* input numbers multiplied at a time */
    int64_t sample;   /* input numbers of one sample; 0 if the layer cannot be dynamic */
};

/** Bytes of scratch. TOO_LARGE if they overflow. */
IFD_NODISCARD enum ifd_code ifd_contract_scratch(const struct ifd_op_def *def,
                                                 const struct ifd_infer *in,
                                                 const struct ifd_contract_roles *roles,
                                                 const struct ifd_contract_sizes *sizes,
                                                 size_t *ret_bytes, struct ifd_err *err);

/** The scale of an output channel, for all kinds of rounding. */
struct ifd_contract_scale {
    double real;
    int32_t multiplier; /* 31-bit fraction of tensor/fixed.h */
    int shift;
};

/** A running contraction. Other files use only window. */
struct ifd_contraction {
    enum ifd_dtype dtype; /* of input and output */
    bool is_float;        /* sums and window hold floats */
    bool is_dynamic;      /* f32 by 8 bits */
    bool scales_differ;   /* is_dynamic: filter scales differ between channels */
    bool scales_first;    /* is_dynamic: filter scale times sample scale, then times the sum */
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
    struct ifd_contract_scale *scale; /* per channel, where sums are integers */
    float sample_scale;   /* is_dynamic: of the current sample; its zero is input_zero */
    int64_t sample_first; /* its first element in the input */
    bool has_whole;       /* the sample is the whole input: it stays */
    int64_t elements;     /* of the input */
    int8_t *quantized;    /* its quantized numbers */
    union {
        float *f32;
        int64_t *s64;
    } sum; /* channels */
    union {
        float *f32;
        int32_t *s32; /* input numbers minus the zero point */
    } window;         /* set by ifd_contract_load and ifd_contract_pad */
};

void ifd_contract_begin(struct ifd_contraction *contraction, const struct ifd_ref_call *call,
                        const struct ifd_contract_roles *roles,
                        const struct ifd_contract_sizes *sizes, int32_t activation);

/** Makes elements first … first + count - 1 of the input the current sample. Dynamic layers
 *  quantize it: with a zero point from its range if is_asymmetric, else with 0. IFD_CONTRACT_EVEN:
 *  the first call makes the whole input the sample of all. */
void ifd_contract_sample(struct ifd_contraction *contraction, int64_t first, int64_t count,
                         bool is_asymmetric);

/** Copies count input numbers from element first on to position at of the window; pad writes
 *  padding there. */
void ifd_contract_load(struct ifd_contraction *contraction, int64_t at, int64_t first,
                       int64_t count);
void ifd_contract_pad(struct ifd_contraction *contraction, int64_t at, int64_t count);

/** Sets every channel's sum to 0. */
void ifd_contract_clear(struct ifd_contraction *contraction);

/** For channels first … first + count - 1: adds the products of the window's first n numbers
 *  with n filter numbers. Channel first's begin at element filter_first, the next channel's
 *  stride elements later. */
void ifd_contract_dot(struct ifd_contraction *contraction, int64_t first, int64_t count, int64_t n,
                      int64_t filter_first, int64_t stride);

/** Adds to channel i * multiplier + m the product of window number i with filter element
 *  filter_first + that channel, for i < n, m < multiplier. */
void ifd_contract_multiply(struct ifd_contraction *contraction, int64_t n, int64_t multiplier,
                           int64_t filter_first);

/** Adds the bias, scales, clamps and writes all channels to the output from element first on. */
void ifd_contract_store(struct ifd_contraction *contraction, int64_t first);

#endif
