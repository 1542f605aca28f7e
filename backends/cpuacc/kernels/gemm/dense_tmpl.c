/* gemm of a few rows with weights in the file's layout: VF_LANES columns are read side by side,
 * VF_LANES inputs of each at a time, and transposed in registers. Sums are added in the order of
 * the inputs, as gemm_f32 does. */
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/simd.h"

/* STEP   inputs between two fetches: a cache line
 * AHEAD  how far ahead of its use a line is fetched, in floats: beyond the page, too
 * TALL   rows of the tallest tile, and LOW of a lower one
 * LONG   inputs of a column that stay in the cache while more rows than a tile's come by
 * WIDE   vectors of columns: one sum alone waits for itself */
enum {
    STEP = 16,
    AHEAD = 512,
    TALL = VF_REGISTERS / 4,
    LOW = 4,
    LONG = 2048,
    WIDE = VF_LANES < 16 ? 2 : 1
};

/* Inputs k_begin .. k_end-1 of columns n .. n+columns-1. */
struct part {
    size_t n, columns, k_begin, k_end;
    int is_first, is_last;
};

/* Addresses of the lanes' columns; lanes past the last column read it again. */
INLINE void point_columns(const struct ifd_dense_args *args, const struct part *part,
                          const float **column)
{
    UNROLL for (size_t l = 0; l < WIDE * VF_LANES; l++)
    {
        const size_t c = l < part->columns ? l : part->columns - 1;
        column[l] = args->w + (part->n + c) * args->w_stride;
    }
}

/* Inputs k .. k+count-1, VF_LANES of them at most. */
INLINE void add_inputs(const struct ifd_dense_args *args, const float *const *column, size_t row,
                       size_t k, const size_t count, const size_t mr, vf sum[][WIDE])
{
    UNROLL for (size_t v = 0; v < WIDE; v++)
    {
        vf w[VF_LANES];
        UNROLL for (size_t l = 0; l < VF_LANES; l++)
        {
            const float *from = column[v * VF_LANES + l] + k;
            w[l] = count < VF_LANES ? vf_load_n(from, count) : vf_load(from);
        }
        vf_transpose(w);
        for (size_t i = 0; i < mr; i++) {
            const float *a = args->a + (row + i) * args->a_stride + k;
            UNROLL for (size_t l = 0; l < count; l++)
            {
                sum[i][v] = vf_fma(vf_broadcast(a + l), w[l], sum[i][v]);
            }
        }
    }
}

INLINE vf load_some(const float *p, size_t count)
{
    return count >= VF_LANES ? vf_load(p) : vf_load_n(p, count);
}

INLINE void begin(const struct ifd_dense_args *args, const struct part *part, size_t row,
                  const size_t mr, vf sum[][WIDE])
{
    for (size_t i = 0; i < mr; i++) {
        const float *out = args->out + (row + i) * args->out_stride + part->n;
        UNROLL for (size_t v = 0; v < WIDE; v++)
        {
            const size_t c = v * VF_LANES;
            sum[i][v] = vf_set1(0.0f);
            if (c < part->columns && !part->is_first) {
                sum[i][v] = load_some(out + c, part->columns - c);
            } else if (c < part->columns && args->bias) {
                sum[i][v] = load_some(args->bias + part->n + c, part->columns - c);
            }
        }
    }
}

INLINE void finish(const struct ifd_dense_args *args, const struct part *part, size_t row,
                   const size_t mr, vf sum[][WIDE])
{
    const vf lo = vf_set1(args->min), hi = vf_set1(args->max);
    for (size_t i = 0; i < mr; i++) {
        float *out = args->out + (row + i) * args->out_stride + part->n;
        const float *add = args->add ? args->add + (row + i) * args->add_stride + part->n : NULL;
        for (size_t c = 0; c < part->columns; c += VF_LANES) {
            const size_t left = part->columns - c;
            vf v = sum[i][c / VF_LANES];
            if (part->is_last) {
                v = add ? vf_add(v, load_some(add + c, left)) : v;
                v = vf_min(hi, vf_max(lo, v));
            }
            if (left >= VF_LANES) {
                vf_store(out + c, v);
            } else {
                vf_store_n(out + c, v, left);
            }
        }
    }
}

INLINE void tile(const struct ifd_dense_args *args, const struct part *part, size_t row,
                 const size_t mr)
{
    const float *column[WIDE * VF_LANES];
    vf sum[TALL][WIDE];
    point_columns(args, part, column);
    begin(args, part, row, mr, sum);
    size_t k = part->k_begin;
    for (; k + STEP <= part->k_end; k += STEP) {
        UNROLL for (size_t l = 0; l < WIDE * VF_LANES; l++)
        {
            __builtin_prefetch(column[l] + k + AHEAD, 0, 2);
        }
        UNROLL for (size_t s = 0; s < STEP; s += VF_LANES)
        {
            add_inputs(args, column, row, k + s, VF_LANES, mr, sum);
        }
    }
    for (; k + VF_LANES <= part->k_end; k += VF_LANES) {
        add_inputs(args, column, row, k, VF_LANES, mr, sum);
    }
    if (k < part->k_end) {
        add_inputs(args, column, row, k, part->k_end - k, mr, sum);
    }
    finish(args, part, row, mr, sum);
}

static void tile_1(const struct ifd_dense_args *args, const struct part *part, size_t row)
{
    tile(args, part, row, 1);
}

static void tile_low(const struct ifd_dense_args *args, const struct part *part, size_t row)
{
    tile(args, part, row, LOW);
}

static void tile_tall(const struct ifd_dense_args *args, const struct part *part, size_t row)
{
    tile(args, part, row, TALL);
}

/* All rows of a part. */
static void run_part(const struct ifd_dense_args *args, const struct part *part)
{
    size_t row = 0;
    for (; row + TALL <= args->m; row += TALL) {
        tile_tall(args, part, row);
    }
    for (; row + LOW <= args->m; row += LOW) {
        tile_low(args, part, row);
    }
    for (; row < args->m; row++) {
        tile_1(args, part, row);
    }
}

static void run(const struct ifd_dense_args *args)
{
    /* sums wait in the output, if that is free */
    const size_t most = args->m > TALL && args->add != args->out ? LONG : args->k;
    struct part part = {.n = args->n_begin};
    for (; part.n < args->n_end; part.n += part.columns) {
        const size_t left = args->n_end - part.n;
        part.columns = left < WIDE * VF_LANES ? left : WIDE * VF_LANES;
        part.k_end = 0;
        do {
            part.k_begin = part.k_end;
            part.k_end = args->k - part.k_begin < most ? args->k : part.k_begin + most;
            part.is_first = part.k_begin == 0;
            part.is_last = part.k_end == args->k;
            run_part(args, &part);
        } while (!part.is_last);
    }
}

const struct ifd_kern_dense IFD_TABLE = {run};
