// Convolution of f32 as a product of matrices whose blocks pass through local memory: output pixels
// times output channels, over all factors (taps times input channels). Work group: a tile of ROWS *
// PIXELS pixels times COLUMNS * CHANNELS channels; an item computes PIXELS times CHANNELS of them.
// While it multiplies DEPTH factors, it fetches the next.
//
// PIXELS, CHANNELS: multiples of 4, which lie ROWS * 4 and COLUMNS * 4 apart, so that neighbouring
// items read neighbouring vectors.

#define ITEMS       (ROWS * COLUMNS)
#define TILE_ROWS   (ROWS * PIXELS)
#define TILE_WIDTH  (COLUMNS * CHANNELS)
#define X_LANES     (DEPTH / 4)                    // items that fetch a pixel's factors
#define X_FETCHES   (TILE_ROWS * X_LANES / ITEMS)  // vectors of 4 that an item fetches
#define W_LANES     (TILE_WIDTH / 4)               // items that fetch a row of weights
#define W_FETCHES   (DEPTH * W_LANES / ITEMS)
#define X_PITCH     (TILE_ROWS + 4)

#define FETCH(k0)                                                                                  \
    for (int i = 0; i < X_FETCHES; i++) {                                                          \
        next_x[i] = SUM4(fetch4(x + base[i], (k0) + x_lane, factors, top[i], left[i], in_h, in_w,  \
                                in_c, kw, dilation_y, dilation_x));                                \
    }                                                                                              \
    for (int i = 0; i < W_FETCHES; i++) {                                                          \
        const int k = (k0) + w_line + i * (ITEMS / W_LANES);                                       \
        next_w[i] = k < factors && w_c < w_row ? SUM4(load4_weights(WEIGHTS(k, w_c)))              \
                                               : (sum4)(0.0f);                                     \
    }

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
kernel void conv2d_tile(CONV_PARAMS TAIL_PARAMS)
{
    local sum4 tile_x[DEPTH * X_PITCH / 4], tile_w[DEPTH * W_LANES];
    local sum1 *const to_x = (local sum1 *)tile_x;
    const int item = (int)get_local_id(0);
    const int column = item % COLUMNS, line = item / COLUMNS;
    const int first_c = (int)get_group_id(0) * TILE_WIDTH, first = (int)get_group_id(1) * TILE_ROWS;
    const int factors = kh * kw * in_c;
    const int x_lane = item % X_LANES * 4;
    const int w_line = item / W_LANES, w_c = first_c + item % W_LANES * 4;
    int base[X_FETCHES], top[X_FETCHES], left[X_FETCHES];
    CONV_MATRIX
    x += x_at;
    for (int i = 0; i < X_FETCHES; i++) {
        const int pixel = min(first + item / X_LANES + i * (ITEMS / X_LANES), pixels - 1);
#ifdef POINTWISE
        base[i] = pixel * in_c;
        top[i] = left[i] = 0;
#else
        base[i] = pixel / out_w / out_h * in_h * in_w * in_c;
        top[i] = pixel / out_w % out_h * stride_y - pad_top;
        left[i] = pixel % out_w * stride_x - pad_left;
#endif
    }
    sum4 acc[PIXELS][CHANNELS / 4];
    for (int p = 0; p < PIXELS; p++) {
        for (int c = 0; c < CHANNELS / 4; c++) {
            acc[p][c] = (sum4)(0.0f);
        }
    }
    sum4 next_x[X_FETCHES], next_w[W_FETCHES];
    FETCH(0)
    for (int k0 = 0; k0 < factors; k0 += DEPTH) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < X_FETCHES; i++) {
            const int to = x_lane * X_PITCH + item / X_LANES + i * (ITEMS / X_LANES);
            to_x[to] = next_x[i].s0;
            to_x[to + X_PITCH] = next_x[i].s1;
            to_x[to + 2 * X_PITCH] = next_x[i].s2;
            to_x[to + 3 * X_PITCH] = next_x[i].s3;
        }
        for (int i = 0; i < W_FETCHES; i++) {
            tile_w[item + i * ITEMS] = next_w[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k0 + DEPTH < factors) {
            FETCH(k0 + DEPTH)
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            sum4 weight[CHANNELS / 4];
            for (int c = 0; c < CHANNELS / 4; c++) {
                weight[c] = tile_w[k * W_LANES + c * COLUMNS + column];
            }
            for (int p = 0; p < PIXELS / 4; p++) {
                const sum4 in = tile_x[k * (X_PITCH / 4) + p * ROWS + line];
                for (int c = 0; c < CHANNELS / 4; c++) {
                    acc[4 * p][c] = mad((sum4)(in.s0), weight[c], acc[4 * p][c]);
                    acc[4 * p + 1][c] = mad((sum4)(in.s1), weight[c], acc[4 * p + 1][c]);
                    acc[4 * p + 2][c] = mad((sum4)(in.s2), weight[c], acc[4 * p + 2][c]);
                    acc[4 * p + 3][c] = mad((sum4)(in.s3), weight[c], acc[4 * p + 3][c]);
                }
            }
        }
    }
    for (int p = 0; p < PIXELS; p++) {
        const int pixel = first + p / 4 * (ROWS * 4) + line * 4 + p % 4;
        for (int i = 0; i < CHANNELS / 4; i++) {
            const int c = first_c + i * (COLUMNS * 4) + column * 4;
            if (pixel < pixels && c < out_c) {
                const int e = pixel * out_c + c, n = out_c - c;
                float4 v = clamp4(convert_float4(acc[p][i]) + BIAS(c), lo, hi);
                TAIL(v, e, c, n)
                store4(v, y + y_at + e, n);
            }
        }
    }
}
