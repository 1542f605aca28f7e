/* Q8 gemm with AMX. Weights are packed as for VNNI, so that its code runs on them. */
#include "backends/cpuacc/kernels/gemm/gemm_q8_vnni_impl.h"

static const struct ifd_pack_layout layout = {
    .lanes = 16, .quad = 4, .kr = 4, .k_tile = 64, .bytes = 1, .max_nv = 4, .mr = {32, 32, 32, 32}};

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(&layout, n, k, taps, IFD_TAIL_ROWS);
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    ifd_pack_gemm_q8(&layout, weights, requant, dst);
}

static struct job make_job(const struct ifd_gemm_args *args, const uint8_t *weights,
                           const uint8_t *tail, size_t n0, size_t columns)
{
    return (struct job){.args = args,
                        .weights = (const int8_t *)weights,
                        .tail = (const int32_t *)(const void *)tail,
                        .columns = columns,
                        .out = (uint8_t *)args->out + n0};
}

/* Four rows at a time. */
INLINE void finish_rows(struct job *job, size_t m0, int32_t (*sums)[4][16], size_t rows,
                        const size_t nv, const int has_add)
{
    uint8_t *out = job->out;
    for (size_t r = 0; r < rows; r += 4) {
        __m512i sum[4][4];
        job->m0 = m0 + r;
        job->out = out + (m0 + r) * job->args->out_stride;
        job->valid = rows - r < 4 ? rows - r : 4;
        UNROLL for (size_t i = 0; i < 4; i++)
        {
            const size_t row = i < job->valid ? i : job->valid - 1;
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                sum[i][j] = _mm512_add_epi32(_mm512_load_si512(job->tail + 16 * j),
                                             _mm512_load_si512(sums[r + row][j]));
            }
            if (has_add) {
                const __m512i add = _mm512_set1_epi32(job->args->row_add[job->m0 + row]);
                UNROLL for (size_t j = 0; j < nv; j++)
                {
                    sum[i][j] = _mm512_add_epi32(sum[i][j], add);
                }
            }
        }
        finish(job, 4, nv, sum);
    }
    job->out = out;
}

INLINE void finish_chunk(struct job *job, size_t m0, int32_t (*sums)[4][16], size_t rows,
                         const size_t nv)
{
    if (job->args->row_add) {
        finish_rows(job, m0, sums, rows, nv, 1);
    } else {
        finish_rows(job, m0, sums, rows, nv, 0);
    }
}

#define AMX_PRODUCT(sums, inputs, weights) _tile_dpbusd(sums, inputs, weights)
#define AMX_INPUT_BYTES                    1
#define AMX_ROWS_MIN                       4 /* VNNI is faster */
#include "backends/cpuacc/kernels/gemm/gemm_amx_tmpl.h"

static void run_amx(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    run_tiles(args, header->private_[IFD_PACKED_FINISH] == IFD_FINISH_NONE ? 4 : 1, 0);
}

const struct ifd_kern_gemm_q8 ifd_kern_gemm_q8_amx = {packed_bytes, pack, run_amx, row_sum};
