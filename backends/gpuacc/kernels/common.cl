// In front of every kernel file: how floats are stored, vectors at the end of a row, functions that
// OpenCL lacks.
//
// A tensor is two parameters: its buffer, and the element at which it begins in there.
//
// REAL_IN, REAL_B, REAL_OUT: how the first and the second operand and the result of a kernel are
// stored, float or half (REAL_T0 and so on: those of a tail). Arithmetic is in float, but where
// SUMS16 says otherwise.
//
// ALIGNED: all tensors begin at multiples of 4 elements, and their rows are multiples of 4. vload4
// promises the compiler less, and then costs four loads.

#define CAT_(a, b) a##b
#define CAT(a, b)  CAT_(a, b)

#ifndef REAL_IN
#define REAL_IN float
#endif
#ifndef REAL_B
#define REAL_B float
#endif
#ifndef REAL_OUT
#define REAL_OUT float
#endif
#define IS_HALF_float 0
#define IS_HALF_half  1
typedef REAL_IN real_in;
typedef REAL_B real_b;
typedef REAL_OUT real_out;

inline float load1_float(global const float *x) { return *x; }
inline float load1_half(global const half *x) { return vload_half(0, x); }
inline void store1_float(float v, global float *y) { *y = v; }
inline void store1_half(float v, global half *y) { vstore_half(v, 0, y); }

// 4 at a multiple of 4: one load, where vloada_half4 may be four.
inline float4 load4_halves(global const half *x)
{
    const ushort4 bits = *(global const ushort4 *)x;
    return vload_half4(0, (private const half *)&bits);
}

#ifdef ALIGNED
inline float4 load4_full_float(global const float *x) { return *(global const float4 *)x; }
inline float4 load4_full_half(global const half *x) { return load4_halves(x); }
inline void store4_full_float(float4 v, global float *y) { *(global float4 *)y = v; }
inline void store4_full_half(float4 v, global half *y)
{
    ushort4 bits;
    vstore_half4(v, 0, (private half *)&bits);
    *(global ushort4 *)y = bits;
}
#else
inline float4 load4_full_float(global const float *x) { return vload4(0, x); }
inline float4 load4_full_half(global const half *x) { return vload_half4(0, x); }
inline void store4_full_float(float4 v, global float *y) { vstore4(v, 0, y); }
inline void store4_full_half(float4 v, global half *y) { vstore_half4(v, 0, y); }
#endif

// Weights of layers, rows of as many as there are output channels, filled up to w_row: 4 at a
// multiple of 4. W16: in half precision, widened when they are read. They come from a buffer in
// global memory, or in constant memory (W_CONSTANT), or from an image (W_IMAGE), 4 in a texel.
#ifdef W16
typedef half weight_t;
#else
typedef float weight_t;
#endif
#ifdef W_IMAGE
typedef int2 weights_t;
#define W_PARAM               read_only image2d_t w
#define WEIGHTS(row, c)       (int2)((c) / 4, row)
#define WEIGHTS_BELOW(at, n)  ((at) + (int2)(0, n))
#define load4_weights(at)     read_imagef(w, at)
#else
#ifdef W_CONSTANT
typedef constant weight_t *weights_t;
typedef constant ushort4 *four_halves_t;
typedef constant float4 *four_floats_t;
#else
typedef global const weight_t *weights_t;
typedef global const ushort4 *four_halves_t;
typedef global const float4 *four_floats_t;
#endif
#define W_PARAM              weights_t w
#define WEIGHTS(row, c)      (w + (row)*w_row + (c))
#define WEIGHTS_BELOW(at, n) ((at) + (n)*w_row)
#define load4_weights(at)    load4_buffer(at)
inline float4 load4_buffer(weights_t w)
{
#ifdef W16
    const ushort4 bits = *(four_halves_t)w;
    return vload_half4(0, (private const half *)&bits);
#else
    return *(four_floats_t)w;
#endif
}
#endif

// Factors and sums of layers. SUMS16: half precision, where the device has cl_khr_fp16.
#ifdef SUMS16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half sum1;
typedef half4 sum4;
#define SUM4(v) convert_half4(v)
#else
typedef float sum1;
typedef float4 sum4;
#define SUM4(v) (v)
#endif

