/* Begin and end of a tile of the q8 gemm with NEON (gemm_q8_neon_tmpl.h).
 *
 * The includer defines SQUARES before. The sums of a tile are vectors sum[group][vector]. SQUARES
 * 0: a group is a row, a vector 4 columns of it. SQUARES 1: a group is two rows, a vector 2 columns
 * of both: row 0's, row 1's. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_NEON_JOB_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_NEON_JOB_TMPL_H

#include "backends/cpuacc/kernels/simd/finish_neon.h"
#include "backends/cpuacc/kernels/gemm/rows_impl.h"

/* Rows and vectors of the largest tile: what fits into 32 registers, or into 16. */
#if defined(__aarch64__)
#define TALL 6
#define WIDE 4
#else
#define TALL 4
#define WIDE 2
#endif
#define GROUPS(mr)  (SQUARES ? ((mr) + 1) / 2 : (mr))
#define VECTORS(nv) (SQUARES ? 2 * (nv) : (nv))
#define SUMS        sum[TALL][2 * WIDE] /* the larger of both layouts */

/* `tiles` stacked tiles of the block's `columns` columns from row m0 on; the first `valid` rows
 * of each count. start: the rows of the first tile, a_stride apart. */
struct job {
    const struct ifd_gemm_args *args;
    const void *weights;
    const int32_t *tail;
    size_t m0, valid, tiles, columns;
    int8_t *out;
    const unsigned char *start[TALL];
};

/* Loads one or two vectors of weights and returns the address behind them. Two are one
 * instruction in assembly: gcc would split it when all registers are in use, and spill sums. */
INLINE const void *load_weights(const void *w, const size_t count, int8x16_t *ret_vector)
{
    const int8_t *at = w;
#if defined(__aarch64__)
    if (count == 2) {
        __asm__("ldp %q0, %q1, [%2], #32"
                : "=w"(ret_vector[0]), "=w"(ret_vector[1]), "+r"(at)
                : "m"(*(const int8_t(*)[32])at));
        return at;
    }
#endif
    for (size_t i = 0; i < count; i++, at += 16) {
        ret_vector[i] = vld1q_s8(at);
    }
    return at;
}

/* The part of a tail's array for the columns of vector j. With SQUARES the arrays of biases,
 * multipliers and right shifts hold each pair of columns twice and cover the arrays behind them,
 * which no NEON kernel reads; the left shifts are moved: see repeat_columns(). */
INLINE int32x4_t load_columns(const int32_t *array, const size_t j)
{
    return vld1q_s32(array + 4 * j);
}

INLINE int32x4_t load_left(const int32_t *tail, size_t width, const size_t j)
{
#if SQUARES
    const int32_t *pair = tail + IFD_TAIL_PLUS_NEG * width + 2 * j;
    return vcombine_s32(vld1_s32(pair), vld1_s32(pair));
#else
    return load_columns(tail + IFD_TAIL_LEFT * width, j);
#endif
}

#if SQUARES
static void repeat_columns(size_t width, int32_t *tail)
{
    static const enum ifd_tail array[] = {IFD_TAIL_BIAS, IFD_TAIL_MULTIPLIER, IFD_TAIL_RIGHT};
    for (size_t i = 0; i < width; i++) {
        tail[IFD_TAIL_PLUS_NEG * width + i] = tail[IFD_TAIL_LEFT * width + i];
    }
    for (size_t a = 0; a < 3; a++) {
        int32_t *column = tail + array[a] * width;
        for (size_t i = width; i > 0; i -= 2) { /* from the last pair on, to their own place */
            column[2 * i - 1] = column[2 * i - 3] = column[i - 1];
            column[2 * i - 2] = column[2 * i - 4] = column[i - 2];
        }
    }
}
#endif

/* row_add for the rows of group i. */
INLINE int32x4_t load_rows(const struct job *job, const size_t m0, const size_t i)
{
    const int32_t *add = job->args->row_add + m0;
#if SQUARES
    const size_t first = 2 * i < job->valid ? 2 * i : job->valid - 1;
    const size_t second = first + 1 < job->valid ? first + 1 : first;
    return vcombine_s32(vdup_n_s32(add[first]), vdup_n_s32(add[second]));
#else
    return vdupq_n_s32(add[i < job->valid ? i : job->valid - 1]);
#endif
}

/* Loads the biases anew for every group, which takes half the instructions of copies: one load
 * fills two registers. */
INLINE void start_sums(const struct job *job, const int usual, const size_t m0, const size_t mr,
                       const size_t nv, int32x4_t SUMS)
{
    const int32_t *bias = job->tail;
    UNROLL for (size_t i = 0; i < GROUPS(mr); i++)
    {
        __asm__ volatile("" : "+r"(bias)); /* the compiler is to see new addresses */
        UNROLL for (size_t j = 0; j < VECTORS(nv); j++)
        {
            sum[i][j] = load_columns(bias, j);
        }
    }
    if (!usual && job->args->row_add) {
        UNROLL for (size_t i = 0; i < GROUPS(mr); i++)
        {
            const int32x4_t add = load_rows(job, m0, i);
            UNROLL for (size_t j = 0; j < VECTORS(nv); j++)
            {
                sum[i][j] = vaddq_s32(sum[i][j], add);
            }
        }
    }
}

