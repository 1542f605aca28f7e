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

static void widen(size_t n, const uint16_t *in, float *out)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        _mm512_storeu_ps(out + i, widen_16(_mm256_loadu_si256((const __m256i *)(in + i))));
    }
    if (i < n) {
        const __mmask16 some = vm_first(n - i);
        _mm512_mask_storeu_ps(out + i, some, widen_16(_mm256_maskz_loadu_epi16(some, in + i)));
    }
}

/* 16 values to add, as args->add at the first of them. */
INLINE vf load_add(const struct job *job, const unsigned char *add, __mmask16 some)
{
    return job->args->narrow_add ? widen_16(_mm256_maskz_loadu_epi16(some, add))
                                 : _mm512_maskz_loadu_ps(some, add);
}

/* Sums of 16 columns become results. add: or NULL. */
INLINE vf finish_vector(const struct job *job, vf v, const unsigned char *add, __mmask16 some,
                        const int is_leaky)
{
    if (add && !is_leaky) {
        v = vf_add(v, load_add(job, add, some));
    }
    v = vf_min(vf_set1(job->max), vf_max(vf_set1(job->min), v));
    if (is_leaky) {
        v = vf_select(vf_lt(v, vf_set1(0)), vf_mul(vf_set1(job->args->slope), v), v);
        v = add ? vf_add(v, load_add(job, add, some)) : v;
    }
    return v;
}

INLINE void finish_row(const struct job *job, int32_t (*sums)[16], const size_t nv,
                       const unsigned char *add, unsigned char *out, const int is_narrow,
                       const int is_leaky)
{
    const size_t add_bytes = job->args->narrow_add ? 2 : 4;
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        const size_t c = 16 * j, left = job->columns - c;
        const __mmask16 some = left < 16 ? vm_first(left) : 0xffff;
        const vf sum = vf_add(vf_load(job->bias + c), _mm512_load_ps(sums[j]));
        const vf v = finish_vector(job, sum, add ? add + c * add_bytes : NULL, some, is_leaky);
        if (is_narrow) {
            _mm256_mask_storeu_epi16(out + 2 * c, some, (__m256i)_mm512_cvtneps_pbh(v));
        } else {
            _mm512_mask_storeu_ps(out + 4 * c, some, v);
        }
    }
}

INLINE void finish_rows(const struct job *job, size_t m0, int32_t (*sums)[4][16], size_t rows,
                        const size_t nv, const int is_narrow, const int is_leaky)
{
    const struct ifd_gemm_args *args = job->args;
    const size_t add_bytes = args->narrow_add ? 2 : 4, out_bytes = is_narrow ? 2 : 4;
    unsigned char *out = (unsigned char *)args->out + (m0 * args->out_stride + job->n0) * out_bytes;
    const unsigned char *add = (const unsigned char *)(const void *)args->add;
    add = add ? add + (m0 * args->add_stride + job->n0) * add_bytes : NULL;
    for (size_t r = 0; r < rows; r++) {
        finish_row(job, sums[r], nv, add, out, is_narrow, is_leaky);
        out += args->out_stride * out_bytes;
        add = add ? add + args->add_stride * add_bytes : NULL;
    }
}

INLINE void finish_chunk(struct job *job, size_t m0, int32_t (*sums)[4][16], size_t rows,
                         const size_t nv)
{
    if (job->args->is_leaky) {
        finish_rows(job, m0, sums, rows, nv, 1, 1);
    } else if (job->args->narrow_out) {
        finish_rows(job, m0, sums, rows, nv, 1, 0);
    } else {
        finish_rows(job, m0, sums, rows, nv, 0, 0);
    }
}

#define AMX_PRODUCT(sums, inputs, weights) _tile_dpbf16ps(sums, inputs, weights)
#define AMX_INPUT_BYTES                    2
/* more, and rounding would depend on how rows fall into calls */
#define AMX_ROWS_MIN 1
#include "backends/cpuacc/kernels/gemm/gemm_amx_tmpl.h"

static void run_amx(const struct ifd_gemm_args *args)
{
    run_tiles(args, sizeof(float), args->narrow_out || args->narrow_add);
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
    .narrow_rows = narrow_rows,
    .widen = widen,
    .depth = depth,
    .speed = speed,
};