#ifdef ALIGNED
#define HAS_FOUR(n) true
#else
#define HAS_FOUR(n) ((n) >= 4)
#endif

// load4: the first n elements; the others are 0, and their memory is not touched.
inline float4 load4_float(global const float *x, int n);
inline float4 load4_half(global const half *x, int n);
inline void store4_float(float4 v, global float *y, int n);
inline void store4_half(float4 v, global half *y, int n);
#define LOAD_AND_STORE(T)                                                                          \
    inline float4 load4_##T(global const T *x, int n)                                              \
    {                                                                                              \
        if (HAS_FOUR(n)) {                                                                         \
            return load4_full_##T(x);                                                              \
        }                                                                                          \
        float4 v = (float4)(0.0f);                                                                 \
        v.s0 = load1_##T(x);                                                                       \
        v.s1 = n > 1 ? load1_##T(x + 1) : 0.0f;                                                    \
        v.s2 = n > 2 ? load1_##T(x + 2) : 0.0f;                                                    \
        return v;                                                                                  \
    }                                                                                              \
    inline void store4_##T(float4 v, global T *y, int n)                                           \
    {                                                                                              \
        if (HAS_FOUR(n)) {                                                                         \
            store4_full_##T(v, y);                                                                 \
            return;                                                                                \
        }                                                                                          \
        store1_##T(v.s0, y);                                                                       \
        if (n > 1) {                                                                               \
            store1_##T(v.s1, y + 1);                                                               \
        }                                                                                          \
        if (n > 2) {                                                                               \
            store1_##T(v.s2, y + 2);                                                               \
        }                                                                                          \
    }
LOAD_AND_STORE(float)
LOAD_AND_STORE(half)

#define load1      CAT(load1_, REAL_IN)
#define load4      CAT(load4_, REAL_IN)
#define load4_full CAT(load4_full_, REAL_IN)
#define load1_b    CAT(load1_, REAL_B)
#define load4_b    CAT(load4_, REAL_B)
#define store1     CAT(store1_, REAL_OUT)
#define store4     CAT(store4_, REAL_OUT)

// Not a number stays not a number.
inline float4 clamp4(float4 x, float lo, float hi)
{
    return x < lo ? (float4)(lo) : (x > hi ? (float4)(hi) : x);
}

inline float4 floor_mod4(float4 x, float4 y)
{
    const float4 rest = fmod(x, y);
    const int4 is_other_side = (rest != 0.0f) & ((y < 0.0f) != (rest < 0.0f));
    return is_other_side ? rest + y : rest;
}

inline float4 gelu4(float4 x, float is_approximate)
{
    return is_approximate != 0.0f
               ? 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)))
               : 0.5f * x * erfc(x * -0.70710678f);
}

// Windows of convolutions. Where the window of an output line (or column) begins, and the input
// line that its tap sees; -1: none.
//
// TRANSPOSED: the convolution goes from its output to its input. Lines of the result that are a
// stride apart see the same taps, and columns, too: such pixels are a phase, which is a convolution
// of stride 1. The work item's third index is its phase, counted by the first pixel: a stride may
// exceed the result. PHASE declares count, its pixels in all images, and taps, those that it sees;
// PIXEL and TAP are their places among all.
inline int window_begin(int out, int stride, int pad)
{
#ifdef TRANSPOSED
    return (out + pad) / stride;
#else
    return out * stride - pad;
#endif
}

inline int window_sees(int begin, int tap, int stride, int dilation, int size)
{
#ifdef TRANSPOSED
    const int at = begin - tap / stride;
#else
    const int at = begin + tap * dilation;
#endif
    return at < size ? max(at, -1) : -1;
}

#ifdef TRANSPOSED
// Steps of a stride in n lines.
inline int phase_size(int n, int stride) { return n > 0 ? (n - 1) / stride + 1 : 0; }

#define PHASE                                                                                      \
    const int first_y = (int)get_global_id(2) / min(stride_x, out_w);                              \
    const int first_x = (int)get_global_id(2) % min(stride_x, out_w);                              \
    const int phase_y = (first_y + pad_top) % stride_y;                                            \
    const int phase_x = (first_x + pad_left) % stride_x;                                           \
    const int lines = phase_size(out_h - first_y, stride_y);                                       \
    const int columns = phase_size(out_w - first_x, stride_x);                                     \
    const int count = pixels / (out_h * out_w) * lines * columns;                                  \
    const int taps_x = phase_size(kw - phase_x, stride_x);                                         \
    const int taps = phase_size(kh - phase_y, stride_y) * taps_x;
