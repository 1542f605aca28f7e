// Convolution of f32 for layers with few output elements and many factors each, groups included:
// the items of a work group share the factors of each element. Work group: ROWS * PIXELS output
// pixels times COLUMNS * 4 output channels, each computed by SLICES items; an item takes every
// SLICES-th run of DEPTH input channels.
//
// DEPTH: a multiple of 4 that divides the input channels of a group.
// TRANSPOSED: a transposed convolution; neighbouring pixels are those of a phase.
// POINTWISE: the window is one pixel, without stride and padding.

#define PLACES (ROWS * COLUMNS) // items of a slice
#define ITEMS  (PLACES * SLICES)

#define MAC(lane, channel)                                                                         \
    {                                                                                              \
        const sum4 weight = SUM4(load4_weights(WEIGHTS_BELOW(row, d + channel)));                  \
        for (int k = 0; k < PIXELS; k++) {                                                         \
            acc[k] = mad((sum4)(in[k].lane), weight, acc[k]);                                      \
        }                                                                                          \
    }

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
kernel void conv2d_slim(CONV_PARAMS TAIL_PARAMS)
{
    local float4 sums[PIXELS * ITEMS];
    PHASE
    CONV_MATRIX
    const int item = (int)get_local_id(0);
    const int slice = item / PLACES;
    const int oc = min(((int)get_group_id(0) * COLUMNS + item % COLUMNS) * 4, w_row - 4);
    const int first = ((int)get_group_id(1) * ROWS + item / COLUMNS % ROWS) * PIXELS;
    if ((int)get_group_id(1) * ROWS * PIXELS >= count) { // phases differ in size
        return;
    }
    global const real_in *group = x + x_at + oc / group_out * group_in;
    sum4 acc[PIXELS];
    int at[PIXELS]; // where the pixel lies that a tap sees; -1: outside
#ifndef POINTWISE
    int top[PIXELS], left[PIXELS], image[PIXELS];
#endif
    for (int k = 0; k < PIXELS; k++) {
        const int pixel = PIXEL(min(first + k, count - 1));
        acc[k] = (sum4)(0.0f);
#ifdef POINTWISE
        at[k] = pixel * in_c;
#else
        top[k] = window_begin(pixel / out_w % out_h, stride_y, pad_top);
        left[k] = window_begin(pixel % out_w, stride_x, pad_left);
        image[k] = pixel / out_w / out_h * in_h;
#endif
    }
    int i = slice * DEPTH / group_in, ic = slice * DEPTH % group_in;
    while (i < taps) {
        const int tap = TAP(i);
#ifndef POINTWISE
        for (int k = 0; k < PIXELS; k++) {
            const int in_y = window_sees(top[k], tap / kw, stride_y, dilation_y, in_h);
            const int in_x = window_sees(left[k], tap % kw, stride_x, dilation_x, in_w);
            at[k] = in_y >= 0 && in_x >= 0 ? ((image[k] + in_y) * in_w + in_x) * in_c : -1;
        }
#endif
        do {
            const weights_t row = WEIGHTS(tap * group_in + ic, oc);
            for (int d = 0; d < DEPTH; d += 4) {
                sum4 in[PIXELS];
                for (int k = 0; k < PIXELS; k++) {
#ifdef POINTWISE
                    in[k] = SUM4(load4_full(group + at[k] + ic + d));
#else
                    in[k] = at[k] >= 0 ? SUM4(load4_full(group + at[k] + ic + d)) : (sum4)(0.0f);
#endif
                }
                MAC(s0, 0)
                MAC(s1, 1)
                MAC(s2, 2)
                MAC(s3, 3)
            }
            ic += SLICES * DEPTH;
        } while (ic < group_in);
        i += ic / group_in;
        ic %= group_in;
    }
    for (int k = 0; k < PIXELS; k++) {
        sums[k * ITEMS + item] = convert_float4(acc[k]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = item; j < PIXELS * PLACES; j += ITEMS) {
        const int place = j % PLACES, k = j / PLACES;
        const int c = ((int)get_group_id(0) * COLUMNS + place % COLUMNS) * 4;
        const int in_phase = ((int)get_group_id(1) * ROWS + place / COLUMNS) * PIXELS + k;
        if (c >= out_c || in_phase >= count) {
            continue;
        }
        float4 v = BIAS(c);
        for (int s = 0; s < SLICES; s++) {
            v += sums[k * ITEMS + s * PLACES + place];
        }
        v = clamp4(v, lo, hi);
        const int e = PIXEL(in_phase) * out_c + c, n = out_c - c;
        TAIL(v, e, c, n)
        store4(v, y + y_at + e, n);
    }
}
