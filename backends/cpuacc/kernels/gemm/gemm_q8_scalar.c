/* Q8 gemm in plain C: complete, and the reference for the other tables. */
#include "backends/cpuacc/kernels/pack.h"
#include "backends/cpuacc/kernels/gemm/rows_impl.h"
#include "backends/cpuacc/kernels/simd/finish_scalar.h"

enum { LANES = 8 };

static const struct ifd_pack_layout layout = {
    .lanes = LANES, .quad = LANES, .kr = 1, .bytes = 1, .max_nv = 1, .mr = {1}};

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(&layout, n, k, taps, IFD_TAIL_ROWS);
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    ifd_pack_gemm_q8(&layout, weights, requant, dst);
}

/* One output row of one block: sums of LANES columns. */
static void sum_row(const struct ifd_gemm_args *args, size_t row, const unsigned char *start,
                    const int8_t *w, int32_t *sum)
{
    const struct ifd_packed *header = args->packed;
    for (size_t t = 0; t < header->taps; t++) {
        const unsigned char *at;
        ifd_rows_tap(args, 1, row, 1, 1, t, &start, &at);
        const ifd_q8 *a = (const ifd_q8 *)at;
        for (size_t k = 0; k < header->k; k++, w += LANES) {
            for (size_t j = 0; j < LANES; j++) {
                sum[j] += a[k] * w[j];
            }
        }
    }
}

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += LANES) {
        const unsigned char *block = (const unsigned char *)args->packed + IFD_PACKED_HEADER +
                                     n0 / LANES * header->unit_bytes;
        const int32_t *tail =
            (const int32_t *)(const void *)(block + header->private_[IFD_PACKED_TAIL_OFFSET]);
        size_t columns = args->n_end - n0 < LANES ? args->n_end - n0 : LANES;
        struct ifd_row_cursor cursor = {0, 0};
        for (size_t i = 0; i < args->m; i++) {
            const unsigned char *start = NULL;
            if (!args->rows) {
                ifd_rows_next(args, 1, 1, 1, &cursor, &start);
            }
            int32_t sum[LANES];
            for (size_t j = 0; j < LANES; j++) {
                sum[j] = tail[IFD_TAIL_BIAS * LANES + j] + (args->row_add ? args->row_add[i] : 0);
            }
            sum_row(args, i, start, (const int8_t *)block, sum);
            const size_t at = i * args->out_stride + n0;
            if (header->private_[IFD_PACKED_FINISH] == IFD_FINISH_NONE) {
                __builtin_memcpy((int32_t *)args->out + at, sum, columns * sizeof(*sum));
                continue;
            }
            ifd_q8 *out = (ifd_q8 *)args->out + at;
            for (size_t j = 0; j < columns; j++) {
                out[j] = finish_scalar(header, tail, LANES, j, sum[j]);
            }
        }
    }
}

static void row_sum(const ifd_q8 *a, size_t m, size_t k, size_t a_stride, int32_t factor,
                    int32_t *ret_sum)
{
    for (size_t i = 0; i < m; i++, a += a_stride) {
        int32_t sum = 0;
        for (size_t j = 0; j < k; j++) {
            sum += a[j];
        }
        ret_sum[i] = factor * sum;
    }
}

const struct ifd_kern_gemm_q8 ifd_kern_gemm_q8_scalar = {packed_bytes, pack, run, row_sum};
