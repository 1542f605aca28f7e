/* The CPU kernels: arithmetic on pointers, lengths and packed weights. Each family is a struct
 * of function pointers; each instruction set has a const struct of each family that it improves.
 * ifd_kernels_select() merges those that the machine may run, weakest first, into one struct
 * ifd_kernels. Scalar tables are complete, so a pointer is NULL only where the family says so.
 *
 * Common rules, not repeated below
 *   Layout    NHWC; a "row" is the channels of one pixel, contiguous. Strides are in elements of
 *             their array, and may be larger than a row (channel slices of a wider tensor).
 *   Over-read Every input and every packed array may be read up to 64 bytes past its last
 *             element (IFD_TENSOR_PAD); these bytes never reach a result. A single row or a row
 *             pointer obeys the same rule, so rows of zeros have 64 more readable bytes.
 *   Writes    Exactly the elements described.
 *   Aliasing  Outputs overlap no input unless a function says otherwise.
 *   Q8        Quantized activations have the machine's native 8-bit form: unsigned on x86 (its
 *             dot product is u8 x s8), signed elsewhere. IFD_Q8_FLIP_S8 and IFD_Q8_FLIP_U8 are
 *             the bytes to XOR with to bring tensors of the model's type to that form and back.
 *             Zero points and clamp bounds given to kernels are native too (IFD_Q8_SHIFT_*): s8
 *             plus 128 on x86, u8 minus 128 elsewhere. Weights are always s8: u8 weights and
 *             their zero point are reduced by 128.
 *   Packed    Written by pack() and read by run() of the same table, 64-byte aligned, movable
 *             (no pointers inside), private except for struct ifd_packed at its start. Equal
 *             inputs give equal bytes, padding included.
 *   Threads   Kernels keep no state: any thread, concurrently, on disjoint outputs.
 *   Numbers   Integer kernels are exact: every table gives the same bytes. Float kernels may sum
 *             in another order and fuse multiply-adds; bounds are stated per family. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_KERNELS_H
#define INFERD_BACKENDS_CPUACC_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__arm__) || defined(__aarch64__)
typedef int8_t ifd_q8;
#define IFD_Q8_MIN      (-128)
#define IFD_Q8_MAX      127
#define IFD_Q8_FLIP_S8  0x00
#define IFD_Q8_FLIP_U8  0x80
#define IFD_Q8_SHIFT_S8 0
#define IFD_Q8_SHIFT_U8 (-128)
#define IFD_Q8_EXACT    1 /* two rounding instructions: nothing to gain by another rounding */
#else
typedef uint8_t ifd_q8;
#define IFD_Q8_MIN      0
#define IFD_Q8_MAX      255
#define IFD_Q8_FLIP_S8  0x80
#define IFD_Q8_FLIP_U8  0x00
#define IFD_Q8_SHIFT_S8 128
#define IFD_Q8_SHIFT_U8 0
#define IFD_Q8_EXACT    0
#endif

#define IFD_KERN_ALIGN 64

/* ---- requantization ------------------------------------------------------------------------- */

/* How a 32-bit sum becomes 8 bits.
 *   FAST    the cheapest form of the instruction set, within 1 step of the others: on x86 a
 *           float multiply rounded half to even, on Arm single rounding. All x86 tables agree
 *           with each other, and all Arm tables, but not across.
 *   DOUBLE  ifd_fixed_scale_double(): LiteRT's reference convolutions, bit for bit.
 *   SINGLE  ifd_fixed_scale_single(): LiteRT's reference fully connected layer, bit for bit.
 *   EVEN    a float multiply rounded half to even: ONNX Runtime, bit for bit. FAST on x86.
 *   NONE    gemm_q8 only: sums stay 32 bits. out is int32_t and its stride counts these;
 *           factors, zero point and bounds of the output are not read. */
enum ifd_round {
    IFD_ROUND_FAST,
    IFD_ROUND_DOUBLE,
    IFD_ROUND_SINGLE,
    IFD_ROUND_EVEN,
    IFD_ROUND_NONE
};

/* Bias and requantization of channels 0 .. n-1, as the model gives them.
 *   bias              NULL for none.
 *   multiplier, shift factor multiplier * 2^(shift - 31), see engine/tensor/fixed.h; shift in
 *                     [-31, 7]. |sum| must stay below 2^29, and below 2^(31 - shift) / 4 where
 *                     shift > 0; kernels with K * taps <= 16,000 cannot exceed the first.
 *   in_zero, out_zero native zero points of input and output.
 *   weight_zero       zero point of the s8 weights, one for all channels; 0 when symmetric.
 *   out_min, out_max  native clamp bounds, IFD_Q8_MIN <= out_min <= out_max <= IFD_Q8_MAX. */
