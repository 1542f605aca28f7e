/* rfft2d and complex_abs: spectra of real signals. */
#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>
#include <stddef.h>

extern const struct ifd_op_def ifd_op_rfft2d;
extern const struct ifd_op_def ifd_op_complex_abs;

/** Maximum transform length: tables stay small and products do not overflow. */
#define FFT_MAX (1 << 24)

/* Transforms run in double precision; results are stored in single. */
struct complex {
    double re, im;
};

static bool is_power_of_two(int32_t x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

static enum ifd_code rfft2d_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_rfft2d;
    const struct ifd_rfft2d_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_C64, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    if (input->rank < 2) {
        return ifd_fail(err, IFD_INVALID, "rfft2d: input has shape %s, expected rank 2 or more",
                        ifd_shape_text(input).s);
    }
    if (!is_power_of_two(attrs->fft_h) || !is_power_of_two(attrs->fft_w)) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "rfft2d: a transform of %d x %d, expected powers of two", attrs->fft_h,
                        attrs->fft_w);
    }
    struct ifd_shape shape = *input;
    shape.dim[shape.rank - 2] = attrs->fft_h;
    shape.dim[shape.rank - 1] = attrs->fft_w / 2 + 1;
    return ifd_infer_output(def, output, 0, &shape, err);
}

static int64_t longer(const struct ifd_rfft2d_attrs *attrs)
{
    return attrs->fft_h > attrs->fft_w ? attrs->fft_h : attrs->fft_w;
}

/* Scratch: a line, a table of roots of unity, the rows' spectra. */
static enum ifd_code rfft2d_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                    size_t *ret_bytes, struct ifd_err *err)
{
    const struct ifd_rfft2d_attrs *attrs = in->attrs;
    (void)output;
    const size_t columns = (size_t)attrs->fft_w / 2 + 1;
    size_t count = 0;
    if (!ifd_size_mul(columns, (size_t)attrs->fft_h, &count) ||
        !ifd_size_add(count, 2 * (size_t)longer(attrs), &count) ||
        !ifd_size_mul(count, sizeof(struct complex), ret_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "rfft2d: %d x %d needs too much memory", attrs->fft_h,
                        attrs->fft_w);
    }
    return IFD_OK;
}

/* exp(-2 pi i k / n) for k < n / 2 */
static void fill_roots(struct complex *root, int64_t n)
{
    const double turn = 6.283185307179586476925286766559;
    for (int64_t k = 0; k < n / 2; k++) {
        const double angle = -turn * (double)k / (double)n;
        root[k] = (struct complex){cos(angle), sin(angle)};
    }
}

static void reverse_bits(struct complex *line, int64_t n)
{
    for (int64_t i = 0, j = 0; i < n; i++) {
        if (i < j) {
            const struct complex swap = line[i];
            line[i] = line[j];
            line[j] = swap;
        }
        int64_t bit = n / 2;
        for (; bit > 0 && (j & bit) != 0; bit /= 2) {
            j ^= bit;
        }
        j |= bit;
    }
}

/* Transforms n numbers in place (radix 2, decimation in time); root is a table for root_n ≥ n. */
static void transform(struct complex *line, int64_t n, const struct complex *root, int64_t root_n)
{
    reverse_bits(line, n);
    for (int64_t half = 1; half < n; half *= 2) {
        const int64_t root_step = root_n / (2 * half);
        for (int64_t first = 0; first < n; first += 2 * half) {
            for (int64_t k = 0; k < half; k++) {
                const struct complex w = root[k * root_step];
                struct complex *a = &line[first + k];
                struct complex *b = &line[first + k + half];
                const struct complex t = {b->re * w.re - b->im * w.im, b->re * w.im + b->im * w.re};
                *b = (struct complex){a->re - t.re, a->im - t.im};
                *a = (struct complex){a->re + t.re, a->im + t.im};
            }
        }
    }
}

