/** Types that all of inferd shares: data types, shapes, quantization, tensor descriptions and
 *  views.
 *
 *  Plain data only. Nothing here owns memory, nothing here locks, every function may be called
 *  from any thread.
 *
 *  Byte order is the host's (little-endian on every supported machine); element order is
 *  row-major. */
#ifndef INFERD_TYPES_H
#define INFERD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IFD_NODISCARD       __attribute__((warn_unused_result))
#define IFD_PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#define IFD_EXPORT          __attribute__((visibility("default")))
#else
#define IFD_NODISCARD
#define IFD_PRINTF(fmt, va)
#define IFD_EXPORT
#endif

/** Maximum number of dimensions (TFLite allows 8 in practice, ONNX models stay below). */
#define IFD_MAX_RANK 8

/** Value of a dimension that is known only when a request arrives. */
#define IFD_DIM_ANY (-1)

/** Tensor memory is aligned to IFD_TENSOR_ALIGN bytes and followed by IFD_TENSOR_PAD bytes that
 *  kernels may read but not write; nobody else writes them during a run. Holds for all memory
 *  that a backend gets; struct ifd_tensor says what holds for callers. */
#define IFD_TENSOR_ALIGN 64
#define IFD_TENSOR_PAD   64

/** Element types: X(id, name in text and dumps, bytes of one element, name on the wire).
 *
 *  The enum's numbers are part of the plugin ABI: append only. C64 is a pair of F32 (real,
 *  imaginary). An element of STR is a struct ifd_str; only the operators of texts look at its
 *  bytes. */
#define IFD_DTYPES(X)                                                                              \
    X(F32, "f32", 4, "FP32")                                                                       \
    X(F16, "f16", 2, "FP16")                                                                       \
    X(BF16, "bf16", 2, "BF16")                                                                     \
    X(F64, "f64", 8, "FP64")                                                                       \
    X(S8, "s8", 1, "INT8")                                                                         \
    X(U8, "u8", 1, "UINT8")                                                                        \
    X(S16, "s16", 2, "INT16")                                                                      \
    X(U16, "u16", 2, "UINT16")                                                                     \
    X(S32, "s32", 4, "INT32")                                                                      \
    X(U32, "u32", 4, "UINT32")                                                                     \
    X(S64, "s64", 8, "INT64")                                                                      \
    X(U64, "u64", 8, "UINT64")                                                                     \
    X(BOOL, "bool", 1, "BOOL")                                                                     \
    X(C64, "c64", 8, "COMPLEX64")                                                                  \
    X(STR, "str", sizeof(struct ifd_str), "BYTES")

enum ifd_dtype {
#define IFD_X(id, text, bytes, wire) IFD_##id,
    IFD_DTYPES(IFD_X)
#undef IFD_X
        IFD_DTYPE_COUNT
};

/** Set of data types: IFD_BIT(IFD_F32) | IFD_BIT(IFD_S8) … */
#define IFD_BIT(x) ((uint32_t)1 << (x))

/** Bytes of one element; 0 for a value outside the enum. */
size_t ifd_dtype_bytes(enum ifd_dtype dtype);

/** Short lower-case name ("f32"); "?" for a value outside the enum. Static. */
const char *ifd_dtype_name(enum ifd_dtype dtype);

/** Name in the Open Inference Protocol ("FP32"); "?" for a value outside the enum. Static. */
const char *ifd_dtype_wire_name(enum ifd_dtype dtype);

/** Precision of the factors in matrix multiplications of f32 tensors (convolutions, fully
 *  connected layers): f32, bfloat16 (8 significant bits) or half precision (11 bits, largest
 *  number 65,504). Tensors and sums stay f32, except that Arm's half-precision instructions sum
 *  up to 64 products in half precision first. */
enum ifd_precision { IFD_PRECISION_F32, IFD_PRECISION_BF16, IFD_PRECISION_FP16 };

/** "f32", "bf16", "fp16"; "?" for a value outside the enum. Static. */
const char *ifd_precision_name(enum ifd_precision precision);
/** False for any other name. */
bool ifd_precision_by_name(const char *name, enum ifd_precision *ret_precision);

/** Read-only view of bytes; somebody else owns them. data may be NULL only if size is 0. */
struct ifd_bytes {
    const uint8_t *data;
    size_t size;
};

/** Read-only view of text; somebody else owns it. It may lack a final NUL. */
struct ifd_str {
    const char *data;
    size_t size;
};

/** Receives text in chunks without a final NUL. */
typedef void (*ifd_sink_fn)(void *context, const char *text, size_t size);

/** Shape of a tensor. dim[0 … rank-1] are ≥ 0 or IFD_DIM_ANY; the rest is 0. Rank 0 is a scalar
 *  (one element). A tensor with a dimension of 0 is empty. */
struct ifd_shape {
    uint32_t rank;
    int64_t dim[IFD_MAX_RANK];
};

/** Compares rank and the dimensions below it. */
bool ifd_shape_equal(const struct ifd_shape *a, const struct ifd_shape *b);

/** Affine quantization: real = scale[c] * (stored - zero_point[c]).
 *
 *  count 0: not quantized. count 1: per tensor. count > 1: per channel, c is the index along
 *  axis, and count equals that dimension. zero_point has count entries, too. The model owns the
 *  arrays. */
struct ifd_quant {
    const float *scale;
    const int32_t *zero_point;
    uint32_t count;
    uint32_t axis;
};

/** Description of a tensor without its content. */
struct ifd_desc {
    enum ifd_dtype dtype;
    struct ifd_shape shape;
    struct ifd_quant quant;
};

/** A tensor in the caller's memory.
 *
 *  data:     first element, aligned at least to the element's size.
 *  bytes:    size of the content = elements × element size. capacity: bytes from data on that
 *  may be read (input) or written (output); ≥ bytes. Where data is aligned to IFD_TENSOR_ALIGN
 *  and capacity ≥ bytes + IFD_TENSOR_PAD, the engine works on this memory directly; otherwise it
 *  copies. */
struct ifd_tensor {
    enum ifd_dtype dtype;
    struct ifd_shape shape;
    void *data;
    size_t bytes;
    size_t capacity;
};

#ifdef __cplusplus
}
#endif
#endif