struct ifd_requant {
    const int32_t *bias;
    const int32_t *multiplier;
    const int32_t *shift;
    int32_t in_zero, out_zero, weight_zero;
    int32_t out_min, out_max;
    enum ifd_round round;
};

/* Start of every packed array. Drivers split columns between blocks (ifd_packed_column()) and
 * rows at multiples of mr (other splits of rows are correct, and slower).
 *   bytes        of the whole packed array.
 *   n, k, taps   as given to pack().
 *   nr           columns (channels) a unit; only the last unit has fewer.
 *   mr           rows a tile.
 *   folds_zero   gemm_q8 only: the weights' zero point is folded into the packed weights, so
 *                run() needs no row_add.
 *   blocks       number of blocks. A block is the columns of a tile: consecutive units, in about
 *                equal numbers.
 *   unit_bytes   weights and tail of nr columns. */
struct ifd_packed {
    uint64_t bytes;
    uint32_t n, k, taps;
    uint16_t nr;
    uint8_t mr, folds_zero;
    uint32_t blocks;
    uint32_t unit_bytes;
    int32_t private_[8];
};

/* First column of a block; n for the block behind the last. */
static inline size_t ifd_packed_column(const struct ifd_packed *packed, size_t block)
{
    const size_t units = ((size_t)packed->n + packed->nr - 1) / packed->nr;
    const size_t column = units * block / packed->blocks * packed->nr;
    return column < packed->n ? column : packed->n;
}

/* ---- gemm and convolutions ------------------------------------------------------------------- */

/* Weights to pack: element (channel n, tap t, input channel k) is w[n*stride_n + t*stride_t +
 * k*stride_k]. A convolution in OHWI order has taps = kh*kw, stride_k = 1, stride_t = k,
 * stride_n = taps*k; a plain gemm has taps = 1. Where the input rows of one kernel row are
 * contiguous (padding materialised, dilation 1), it is faster to make kw*cin one tap: taps = kh,
 * k = kw*cin. First layers with 1..4 channels run so. */
struct ifd_gemm_weights {
    const void *w; /* int8_t or float */
    size_t n, k, taps;
    size_t stride_n, stride_t, stride_k;
};

/* One call computes rows 0 .. m-1 of columns n_begin .. n_end-1:
 *   out[i*out_stride + j] = finish(sum over t, c of a(i, t)[c] * w(j, t, c)).
 *
 * The k input values of output row i at tap t start at
 *   rows == NULL: a + (i / row_len)*row_stride + (i % row_len)*a_stride + t*tap_stride
 *                 (row_len 0 means m: a plain gemm, or one line of a convolution)
 *   rows != NULL: rows[t*m + i] (padding taps point to a row of the input's zero point).
 *
 *   n_begin     first column of a block, as n_end, which may be n.
 *   out         address of (row 0, column 0), also when n_begin > 0.
 *   row_add     NULL, or m values added to every sum of their row: -weight_zero times the row's
 *               sum of inputs (row_sum()), if weight_zero is not 0 and packed does not have
 *               folds_zero. Q8 only.
 *   add         NULL, or a tensor added before the clamp, at add[i*add_stride + j]. May be out
 *               itself. f32 only.
 *   min, max    clamp; -INFINITY, INFINITY for none. f32 only: q8 bounds are packed.
 *   next        NULL, or next_bytes of memory that the caller will read after this call: fetched
 *               towards the core as far as the length of the call allows. f32 only.
 *   narrow_out, narrow_add
 *               out, add have the 16 bits that narrow() makes, their strides count these. Tables
 *               with widen() only; m is then a multiple of row_len, and there are no row
 *               pointers.
 *   is_leaky    results below 0 are multiplied by slope, behind the clamp; add is then added last.
 *               With narrow_out only. */
struct ifd_gemm_args {
    const void *packed;
    const void *a;
    const void *const *rows;
    void *out;
    size_t m, n_begin, n_end;
    size_t row_len, row_stride, a_stride, tap_stride;
    size_t out_stride;
    const int32_t *row_add;
    const float *add;
    size_t add_stride;
    float min, max;
    const void *next;
    size_t next_bytes;
    int narrow_out, narrow_add, is_leaky;
    float slope;
};

/* Q8 gemm. A call should have as many rows m as keep the input rows in L1 or a part of L2: the
 * block is the outer loop, row tiles the inner one. */
