// Resized images of 8 bits (Q) whose positions are counted in steps of 1 / 1024, as the reference
// has it for char. Work item: 4 channels of an output pixel.

#define STEPS 1024

inline int step_position(int i, int scale, int half_pixel, int in)
{
    const int wish = half_pixel ? i * scale + scale / 2 - STEPS / 2 : i * scale;
    return min(wish, STEPS * in);
}

kernel void resize_steps(global const Q *x, const uint x_at, global Q *y, const uint y_at,
                         const int batch, const int in_h, const int in_w, const int channels,
                         const int out_h, const int out_w, const int scale_y, const int scale_x,
                         const int half_pixel, const int lowest, const int highest)
{
    const int c = (int)get_global_id(0) * 4, n = channels - c;
    const int out_x = (int)get_global_id(1);
    const int line = (int)get_global_id(2); // over all images
    if (c >= channels || out_x >= out_w || line >= batch * out_h) {
        return;
    }
    const int at_y = step_position(line % out_h, scale_y, half_pixel, in_h);
    const int at_x = step_position(out_x, scale_x, half_pixel, in_w);
    const int low_y = clamp(at_y / STEPS, 0, in_h - 1);
    const int low_x = clamp(at_x / STEPS, 0, in_w - 1);
    const int high_y = clamp((at_y + STEPS - 1) / STEPS, 0, in_h - 1);
    const int high_x = clamp((at_x + STEPS - 1) / STEPS, 0, in_w - 1);
    const int dy = at_y - STEPS * low_y, dx = at_x - STEPS * low_x;
    global const Q *image = x + x_at + line / out_h * in_h * in_w * channels + c;
    const int4 sum =
        load4_q(image + (low_y * in_w + low_x) * channels, n) * (STEPS - dy) * (STEPS - dx) +
        load4_q(image + (high_y * in_w + low_x) * channels, n) * dy * (STEPS - dx) +
        load4_q(image + (low_y * in_w + high_x) * channels, n) * (STEPS - dy) * dx +
        load4_q(image + (high_y * in_w + high_x) * channels, n) * dy * dx;
    const int4 v = as_int4((abs(sum) + STEPS * STEPS / 2) / (STEPS * STEPS)); // rounded
    store4_q(clamp(sum < 0 ? -v : v, (int4)(lowest), (int4)(highest)),
             y + y_at + (line * out_w + out_x) * channels + c, n);
}
