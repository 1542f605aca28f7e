// Convolution of 8-bit numbers, groups included: as conv.cl, with weights of 8 bits, sums of 32 and
// the roundings of the reference. Rows of weights, bias and factors are filled up to a multiple of
// SLICES * 4.
//
// DOT: 4 input channels at a time, by the device's dot products. Input channels of a group are a
// multiple of 4; weights are packed [tap][ic / 4][oc][ic % 4]; the bias includes what x_zero adds
// to the sum. DOT_KHR, DOT_ARM: by which extension. HAS_W_ZERO: w_zero is not 0.
//
// REAL: factors are doubles (fully connected layers), else 31-bit multipliers.

#ifdef POINTWISE
#define SEES(k) true
#else
#define SEES(k) (at[k] >= 0)
#endif

#ifdef DOT
#if defined(DOT_KHR)
#define dot4_char(a, b)  dot_4x8packed_ss_int(a, b)
#define dot4_uchar(a, b) (int)dot_4x8packed_uu_uint(a, b)
#elif defined(DOT_ARM)
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_int8 : enable
#define dot4_char(a, b)  arm_dot(as_char4(a), as_char4(b))
#define dot4_uchar(a, b) (int)arm_dot(as_uchar4(a), as_uchar4(b))
#else
inline int sum_of(int4 v) { return v.s0 + v.s1 + v.s2 + v.s3; }
#define dot4_char(a, b)  sum_of(convert_int4(as_char4(a)) * convert_int4(as_char4(b)))
#define dot4_uchar(a, b) sum_of(convert_int4(as_uchar4(a)) * convert_int4(as_uchar4(b)))
#endif
#define DOT4(a, b) CAT(dot4_, Q)(a, b)
#define ONES       0x01010101u
#endif

// One input channel: lane of in[], times its row of weights.
#define MAC(lane, channel)                                                                         \
    for (int s = 0; s < SLICES; s++) {                                                             \
        const int4 weight = convert_int4(vload4(0, row + (channel)*w_row + 4 * s)) - w_zero;       \
        for (int k = 0; k < PIXELS; k++) {                                                         \
            acc[k][s] += in[k].lane * weight;                                                      \
        }                                                                                          \
    }

#ifdef REAL
typedef ulong factor_t;

// round(sum * mantissa / 2^shift) as doubles have it: the product is rounded to 53 bits, halves to
// even; then to an integer, halves away from zero. mantissa has 53 bits, shift is at least 23.
inline int scale_real(int sum, ulong mantissa, int shift)
{
    const ulong magnitude = abs(sum);
    const ulong low = magnitude * mantissa, high = mul_hi(magnitude, mantissa);
    const int bits = max((int)(high ? 128 - clz(high) : 64 - clz(low)) - 53, 0); // beyond 53
    const ulong rest = bits ? low << (64 - bits) : 0;
    ulong kept = bits ? high << (64 - bits) | low >> bits : low;
    kept += rest > 1UL << 63 || (rest == 1UL << 63 && (kept & 1)) ? 1 : 0;
    const int left = shift - bits; // kept / 2^left
    const ulong whole = left > 62  ? 0
                        : left > 0 ? (kept + (1UL << (left - 1))) >> left
                                   : kept << -left;
    // INT_MIN: beyond 32 bits, as ifd_fixed_scale_real
    const int result = (int)min(whole, 1UL << 31);
    return sum < 0 && result != INT_MIN ? -result : result;
}

inline int4 requantize(int4 sum, global const factor_t *factor, global const int *shift)
{
    return (int4)(scale_real(sum.s0, factor[0], shift[0]), scale_real(sum.s1, factor[1], shift[1]),
                  scale_real(sum.s2, factor[2], shift[2]), scale_real(sum.s3, factor[3], shift[3]));
}
#else
typedef int factor_t;

inline int4 requantize(int4 sum, global const factor_t *factor, global const int *shift)
{
    return scale_double4(sum, vload4(0, factor), vload4(0, shift));
}
#endif