/* Four columns of a row. */
INLINE int32x4_t row_sums(int32x4_t SUMS, const size_t i, const size_t j)
{
#if SQUARES
    const int64x2_t x = vreinterpretq_s64_s32(sum[i / 2][2 * j]);
    const int64x2_t y = vreinterpretq_s64_s32(sum[i / 2][2 * j + 1]);
    return vreinterpretq_s32_s64(i % 2 ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
#else
    return sum[i][j];
#endif
}

/* Eight columns of a row in 16 bits; four of them twice if there are no more. */
INLINE int16x8_t row_words(const int finish, int32x4_t SUMS, const size_t i, const size_t nv,
                           const size_t half)
{
    const size_t j = 2 * half, next = j + 1 < nv ? j + 1 : j;
#if SQUARES
    const int32x4_t x =
        vreinterpretq_s32_s16(narrow_32(finish, sum[i / 2][2 * j], sum[i / 2][2 * j + 1]));
    const int32x4_t y =
        vreinterpretq_s32_s16(narrow_32(finish, sum[i / 2][2 * next], sum[i / 2][2 * next + 1]));
    return vreinterpretq_s16_s32(i % 2 ? vuzp2q_s32(x, y) : vuzp1q_s32(x, y));
#else
    return narrow_32(finish, sum[i][j], sum[i][next]);
#endif
}

/* Stores the sums as they are: out is int32_t, and job->out still counts its elements. */
INLINE void store_sums(const struct job *job, const size_t offset, const size_t mr, const size_t nv,
                       int32x4_t SUMS)
{
    int32_t *out = (int32_t *)job->args->out + (job->out - (int8_t *)job->args->out) + offset;
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            int32_t *to = out + i * job->args->out_stride + 4 * j;
            const int32x4_t row = row_sums(sum, i, j);
            if (i < job->valid && 4 * j + 4 <= job->columns) {
                vst1q_s32(to, row);
            } else if (i < job->valid) {
                int32_t rest[4];
                vst1q_s32(rest, row);
                for (size_t c = 0; 4 * j + c < job->columns; c++) {
                    to[c] = rest[c];
                }
            }
        }
    }
}

INLINE void scale_tile(const struct job *job, const int finish, const size_t mr, const size_t nv,
                       int32x4_t SUMS)
{
    const size_t width = 4 * nv;
    UNROLL for (size_t j = 0; j < VECTORS(nv); j++)
    {
        const struct factors f = {load_columns(job->tail + IFD_TAIL_MULTIPLIER * width, j),
                                  load_left(job->tail, width, j),
                                  load_columns(job->tail + IFD_TAIL_RIGHT * width, j)};
        UNROLL for (size_t i = 0; i < GROUPS(mr); i++)
        {
            sum[i][j] = scale_sums(finish, &f, sum[i][j]);
        }
    }
}

/* Stores fewer columns than the tile has, or a width that no instruction stores. */
INLINE void store_some(int8x16_t bytes, size_t columns, int8_t *out)
{
    int8_t all[16];
    vst1q_s8(all, bytes);
    for (size_t i = 0; i < columns; i++) {
        out[i] = all[i];
    }
}

/* The output's parameters, copied to locals because stores through int8_t may alias everything
 * else. */
struct output {
    size_t stride;
    int16_t zero;
    int8_t min, max;
    int is_bounded; /* more than the type does it */
};

INLINE struct output load_output(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    struct output output = {.stride = args->out_stride,
                            .zero = (int16_t)header->private_[IFD_PACKED_OUT_ZERO],
                            .min = (int8_t)header->private_[IFD_PACKED_OUT_MIN],
                            .max = (int8_t)header->private_[IFD_PACKED_OUT_MAX]};
    output.is_bounded = output.min > INT8_MIN || output.max < INT8_MAX;
    return output;
}

/* The tile's rows of 8 bits, of sums that are scaled already. */
INLINE void pack_tile(const struct output *output, const int finish, const size_t mr,
                      const size_t nv, int32x4_t SUMS, int8x16_t *row)
{
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        const int16x8_t zero = vdupq_n_s16(output->zero), lo = row_words(finish, sum, i, nv, 0);
        row[i] = nv > 2 ? narrow_16(finish, lo, row_words(finish, sum, i, nv, 1), zero)
                        : vcombine_s8(narrow_8(finish, lo, zero), vdup_n_s8(0));
    }
    if (output->is_bounded) {
        int8_t min = output->min, max = output->max;
        __asm__ volatile("" : "+r"(min), "+r"(max)); /* no registers for them all the way */
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            row[i] = vminq_s8(vmaxq_s8(row[i], vdupq_n_s8(min)), vdupq_n_s8(max));
        }
    }
}

/* All columns of a row. */
INLINE void store_row(int8x16_t bytes, const size_t nv, int8_t *out)
{
    int32_t word = 0;
    switch (nv) {
    case 4:
        vst1q_s8(out, bytes);
        break;
    case 3:
        vst1_s8(out, vget_low_s8(bytes));
        word = vgetq_lane_s32(vreinterpretq_s32_s8(bytes), 2);
        __builtin_memcpy(out + 8, &word, 4);
        break;
    case 2:
        vst1_s8(out, vget_low_s8(bytes));
        break;
    default:
        word = vgetq_lane_s32(vreinterpretq_s32_s8(bytes), 0);
        __builtin_memcpy(out, &word, 4);
    }
}

/* usual: all rows and columns of the tile count. */
INLINE void finish_tile(const struct job *job, const struct output *output, const int finish,
                        const int usual, int8_t *out, const size_t mr, const size_t nv,
                        int32x4_t SUMS)
{
    int8x16_t row[TALL];
    if (finish == IFD_FINISH_NONE) {
        store_sums(job, (size_t)(out - job->out), mr, nv, sum);
        return;
    }
    scale_tile(job, finish, mr, nv, sum);
    pack_tile(output, finish, mr, nv, sum, row);
    UNROLL for (size_t i = 0; i < mr; i++, out += output->stride)
    {
        if (usual || (i < job->valid && job->columns == 4 * nv)) {
            store_row(row[i], nv, out);
        } else if (i < job->valid) {
            store_some(row[i], job->columns, out);
        }
    }
}

#endif