struct ifd_kern_gemm_q8 {
    /* Bytes pack() writes. */
    size_t (*packed_bytes)(size_t n, size_t k, size_t taps);
    /* dst: packed_bytes(), 64-aligned. Folds zero points and bias. */
    void (*pack)(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst);
    void (*run)(const struct ifd_gemm_args *args);
    /* ret_sum[i] = factor * (sum of the k values at a + i*a_stride), i < m. */
    void (*row_sum)(const ifd_q8 *a, size_t m, size_t k, size_t a_stride, int32_t factor,
                    int32_t *ret_sum);
};

/* f32 gemm; error at most (k*taps + 2) roundings of the sum of absolute products.
 *
 * The families gemm_bf16 and gemm_f16 take the same weights, bias and residual and give f32, but
 * multiply operands of 16 bits: pack() rounds the weights (f16: to finite numbers). They are
 * NULL where the CPU has no such instructions. Sums are f32, unless a table says otherwise at
 * its definition. Each operand adds an error of 2^-8 (bf16) or 2^-11 (f16) of the sum of
 * absolute products. */
struct ifd_kern_gemm_f32 {
    size_t (*packed_bytes)(size_t n, size_t k, size_t taps);
    /* bias: n values or NULL. weights->w may be NULL: pack_part() writes them. */
    void (*pack)(const struct ifd_gemm_weights *weights, const float *bias, void *dst);
    /* gemm_f32 only, one tap: packs columns n0 .. and inputs k0 .. (an even number) of the
     * weights of dst. */
    void (*pack_part)(const struct ifd_gemm_weights *part, size_t n0, size_t k0, void *dst);
    void (*run)(const struct ifd_gemm_args *args);
    /* Columns a vector: narrower gemms leave the rest unused. */
    size_t (*lanes)(void);
    /* NULL: inputs are f32. Otherwise run() reads these roundings of the inputs, and strides
     * count 16-bit elements. in and out do not overlap. */
    void (*narrow)(size_t n, const float *in, uint16_t *out);
    /* NULL, or the same of rows of n, in_stride apart: to rows of out_n >= n, 0 behind them. */
    void (*narrow_rows)(size_t rows, size_t n, const float *in, size_t in_stride, uint16_t *out,
                        size_t out_n);
    /* NULL: run() writes and adds f32 only (ifd_gemm_args.narrow_out). Otherwise: what narrow()
     * made, as floats. */
    void (*widen)(size_t n, const uint16_t *in, float *out);
    /* With narrow(): inputs a tap that run() reads, >= k. Those past k are multiplied by zeros,
     * and must be finite. */
    size_t (*depth)(size_t k);
    /* Not in gemm_f32: speed relative to gemm_f32 of the same CPU, roughly. */
    float (*speed)(void);
};

/* f32 gemm of a few rows with weights that are not packed: for weights that are read once a run,
 * from beyond all caches. Bit for bit the result of gemm_f32 of the same instruction set with
 * columns packed by whole vectors (256 columns and more).
 *   out[i*out_stride + j] = clamp(bias[j] + sum over c of a[i*a_stride + c] * w[j*w_stride + c]
 * + add[i*add_stride + j])
 * of rows 0 .. m-1 and columns n_begin .. n_end-1; bias and add may be NULL, add may be out. */
struct ifd_dense_args {
    const float *w, *bias, *a, *add;
    float *out;
    size_t m, n_begin, n_end, k;
    size_t w_stride, a_stride, add_stride, out_stride;
    float min, max;
};

struct ifd_kern_dense {
    void (*run)(const struct ifd_dense_args *args);
};

/* ---- depthwise convolutions ----------------------------------------------------------------- */

/* Weights: element (ky, kx, c) at w[(ky*kw + kx)*stride_tap + c]: TFLite's 1HWC with multiplier 1
 * has stride_tap = channels. Multipliers above 1 are unrolled by the driver into a wider input. */
struct ifd_dw_weights {
    const void *w; /* int8_t or float; wide for q8 weights with a zero point, see below */
    size_t channels, kh, kw, stride_tap;
};

/* Computes output lines y_begin .. y_end-1 of channels c_begin .. c_end-1.
 *   in          pixel (0, 0), channel 0; in_h x in_w pixels, of pixel_stride and line_stride.
 *   pads        rows and columns outside the input count as the input's zero point (0 in f32).
 *   c_begin     a multiple of packed.nr; c_end a multiple of nr or n.
 *   out         pixel (0, 0), channel 0.
 *   scratch     scratch_bytes() of this call, 64-aligned, private to the thread. It depends on
 *               out_w, the strides and the dilations, which must be set before asking.
 *   min, max    f32 only.
 *   is_far      f32 only: in is probably not in the second-level cache.
 *   in_round    f32 without dilation only: 0, or the number of lines of the ring buffer in,
 *               where line y is at (in_at + y) modulo in_round. */
