// Depthwise convolution of f32. Work item: 4 output channels of PIXELS neighbouring output pixels
// of a row. Weights are those of the model, [ky][kx][channel]; the bias is filled with zeros up to
// a multiple of 4.
//
// KH, KW, STRIDE_X, DILATION_X: the window, so that the compiler can load all that it sees at once.
// MULTIPLIER: output channels of an input channel.

#if MULTIPLIER == 1
#define LOAD(x, c, n) load4(x + (c), n)
#else
inline float4 load_channels(global const real_in *x, int c, int n)
{
    float4 v = (float4)(load1(x + c / MULTIPLIER));
    v.s1 = n > 1 ? load1(x + (c + 1) / MULTIPLIER) : 0.0f;
    v.s2 = n > 2 ? load1(x + (c + 2) / MULTIPLIER) : 0.0f;
    v.s3 = n > 3 ? load1(x + (c + 3) / MULTIPLIER) : 0.0f;
    return v;
}
#define LOAD(x, c, n) load_channels(x, c, n)
#endif

#define SPAN ((PIXELS - 1) * STRIDE_X + (KW - 1) * DILATION_X + 1) // columns that an item sees
#if SPAN <= 32 && KH <= 11
#define FITS // into registers
#endif

kernel void depthwise(global const real_in *x, const uint x_at, global const float *w,
                      global const float *bias, global real_out *y, const uint y_at,
                      const int batch, const int in_h, const int in_w, const int in_c,
                      const int out_h, const int out_w, const int out_c, const int stride_y,
                      const int dilation_y, const int pad_top, const int pad_left, const float lo,
                      const float hi TAIL_PARAMS)
{
    const int c = (int)get_global_id(0) * 4, n = out_c - c;
    const int out_x = (int)get_global_id(1) * PIXELS;
    const int line = (int)get_global_id(2); // over all images
    if (c >= out_c || out_x >= out_w || line >= batch * out_h) {
        return;
    }
    const int top = line % out_h * stride_y - pad_top;
    const int left = out_x * STRIDE_X - pad_left;
    x += x_at + line / out_h * in_h * in_w * in_c;
    sum4 acc[PIXELS];
    for (int k = 0; k < PIXELS; k++) {
        acc[k] = SUM4(vload4(0, bias + c));
    }
#ifdef FITS
#pragma unroll
#endif
    for (int ky = 0; ky < KH; ky++) {
        const int in_y = top + ky * dilation_y;
        const bool sees_y = in_y >= 0 && in_y < in_h;
        global const real_in *row = x + (sees_y ? in_y : 0) * in_w * in_c;
#define SEEN(in_x)                                                                                 \
    (sees_y && (in_x) >= 0 && (in_x) < in_w ? SUM4(LOAD(row + (in_x)*in_c, c, n)) : (sum4)(0.0f))
#ifdef FITS
        sum4 in[SPAN];
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            in[i] = SEEN(left + i);
        }
#define INPUT(i) in[i]
#pragma unroll
#else
#define INPUT(i) SEEN(left + (i))
#endif
        for (int kx = 0; kx < KW; kx++) {
            const sum4 weight = SUM4(load4_float(w + (ky * KW + kx) * out_c + c, n));
            for (int k = 0; k < PIXELS; k++) {
                acc[k] = mad(INPUT(k * STRIDE_X + kx * DILATION_X), weight, acc[k]);
            }
        }
    }
    for (int k = 0; k < PIXELS && out_x + k < out_w; k++) {
        const int e = (line * out_w + out_x + k) * out_c + c;
        float4 v = clamp4(convert_float4(acc[k]), lo, hi);
        TAIL(v, e, c, n)
        store4(v, y + y_at + e, n);
    }
}
