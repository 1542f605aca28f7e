/* rfft2d of single lines (fft_h 1) and complex_abs. The spectrum of n real numbers comes from a
 * transform of n / 2 complex ones, which runs in single precision by Stockham's algorithm: each
 * stage goes from one buffer to the other; its inner loop, over neighbours, doubles in length while
 * the outer one halves. */
#include "backends/cpuacc/driver.h"

#include <math.h>

struct complex {
    float re, im;
};

/* Work buffers of a thread's transform, real and imaginary parts apart. */
struct planes {
    float *re, *im;
};

struct rfft_params {
    size_t lines;            /* spectra to compute */
    size_t in_line, in_step; /* numbers that a line has, and from line to line */
    size_t n;                /* length of the real transform, ≥ 2 */
    struct complex *root;    /* exp(-2 pi i k / n) for k < n / 2 */
};

/* One stage of the transform of `groups` * 2 * step numbers: pairs that lie `groups` * step apart
 * become neighbours. */
static void stage(const struct rfft_params *p, size_t groups, size_t step, struct planes in,
                  struct planes out)
{
    const size_t apart = groups * step;
    for (size_t group = 0; group < groups; group++) {
        const struct complex w = p->root[2 * group * step];
        const float *restrict ar = in.re + group * step, *restrict ai = in.im + group * step;
        const float *restrict br = ar + apart, *restrict bi = ai + apart;
        float *restrict sum_re = out.re + 2 * group * step;
        float *restrict sum_im = out.im + 2 * group * step;
        float *restrict turned_re = sum_re + step, *restrict turned_im = sum_im + step;
        for (size_t i = 0; i < step; i++) {
            const float re = ar[i] - br[i], im = ai[i] - bi[i];
            sum_re[i] = ar[i] + br[i];
            sum_im[i] = ai[i] + bi[i];
            turned_re[i] = re * w.re - im * w.im;
            turned_im[i] = re * w.im + im * w.re;
        }
    }
}

/* Transforms what is in a; returns the buffer that holds the result. */
static struct planes transform(const struct rfft_params *p, struct planes a, struct planes b)
{
    for (size_t groups = p->n / 4, step = 1; groups >= 1; groups /= 2, step *= 2) {
        stage(p, groups, step, a, b);
        const struct planes made = b;
        b = a;
        a = made;
    }
    return a;
}

/* Separates the spectrum of n real numbers. z: the transform of complex numbers whose real parts
 * are the even ones and whose imaginary parts are the odd ones. */
static void separate(const struct rfft_params *p, struct planes z, struct complex *out)
{
    const size_t m = p->n / 2;
    out[0] = (struct complex){z.re[0] + z.im[0], 0};
    out[m] = (struct complex){z.re[0] - z.im[0], 0};
    for (size_t k = 1; k < m; k++) {
        const struct complex w = p->root[k];
        const float even_re = 0.5f * (z.re[k] + z.re[m - k]),
                    odd_re = 0.5f * (z.im[k] + z.im[m - k]);
        const float even_im = 0.5f * (z.im[k] - z.im[m - k]),
                    odd_im = 0.5f * (z.re[m - k] - z.re[k]);
        out[k] = (struct complex){even_re + odd_re * w.re - odd_im * w.im,
                                  even_im + odd_re * w.im + odd_im * w.re};
    }
}

static void run_rfft(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct rfft_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->lines, 1);
    const size_t m = p->n / 2;
    float *work = ifd_acc_work(step, frame);
    const struct planes a = {work, work + m}, b = {work + 2 * m, work + 3 * m};
    for (size_t line = range.begin; line < range.end; line++) {
        const float *in = (const float *)ifd_acc_in(step, frame, 0) + line * p->in_step;
        for (size_t k = 0; k < m; k++) {
            a.re[k] = 2 * k < p->in_line ? in[2 * k] : 0;
            a.im[k] = 2 * k + 1 < p->in_line ? in[2 * k + 1] : 0;
        }
        separate(p, transform(p, a, b),
                 (struct complex *)ifd_acc_out(step, frame) + line * (m + 1));
    }
}

static bool rfft2d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_rfft2d_attrs *attrs = node->attrs;
    if (attrs->fft_h != 1 || attrs->fft_w < 2) {
        ifd_fail(reason, IFD_UNSUPPORTED, "transform of %d x %d, expected 1 x 2 or longer",
                 attrs->fft_h, attrs->fft_w);
        return false;
    }
    return true;
}

static enum ifd_code rfft2d_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_rfft2d_attrs *attrs = node->view.attrs;
    const struct ifd_shape *in = &node->view.input[0].desc->shape;
    struct rfft_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct complex *root = ifd_low_params(&lowering->base, (size_t)attrs->fft_w / 2, sizeof(*root));
    if (!p || !root) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a transform of %d", attrs->fft_w);
    }
    const double turn = 6.283185307179586476925286766559;
    const size_t n = (size_t)attrs->fft_w, height = (size_t)in->dim[in->rank - 2];
    for (size_t k = 0; k < n / 2; k++) {
        const double angle = -turn * (double)k / (double)n;
        root[k] = (struct complex){(float)cos(angle), (float)sin(angle)};
    }
    *p = (struct rfft_params){
        .lines = 1, .in_line = (size_t)in->dim[in->rank - 1], .n = n, .root = root};
    p->in_step = height * p->in_line; /* the other lines of a slice are not transformed */
    for (uint32_t i = 0; i + 2 < in->rank; i++) {
        p->lines *= (size_t)in->dim[i];
    }
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_rfft, p, node->input_value, 1,
                                                node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    step->max_threads = (uint32_t)(p->lines * n / 4096) + 1;
    ifd_acc_name_step(lowering, "fft_f32", 0, "rfft %zu", n);
    return ifd_acc_add_work(lowering, 2 * n * sizeof(float), err);
}

const struct ifd_acc_driver ifd_acc_rfft2d = {.takes = rfft2d_takes, .lower = rfft2d_lower};

/* ---- complex_abs ---- */

struct abs_params {
    size_t count;
};

static void run_abs(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct abs_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->count, 64);
    const struct complex *restrict in = ifd_acc_in(step, frame, 0);
    float *restrict out = ifd_acc_out(step, frame);
    for (size_t i = range.begin; i < range.end; i++) {
        const double re = (double)in[i].re, im = (double)in[i].im; /* whose squares fit */
        out[i] = (float)sqrt(re * re + im * im);
    }
}

static bool complex_abs_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)node;
    (void)reason;
    return true;
}

static enum ifd_code complex_abs_lower(struct ifd_acc_lowering *lowering,
                                       const struct ifd_partition_node *node, struct ifd_err *err)
{
    struct abs_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_abs, p, node->input_value, 1,
                                                node->output_value[0], &step, err);
    if (code == IFD_OK) {
        p->count = 1;
        for (uint32_t i = 0; i < node->view.output[0].shape.rank; i++) {
            p->count *= (size_t)node->view.output[0].shape.dim[i];
        }
        step->max_threads = (uint32_t)(p->count / 8192) + 1;
        ifd_acc_name_step(lowering, "fft_f32", 0, "complex_abs");
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_complex_abs = {.takes = complex_abs_takes,
                                                   .lower = complex_abs_lower};