struct ifd_dw_args {
    const void *packed;
    const void *in;
    void *out;
    size_t in_h, in_w, in_pixel_stride, in_line_stride;
    size_t out_w, out_pixel_stride, out_line_stride;
    size_t y_begin, y_end, c_begin, c_end;
    uint32_t stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
    void *scratch;
    float min, max;
    int is_far;
    size_t in_round, in_at;
};

struct ifd_kern_dw_q8 {
    size_t (*packed_bytes)(size_t channels, size_t kh, size_t kw);
    /* Weights may have a zero point: w - weight_zero may have nine bits. */
    void (*pack)(const struct ifd_dw_weights *weights, const struct ifd_requant *requant,
                 void *dst);
    size_t (*scratch_bytes)(const struct ifd_dw_args *args, size_t kh, size_t kw);
    void (*run)(const struct ifd_dw_args *args);
};

struct ifd_kern_dw_f32 {
    size_t (*packed_bytes)(size_t channels, size_t kh, size_t kw);
    void (*pack)(const struct ifd_dw_weights *weights, const float *bias, void *dst);
    size_t (*scratch_bytes)(const struct ifd_dw_args *args, size_t kh, size_t kw);
    void (*run)(const struct ifd_dw_args *args);
};

/* Windows over groups of `width` channels each, which divides the lanes of a vector: so many groups
 * at a time as a vector holds, a block of `channels`. Windows are IFD_GROUPS_KW pixels wide and go
 * on by one pixel or two.
 *   w           element (channel, ky, kx, input of its group): OHWI.
 *   in          the block's channels, lanes() from pixel to pixel, with the padding around them: 0
 *               where the block has fewer. in_line floats from line to line, in_step from the first
 *               line of a window to that of the next output line's.
 *   out         pixel (0, 0), the block's first channel; `lines` lines of out_w pixels.
 * NULL where the CPU has no permutations for it. Errors are bounded as those of gemm_f32; what is
 * not finite stays in its group. */
#define IFD_GROUPS_KW 3
struct ifd_groups_weights {
    const float *w, *bias; /* bias: NULL for none */
    size_t channels, kh, width;
};

struct ifd_groups_args {
    const void *packed;
    const float *in;
    float *out;
    size_t lines, out_w, stride_x, in_line, in_step, out_pixel, out_line;
    size_t channels, kh, width;
    float min, max;
};

struct ifd_kern_dw_groups {
    size_t (*lanes)(void);
    size_t (*packed_bytes)(size_t kh, size_t width);
    void (*pack)(const struct ifd_groups_weights *weights, void *dst);
    void (*run)(const struct ifd_groups_args *args);
};

/* ---- Winograd convolutions ------------------------------------------------------------------ */

/* Values along one side of a transformed patch; also inputs along one side. */
#define IFD_WINO_EDGE(size, stride) ((stride) == 1 ? (size) + 2 : 2 * (size) + 1)

/* A 3x3 convolution of stride 1 or 2 by patches of size x size outputs, size 2, 3 or 4; edge =
 * IFD_WINO_EDGE.
 *   load    weights() gives (size + 2)^2 matrices [n][k]; each is packed by gemm_f32.pack()
 *           without bias, or in parts, a number of filters at a time that stays in the cache.
 *   run     for a group of patches: input() gives edge^2 matrices [patch][channel];
 *           gemm_f32.run() multiplies each by its weights (m = patch_count) into matrices
 *           [patch][n]; output() adds bias, residual and clamp and writes the pixels. Choose
 *           patch_count so that both sets of matrices stay in L2. Matrix y * edge + x is
 *           multiplied by the weights min(y, size + 1) * (size + 2) + min(x, size + 1): with
 *           stride 2 the last size values of a side are untransformed inputs for the middle of
 *           the filter.
 * Patches are numbered line by line, patches_x = ceil(out_w / size) a line. With the matrices A,
 * B and G of the transforms (of outputs, inputs and filters) rounding errors are at most u * (k
 * + 4 * edge) times the largest value of |A|((|G||w||G'|) . (|B||d||B'|))|A'|, summed over k.
 * For inputs and weights up to 1 that is 64, 592 or 2304 a channel for size 2, 3 or 4 (stride 2:
 * 25, 49 or 441), where the direct sum has 9: 7, 66 or 256 (3, 5 or 49) times as much. With
 * random values 0.6, 2 and 4 times are measured. */
