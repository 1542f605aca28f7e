// Winograd's algorithm, after the products (ops/winograd.h, winograd_in.cl): sums, transformed
// back. Work item: a patch of PATCH x PATCH output pixels times 4 channels. Sum p of patch t lies
// in row t of matrix p; a row has row vectors of 4 channels.

#define EDGE (PATCH + 2)

// A line of the transform: of EDGE sums, PATCH pixels.
inline void transform(float4 *v)
{
    const float4 a = v[0], plus = v[1] + v[2], minus = v[1] - v[2];
#if PATCH == 2
    v[0] = a + plus;
    v[1] = minus - v[3];
#else
    const float4 far_plus = v[3] + v[4], far_minus = v[3] - v[4];
    v[0] = a + plus + far_plus;
    v[1] = mad(2.0f, far_minus, minus);
    v[2] = mad(4.0f, far_plus, plus);
    v[3] = mad(8.0f, far_minus, minus) + v[5];
#endif
}

kernel void winograd_out(global const float4 *x, const uint x_at, global const float *bias,
                         global real_out *y, const uint y_at, const int patches, const int lines,
                         const int columns, const int out_h, const int out_w, const int out_c,
                         const int row, const float lo, const float hi TAIL_PARAMS)
{
    const int oc = (int)get_global_id(0) * 4;
    const int patch = (int)get_global_id(1);
    if (oc >= row * 4 || patch >= patches) {
        return;
    }
    const size_t matrix = (size_t)patches * row;
    x += x_at + (size_t)patch * row + oc / 4;
    float4 v[PATCH][EDGE]; // by columns, then by lines
    for (int j = 0; j < EDGE; j++) {
        float4 column[EDGE];
        for (int i = 0; i < EDGE; i++) {
            column[i] = x[(i * EDGE + j) * matrix];
        }
        transform(column);
        for (int i = 0; i < PATCH; i++) {
            v[i][j] = column[i];
        }
    }
    const int top = patch / columns % lines * PATCH, left = patch % columns * PATCH;
    const int first = patch / columns / lines * out_h; // line of the image
    const int n = out_c - oc;
    const float4 offset = vload4(0, bias + oc);
    for (int i = 0; i < PATCH && top + i < out_h; i++) {
        transform(v[i]);
        for (int j = 0; j < PATCH && left + j < out_w; j++) {
            const int e = ((first + top + i) * out_w + left + j) * out_c + oc;
            float4 result = clamp4(v[i][j] + offset, lo, hi);
            TAIL(result, e, oc, n)
            store4(result, y + y_at + e, n);
        }
    }
}
