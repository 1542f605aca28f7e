/* Strassen's algorithm, one level of it in Winograd's form, for plain f32 gemms of many rows: cost,
 * weights, run. The sums are kernels.
 *
 * Rows A (a block of them), weights B and results C are cut into halves both ways. Seven products
 * of quarters then do the work of eight:
 *
 *     S1 = A21 + A22   S2 = S1 - A11   S3 = A11 - A21   S4 = A12 - S2
 *     T1 = B12 - B11   T2 = B22 - T1   T3 = B22 - B12   T4 = T2 - B21     (when weights are packed)
 *     C11 = A11 B11 + A12 B21          U = A11 B11 + S2 T2
 *     C12 = U + S1 T1 + S4 B22         C21 = U + S3 T3 - A22 T4          C22 = U + S3 T3 + S1 T1
 *
 * The gemm kernel adds while it stores, so only two sums of C take a pass, beside the four of A.
 * Intermediate sums wait in the quarters of C.
 *
 * Numbers: let u be the unit roundoff, a and b the largest absolute values in a block of A and in
 * B. Plain sums of k products are off by at most k^2 u a b, these by at most (4.5 k^2 + 48 k) u a b
 * (Higham, Accuracy and Stability of Numerical Algorithms, chapter 23: (n/n0)^(log2 18) (n0^2 +
 * 6 n0) - 6 n for Winograd's form, with n = k, n0 = k/2). The bound is by the largest values of a
 * block, not by those of one result: so the rows of a block are of one image, and there is one
 * level only. A non-finite value reaches all rows of its block. */
#include "backends/cpuacc/conv/direct.h"
#include "backends/cpuacc/conv/precision.h"
#include "backends/cpuacc/conv/pack.h"

#include <math.h>

/* In the order of their use. Biases are packed where they are added once to each column: with B21,
 * T1 and -T4. */
enum quarter { B11, B21, T1, T2, B22, T3, MINUS_T4, QUARTERS };

static size_t quarter_bytes(const struct ifd_acc_layer *layer, const struct ifd_kernels *kernels)
{
    const size_t bytes =
        kernels->gemm_f32.packed_bytes(layer->out_c / 2, layer->window.in_c / 2, 1);
    return (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
}

/* ---- weights ---- */

static size_t packed_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    return QUARTERS * quarter_bytes(&conv->layer, kernels);
}

static size_t workspace_bytes(const struct ifd_acc_conv *conv)
{
    return conv->layer.out_c / 2 * (conv->layer.window.in_c / 2) * sizeof(float);
}

/* One of T1 … -T4, dense. Weights lie output by output: B12 is the second half of outputs, B21 of
 * inputs. */
static void mix(const struct ifd_acc_layer *layer, enum quarter quarter, float *to)
{
    const size_t in_c = layer->window.in_c, n = layer->out_c / 2, k = in_c / 2;
    for (size_t j = 0; j < n; j++, to += k) {
        const float *b11 = (const float *)layer->product.weights + j * in_c, *b21 = b11 + k;
        const float *b12 = b11 + n * in_c, *b22 = b12 + k;
        for (size_t i = 0; i < k; i++) {
            const float t1 = b12[i] - b11[i], t2 = b22[i] - t1;
            to[i] = quarter == T1   ? t1
                    : quarter == T2 ? t2
                    : quarter == T3 ? b22[i] - b12[i]
                                    : b21[i] - t2;
        }
    }
}

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    const struct ifd_kernels *kernels = context;
    const struct ifd_acc_layer *layer = &((const struct ifd_acc_conv *)params)->layer;
    const size_t in_c = layer->window.in_c, n = layer->out_c / 2, k = in_c / 2;
    const float *w = layer->product.weights, *bias = layer->product.bias_f32;
    const float *const as_is[QUARTERS] = {[B11] = w, [B21] = w + k, [B22] = w + n * in_c + k};
    const float *const biases[QUARTERS] = {
        [B21] = bias, [T1] = bias ? bias + n : NULL, [MINUS_T4] = bias};
    for (enum quarter q = B11; q < QUARTERS; q++, packed += quarter_bytes(layer, kernels)) {
        float *mixed = (float *)(void *)workspace;
        if (!as_is[q]) {
            mix(layer, q, mixed);
        }
        const size_t stride = as_is[q] ? in_c : k;
        kernels->gemm_f32.pack(&(struct ifd_gemm_weights){.w = as_is[q] ? as_is[q] : mixed,
                                                          .n = n,
                                                          .k = k,
                                                          .taps = 1,
                                                          .stride_n = stride,
                                                          .stride_t = k,
                                                          .stride_k = 1},
                               biases[q], packed);
    }
}

