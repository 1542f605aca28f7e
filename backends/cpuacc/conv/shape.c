/* Which pixels are one row, and how many rows a kernel call takes. */
#include "backends/cpuacc/conv/shape.h"

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t ifd_acc_direct_line(const struct ifd_acc_layer *layer, size_t pixel)
{
    const struct ifd_low_window *w = &layer->window;
    return (w->is_padded ? (w->out_w - 1) * w->stride_x + w->kw : w->in_w) * pixel;
}

size_t ifd_acc_direct_padding(const struct ifd_acc_layer *layer, size_t line, size_t pixel)
{
    return min_size(layer->window.pad_left * pixel, line);
}

/* ---- groups of pixels ----
 *
 * A group is the same convolution with `group` times the channels and the stride. Its weights
 * repeat once for each pixel, shifted along the line, with zeros around them. A non-finite value
 * times such a zero would reach the neighbours: those rows are computed again, pixel by pixel. */

/* Cost of a group, in vector operations per pixel: one product for each vector of weights, and a
 * few for each vector that is stored; one more where the last vector is stored in part, and one to
 * look for non-finite results of a group. */
static double group_cost(const struct ifd_acc_layer *layer, const struct ifd_acc_conv_plan *plan,
                         size_t group)
{
    const struct ifd_acc_direct *direct = &plan->direct;
    const size_t lanes = plan->gemm->lanes();
    const size_t columns = group * layer->out_c, vectors = (columns + lanes - 1) / lanes;
    const size_t k = direct->pixel_k + (group - 1) * direct->pixel_step;
    const size_t products =
        plan->gemm->packed_bytes(columns, k, direct->taps) / (lanes * sizeof(float));
    const size_t stores = 4 * (vectors + (columns % lanes != 0) + (group > 1));
    return (double)(products + stores) / (double)group;
}

/* Weights of a group stay in a part of L1. */
#define GROUP_BYTES_MAX ((size_t)32 * 1024)

size_t ifd_acc_direct_choose_group(const struct ifd_acc_layer *layer,
                                   const struct ifd_acc_conv_plan *plan, size_t pixels)
{
    const struct ifd_acc_direct *direct = &plan->direct;
    const size_t lanes = plan->gemm->lanes();
    size_t best = 1;
    for (size_t group = 2; layer->out_c < lanes && group <= lanes && pixels % group == 0;
         group *= 2) {
        const size_t weights = direct->taps * (direct->pixel_k + (group - 1) * direct->pixel_step);
        if (weights * group * layer->out_c * sizeof(float) <= GROUP_BYTES_MAX &&
            group_cost(layer, plan, group) < group_cost(layer, plan, best)) {
            best = group;
        }
    }
    return best;
}

void ifd_acc_direct_group(struct ifd_acc_conv_plan *plan, size_t group, bool is_plain)
{
    struct ifd_acc_direct *direct = &plan->direct;
    plan->group = group;
    plan->n *= group;
    plan->out_stride *= group;
    direct->line_rows = direct->out_w % group == 0 ? direct->out_w / group : 0;
    direct->k += (group - 1) * direct->pixel_step;
    if (group == 1) {
        return; /* images stay apart: each may have its scale, or its blocks of rows */
    }
    if (is_plain) {
        direct->out_w = direct->batch * direct->out_h * direct->out_w / group;
        direct->batch = direct->out_h = 1;
    } else {
        direct->out_w /= group;
        direct->stride_x *= group;
    }
}

/* ---- rows of a call ---- */

/* Rows whose results fit into the cache: the tail finds them there. */
static size_t tail_rows(const struct ifd_acc_layer *layer, const struct ifd_acc_conv_plan *plan,
                        size_t cache)
{
    return layer->tail.count && !plan->direct.is_leaky
               ? max_size(48, cache / (plan->n * layer->out_element))
               : SIZE_MAX;
}

/* Rows of a call whose weights come from beyond the cache; fewer would wait for them. */
#define FAR_ROWS 96

/* Output lines of a call at least. */
static size_t least_lines(const struct ifd_acc_layer *layer, const struct ifd_acc_conv_plan *plan,
                          const struct ifd_host *host)
{
    const struct ifd_acc_direct *direct = &plan->direct;
    const bool is_far =
        direct->taps * direct->k * plan->n * layer->element > ifd_acc_cache_bytes(host);
    return is_far ? (FAR_ROWS + direct->out_w - 1) / direct->out_w : 1;
}

size_t ifd_acc_direct_choose_lines(const struct ifd_acc_layer *layer,
                                   const struct ifd_acc_conv_plan *plan, size_t element,
                                   const struct ifd_host *host)
{
    const struct ifd_acc_direct *direct = &plan->direct;
    const struct ifd_low_window *w = &layer->window;
    const size_t cache = ifd_acc_cache_bytes(host) / 4;
    /* a window of one line that needs no padding reads the pixels of its stride only */
    const size_t elements =
        w->kh == 1 && !w->is_padded ? direct->out_w * direct->k : w->stride_y * direct->line;
    const size_t fitting = cache / (elements * element);
    size_t lines = max_size(least_lines(layer, plan, host), fitting > w->kh ? fitting - w->kh : 1);
    lines = min_size(lines, direct->out_h);
    return max_size(1, min_size(lines, tail_rows(layer, plan, cache) / direct->out_w));
}

size_t ifd_acc_direct_choose_rows(const struct ifd_acc_layer *layer,
                                  const struct ifd_acc_conv_plan *plan, size_t row_bytes,
                                  const struct ifd_host *host)
{
    const struct ifd_acc_direct *direct = &plan->direct;
    const size_t cache = ifd_acc_cache_bytes(host) / 4;
    const size_t rows = direct->batch * direct->out_h * direct->out_w, unit = 48;
    const size_t inputs = (layer->product.is_q8 ? 1 : 2) * cache / max_size(1, row_bytes);
    const size_t most = max_size(unit, min_size(inputs, tail_rows(layer, plan, cache)));
    const size_t calls = max_size(1, rows / most + (rows % most != 0));
    return (rows / calls + unit) / unit * unit;
}