struct ifd_wino_args {
    uint32_t size, stride;
    size_t channels; /* of the image: k for input(), n for output() */
    size_t patches_x, patch_begin, patch_count;
    /* The image: read by input(), where positions outside count as 0; written by output(). */
    float *image;
    size_t height, width, pixel_stride, line_stride;
    uint32_t pad_top, pad_left; /* input() only */
    /* Matrix t is at matrices + t*matrix_stride, rows of row_stride: written by input(), read by
     * output(). */
    float *matrices;
    size_t matrix_stride, row_stride;
    /* output() only: NULL or n values; NULL or a tensor of the image's strides, may be the
     * image. */
    const float *bias;
    const float *add;
    float min, max;
};

struct ifd_kern_wino {
    /* w(n, ky, kx, c) at w[n*stride_n + (ky*3 + kx)*stride_t + c*stride_k], as struct
     * ifd_gemm_weights describes it with taps 9; dst: matrices [n][k], dense. */
    void (*weights)(uint32_t size, uint32_t stride, const struct ifd_gemm_weights *weights,
                    float *dst);
    void (*input)(const struct ifd_wino_args *args);
    void (*output)(const struct ifd_wino_args *args);
};

/* A 3x3 convolution of stride 1 of 8 bits by patches of 4x4 outputs, with the same bytes as
 * gemm_q8. Patches are numbered as above; one call computes patches patch_begin ..
 * patch_begin+patch_count-1 of one image, columns n_begin .. n_end-1.
 *   packed      of weights without a zero point
 *   in, out     pixel (0, 0), channel 0; a pixel's channels are contiguous. Positions outside
 *               count as the input's zero point.
 *   n_begin     first column of a block, as n_end, which may be n.
 *   scratch     scratch_bytes(), 64-aligned, private to the thread: choose patch_count so that
 *               it stays in L2. */
struct ifd_wino_q8_args {
    const void *packed;
    const ifd_q8 *in;
    ifd_q8 *out;
    size_t in_h, in_w, in_pixel_stride, in_line_stride;
    size_t out_h, out_w, out_pixel_stride, out_line_stride;
    uint32_t pad_top, pad_left;
    size_t patch_begin, patch_count, n_begin, n_end;
    void *scratch;
};

/* NULL where the CPU has no table. */
struct ifd_kern_wino_q8 {
    size_t (*packed_bytes)(size_t n, size_t k);
    /* taps 9, stride_k 1; rounds to 8 bits (not IFD_ROUND_NONE). */
    void (*pack)(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst);
    size_t (*scratch_bytes)(size_t n, size_t k, size_t patch_count);
    void (*run)(const struct ifd_wino_q8_args *args);
};

/* ---- elementwise f32 ------------------------------------------------------------------------ */

enum ifd_binary {
    IFD_BINARY_ADD,
    IFD_BINARY_SUB,
    IFD_BINARY_MUL,
    IFD_BINARY_DIV,
    IFD_BINARY_MIN,
    IFD_BINARY_MAX,
    IFD_BINARY_SQUARED_DIFFERENCE,
    IFD_BINARY_COUNT
};

enum ifd_unary {
    IFD_UNARY_CLAMP, /* p0 .. p1 */
    IFD_UNARY_ABS,
    IFD_UNARY_NEG,
    IFD_UNARY_SQUARE,
    IFD_UNARY_SQRT,
    IFD_UNARY_RSQRT,       /* 1 / sqrt */
    IFD_UNARY_EXP,         /* 2 ulp; below -87.3 zero */
    IFD_UNARY_LOGISTIC,    /* 3 ulp */
    IFD_UNARY_TANH,        /* 3 ulp */
    IFD_UNARY_HARDSWISH,   /* x * clamp(x + 3, 0, 6) / 6 */
    IFD_UNARY_HARDSIGMOID, /* clamp(p0*x + p1, 0, 1) */
    IFD_UNARY_LEAKY_RELU,  /* x < 0 ? p0*x : x */
    IFD_UNARY_ELU,         /* x < 0 ? p0*(exp(x) - 1) : x; absolute error 2^-23 near 0 */
    IFD_UNARY_SILU,        /* x * logistic(x) */
    IFD_UNARY_GELU_TANH,   /* the tanh form */
    IFD_UNARY_AFFINE,      /* p0*x + p1 */
    IFD_UNARY_LOG,         /* 2 ulp; numbers below 1.2e-38 count as that */
    IFD_UNARY_ROUND,       /* halves to the even neighbour */
    IFD_UNARY_FLOOR,
    IFD_UNARY_CEIL,
    IFD_UNARY_TRUNC, /* towards 0; NaN becomes 0 */
    IFD_UNARY_ERF,   /* 3 ulp */
    IFD_UNARY_GELU,  /* the exact form; absolute error 2e-7 times x */
    IFD_UNARY_COUNT
};