/* ---- running ---- */

/* Rows of a matrix, or of a half of it. */
struct rows {
    float *at;
    size_t stride;
};

/* What a call computes: two halves of the rows, which share the middle row if their number is odd.
 *   rows      of a half
 *   k, n      inputs and columns of a quarter
 *   upper     C11 and C12
 *   lower     C21 and C22; wait: where they are made, which is no part of upper
 *   min, max  of the results; sums that are not final are not clamped
 *   next      what is read after the last quarter (kernels.h) */
struct block {
    const struct ifd_kernels *kernels;
    const uint8_t *packed;
    size_t quarter_bytes, rows, k, n;
    struct rows a1, a2, s;
    struct rows upper, lower, wait;
    float min, max;
    const void *next;
    size_t next_bytes;
};

static struct rows part(struct rows rows, size_t first, size_t column)
{
    return (struct rows){rows.at + first * rows.stride + column, rows.stride};
}

static const struct rows nothing = {NULL, 0};

/* c = a × quarter + add, clamped if it is a result; add may be c. */
static void multiply(const struct block *b, enum quarter quarter, struct rows a, struct rows add,
                     struct rows c, bool is_result)
{
    const uint8_t *packed = b->packed + quarter * b->quarter_bytes;
    const struct ifd_packed *header = (const struct ifd_packed *)(const void *)packed;
    const bool is_last = quarter + 1 == QUARTERS;
    b->kernels->gemm_f32.run(&(struct ifd_gemm_args){
        .packed = packed,
        .a = a.at,
        .out = c.at,
        .m = b->rows,
        .n_end = b->n,
        .a_stride = a.stride,
        .out_stride = c.stride,
        .add = add.at,
        .add_stride = add.stride,
        .min = is_result ? b->min : -INFINITY,
        .max = is_result ? b->max : INFINITY,
        .next = is_last ? b->next : packed + b->quarter_bytes,
        .next_bytes = is_last ? b->next_bytes
                              : ifd_packed_column(header, 1) / header->nr * header->unit_bytes});
}

/* out = x + y or x - y of rows of n, clamped if it is a result; out may be either. */
static void combine(const struct block *b, enum ifd_binary op, size_t n, struct rows x,
                    struct rows y, struct rows out, bool is_result)
{
    b->kernels->eltwise.binary[op](&(struct ifd_binary_args){.rows = b->rows,
                                                             .n = n,
                                                             .a = x.at,
                                                             .b = y.at,
                                                             .out = out.at,
                                                             .a_row = x.stride,
                                                             .b_row = y.stride,
                                                             .out_row = out.stride,
                                                             .a_step = 1,
                                                             .b_step = 1,
                                                             .min = is_result ? b->min : -INFINITY,
                                                             .max = is_result ? b->max : INFINITY});
}

static void multiply_block(const struct block *b)
{
    const struct rows a11 = b->a1, a12 = part(a11, 0, b->k), a21 = b->a2, a22 = part(a21, 0, b->k);
    const struct rows c11 = b->upper, c12 = part(c11, 0, b->n);
    const struct rows w21 = b->wait, w22 = part(w21, 0, b->n), s = b->s;
    const size_t k = b->k, n = b->n;
    multiply(b, B11, a11, nothing, w21, false);
    multiply(b, B21, a12, w21, c11, true);
    combine(b, IFD_BINARY_ADD, k, a21, a22, s, false); /* S1 */
    multiply(b, T1, s, nothing, w22, false);
    combine(b, IFD_BINARY_SUB, k, s, a11, s, false); /* S2 */
    multiply(b, T2, s, w21, w21, false);             /* U */
    combine(b, IFD_BINARY_SUB, k, a12, s, s, false); /* S4 */
    combine(b, IFD_BINARY_ADD, n, w21, w22, c12, false);
    multiply(b, B22, s, c12, c12, true);
    combine(b, IFD_BINARY_SUB, k, a11, a21, s, false); /* S3 */
    multiply(b, T3, s, w21, w21, false);
    combine(b, IFD_BINARY_ADD, n, w21, w22, part(b->lower, 0, n), true);
    multiply(b, MINUS_T4, a22, w21, b->lower, true);
}

