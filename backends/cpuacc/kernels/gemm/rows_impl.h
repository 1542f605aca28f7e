/* Addresses of the input rows of one tile, for the gemm kernels. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_ROWS_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_ROWS_IMPL_H

#include "backends/cpuacc/kernels/kernels.h"

/* The next row: pixel x of line y. Zero-initialized, it is row 0. */
struct ifd_row_cursor {
    size_t x, y;
};

/* Writes the addresses of the next mr rows at tap 0 and advances by the first `valid` of them.
 * The others repeat the last one, so tiles may read them and need not store them. element: bytes
 * of an input. */
static inline void ifd_rows_next(const struct ifd_gemm_args *args, size_t element, size_t mr,
                                 size_t valid, struct ifd_row_cursor *at,
                                 const unsigned char **ret_row)
{
    size_t len = args->row_len != 0 ? args->row_len : args->m;
    const unsigned char *row = args->a;
    if (valid == mr && at->x + mr <= len) { /* nearly always: all on one line */
        row += (at->y * args->row_stride + at->x * args->a_stride) * element;
        for (size_t i = 0; i < mr; i++, row += args->a_stride * element) {
            ret_row[i] = row;
        }
        at->x += mr;
        at->y += at->x == len;
        at->x = at->x == len ? 0 : at->x;
        return;
    }
    for (size_t i = 0; i < mr; i++) {
        if (i < valid) {
            row = (const unsigned char *)args->a +
                  (at->y * args->row_stride + at->x * args->a_stride) * element;
            if (++at->x == len) {
                at->x = 0;
                at->y++;
            }
        }
        ret_row[i] = row;
    }
}

/* The same rows at tap t: from the table of row pointers, or tap_stride further on. */
static inline void ifd_rows_tap(const struct ifd_gemm_args *args, size_t element, size_t m0,
                                size_t mr, size_t valid, size_t t,
                                const unsigned char *const *start, const unsigned char **ret_row)
{
    if (!args->rows) {
        for (size_t i = 0; i < mr; i++) {
            ret_row[i] = start[i] + t * args->tap_stride * element;
        }
        return;
    }
    for (size_t i = 0; i < mr; i++) {
        ret_row[i] = args->rows[t * args->m + m0 + (i < valid ? i : valid - 1)];
    }
}

#endif
