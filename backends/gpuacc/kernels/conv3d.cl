// Convolution over depth, height and width, f32: weights [kd][kh][kw][in_c][out_c]. Work item: 4
// output channels of one output point.

kernel void conv3d(global const real_in *x, const uint x_at, global const float *w, const uint w_at,
                   global const float *bias, global real_out *y, const uint y_at, const int batch,
                   const int in_d, const int in_h, const int in_w, const int in_c, const int out_d,
                   const int out_h, const int out_w, const int out_c, const int kd, const int kh,
                   const int kw, const int stride_d, const int stride_h, const int stride_w,
                   const int dilation_d, const int dilation_h, const int dilation_w,
                   const int pad_d, const int pad_h, const int pad_w, const float lowest,
                   const float highest)
{
    const int c = (int)get_global_id(0) * 4, n = out_c - c;
    const int point = (int)get_global_id(1);
    if (c >= out_c || point >= batch * out_d * out_h * out_w) {
        return;
    }
    const int first_w = point % out_w * stride_w - pad_w;
    const int first_h = point / out_w % out_h * stride_h - pad_h;
    const int first_d = point / out_w / out_h % out_d * stride_d - pad_d;
    const int image = point / out_w / out_h / out_d;
    float4 sum = (float4)(0.0f);
    for (int tap = 0; tap < kd * kh * kw; tap++) {
        const int at_d = first_d + tap / kw / kh * dilation_d;
        const int at_h = first_h + tap / kw % kh * dilation_h;
        const int at_w = first_w + tap % kw * dilation_w;
        if (at_d < 0 || at_d >= in_d || at_h < 0 || at_h >= in_h || at_w < 0 || at_w >= in_w) {
            continue;
        }
        global const real_in *from =
            x + x_at + (((image * in_d + at_d) * in_h + at_h) * in_w + at_w) * in_c;
        global const float *weights = w + w_at + tap * in_c * out_c + c;
        for (int i = 0; i < in_c; i++) {
            sum += load1(from + i) * load4_float(weights + i * out_c, n);
        }
    }
    sum += load4_float(bias + c, n);
    store4(clamp4(sum, lowest, highest), y + y_at + point * out_c + c, n);
}
