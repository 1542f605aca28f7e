/* What a call of the kernels takes: pixels that are one row, rows that the cache holds. */
#include "backends/cpuacc/conv/layer.h"

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What a group of pixels costs, in vector operations a pixel: products, one for each vector of weights, and a handful for
 * what comes after them; twice where the last vector is stored in part, and where a group's result is looked through. */
static double group_cost(const struct ifd_acc_conv *p, size_t group)
{
    const size_t lanes = p->gemm->lanes();
    const size_t columns = group * p->pixel_n, vectors = (columns + lanes - 1) / lanes;
    const size_t k = p->pixel_k + (group - 1) * p->pixel_step;
    const size_t products = p->gemm->packed_bytes(columns, k, p->taps) / (lanes * sizeof(float));
    const size_t stores = 4 * (vectors + (columns % lanes != 0) + (group > 1));
    return (double)(products + stores) / (double)group;
}

/* Weights of a group stay in a part of L1. */
#define GROUP_BYTES_MAX ((size_t)32 * 1024)

size_t ifd_acc_conv_choose_group(const struct ifd_acc_conv *p)
{
    const size_t lanes = p->gemm->lanes();
    const size_t pixels =
        p->mode == IFD_ACC_CONV_PLAIN ? p->window.out_h * p->window.out_w : p->window.out_w;
    size_t best = 1;
    for (size_t group = 2; p->pixel_n < lanes && group <= lanes && pixels % group == 0;
         group *= 2) {
        const size_t weights = p->taps * (p->pixel_k + (group - 1) * p->pixel_step);
        if (weights * group * p->pixel_n * sizeof(float) <= GROUP_BYTES_MAX &&
            group_cost(p, group) < group_cost(p, best)) {
            best = group;
        }
    }
    return best;
}

void ifd_acc_conv_group_pixels(struct ifd_acc_conv *p, size_t group)
{
    p->group = group;
    p->line_rows = p->window.out_w % group == 0 ? p->window.out_w / group : 0;
    p->out_c *= group;
    p->out_stride *= group;
    p->k += (group - 1) * p->pixel_step;
    if (group == 1) {
        return; /* images stay apart: each may have a scale, or blocks of rows, of its own */
    }
    if (p->mode == IFD_ACC_CONV_PLAIN) {
        p->window.out_w = p->window.batch * p->window.out_h * p->window.out_w / group;
        p->window.batch = p->window.out_h = 1;
    } else {
        p->window.out_w /= group;
        p->window.stride_x *= group;
    }
}

/* Rows whose results fill so much cache: a tail finds them there. */
static size_t tail_rows(const struct ifd_acc_conv *p, size_t cache)
{
    return p->tail.count ? max_size(48, cache / (p->out_c * p->out_element)) : SIZE_MAX;
}

/* Rows of a call that read weights from beyond the cache: fewer would wait for them. */
#define FAR_ROWS 96

/* Output lines of a call at least. */
static size_t least_lines(const struct ifd_acc_conv *p, const struct ifd_host *host)
{
    const bool is_far = p->taps * p->k * p->out_c * p->element > ifd_acc_cache_bytes(host);
    return is_far ? (FAR_ROWS + p->window.out_w - 1) / p->window.out_w : 1;
}

void ifd_acc_conv_choose_tiles(struct ifd_acc_conv *p, const struct ifd_host *host)
{
    if (p->is_strassen) {
        p->tile_rows = ifd_acc_strassen_rows(p, host);
        return;
    }
    const size_t cache = ifd_acc_cache_bytes(host) / 4;
    const size_t element = p->narrow_c ? sizeof(uint16_t) : p->element; /* as the kernel reads it */
    if (p->mode == IFD_ACC_CONV_TILES) {
        p->tile_rows = ifd_acc_winograd_choose_tiles(p, host);
        return;
    }
    if (p->mode == IFD_ACC_CONV_LINES) {
        /* a window of one line that needs no padding reads the pixels of its stride only */
        const size_t elements = p->window.kh == 1 && !p->window.is_padded
                                    ? p->window.out_w * p->k
                                    : p->window.stride_y * p->line;
        const size_t lines = cache / (elements * element);
        p->tile_lines =
            max_size(least_lines(p, host), lines > p->window.kh ? lines - p->window.kh : 1);
        p->tile_lines = min_size(p->tile_lines, p->window.out_h);
        p->tile_lines = max_size(1, min_size(p->tile_lines, tail_rows(p, cache) / p->window.out_w));
        p->tile_rows = p->tile_lines * p->window.out_w;
        return;
    }
    const size_t row_bytes = p->mode == IFD_ACC_CONV_ROWS
                                 ? p->taps * sizeof(void *) + p->window.in_c * p->element
                                 : (p->narrow_c ? p->narrow_c : p->k) * element;
    const size_t rows = p->window.batch * p->window.out_h * p->window.out_w, unit = 48;
    const size_t inputs = (p->product.is_q8 ? 1 : 2) * cache / max_size(1, row_bytes);
    const size_t most = max_size(unit, min_size(inputs, tail_rows(p, cache)));
    const size_t calls = max_size(1, rows / most + (rows % most != 0));
    p->tile_rows = (rows / calls + unit) / unit * unit;
}