#define PIXEL(i)                                                                                   \
    (((i) / columns / lines * out_h + first_y + (i) / columns % lines * stride_y) * out_w +        \
     first_x + (i) % columns * stride_x)
#define TAP(i)                                                                                     \
    ((phase_y + (i) / taps_x * stride_y) * kw + phase_x + (i) % taps_x * stride_x)
#else
#define PHASE    const int count = pixels, taps = kh * kw;
#define PIXEL(i) (i)
#define TAP(i)   (i)
#endif

// Parameters of convolutions of f32. Weights are packed [ky][kx][input channel][output channel]:
// neighbouring work items read neighbouring weights. Their rows (w_row) and the bias are filled
// with zeros up to a multiple of 4.
#define CONV_PARAMS                                                                                \
    global const real_in *x, const uint x_at, W_PARAM, global const float *bias,                   \
        global real_out *y, const uint y_at, const int pixels, const int in_h, const int in_w,     \
        const int in_c, const int out_h, const int out_w, const int out_c, const int w_row,        \
        const int group_in, const int group_out, const int kh, const int kw, const int stride_y,   \
        const int stride_x, const int dilation_y, const int dilation_x, const int pad_top,         \
        const int pad_left, const float lo, const float hi

// MATRICES: several products in one call, whose operands and results lie one behind the other;
// which one is the third index of the work item. Only with POINTWISE, and without a bias.
#ifdef MATRICES
#define BIAS(c) (float4)(0.0f)
#define CONV_MATRIX                                                                                \
    x += get_global_id(2) * pixels * in_c;                                                         \
    w += get_global_id(2) * in_c * w_row;                                                          \
    y += get_global_id(2) * pixels * out_c;
#else
#define BIAS(c) vload4(0, bias + (c))
#define CONV_MATRIX
#endif

// Where factors k to k + 3 of a pixel lie, whose window begins at (top, left), counted as weights
// are; -1: outside. Input channels are a multiple of 4.
// POINTWISE: the window is one pixel, without stride and padding; 0 is that of the pixel.
inline int factors_at(int k, int factors, int top, int left, int in_h, int in_w, int in_c, int kw,
                      int dilation_y, int dilation_x)
{
#ifdef POINTWISE
    return k < factors ? k : -1;
#else
    const int tap = k / in_c, ic = k - tap * in_c;
    const int in_y = top + tap / kw * dilation_y, in_x = left + tap % kw * dilation_x;
    const bool sees = k < factors && in_y >= 0 && in_y < in_h && in_x >= 0 && in_x < in_w;
    return sees ? (in_y * in_w + in_x) * in_c + ic : -1;
#endif
}

// These factors. ODD: input channels are no multiple of 4.
inline float4 fetch4(global const real_in *x, int k, int factors, int top, int left, int in_h,
                     int in_w, int in_c, int kw, int dilation_y, int dilation_x)
{
#if !defined ODD
    const int at = factors_at(k, factors, top, left, in_h, in_w, in_c, kw, dilation_y, dilation_x);
    return at >= 0 ? load4_full(x + at) : (float4)(0.0f);
#elif defined POINTWISE
    return k < factors ? load4(x + k, factors - k) : (float4)(0.0f);
#else
    float v[4];
    for (int i = 0; i < 4; i++) {
        const int tap = (k + i) / in_c, ic = (k + i) - tap * in_c;
        const int in_y = top + tap / kw * dilation_y, in_x = left + tap % kw * dilation_x;
        const bool sees = k + i < factors && in_y >= 0 && in_y < in_h && in_x >= 0 && in_x < in_w;
        v[i] = sees ? load1(x + (in_y * in_w + in_x) * in_c + ic) : 0.0f;
    }
    return (float4)(v[0], v[1], v[2], v[3]);
#endif
}

#ifndef TAIL
#define TAIL_PARAMS
#define TAIL(v, e, c, n)
#endif

