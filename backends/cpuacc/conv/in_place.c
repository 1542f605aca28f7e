/* f32 fully connected layers whose weights fit into no cache are multiplied as the file has them.
 * The time is that of reading memory, packed or not; without packing the first answer comes at
 * once, and no memory is taken beside the file. */
#include "backends/cpuacc/conv/direct.h"
#include "backends/cpuacc/conv/precision.h"

/* More rows gain from packed weights. Fewer columns may be packed as half vectors, whose sums
 * differ. */
#define ROWS_MAX    16
#define COLUMNS_MIN 256
#define CACHE_BYTES ((size_t)1 << 20) /* where the second-level cache is not known */

/* Our part of the third-level cache, which others share, at most. */
#define SHARED_BYTES_MAX ((size_t)8 << 20)

/* Weights that stay in a cache from run to run: four second-level caches, or a quarter of the
 * third-level one. Packed weights are read faster there: they lie in large pages, the file in small
 * ones. */
static size_t kept_floats(const struct ifd_cpu *cpu)
{
    const size_t own = cpu->l2_bytes ? cpu->l2_bytes : CACHE_BYTES;
    const size_t part = cpu->l3_bytes / 4;
    const size_t shared = (part < SHARED_BYTES_MAX ? part : SHARED_BYTES_MAX) / sizeof(float);
    return own > shared ? own : shared;
}

static bool fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return layer->is_dense && ifd_acc_direct_is_f32(lowering, layer) &&
           w->batch * w->out_h <= ROWS_MAX && layer->out_c >= COLUMNS_MIN &&
           w->in_c * layer->out_c > kept_floats(&lowering->host->cpu);
}

/* Nothing is packed. */
static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    return ifd_acc_direct_cost_of(lowering, layer, 1, (double)layer->window.out_h, 0,
                                  IFD_ACC_READ_FAR);
}

static void plan(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret)
{
    *ret = (struct ifd_acc_conv_plan){.kernel = "dense",
                                      .gemm = &lowering->kernels->gemm_f32,
                                      .group = 1,
                                      .n = layer->out_c,
                                      .out_stride = layer->out_stride,
                                      .load = {.is_whole = true}};
}

static void run_in_place(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_layer *layer = &run.conv->layer;
    const struct ifd_acc_range range = ifd_acc_share(frame, layer->out_c, 64);
    const size_t rows = layer->window.batch * layer->window.out_h, k = layer->window.in_c;
    run.args.n_begin = range.begin;
    run.args.n_end = range.end;
    step->kernels->dense.run(&(struct ifd_dense_args){.w = layer->product.weights,
                                                      .bias = layer->product.bias_f32,
                                                      .a = (const void *)run.in,
                                                      .add = (const void *)run.add,
                                                      .out = (void *)run.out,
                                                      .m = rows,
                                                      .n_begin = range.begin,
                                                      .n_end = range.end,
                                                      .k = k,
                                                      .w_stride = k,
                                                      .a_stride = layer->in_stride,
                                                      .add_stride = layer->out_c,
                                                      .out_stride = layer->out_stride,
                                                      .min = layer->product.min,
                                                      .max = layer->product.max});
    ifd_acc_conv_tail(&run, 0, rows);
}

const struct ifd_acc_algorithm ifd_acc_conv_in_place = {
    .name = "in place", .label = "", .fits = fits, .cost = cost, .plan = plan, .run = run_in_place};
