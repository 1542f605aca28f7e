// Winograd's algorithm for 3x3 windows of stride 1, before the products (ops/winograd.h): patches
// of the input, transformed. Work item: a patch of EDGE x EDGE pixels times 4 channels. Value p of
// patch t lies in row t of matrix p; a row is filled with zeros up to row vectors of 4 channels.
//
// PATCH: 2 or 4, the output pixels along a side of a patch.

#define EDGE (PATCH + 2)

// A line of the transform: v times the transposed matrix of Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2015), appendix; points 0, 1, -1, for 4 pixels 2, -2, infinity.
inline void transform(float4 *v)
{
    const float4 a = v[0], b = v[1], c = v[2], d = v[3];
#if PATCH == 2
    v[0] = a - c;
    v[1] = b + c;
    v[2] = c - b;
    v[3] = b - d;
#else
    const float4 e = v[4], f = v[5];
    const float4 even = mad(-4.0f, c, e), odd = mad(-4.0f, b, d);
    const float4 near = e - c, far = 2.0f * (d - b);
    v[0] = mad(4.0f, a, mad(-5.0f, c, e));
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = near + far;
    v[4] = near - far;
    v[5] = mad(4.0f, b, mad(-5.0f, d, f));
#endif
}

kernel void winograd_in(global const real_in *x, const uint x_at, global float4 *y, const uint y_at,
                        const int patches, const int lines, const int columns, const int in_h,
                        const int in_w, const int in_c, const int row, const int pad_top,
                        const int pad_left)
{
    const int c = (int)get_global_id(0) * 4;
    const int patch = (int)get_global_id(1);
    if (c >= row * 4 || patch >= patches) {
        return;
    }
    const int top = patch / columns % lines * PATCH - pad_top;
    const int left = patch % columns * PATCH - pad_left;
    const int n = in_c - c;
    x += x_at + (size_t)(patch / columns / lines) * in_h * in_w * in_c + c;
    float4 v[EDGE][EDGE]; // by columns
    for (int i = 0; i < EDGE; i++) {
        float4 line[EDGE];
        for (int j = 0; j < EDGE; j++) {
            const int in_y = top + i, in_x = left + j;
            const bool sees = in_y >= 0 && in_y < in_h && in_x >= 0 && in_x < in_w;
            line[j] = sees ? load4(x + (in_y * in_w + in_x) * in_c, n) : (float4)(0.0f);
        }
        transform(line);
        for (int j = 0; j < EDGE; j++) {
            v[j][i] = line[j];
        }
    }
    const size_t matrix = (size_t)patches * row;
    y += y_at + (size_t)patch * row + c / 4;
    for (int j = 0; j < EDGE; j++) {
        transform(v[j]);
        for (int i = 0; i < EDGE; i++) {
            y[(i * EDGE + j) * matrix] = v[j][i];
        }
    }
}
