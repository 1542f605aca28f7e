// Convolution of f32, groups included. Work item: PIXELS neighbouring output pixels, counted over
// all images, times SLICES * 4 neighbouring output channels, all in registers. Weights are packed
// [ky][kx][input channel][output channel]: neighbouring work items read neighbouring weights. Rows
// of weights and the bias are filled with zeros up to a multiple of SLICES * 4.
//
// TRANSPOSED: a transposed convolution.
// POINTWISE: the window is one pixel, without stride and padding.

#ifdef POINTWISE
#define SEES(k) true
#else
#define SEES(k) (at[k] >= 0)
#endif

// One input channel: lane of in[], times its row of weights.
#define MAC(lane, channel)                                                                         \
    for (int s = 0; s < SLICES; s++) {                                                             \
        const float4 weight = load4_weights(row + (channel)*w_row + 4 * s);                        \
        for (int k = 0; k < PIXELS; k++) {                                                         \
            acc[k][s] = mad((float4)(in[k].lane), weight, acc[k][s]);                              \
        }                                                                                          \
    }

kernel void conv2d(global const real *x, const uint x_at, global const weight_t *w,
                   global const float *bias, global real *y, const uint y_at, const int pixels,
                   const int in_h, const int in_w, const int in_c, const int out_h, const int out_w,
                   const int out_c, const int w_row, const int group_in, const int group_out,
                   const int kh, const int kw, const int stride_y, const int stride_x,
                   const int dilation_y, const int dilation_x, const int pad_top,
                   const int pad_left, const float lo, const float hi TAIL_PARAMS)
{
    const int oc = (int)get_global_id(0) * 4 * SLICES;
    const int first = (int)get_global_id(1) * PIXELS;
    if (oc >= out_c || first >= pixels) {
        return;
    }
    x += x_at + oc / group_out * group_in;
    float4 acc[PIXELS][SLICES];
    int top[PIXELS], left[PIXELS], image[PIXELS];
    for (int k = 0; k < PIXELS; k++) {
        const int pixel = min(first + k, pixels - 1);
        top[k] = window_begin(pixel / out_w % out_h, stride_y, pad_top);
        left[k] = window_begin(pixel % out_w, stride_x, pad_left);
        image[k] = pixel / out_w / out_h * in_h;
        for (int s = 0; s < SLICES; s++) {
            acc[k][s] = vload4(0, bias + oc + 4 * s);
        }
    }
    for (int tap = 0; tap < kh * kw; tap++) {
        global const weight_t *row = w + tap * group_in * w_row + oc;
        int at[PIXELS]; // where the pixel lies that this tap sees; -1: outside
        for (int k = 0; k < PIXELS; k++) {
#ifdef POINTWISE
            at[k] = min(first + k, pixels - 1) * in_c;
#else
            const int in_y = window_sees(top[k], tap / kw, stride_y, dilation_y, in_h);
            const int in_x = window_sees(left[k], tap % kw, stride_x, dilation_x, in_w);
            at[k] = in_y >= 0 && in_x >= 0 ? ((image[k] + in_y) * in_w + in_x) * in_c : -1;
#endif
        }
        int ic = 0;
        for (; ic + 4 <= group_in; ic += 4) {
            float4 in[PIXELS];
            for (int k = 0; k < PIXELS; k++) {
                in[k] = SEES(k) ? load4_full(x + at[k] + ic) : (float4)(0.0f);
            }
            MAC(s0, ic)
            MAC(s1, ic + 1)
            MAC(s2, ic + 2)
            MAC(s3, ic + 3)
        }
        for (; ic < group_in; ic++) {
            float4 in[PIXELS];
            for (int k = 0; k < PIXELS; k++) {
                in[k].s0 = SEES(k) ? load1(x + at[k] + ic) : 0.0f;
            }
            MAC(s0, ic)
        }
    }
    for (int k = 0; k < PIXELS && first + k < pixels; k++) {
        for (int s = 0; s < SLICES && oc + 4 * s < out_c; s++) {
            const int c = oc + 4 * s, n = out_c - c, e = (first + k) * out_c + c;
            float4 v = clamp4(acc[k][s], lo, hi);
            TAIL(v, e, c, n)
            store4(v, y + y_at + e, n);
        }
    }
}
