// Resized images of f32, or of 8 bits (Q) that are blended as floats. Work item: 4 channels of an
// output pixel. The operations and their order are those of the reference.
#pragma OPENCL FP_CONTRACT OFF

#ifdef Q
typedef Q pixel_in;
typedef Q pixel_out;
inline float4 load_pixels(global const Q *x, int n) { return convert_float4(load4_q(x, n)); }
#else
typedef real_in pixel_in;
typedef real_out pixel_out;
inline float4 load_pixels(global const real_in *x, int n) { return load4(x, n); }
#endif

inline float position(int i, float scale, int half_pixel)
{
    return half_pixel ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

kernel void resize_bilinear(global const pixel_in *x, const uint x_at, global pixel_out *y,
                            const uint y_at, const int batch, const int in_h, const int in_w,
                            const int channels, const int out_h, const int out_w,
                            const float scale_y, const float scale_x,
                            const int half_pixel TAIL_PARAMS)
{
    const int c = (int)get_global_id(0) * 4, n = channels - c;
    const int out_x = (int)get_global_id(1);
    const int line = (int)get_global_id(2); // over all images
    if (c >= channels || out_x >= out_w || line >= batch * out_h) {
        return;
    }
    const float at_y = position(line % out_h, scale_y, half_pixel);
    const float at_x = position(out_x, scale_x, half_pixel);
    const int low_y = clamp((int)floor(at_y), 0, in_h - 1);
    const int high_y = clamp((int)ceil(at_y), 0, in_h - 1);
    const int low_x = clamp((int)floor(at_x), 0, in_w - 1);
    const int high_x = clamp((int)ceil(at_x), 0, in_w - 1);
    const float dy = at_y - (float)low_y, dx = at_x - (float)low_x;
    global const pixel_in *image = x + x_at + line / out_h * in_h * in_w * channels + c;
    float4 v = load_pixels(image + (low_y * in_w + low_x) * channels, n) * (1 - dy) * (1 - dx) +
               load_pixels(image + (high_y * in_w + low_x) * channels, n) * dy * (1 - dx) +
               load_pixels(image + (low_y * in_w + high_x) * channels, n) * (1 - dy) * dx +
               load_pixels(image + (high_y * in_w + high_x) * channels, n) * dy * dx;
    const int e = (line * out_w + out_x) * channels + c;
#ifdef Q
    store4_q(convert_int4(clamp(v + 0.5f, 0.0f, 255.0f)), y + y_at + e, n);
#else
    TAIL(v, e, c, n)
    store4(v, y + y_at + e, n);
#endif
}
