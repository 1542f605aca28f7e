// Largest element or mean of a window. Work item: 4 channels of an output pixel. AVERAGE: 0 or 1.

kernel void pool2d(global const real_in *x, const uint x_at, global real_out *y, const uint y_at,
                   const int batch, const int in_h, const int in_w, const int channels,
                   const int out_h, const int out_w, const int kh, const int kw, const int stride_y,
                   const int stride_x, const int pad_top, const int pad_left, const float lo,
                   const float hi TAIL_PARAMS)
{
    const int c = (int)get_global_id(0) * 4, n = channels - c;
    const int out_x = (int)get_global_id(1);
    const int line = (int)get_global_id(2); // over all images
    if (c >= channels || out_x >= out_w || line >= batch * out_h) {
        return;
    }
    const int top = line % out_h * stride_y - pad_top, left = out_x * stride_x - pad_left;
    const int begin_y = max(top, 0), end_y = min(top + kh, in_h);
    const int begin_x = max(left, 0), end_x = min(left + kw, in_w);
    global const real_in *image = x + x_at + line / out_h * in_h * in_w * channels;
    float4 v = (float4)(AVERAGE ? 0.0f : -INFINITY);
    for (int in_y = begin_y; in_y < end_y; in_y++) {
        for (int in_x = begin_x; in_x < end_x; in_x++) {
            const float4 in = load4(image + (in_y * in_w + in_x) * channels + c, n);
            v = AVERAGE ? v + in : (v < in ? in : v);
        }
    }
    if (AVERAGE) {
        v /= (float)((end_y - begin_y) * (end_x - begin_x));
    }
    v = clamp4(v, lo, hi);
    const int e = (line * out_w + out_x) * channels + c;
    TAIL(v, e, c, n)
    store4(v, y + y_at + e, n);
}
