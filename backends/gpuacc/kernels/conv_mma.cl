// Convolution of f32 on NVIDIA's tensor cores: as conv_tile.cl, but factors are rounded to half
// precision on their way into local memory, products are exact and sums f32. Work group: ROWS *
// COLUMNS warps of 32 items; a warp computes PIXELS output pixels times CHANNELS output channels.
//
// PIXELS, CHANNELS: multiples of 16. DEPTH: 32. Needs W16, PTX and compute capability 8.0.
// Where which lane's numbers lie: PTX ISA, mma.m16n8k16 and ldmatrix.

#ifdef __NV_CL_C_VERSION

#define ITEMS      (ROWS * COLUMNS * 32)
#define TILE_ROWS  (ROWS * PIXELS)
#define TILE_WIDTH (COLUMNS * CHANNELS)
#define X_LANES    (DEPTH / 4)
#define X_FETCHES  (TILE_ROWS * X_LANES / ITEMS) // vectors of 4 that an item fetches
#define W_LANES    (TILE_WIDTH / 4)
#define W_FETCHES  (DEPTH * W_LANES / ITEMS)
#define X_PITCH    (DEPTH + 8) // rows of neighbouring lanes in other banks
#define W_PITCH    (TILE_WIDTH + 8)
#define BLOCKS_M   (PIXELS / 16)
#define BLOCKS_N   (CHANNELS / 8)

// Factors on their way into local memory. Halves stay bits: a conversion would wait for the load.
#if CAT(IS_HALF_, REAL_IN) && !defined ODD
typedef ushort4 factors_t;
inline ushort4 fetch_x(global const half *x, int k, int factors, int top, int left, int in_h,
                       int in_w, int in_c, int kw, int dilation_y, int dilation_x)
{
    const int at = factors_at(k, factors, top, left, in_h, in_w, in_c, kw, dilation_y, dilation_x);
    global const ushort *bits = (global const ushort *)x + at;
#ifdef ALIGNED
    return at >= 0 ? *(global const ushort4 *)bits : (ushort4)(0);
#else
    return at >= 0 ? vload4(0, bits) : (ushort4)(0);
#endif
}
#define PUT_X(v, to) *(local ushort4 *)(to) = v
#else
typedef float4 factors_t;
#define fetch_x      fetch4
#define PUT_X(v, to) vstorea_half4(v, 0, (local half *)(to))
#endif

#define FETCH(k0)                                                                                  \
    for (int i = 0; i < X_FETCHES; i++) {                                                          \
        next_x[i] = fetch_x(x + base[i], (k0) + x_lane, factors, top[i], left[i], in_h, in_w,      \
                            in_c, kw, dilation_y, dilation_x);                                     \
    }                                                                                              \
    for (int i = 0; i < W_FETCHES; i++) {                                                          \
        const int k = (k0) + w_line + i * (ITEMS / W_LANES);                                       \
        next_w[i] = k < factors && w_c < w_row ? *(global const uint2 *)(w + k * w_row + w_c)      \
                                               : (uint2)(0);                                       \
    }

// Four 8 x 8 blocks of halves; each lane names a row of one.
#define LOAD_BLOCKS(to, from, how)                                                                 \
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0,%1,%2,%3}, [%4];"        \
                 : "=r"((to)[0]), "=r"((to)[1]), "=r"((to)[2]), "=r"((to)[3])                      \
                 : "r"((uint)(size_t)(from)))

#define MULTIPLY(c, a, b)                                                                          \
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "           \
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                          \
                 : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                          \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))

// The other lane's number of a pair.
inline float swap(float v)
{
    uint other;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;"
                     : "=r"(other)
                     : "r"(as_uint(v)));
    return as_float(other);
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
kernel void conv2d_mma(CONV_PARAMS TAIL_PARAMS)
{
    local ushort tile_x[TILE_ROWS * X_PITCH] __attribute__((aligned(16)));
    local ushort tile_w[DEPTH * W_PITCH] __attribute__((aligned(16)));
    const int item = (int)get_local_id(0), lane = item % 32, warp = item / 32;
    const int warp_row = warp / COLUMNS * PIXELS, warp_c = warp % COLUMNS * CHANNELS;
    const int first_c = (int)get_group_id(0) * TILE_WIDTH, first = (int)get_group_id(1) * TILE_ROWS;
    const int factors = kh * kw * in_c;
    const int x_lane = item % X_LANES * 4;
    const int w_line = item / W_LANES, w_c = first_c + item % W_LANES * 4;
    int base[X_FETCHES], top[X_FETCHES], left[X_FETCHES];
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
    float acc[BLOCKS_M][BLOCKS_N][4];
    for (int m = 0; m < BLOCKS_M; m++) {
        for (int n = 0; n < BLOCKS_N; n++) {
            for (int i = 0; i < 4; i++) {
                acc[m][n][i] = 0.0f;
            }
        }
    }
    factors_t next_x[X_FETCHES];
    uint2 next_w[W_FETCHES];
    FETCH(0)
    for (int k0 = 0; k0 < factors; k0 += DEPTH) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < X_FETCHES; i++) {
            const int to = (item / X_LANES + i * (ITEMS / X_LANES)) * X_PITCH + x_lane;
            PUT_X(next_x[i], tile_x + to);
        }
        for (int i = 0; i < W_FETCHES; i++) {
            const int to = (w_line + i * (ITEMS / W_LANES)) * W_PITCH + item % W_LANES * 4;
            *(local uint2 *)(tile_w + to) = next_w[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k0 + DEPTH < factors) {
            FETCH(k0 + DEPTH)
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            uint a[BLOCKS_M][4], b[BLOCKS_N / 2][4];
            for (int m = 0; m < BLOCKS_M; m++) {
                LOAD_BLOCKS(a[m], tile_x + (warp_row + m * 16 + lane % 16) * X_PITCH + k +
                                      lane / 16 * 8, "");
            }
            for (int n = 0; n < BLOCKS_N / 2; n++) {
                LOAD_BLOCKS(b[n], tile_w + (k + lane % 16) * W_PITCH + warp_c + n * 16 +
                                      lane / 16 * 8, ".trans");
            }
#pragma unroll
            for (int m = 0; m < BLOCKS_M; m++) {
#pragma unroll
                for (int n = 0; n < BLOCKS_N; n++) {
                    MULTIPLY(acc[m][n], a[m], b[n / 2] + n % 2 * 2);
                }
            }
        }
    }
    // A lane has 2 neighbouring channels of 2 pixels: with its neighbour, 4 of one.
    const bool is_odd = lane & 1;
#pragma unroll
    for (int m = 0; m < BLOCKS_M; m++) {
        const int pixel = first + warp_row + m * 16 + lane / 4 + (is_odd ? 8 : 0);
#pragma unroll
        for (int n = 0; n < BLOCKS_N; n++) {
            const float *mine = acc[m][n];
            const float s0 = swap(is_odd ? mine[0] : mine[2]);
            const float s1 = swap(is_odd ? mine[1] : mine[3]);
            float4 v = is_odd ? (float4)(s0, s1, mine[2], mine[3])
                              : (float4)(mine[0], mine[1], s0, s1);
            const int c = first_c + warp_c + n * 8 + lane % 4 / 2 * 4;
            if (pixel < pixels && c < out_c) {
                const int e = pixel * out_c + c, left_c = out_c - c;
                v = clamp4(v + vload4(0, bias + c), lo, hi);
                TAIL(v, e, c, left_c)
                store4(v, y + y_at + e, left_c);
            }
        }
    }
}
#endif
