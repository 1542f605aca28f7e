/* Dilated windows: the kernel reads a table of pointers to rows, and padding points to a row of
 * zero points. */
#include "backends/cpuacc/conv/direct.h"
#include "backends/cpuacc/conv/precision.h"
#include "backends/cpuacc/conv/pack.h"
#include "backends/cpuacc/conv/q8.h"
#include "backends/cpuacc/conv/shape.h"

#include <string.h>

static bool fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    (void)lowering;
    return layer->is_dilated;
}

static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return ifd_acc_direct_cost(lowering, layer, 1.0);
}

static void plan(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    ifd_acc_direct_init(lowering, layer, ifd_acc_direct_gemm(lowering), w->kh * w->kw, w->in_c,
                        ret);
    struct ifd_acc_direct *direct = &ret->direct;
    direct->call_rows = ifd_acc_direct_choose_rows(
        layer, ret, direct->taps * sizeof(void *) + w->in_c * layer->element, lowering->host);
    ifd_acc_direct_finish(lowering, layer, true, w->batch * w->out_h * w->out_w / IFD_ACC_UNIT_ROWS,
                          ret);
}

/* Pointers, then the row of zero points. */
static size_t work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    return ifd_acc_direct_work_bytes(conv, direct->call_rows * direct->taps * sizeof(void *) +
                                               conv->layer.window.in_c * conv->layer.element +
                                               IFD_TENSOR_PAD);
}

/* What output pixels row … row+m-1 see at window position (ky, kx). */
static void point_tap(const struct ifd_acc_conv_run *run, const void **rows, const uint8_t *zeros,
                      size_t row, size_t ky, size_t kx)
{
    const struct ifd_low_window *w = &run->conv->layer.window;
    const size_t pixel_bytes = w->in_c * run->conv->layer.element;
    const size_t image_bytes = w->in_h * w->in_w * pixel_bytes, pixels = w->out_h * w->out_w;
    const uint8_t *image = run->in + row / pixels * image_bytes;
    size_t y = row % pixels / w->out_w, x = row % w->out_w;
    for (size_t i = 0; i < run->args.m; i++) {
        /* left of the image and above it they wrap around to more than its size */
        const size_t in_y = y * w->stride_y + ky * w->dilation_y - w->pad_top;
        const size_t in_x = x * w->stride_x + kx * w->dilation_x - w->pad_left;
        rows[i] = in_y < w->in_h && in_x < w->in_w ? image + (in_y * w->in_w + in_x) * pixel_bytes
                                                   : zeros;
        if (++x == w->out_w) {
            x = 0;
            if (++y == w->out_h) {
                y = 0;
                image += image_bytes;
            }
        }
    }
}

/* Row pointers of output pixels row … row+m-1, tap by tap. */
static void point_rows(const struct ifd_acc_conv_run *run, const void **rows, const uint8_t *zeros,
                       size_t row)
{
    const struct ifd_low_window *w = &run->conv->layer.window;
    for (size_t ky = 0; ky < w->kh; ky++) {
        for (size_t kx = 0; kx < w->kw; kx++, rows += run->args.m) {
            point_tap(run, rows, zeros, row, ky, kx);
        }
    }
}

static void run_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_direct *direct = &run.conv->plan.direct;
    const struct ifd_packed *packed = run.args.packed;
    const struct ifd_acc_range range =
        ifd_acc_conv_share(&run, frame, direct->batch * direct->out_h * direct->out_w, packed->mr);
    const void **rows = (const void **)(void *)ifd_acc_direct_rest(&run);
    uint8_t *zeros = ifd_acc_direct_rest(&run) + direct->call_rows * direct->taps * sizeof(void *);
    const size_t zero_bytes =
        run.conv->layer.window.in_c * run.conv->layer.element + IFD_TENSOR_PAD;
    for (size_t row = range.begin; row < range.end; row += run.args.m) {
        run.args.m = ifd_acc_direct_rows(&run, row, range.end);
        memset(zeros, ifd_acc_q8_zero_byte(&run), zero_bytes);
        run.args.rows = rows;
        point_rows(&run, rows, zeros, row);
        ifd_acc_direct_call(&run, row);
    }
}

const struct ifd_acc_algorithm ifd_acc_conv_rows = {
    .name = "rows",
    .label = "",
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .pack = ifd_acc_direct_pack,
    .packed_bytes = ifd_acc_direct_packed_bytes,
    .workspace_bytes = ifd_acc_direct_workspace_bytes,
    .work_bytes = work_bytes,
    .run = run_rows,
};