/* A block of rows x n. An operand with step 0 has one value a row; one with row stride 0 repeats
 * its row. So tensors broadcast along channels, along pixels, or both. out may be a or b where
 * that operand has step 1 and out's stride. The result is clamped to min .. max. */
struct ifd_binary_args {
    size_t rows, n;
    const float *a, *b;
    float *out;
    size_t a_row, b_row, out_row;
    size_t a_step, b_step; /* 0 or 1 */
    float min, max;
};

/* out[m][n] = a[m][k] b[k][n] of tensors that nobody packed. Element (i, l) of a lies at i * a_row
 * + l * a_step; rows of b lie b_row apart, those of out n. k >= 1. */
struct ifd_matmul_args {
    size_t m, n, k;
    const float *a, *b;
    float *out;
    size_t a_row, a_step, b_row;
};

/* binary, unary: by enum. unary: out may be in. */
struct ifd_kern_eltwise {
    void (*binary[IFD_BINARY_COUNT])(const struct ifd_binary_args *args);
    void (*unary[IFD_UNARY_COUNT])(size_t n, const float *in, float *out, float p0, float p1);
    /* out = x < 0 ? x * slope[c] : x over rows of n channels. */
    void (*prelu)(size_t rows, size_t n, const float *in, size_t in_row, const float *slope,
                  float *out, size_t out_row);
    void (*matmul)(const struct ifd_matmul_args *args);
};

/* Converts sums of a quantized gemm to floats: row r < rows of `row` elements, column c < n,
 *   out = clamp((float)(sum - offset[c]) * scale[c] + bias[c]).
 * out may be the memory of sums. */
struct ifd_rescale_args {
    size_t rows, n, row;
    const int32_t *sums;
    float *out;
    const int32_t *offset;
    const float *scale, *bias;
    float min, max;
};

/* ---- elementwise q8 ------------------------------------------------------------------------- */

/* Quotients whose size is limit or more, and NaN, become steps; the zero point is added. */
struct ifd_q8_beyond {
    float limit, steps;
};

/* LiteRT's quantized ADD, SUB and MUL, bit for bit (double rounding throughout). Factors as in
 * struct ifd_requant; ADD and SUB shift their inputs left by 20 first. SUB has its own entry, so
 * the caller negates nothing. Zero points are native. */
struct ifd_q8_binary_args {
    size_t rows, n;
    const ifd_q8 *a, *b;
    ifd_q8 *out;
    size_t a_row, b_row, out_row;
    size_t a_step, b_step; /* 0 or 1 */
    int32_t a_zero, b_zero, out_zero;
    int32_t a_multiplier, b_multiplier, out_multiplier; /* MUL uses the last only */
    int32_t a_shift, b_shift, out_shift;                /* a, b <= 0 */
    int32_t out_min, out_max;
    /* The only factors of blend_q8. ADD and SUB may use them as well: the same scales rounded to
     * nearest with fast_shift (16 to 20) bits behind the point, if 21 bits hold them; b_factor
     * is negated in SUB. fast_shift 0: there are none. */
    int32_t a_factor, b_factor, bias, fast_shift;
    float scale; /* the only factor of scale_q8 and of even_mul_q8 */
    /* even_add_q8 and even_mul_q8: see there. */
    float a_scale, b_scale, offset;
};

