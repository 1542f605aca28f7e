/* f32 fully connected layers whose weights no cache holds: they are multiplied as the file has them. Such a layer waits for
 * memory, packed or not; unpacked it is there at once, and takes no memory beside the file. */
#include "backends/cpuacc/conv/layer.h"

/* More rows gain by packed weights; fewer columns may be packed by halves, whose sums differ. */
#define ROWS_MAX    16
#define COLUMNS_MIN 256
#define CACHE_BYTES ((size_t)1 << 20) /* where the second-level cache is not known */

/* Of the third-level cache, which others share, this may be ours. */
#define SHARED_BYTES_MAX ((size_t)8 << 20)

/* So many weights stay in a cache from one run to the next: four second-level caches, a quarter of the third-level one. There
 * packed ones are read faster: they lie in large pages, the file in small ones. */
static size_t kept_floats(const struct ifd_cpu *cpu)
{
    const size_t own = cpu->l2_bytes ? cpu->l2_bytes : CACHE_BYTES;
    const size_t part = cpu->l3_bytes / 4;
    const size_t shared = (part < SHARED_BYTES_MAX ? part : SHARED_BYTES_MAX) / sizeof(float);
    return own > shared ? own : shared;
}

bool ifd_acc_conv_stays_in_place(const struct ifd_acc_conv *p, const struct ifd_kernels *kernels,
                                 const struct ifd_host *host)
{
    return p->is_dense && !p->product.is_q8 && p->gemm == &kernels->gemm_f32 &&
           p->window.batch * p->window.out_h <= ROWS_MAX && p->out_c >= COLUMNS_MIN &&
           p->k * p->out_c > kept_floats(&host->cpu);
}

void ifd_acc_conv_run_in_place(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct ifd_acc_conv *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->out_c, 64);
    const size_t rows = p->window.batch * p->window.out_h;
    float *out = ifd_acc_out(step, frame);
    step->kernels->dense.run(&(struct ifd_dense_args){.w = p->product.weights,
                                                      .bias = p->product.bias_f32,
                                                      .a = ifd_acc_in(step, frame, 0),
                                                      .add = ifd_acc_in(step, frame, 1),
                                                      .out = out,
                                                      .m = rows,
                                                      .n_begin = range.begin,
                                                      .n_end = range.end,
                                                      .k = p->k,
                                                      .w_stride = p->k,
                                                      .a_stride = p->in_stride,
                                                      .add_stride = p->out_c,
                                                      .out_stride = p->out_stride,
                                                      .min = p->product.min,
                                                      .max = p->product.max});
    const struct ifd_acc_conv_run run = {.step = step,
                                         .frame = frame,
                                         .p = p,
                                         .out = (uint8_t *)out,
                                         .out_stride = p->out_stride,
                                         .args = {.n_begin = range.begin, .n_end = range.end}};
    ifd_acc_conv_tail(&run, 0, rows);
}
