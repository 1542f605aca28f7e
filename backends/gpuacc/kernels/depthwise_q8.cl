// Depthwise convolution of 8-bit numbers: as depthwise.cl, with the roundings of the reference.
// Bias and factors are filled up to a multiple of 4.

inline int4 load_channels(global const Q *x, int c, int n)
{
#if MULTIPLIER == 1
    return load4_q(x + c, n);
#else
    return (int4)(x[c / MULTIPLIER], n > 1 ? x[(c + 1) / MULTIPLIER] : 0,
                  n > 2 ? x[(c + 2) / MULTIPLIER] : 0, n > 3 ? x[(c + 3) / MULTIPLIER] : 0);
#endif
}

kernel void depthwise_q8(global const Q *x, const uint x_at, global const Q *w,
                         global const int *bias, global const int *factor, global const int *shift,
                         global Q *y, const uint y_at, const int batch, const int in_h,
                         const int in_w, const int in_c, const int out_h, const int out_w,
                         const int out_c, const int kh, const int kw, const int stride_y,
                         const int stride_x, const int dilation_y, const int dilation_x,
                         const int pad_top, const int pad_left, const int x_zero, const int w_zero,
                         const int y_zero, const int lo, const int hi)
{
    const int c = (int)get_global_id(0) * 4, n = out_c - c;
    const int out_x = (int)get_global_id(1) * PIXELS;
    const int line = (int)get_global_id(2); // over all images
    if (c >= out_c || out_x >= out_w || line >= batch * out_h) {
        return;
    }
    const int top = line % out_h * stride_y - pad_top;
    const int left = out_x * stride_x - pad_left;
    x += x_at + line / out_h * in_h * in_w * in_c;
    int4 acc[PIXELS];
    for (int k = 0; k < PIXELS; k++) {
        acc[k] = vload4(0, bias + c);
    }
    for (int ky = 0; ky < kh; ky++) {
        const int in_y = top + ky * dilation_y;
        if (in_y < 0 || in_y >= in_h) {
            continue;
        }
        for (int kx = 0; kx < kw; kx++) {
            const int4 weight = load4_q(w + (ky * kw + kx) * out_c + c, n) - w_zero;
            for (int k = 0; k < PIXELS; k++) {
                const int in_x = left + k * stride_x + kx * dilation_x;
                if (in_x >= 0 && in_x < in_w) {
                    const int4 in = load_channels(x + (in_y * in_w + in_x) * in_c, c, n);
                    acc[k] += (in - x_zero) * weight;
                }
            }
        }
    }
    for (int k = 0; k < PIXELS && out_x + k < out_w; k++) {
        const int4 scaled = scale_double4(acc[k], vload4(0, factor + c), vload4(0, shift + c));
        store4_q(clamp(add_sat(scaled, (int4)(y_zero)), (int4)(lo), (int4)(hi)),
                 y + y_at + (line * out_w + out_x + k) * out_c + c, n);
    }
}