struct ifd_kern_quant {
    /* out may be a or b of step 1 and equal stride. */
    void (*add_q8)(const struct ifd_q8_binary_args *args);
    void (*sub_q8)(const struct ifd_q8_binary_args *args);
    void (*mul_q8)(const struct ifd_q8_binary_args *args);
    /* Fast forms: with factors rounded to nearest they differ from the functions above by 1 step
     * near halves, and rarely:
     *   blend  clamp((a*a_factor + b*b_factor + bias) >> fast_shift), factors in [-2^21, 2^21],
     *          sum and bias below 2^31
     *   scale  clamp(round((a - a_zero)*(b - b_zero)*scale) + out_zero), halves to even, scale <
     *          64 */
    void (*blend_q8)(const struct ifd_q8_binary_args *args);
    void (*scale_q8)(const struct ifd_q8_binary_args *args);
    /* ONNX Runtime's sums and products (engine/ops/even.c), bit for bit, halves to even, results
     * before out_zero below 2^21:
     *   add  clamp(round((a - a_zero)*a_scale + ((b - b_zero)*b_scale + offset)) + out_zero), both
     *        products fused; the zero points are what the native form adds, IFD_Q8_SHIFT_*
     *   mul  clamp(round((a - a_zero)*(b - b_zero)*scale + offset) + out_zero), nothing fused; the
     *        zero points of the inputs are native, that of the output as of add */
    void (*even_add_q8)(const struct ifd_q8_binary_args *args);
    void (*even_mul_q8)(const struct ifd_q8_binary_args *args);
    /* out[i] = table[(uint8_t)in[i]]: every unary function of 8 bits, requantization included, and
     * the XOR that brings a tensor to native form. out may be in. */
    void (*lut_8)(size_t n, const uint8_t *in, const uint8_t *table, uint8_t *out);
    /* out = clamp(round(in / scale) + zero), halves away from zero, to IFD_Q8_MIN .. IFD_Q8_MAX;
     * beyond: of quotients that 32 bits do not hold, NaN included. */
    void (*quantize)(size_t n, const float *in, float scale, int32_t zero,
                     struct ifd_q8_beyond beyond, ifd_q8 *out);
    /* The same, halves to the even neighbour; all numbers saturate. */
    void (*quantize_even)(size_t n, const float *in, float scale, int32_t zero,
                          struct ifd_q8_beyond beyond, ifd_q8 *out);
    /* out = (in - zero) * scale. */
    void (*dequantize)(size_t n, const ifd_q8 *in, float scale, int32_t zero, float *out);
    /* As quantize, with in * factor instead of in / scale; all numbers saturate. */
    void (*quantize_by)(size_t n, const float *in, float factor, int32_t zero, ifd_q8 *out);
    /* Smallest and largest of n values and 0. */
    void (*range)(size_t n, const float *in, float *ret_min, float *ret_max);
    void (*rescale)(const struct ifd_rescale_args *args);
    /* tanh or the logistic function of numbers of 16 bits with 0 to 6 integer digits
     * (engine/tensor/fixed16.h), bit for bit. out may be in. */
    void (*function_16)(size_t n, const int16_t *in, int bits, int is_tanh, int16_t *out);
};

/* ---- reductions ----------------------------------------------------------------------------- */

/* Rows of n, each normalized by itself.
 *   scale, shift  n values or NULL
 *   form          SQUARES: the mean counts as 0. DIVIDES: by the root; otherwise one over the root
 *                 is a factor. Nothing is fused: the numbers are those of these steps one by one,
 *                 with sums as of sum_f32(). out may be in. */
enum ifd_normalize { IFD_NORMALIZE_SQUARES = 1, IFD_NORMALIZE_DIVIDES = 2 };
struct ifd_normalize_args {
    size_t rows, n;
    const float *in;
    float *out;
    int form; /* of enum ifd_normalize */
    float epsilon;
    const float *scale, *shift;
};

struct ifd_kern_reduce {
    /* Softmax of beta*in over each row of n; out may be in. */
    void (*softmax_f32)(size_t rows, size_t n, const float *in, size_t in_row, float beta,
                        float *out, size_t out_row);
    /* out[c] = factor * sum over rows of in[r*in_row + c]. */
    void (*column_sum_f32)(size_t rows, size_t n, const float *in, size_t in_row, float factor,
                           float *out);
    void (*column_sum_q8)(size_t rows, size_t n, const ifd_q8 *in, size_t in_row, int32_t *out);
    float (*sum_f32)(size_t n, const float *in);
    /* out = (in - mean) / sqrt(mean of (in - mean)^2 + epsilon) * scale + shift. */
    void (*normalize_f32)(const struct ifd_normalize_args *args);
};

/* The largest (smallest, if is_min) of the count values in[k*row + c], for c < n; or the lowest k
 * where it is, as int32_t. row 1: n is 1. NaN is left out, ends of the range are what is left;
 * where it is asked for, a NaN in front stays. */
struct ifd_extreme_args {
    size_t count, n, row;
    const void *in;
    void *out;
    int is_min;
};

struct ifd_kern_extreme {
    void (*f32)(const struct ifd_extreme_args *args);
    void (*q8)(const struct ifd_extreme_args *args);
    void (*arg_f32)(const struct ifd_extreme_args *args);
    void (*arg_q8)(const struct ifd_extreme_args *args);
};

