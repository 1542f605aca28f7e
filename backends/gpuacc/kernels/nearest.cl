// Resized images, each pixel that of the nearest input pixel. Elements are not looked into
// (ELEMENT: an integer type of their size). Work item: one element.

kernel void resize_nearest(global const ELEMENT *x, const uint x_at, global ELEMENT *y,
                           const uint y_at, const int batch, const int in_h, const int in_w,
                           const int channels, const int out_h, const int out_w,
                           const float scale_y, const float scale_x, const int half_pixel,
                           const int align_corners)
{
    const int c = (int)get_global_id(0), out_x = (int)get_global_id(1);
    const int line = (int)get_global_id(2); // over all images
    const float offset = half_pixel ? 0.5f : 0.0f;
    if (c >= channels || out_x >= out_w || line >= batch * out_h) {
        return;
    }
    const float at_y = ((float)(line % out_h) + offset) * scale_y;
    const float at_x = ((float)out_x + offset) * scale_x;
    const int in_y = clamp((int)(align_corners ? round(at_y) : floor(at_y)), 0, in_h - 1);
    const int in_x = clamp((int)(align_corners ? round(at_x) : floor(at_x)), 0, in_w - 1);
    y[y_at + (line * out_w + out_x) * channels + c] =
        x[x_at + ((line / out_h * in_h + in_y) * in_w + in_x) * channels + c];
}