kernel void conv2d_q8(global const Q *x, const uint x_at, global const Q *w, global const int *bias,
                      global const factor_t *factor, global const int *shift, global Q *y,
                      const uint y_at, const int pixels, const int in_h, const int in_w,
                      const int in_c, const int out_h, const int out_w, const int out_c,
                      const int w_row, const int group_in, const int group_out, const int kh,
                      const int kw, const int stride_y, const int stride_x, const int dilation_y,
                      const int dilation_x, const int pad_top, const int pad_left,
                      const int x_zero, const int w_zero, const int y_zero, const int lo,
                      const int hi)
{
    const int oc = (int)get_global_id(0) * 4 * SLICES;
    const int first = (int)get_global_id(1) * PIXELS;
    PHASE
    if (oc >= out_c || first >= count) {
        return;
    }
    x += x_at + oc / group_out * group_in;
    int4 acc[PIXELS][SLICES];
    int top[PIXELS], left[PIXELS], image[PIXELS];
    for (int k = 0; k < PIXELS; k++) {
        const int pixel = PIXEL(min(first + k, count - 1));
        top[k] = window_begin(pixel / out_w % out_h, stride_y, pad_top);
        left[k] = window_begin(pixel % out_w, stride_x, pad_left);
        image[k] = pixel / out_w / out_h * in_h;
        for (int s = 0; s < SLICES; s++) {
            acc[k][s] = vload4(0, bias + oc + 4 * s);
        }
    }
#ifdef DOT
    const uint outside = as_uint((CAT(Q, 4))((Q)x_zero));
    int seen[PIXELS]; // sums of x
    for (int k = 0; k < PIXELS; k++) {
        seen[k] = 0;
    }
#endif
    for (int i = 0; i < taps; i++) {
        const int tap = TAP(i);
        int at[PIXELS]; // where the pixel lies that this tap sees; -1: outside
        for (int k = 0; k < PIXELS; k++) {
#ifdef POINTWISE
            at[k] = min(first + k, count - 1) * in_c;
#else
            const int in_y = window_sees(top[k], tap / kw, stride_y, dilation_y, in_h);
            const int in_x = window_sees(left[k], tap % kw, stride_x, dilation_x, in_w);
            at[k] = in_y >= 0 && in_x >= 0 ? ((image[k] + in_y) * in_w + in_x) * in_c : -1;
#endif
        }
#ifdef DOT
        global const uint *row = (global const uint *)w + tap * (group_in / 4) * w_row + oc;
        for (int ic = 0; ic < group_in; ic += 4, row += w_row) {
            uint in[PIXELS];
            for (int k = 0; k < PIXELS; k++) {
                in[k] = SEES(k) ? as_uint(vload4(0, x + at[k] + ic)) : outside;
            }
            for (int s = 0; s < SLICES; s++) {
                const uint4 weight = vload4(0, row + 4 * s);
                for (int k = 0; k < PIXELS; k++) {
                    acc[k][s] += (int4)(DOT4(in[k], weight.s0), DOT4(in[k], weight.s1),
                                        DOT4(in[k], weight.s2), DOT4(in[k], weight.s3));
                }
            }
#ifdef HAS_W_ZERO
            for (int k = 0; k < PIXELS; k++) {
                seen[k] += DOT4(in[k], ONES);
            }
#endif
        }
#else
        global const Q *row = w + tap * group_in * w_row + oc;
        int ic = 0;
        for (; ic + 4 <= group_in; ic += 4) {
            int4 in[PIXELS];
            for (int k = 0; k < PIXELS; k++) {
                in[k] = SEES(k) ? convert_int4(vload4(0, x + at[k] + ic)) - x_zero : (int4)(0);
            }
            MAC(s0, ic)
            MAC(s1, ic + 1)
            MAC(s2, ic + 2)
            MAC(s3, ic + 3)
        }
        for (; ic < group_in; ic++) {
            int4 in[PIXELS];
            for (int k = 0; k < PIXELS; k++) {
                in[k].s0 = SEES(k) ? x[at[k] + ic] - x_zero : 0;
            }
            MAC(s0, ic)
        }
#endif
    }
#ifdef HAS_W_ZERO
    for (int k = 0; k < PIXELS; k++) {
        for (int s = 0; s < SLICES; s++) {
            acc[k][s] -= w_zero * seen[k];
        }
    }
#endif
    for (int k = 0; k < PIXELS && first + k < count; k++) {
        for (int s = 0; s < SLICES && oc + 4 * s < out_c; s++) {
            const int c = oc + 4 * s;
            const int4 scaled = requantize(acc[k][s], factor + c, shift + c);
            const int4 v = as_int4(as_uint4(scaled) + (uint)y_zero); // wraps, as in CpuRef
            store4_q(clamp(v, (int4)(lo), (int4)(hi)), y + y_at + PIXEL(first + k) * out_c + c,
                     out_c - c);
        }
    }
}