/* Rows of a half. */
static size_t half_rows(const struct ifd_acc_conv *conv)
{
    return (conv->plan.direct.call_rows + 1) / 2;
}

static size_t work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    const struct ifd_acc_layer *layer = &conv->layer;
    const size_t results = layer->adds ? 2 * layer->out_c : layer->out_c;
    return half_rows(conv) * (layer->window.in_c / 2 + results) * sizeof(float) + IFD_TENSOR_PAD;
}

/* What the kernel's run() would do with run->args, for all columns and at most call_rows rows of
 * one image. */
static void multiply_halves(struct ifd_acc_conv_run *run, size_t first_row)
{
    (void)first_row;
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_gemm_args *args = &run->args;
    const size_t half = (args->m + 1) / 2, second = args->m - half;
    const size_t most = half_rows(run->conv);
    const struct rows a = {(float *)(uintptr_t)args->a, args->a_stride};
    const struct rows out = {args->out, args->out_stride};
    float *work = (float *)(void *)ifd_acc_direct_rest(run);
    struct block b = {.kernels = run->step->kernels,
                      .packed = args->packed,
                      .quarter_bytes = quarter_bytes(layer, run->step->kernels),
                      .rows = half,
                      .k = layer->window.in_c / 2,
                      .n = layer->out_c / 2,
                      .a1 = a,
                      .a2 = part(a, second, 0),
                      .upper = out,
                      .lower = part(out, second, 0),
                      .min = args->min,
                      .max = args->max,
                      .next = args->next,
                      .next_bytes = args->next_bytes};
    const struct rows elsewhere = {work, layer->out_c};
    b.s = (struct rows){work + most * layer->out_c, b.k};
    if (!args->add) {
        b.wait = half == second ? b.lower : elsewhere;
        multiply_block(&b);
        return;
    }
    /* what is added may lie where the results will, so these wait elsewhere */
    const struct rows add = {(float *)(uintptr_t)args->add, args->add_stride};
    b.upper = (struct rows){b.s.at + most * b.k, layer->out_c};
    b.lower = b.wait = elsewhere;
    b.min = -INFINITY;
    b.max = INFINITY;
    multiply_block(&b);
    b.min = args->min;
    b.max = args->max;
    combine(&b, IFD_BINARY_ADD, layer->out_c, b.upper, add, out, true);
    b.rows = second;
    combine(&b, IFD_BINARY_ADD, layer->out_c, part(b.lower, half - second, 0), part(add, half, 0),
            part(out, half, 0), true);
}

/* ---- choosing ---- */

static size_t weight_bytes(const struct ifd_acc_layer *layer)
{
    return 7 * layer->window.in_c * layer->out_c; /* 7/4 of those of the plain product */
}

/* Weights that leave room in the second-level cache are read cheaply even for few rows, which stay
 * there too. */
static bool is_near(const struct ifd_acc_layer *layer, size_t cache)
{
    return weight_bytes(layer) <= cache / 2;
}

/* Rows of a call; more for other weights, so that they are read once. */
#define ROWS 192

/* With fewer rows per thread the sums cost more than the halves save. */
#define THREAD_ROWS 96

static size_t call_rows(const struct ifd_acc_layer *layer, const struct ifd_host *host)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t cache = ifd_acc_cache_bytes(host), rows = w->out_h * w->out_w;
    const size_t fitting = cache / ((w->in_c + layer->out_c) * sizeof(float));
    const size_t most = is_near(layer, cache) || fitting < ROWS ? ROWS : fitting;
    const size_t calls = (rows + most - 1) / most;
    return ((rows + calls - 1) / calls + 3) / 4 * 4;
}