// ---- quantized numbers: Q is char or uchar; in registers they are int ----

#ifdef Q
inline int4 load4_q(global const Q *x, int n)
{
    if (n >= 4) {
        return convert_int4(vload4(0, x));
    }
    return (int4)(x[0], n > 1 ? x[1] : 0, n > 2 ? x[2] : 0, 0);
}

// v is in the type's range.
inline void store4_q(int4 v, global Q *y, int n)
{
    const CAT(Q, 4) stored = CAT(CAT(convert_, Q), 4)(v);
    if (n >= 4) {
        vstore4(stored, 0, y);
        return;
    }
    y[0] = stored.s0;
    if (n > 1) {
        y[1] = stored.s1;
    }
    if (n > 2) {
        y[2] = stored.s2;
    }
}
#endif

// High half of 2ab, rounded to nearest; the one overflow saturates. (ifd_fixed_mul_high)
inline int4 mul_high4(int4 a, int4 b)
{
    return convert_int4_sat((convert_long4(a) * convert_long4(b) + (1L << 30)) >> 31);
}

// x / 2^n rounded to nearest, halves away from zero; n in 0 to 31. (ifd_fixed_shift_right)
inline int4 shift_right4(int4 x, int4 n)
{
    const long4 half_step = ((long4)(1) << convert_long4(n)) >> 1; // 0 for n = 0
    const long4 toward = convert_long4((x < 0) & (n > 0) & 1);
    return convert_int4((convert_long4(x) + half_step - toward) >> convert_long4(n));
}

// x times multiplier * 2^(shift - 31), rounded twice. (ifd_fixed_scale_double)
inline int4 scale_double4(int4 x, int4 multiplier, int4 shift)
{
    const int4 wide = as_int4(as_uint4(x) << as_uint4(max(shift, (int4)(0))));
    return shift_right4(mul_high4(wide, multiplier), max(-shift, (int4)(0)));
}

// The same of one number.
inline int mul_high(int a, int b)
{
    return convert_int_sat(((long)a * b + (1L << 30)) >> 31);
}

// n in 0 to 31
inline int shift_right(int x, int n)
{
    const long half_step = (1L << n) >> 1, toward = x < 0 && n > 0 ? 1 : 0;
    return (int)((x + half_step - toward) >> n);
}

inline int scale_double(int x, int fraction, int shift)
{
    const int wide = (int)((uint)x << max(shift, 0));
    return shift_right(mul_high(wide, fraction), max(-shift, 0));
}

// 1 / (1 + a) for a in [0, 1), 31 fraction bits.
inline int reciprocal_of_1_plus(int a)
{
    const int half_denominator = (int)(((long)a + INT_MAX + 1L) / 2);
    int v = 1515870810 + mul_high(half_denominator, -1010580540);
    for (int step = 0; step < 3; step++) {
        const int error = (1 << 29) - mul_high(half_denominator, v);
        v += convert_int_sat((long)mul_high(v, error) * 4);
    }
    return convert_int_sat((long)v * 2);
}

// step(0) to step(7): the dimensions of kernels that have up to 8, innermost first.
#define EACH_DIMENSION(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7)

// Broadcasting: sizes of the result, innermost dimension first, and the steps of a and b in each.
// BROADCAST(i) declares a_i and b_i, the elements of a and b for element i of the result.
#define BROADCAST_PARAMS                                                                           \
    const int dim0, const int a0, const int b0, const int dim1, const int a1, const int b1,        \
        const int dim2, const int a2, const int b2, const int dim3, const int a3, const int b3,    \
        const int dim4, const int a4, const int b4, const int dim5, const int a5, const int b5
#define BROADCAST_STEP(d)                                                                          \
    a_i += rest % dim##d * a##d;                                                                   \
    b_i += rest % dim##d * b##d;                                                                   \
    rest /= dim##d;
#define BROADCAST(i)                                                                               \
    int rest = i, a_i = 0, b_i = 0;                                                                \
    BROADCAST_STEP(0)                                                                              \
    BROADCAST_STEP(1)                                                                              \
    BROADCAST_STEP(2)                                                                              \
    BROADCAST_STEP(3)                                                                              \
    BROADCAST_STEP(4)                                                                              \
    BROADCAST_STEP(5)
