/* bf16 gemm with AMX. Calls that AMX does not take run pair by pair on the same packed weights. */
#define GEMM_K_TILE 32
#include "backends/cpuacc/kernels/gemm/gemm_bf16_pairs_tmpl.h"

static struct job make_job(const struct ifd_gemm_args *args, const uint8_t *weights,
                           const uint8_t *tail, size_t n0, size_t columns)
{
    return (struct job){.args = args,
                        .part = {.is_first = 1, .is_last = 1},
                        .weights = (const uint32_t *)(const void *)weights,
                        .bias = (const float *)(const void *)tail,
                        .min = args->min,
                        .max = args->max,
                        .n0 = n0,
                        .columns = columns};
}

/* Four at a time. */
INLINE void finish_chunk(struct job *job, size_t m0, int32_t (*sums)[4][16], size_t rows,
                         const size_t nv)
{
    for (size_t r = 0; r < rows; r += 4) {
        vf sum[4][4];
        job->m0 = m0 + r;
        job->valid = rows - r < 4 ? rows - r : 4;
        begin_sums(job, sum, 4, nv, 0);
        UNROLL for (size_t i = 0; i < 4; i++)
        {
            const size_t row = i < job->valid ? i : job->valid - 1;
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                sum[i][j] = vf_add(sum[i][j], _mm512_load_ps(sums[r + row][j]));
            }
        }
        store(job, 4, nv, sum, 0);
    }
}

#define AMX_PRODUCT(sums, inputs, weights) _tile_dpbf16ps(sums, inputs, weights)
#define AMX_INPUT_BYTES                    2
/* more, and rounding would depend on how rows fall into calls */
#define AMX_ROWS_MIN 1
#include "backends/cpuacc/kernels/gemm/gemm_amx_tmpl.h"

static void run_amx(const struct ifd_gemm_args *args)
{
    run_tiles(args, sizeof(float));
}

static float speed(void)
{
    return 6.0f;
}

const struct ifd_kern_gemm_f32 ifd_kern_gemm_bf16_amxbf16 = {
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run_amx,
    .lanes = lanes,
    .narrow = narrow,
    .depth = depth,
    .speed = speed,
};