/* Memory and sizes of one transform. */
struct plan {
    int64_t in_h, in_w, fft_h, fft_w, columns, root_n;
    struct complex *line, *root, *rows;
};

/* Spectra of the rows: the first columns of each. */
static void transform_rows(const struct plan *plan, const float *in)
{
    for (int64_t y = 0; y < plan->fft_h; y++) {
        for (int64_t x = 0; x < plan->fft_w; x++) {
            const bool is_inside = y < plan->in_h && x < plan->in_w;
            plan->line[x] = (struct complex){is_inside ? (double)in[y * plan->in_w + x] : 0.0, 0.0};
        }
        transform(plan->line, plan->fft_w, plan->root, plan->root_n);
        for (int64_t x = 0; x < plan->columns; x++) {
            plan->rows[y * plan->columns + x] = plan->line[x];
        }
    }
}

/* Transforms the columns of the rows' spectra; out holds pairs of real and imaginary part. */
static void transform_columns(const struct plan *plan, float *out)
{
    for (int64_t x = 0; x < plan->columns; x++) {
        for (int64_t y = 0; y < plan->fft_h; y++) {
            plan->line[y] = plan->rows[y * plan->columns + x];
        }
        transform(plan->line, plan->fft_h, plan->root, plan->root_n);
        for (int64_t y = 0; y < plan->fft_h; y++) {
            out[2 * (y * plan->columns + x)] = (float)plan->line[y].re;
            out[2 * (y * plan->columns + x) + 1] = (float)plan->line[y].im;
        }
    }
}

static enum ifd_code rfft2d_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_rfft2d_attrs *attrs = call->attrs;
    const struct ifd_shape *input = &call->in[0]->shape;
    struct plan plan = {.in_h = input->dim[input->rank - 2],
                        .in_w = input->dim[input->rank - 1],
                        .fft_h = attrs->fft_h,
                        .fft_w = attrs->fft_w,
                        .columns = attrs->fft_w / 2 + 1,
                        .root_n = longer(attrs),
                        .line = call->scratch};
    plan.root = plan.line + plan.root_n;
    plan.rows = plan.root + plan.root_n;
    fill_roots(plan.root, plan.root_n);
    const int64_t slices = ifd_ref_product(input, 0, input->rank - 2);
    for (int64_t i = 0; i < slices; i++) {
        transform_rows(&plan, (const float *)call->input[0] + i * plan.in_h * plan.in_w);
        transform_columns(&plan, (float *)call->output[0] + 2 * i * plan.fft_h * plan.columns);
    }
    return IFD_OK;
}

static enum ifd_code complex_abs_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                       struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_complex_abs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

static enum ifd_code complex_abs_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const float *in = call->input[0];
    float *out = call->output[0];
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        out[i] = hypotf(in[2 * i], in[2 * i + 1]);
    }
    return IFD_OK;
}

static const struct ifd_attr_def rfft2d_attrs[] = {
    {"fft_h", IFD_ATTR_INT, offsetof(struct ifd_rfft2d_attrs, fft_h), 1, 1, FFT_MAX},
    {"fft_w", IFD_ATTR_INT, offsetof(struct ifd_rfft2d_attrs, fft_w), 1, 1, FFT_MAX},
};

const struct ifd_op_def ifd_op_rfft2d = {
    .name = "rfft2d",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = rfft2d_attrs,
    .attr_count = sizeof(rfft2d_attrs) / sizeof(rfft2d_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_rfft2d_attrs),
    .dtypes = IFD_BIT(IFD_F32),
    .batch = IFD_BATCH_NEVER, /* dimension 0 may be transformed */
    .infer = rfft2d_infer,
    .scratch = rfft2d_scratch,
    .ref = rfft2d_ref,
    .multiplies = true,
};

const struct ifd_op_def ifd_op_complex_abs = {
    .name = "complex_abs",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_C64),
    .batch = IFD_BATCH_ELEMENTWISE,
    .infer = complex_abs_infer,
    .ref = complex_abs_ref,
};