/* Additional cost of a value of A, of C and of a residual, in multiply-accumulates: measured on
 * AVX-512 with 96 to 1,024 inputs and columns. Weights that are not near raise it, the more so the
 * fewer rows a thread has; if they exceed the cache, only many rows make up for reading them. */
#define A_COST        13.0
#define C_COST        9.0
#define RESIDUAL_COST 9.0

/* A core that takes two turns for 512 bits makes half as many products in that time, and its sums
 * take somewhat longer. Not so where several threads wait for the same memory. */
#define HALVES_COST 0.65

/* Rows per cache full of weights. A core of two turns makes a quarter of the products while a
 * weight comes: half as many per turn, with twice the memory bandwidth (27 GB/s on Zen 4, 13 on
 * Sapphire Rapids). */
#define HALVES_ROWS 0.25

/* Additional cost of the sums, relative to the direct way. */
static double sums_cost(const struct ifd_acc_layer *layer, size_t rows, uint32_t threads,
                        const struct ifd_host *host)
{
    const bool halves = host->cpu.flags & IFD_CPU_AVX512_HALVES;
    const size_t cache = ifd_acc_cache_bytes(host);
    const double filled = (double)weight_bytes(layer) / (double)cache;
    const double values =
        (halves && threads == 1 ? HALVES_COST : 1) *
        (A_COST / (double)layer->out_c +
         (layer->adds ? C_COST + RESIDUAL_COST : C_COST) / (double)layer->window.in_c);
    if (filled > 1 && filled * ROWS * (halves ? HALVES_ROWS : 1) > (double)rows) {
        return 1;
    }
    return is_near(layer, cache) ? values : values * (1 + (double)THREAD_ROWS / (double)rows);
}

/* The least gain, relative to the layer's time, that is worth the memory. */
#define GAIN_LEAST 0.035

/* One product in eight is saved. */
static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    const uint32_t threads = lowering->base.view->max_threads;
    const size_t share = layer->window.out_h * layer->window.out_w / threads;
    const double gain = 1.0 / 8 - sums_cost(layer, share, threads, lowering->host) - GAIN_LEAST;
    return ifd_acc_direct_cost(lowering, layer,
                               ifd_acc_direct_speed(&lowering->kernels->gemm_f32)) *
           (1 - gain);
}

/* Would the larger weights keep the layer out of a chain (schedule/strips.c)? */
static bool breaks_chain(const struct ifd_acc_layer *layer, const struct ifd_kernels *kernels,
                         size_t cache)
{
    return kernels->gemm_f32.packed_bytes(layer->out_c, layer->window.in_c, 1) <= cache / 4 &&
           QUARTERS * quarter_bytes(layer, kernels) > cache / 4;
}

static bool fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t rows = w->out_h * w->out_w;
    return layer->is_plain && !lowering->base.view->exact &&
           ifd_acc_direct_is_f32(lowering, layer) && w->in_c % 8 == 0 &&
           layer->out_c % (2 * lowering->kernels->gemm_f32.lanes()) == 0 && rows >= ROWS &&
           rows / lowering->base.view->max_threads >= THREAD_ROWS &&
           !breaks_chain(layer, lowering->kernels, ifd_acc_cache_bytes(lowering->host));
}

static void plan(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    ifd_acc_direct_init(lowering, layer, &lowering->kernels->gemm_f32, 1, w->in_c, ret);
    struct ifd_acc_direct *direct = &ret->direct;
    ret->a_stride = layer->in_stride;
    direct->image_rows = w->out_h * w->out_w;
    direct->call_rows = call_rows(layer, lowering->host);
    direct->fetch = ifd_acc_direct_fetch;
    ifd_acc_direct_finish(lowering, layer, false, 0, ret);
    direct->multiply = multiply_halves;
    ret->load.is_whole = true; /* results depend on the rows of a block */
    ret->load.has_columns = false;
}

const struct ifd_acc_algorithm ifd_acc_conv_strassen = {
    .name = "strassen",
    .label = " strassen",
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .pack = pack,
    .packed_bytes = packed_bytes,
    .workspace_bytes = workspace_bytes,
    .work_bytes = work_bytes,
    .run = ifd_acc_direct_run_plain,
    .strip = ifd_acc_direct_strip_plain,
};