/* ---- pooling -------------------------------------------------------------------------------- */

/* Lines y_begin .. y_end-1 of all channels. Positions outside the image do not take part; every
 * window must contain at least one inside.
 *   min, max           clamp of f32.
 *   q_min, q_max       clamp of q8, native.
 *   shift              q8 average: IFD_Q8_SHIFT_S8 or _U8, according to the model's type: the
 *                      mean of the model's values is rounded, halves away from zero. */
struct ifd_pool_args {
    const void *in;
    void *out;
    size_t channels;
    size_t in_h, in_w, in_pixel_stride, in_line_stride;
    size_t out_w, out_pixel_stride, out_line_stride;
    size_t y_begin, y_end;
    uint32_t kh, kw, stride_y, stride_x, pad_top, pad_left;
    float min, max;
    int32_t q_min, q_max, shift;
};

struct ifd_kern_pool {
    void (*max_f32)(const struct ifd_pool_args *args);
    void (*average_f32)(const struct ifd_pool_args *args);
    void (*max_q8)(const struct ifd_pool_args *args);
    void (*average_q8)(const struct ifd_pool_args *args);
};

/* ---- moving data ---------------------------------------------------------------------------- */

/* One output line of a bilinear resize: for pixel x and channel c
 *   mix(mix(top[x0[x]], bottom[x0[x]], dy), mix(top[x1[x]], bottom[x1[x]], dy), dx[x]),
 * mix(a, b, t) = a + (b - a)*t; x0 and x1 are offsets of pixels in elements. */
struct ifd_resize_args {
    const float *top, *bottom;
    float *out;
    const uint32_t *x0, *x1;
    const float *dx;
    float dy;
    size_t out_w, channels, out_pixel_stride;
};

struct ifd_kern_move {
    /* out[c*out_row + r] = in[r*in_row + c] for r < rows, c < n. */
    void (*transpose_32)(size_t rows, size_t n, const uint32_t *in, size_t in_row, uint32_t *out,
                         size_t out_row);
    void (*transpose_8)(size_t rows, size_t n, const uint8_t *in, size_t in_row, uint8_t *out,
                        size_t out_row);
    void (*resize_bilinear_f32)(const struct ifd_resize_args *args);
};

/* ---- 16 bits -------------------------------------------------------------------------------- */

/* sum[i*n + j] = sum over k of a[i*a_stride + k] * w[j*w_stride + k], for i < m, j < n. w holds
 * numbers of 8 bits; k is a multiple of IFD_S16_STEP. Sums are whole, of any length. */
#define IFD_S16_STEP 32
struct ifd_s16_args {
    const int16_t *a, *w;
    int64_t *sum;
    size_t m, n, k;
    size_t a_stride, w_stride;
};

struct ifd_kern_gemm_s16 {
    void (*dot)(const struct ifd_s16_args *args);
    /* sum[i] += in[i] * w[i], which fits 32 bits. */
    void (*multiply)(size_t n, const int16_t *in, const int16_t *w, int32_t *sum);
};

/* ---- the merged set ------------------------------------------------------------------------- */

struct ifd_kernels {
    struct ifd_kern_gemm_q8 gemm_q8;
    struct ifd_kern_gemm_f32 gemm_f32, gemm_bf16, gemm_f16;
    struct ifd_kern_dense dense;
    struct ifd_kern_gemm_s16 gemm_s16;
    struct ifd_kern_dw_q8 dw_q8;
    struct ifd_kern_dw_f32 dw_f32;
    struct ifd_kern_dw_groups dw_groups;
    struct ifd_kern_wino wino;
    struct ifd_kern_wino_q8 wino_q8;
    struct ifd_kern_eltwise eltwise;
    struct ifd_kern_quant quant;
    struct ifd_kern_reduce reduce;
    struct ifd_kern_extreme extreme;
    struct ifd_kern_pool pool;
    struct ifd_kern_move move;
};

/* Fills ret_kernels for a CPU with these enum ifd_cpu_flag bits (inferd/backend.h); clear bits to
 * force weaker kernels. Thread: any. */
void ifd_kernels_select(uint32_t cpu_flags, struct ifd_kernels *ret_kernels);

/* One instruction set of the list, for the kernel tests: its name, the CPU flags it needs, and its
 * tables of every family (entries NULL where it has none). Returns 0 when index is past the end. */
struct ifd_kernels_isa {
    const char *name;
    uint32_t cpu_flags;
    struct ifd_kernels kernels;
};
int ifd_kernels_isa(size_t index, struct ifd_kernels_isa *ret_isa);

#endif
