// Convolution of f32, groups included. Work item: PIXELS neighbouring output pixels, counted over
// all images, times 4 neighbouring output channels, all in registers.
//
// TRANSPOSED: a transposed convolution; neighbouring pixels are those of a phase.
// POINTWISE: the window is one pixel, without stride and padding.

#ifdef POINTWISE
#define SEES(k) true
#else
#define SEES(k) (at[k] >= 0)
#endif

// One input channel: lane of in[], times its row of weights.
#define MAC(lane, channel)                                                                         \
    {                                                                                              \
        const sum4 weight = SUM4(load4_weights(WEIGHTS_BELOW(row, channel)));                      \
        for (int k = 0; k < PIXELS; k++) {                                                         \
            acc[k] = mad((sum4)(in[k].lane), weight, acc[k]);                                      \
        }                                                                                          \
    }

kernel void conv2d(CONV_PARAMS TAIL_PARAMS)
{
    const int oc = (int)get_global_id(0) * 4;
    const int first = (int)get_global_id(1) * PIXELS;
    PHASE
    if (oc >= out_c || first >= count) {
        return;
    }
    CONV_MATRIX
    x += x_at + oc / group_out * group_in;
    sum4 acc[PIXELS];
    int top[PIXELS], left[PIXELS], image[PIXELS];
    for (int k = 0; k < PIXELS; k++) {
        const int pixel = PIXEL(min(first + k, count - 1));
        top[k] = window_begin(pixel / out_w % out_h, stride_y, pad_top);
        left[k] = window_begin(pixel % out_w, stride_x, pad_left);
        image[k] = pixel / out_w / out_h * in_h;
        acc[k] = SUM4(BIAS(oc));
    }
    for (int i = 0; i < taps; i++) {
        const int tap = TAP(i);
        const weights_t row = WEIGHTS(tap * group_in, oc);
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
        int ic = 0;
        for (; ic + 4 <= group_in; ic += 4) {
            sum4 in[PIXELS];
            for (int k = 0; k < PIXELS; k++) {
                in[k] = SEES(k) ? SUM4(load4_full(x + at[k] + ic)) : (sum4)(0.0f);
            }
            MAC(s0, ic)
            MAC(s1, ic + 1)
            MAC(s2, ic + 2)
            MAC(s3, ic + 3)
        }
        for (; ic < group_in; ic++) {
            sum4 in[PIXELS];
            for (int k = 0; k < PIXELS; k++) {
                in[k].s0 = SEES(k) ? load1(x + at[k] + ic) : 0.0f;
            }
            MAC(s0, ic)
        }
    }
    for (int k = 0; k < PIXELS && first + k < count; k++) {
        const int n = out_c - oc, e = PIXEL(first + k) * out_c + oc;
        float4 v = clamp4(convert_float4(acc[k]), lo, hi);
        TAIL(v, e, oc, n)
        store4(v, y + y_at + e, n);
    }
}
