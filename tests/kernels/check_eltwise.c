/* Element-wise f32: every table against the C library in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/kernels/check.h"

static double naive_binary(int op, double a, double b)
{
    switch (op) {
    case IFD_BINARY_ADD:
        return a + b;
    case IFD_BINARY_SUB:
        return a - b;
    case IFD_BINARY_MUL:
        return a * b;
    case IFD_BINARY_DIV:
        return a / b;
    case IFD_BINARY_MIN:
        return fmin(a, b);
    case IFD_BINARY_MAX:
        return fmax(a, b);
    default:
        return (a - b) * (a - b);
    }
}

static double naive_unary(int op, double x, double p0, double p1)
{
    switch (op) {
    case IFD_UNARY_CLAMP:
        return fmin(p1, fmax(p0, x));
    case IFD_UNARY_ABS:
        return fabs(x);
    case IFD_UNARY_NEG:
        return -x;
    case IFD_UNARY_SQUARE:
        return x * x;
    case IFD_UNARY_SQRT:
        return sqrt(x);
    case IFD_UNARY_RSQRT:
        return 1.0 / sqrt(x);
    case IFD_UNARY_EXP:
        return exp(x);
    case IFD_UNARY_LOGISTIC:
        return 1.0 / (1.0 + exp(-x));
    case IFD_UNARY_TANH:
        return tanh(x);
    case IFD_UNARY_HARDSWISH:
        return x * fmin(6.0, fmax(0.0, x + 3.0)) / 6.0;
    case IFD_UNARY_HARDSIGMOID:
        return fmin(1.0, fmax(0.0, p0 * x + p1));
    case IFD_UNARY_LEAKY_RELU:
        return x < 0.0 ? p0 * x : x;
    case IFD_UNARY_ELU:
        return x < 0.0 ? p0 * expm1(x) : x;
    case IFD_UNARY_SILU:
        return x / (1.0 + exp(-x));
    case IFD_UNARY_GELU_TANH:
        return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case IFD_UNARY_LOG:
        return log(x);
    case IFD_UNARY_ROUND:
        return nearbyint(x);
    case IFD_UNARY_FLOOR:
        return floor(x);
    case IFD_UNARY_CEIL:
        return ceil(x);
    case IFD_UNARY_TRUNC:
        return trunc(x);
    case IFD_UNARY_ERF:
        return erf(x);
    case IFD_UNARY_GELU:
        return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
    default:
        return p0 * x + p1;
    }
}

#define INPUT_MAX 90.0f

/* Allowed difference: a few units in the last place, plus an absolute part where terms cancel. */
static double tolerance(int op, double x, double want)
{
    double absolute = 0.0;
    if (op == IFD_UNARY_ELU || op == IFD_UNARY_HARDSIGMOID || op == IFD_UNARY_AFFINE) {
        absolute = 0x1p-22;
    } else if (op == IFD_UNARY_GELU_TANH) {
        absolute = 0x1p-20;
    } else if (op == IFD_UNARY_GELU) {
        absolute = 2e-7 * fabs(x); /* of a factor near 0 */
    } else if (op == IFD_UNARY_LOGISTIC) {
        absolute = 1e-36; /* where the exponential leaves the range of normal numbers */
    } else if (op == IFD_UNARY_SILU) {
        absolute =
            (double)INPUT_MAX * 0x1p-126; /* the same, where smaller numbers are 0, times x */
    }
    return 4.0 * 0x1p-23 * fabs(want) + absolute;
}

static void check_unary(const char *isa, const struct ifd_kern_eltwise *kern, int op, size_t n)
{
    float p0 = op == IFD_UNARY_CLAMP ? -0.5f : op == IFD_UNARY_HARDSIGMOID ? 0.2f : 0.3f;
    float p1 = op == IFD_UNARY_CLAMP ? 0.75f : 0.5f;
    struct check_buffer in = check_input(n * sizeof(float)), out = check_output(n * sizeof(float));
    bool positive = op == IFD_UNARY_SQRT || op == IFD_UNARY_RSQRT || op == IFD_UNARY_LOG;
    float scale = check_int(0, 1) ? INPUT_MAX : check_int(0, 1) ? 1.0f : 9.0f;
    for (size_t i = 0; i < n; i++) {
        ((float *)in.data)[i] = check_float(positive ? 0.001f : -scale, scale);
    }
    kern->unary[op](n, in.data, out.data, p0, p1);
    for (size_t i = 0; i < n; i++) {
        double x = ((const float *)in.data)[i], want = naive_unary(op, x, p0, p1);
        double got = ((const float *)out.data)[i];
        bool over = want > 3.4028235e38 && isinf(got);
        bool under = fabs(want) < 1.3e-38 && fabs(got) < 2.6e-38;
        if (!over && !under && !(fabs(got - want) <= tolerance(op, x, want))) {
            check_fail("%s: unary %d of %.9g is %.9g, expected %.9g", isa, op, x, got, want);
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: unary %d of %zu wrote outside its output", isa, op, n);
    }
    check_free(&in);
    check_free(&out);
}

static struct check_buffer random_floats(size_t count)
{
    struct check_buffer buffer = check_input(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        float x = check_float(-2.0f, 2.0f);
        ((float *)buffer.data)[i] = x == 0.0f ? 1.0f : x;
    }
    return buffer;
}

static void check_binary(const char *isa, const struct ifd_kern_eltwise *kern, int op)
{
    struct ifd_binary_args args = {.rows = (size_t)check_int(1, 4), .n = (size_t)check_int(1, 70)};
    args.a_step = (size_t)check_int(0, 1);
    args.b_step = (size_t)check_int(0, 1);
    size_t a_row = args.a_step ? args.n + (size_t)check_int(0, 3) : 1;
    size_t b_row = args.b_step ? args.n + (size_t)check_int(0, 3) : 1;
    args.a_row = check_int(0, 2) ? a_row : 0;
    args.b_row = check_int(0, 2) ? b_row : 0;
    args.out_row = args.n + (size_t)check_int(0, 3);
    args.min = check_int(0, 1) ? -INFINITY : 0.0f;
    args.max = check_int(0, 1) ? INFINITY : 1.5f;
    struct check_buffer a =
        random_floats((args.rows - 1) * args.a_row + (args.a_step ? args.n : 1));
    struct check_buffer b =
        random_floats((args.rows - 1) * args.b_row + (args.b_step ? args.n : 1));
    size_t count = (args.rows - 1) * args.out_row + args.n;
    struct check_buffer out = check_output(count * sizeof(float));
    args.a = a.data;
    args.b = b.data;
    args.out = out.data;
    kern->binary[op](&args);
    for (size_t r = 0; r < args.rows; r++) {
        for (size_t i = 0; i < args.out_row && r * args.out_row + i < count; i++) {
            double got = args.out[r * args.out_row + i];
            if (i >= args.n) {
                if (((const uint32_t *)out.data)[r * args.out_row + i] != 0xa5a5a5a5u) {
                    check_fail("%s: binary %d wrote between rows", isa, op);
                }
                continue;
            }
            double x = args.a[r * args.a_row + i * args.a_step];
            double y = args.b[r * args.b_row + i * args.b_step];
            double want = fmin(args.max, fmax(args.min, naive_binary(op, x, y)));
            if (!(fabs(got - want) <= 3.0 * 0x1p-23 * fabs(want))) {
                check_fail("%s: binary %d of %.9g, %.9g is %.9g, expected %.9g", isa, op, x, y, got,
                           want);
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: binary %d wrote outside its output", isa, op);
    }
    check_free(&a);
    check_free(&b);
    check_free(&out);
}

static void check_prelu(const char *isa, const struct ifd_kern_eltwise *kern)
{
    size_t rows = 3, n = (size_t)check_int(1, 40);
    struct check_buffer in = random_floats(rows * n), slope = random_floats(n);
    struct check_buffer out = check_output(rows * n * sizeof(float));
    kern->prelu(rows, n, in.data, n, slope.data, out.data, n);
    for (size_t i = 0; i < rows * n; i++) {
        float x = ((const float *)in.data)[i];
        float want = x < 0.0f ? x * ((const float *)slope.data)[i % n] : x;
        if (((const float *)out.data)[i] != want) {
            check_fail("%s: prelu differs at %zu of %zu", isa, i, n);
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: prelu wrote outside its output", isa);
    }
    check_free(&in);
    check_free(&slope);
    check_free(&out);
}

static void check_matmul(const char *isa, const struct ifd_kern_eltwise *kern)
{
    const bool is_turned = check_int(0, 1) != 0;
    struct ifd_matmul_args args = {.m = (size_t)check_int(1, 11),
                                   .n = (size_t)check_int(1, 70),
                                   .k = (size_t)check_int(1, 40)};
    args.a_row = is_turned ? 1 : args.k;
    args.a_step = is_turned ? args.m : 1;
    args.b_row = args.n;
    struct check_buffer a = random_floats(args.m * args.k), b = random_floats(args.k * args.n);
    struct check_buffer out = check_output(args.m * args.n * sizeof(float));
    args.a = (const float *)a.data;
    args.b = (const float *)b.data;
    args.out = (float *)out.data;
    kern->matmul(&args);
    for (size_t i = 0; i < args.m * args.n; i++) {
        const size_t row = i / args.n, column = i % args.n;
        double want = 0;
        for (size_t l = 0; l < args.k; l++) {
            want += (double)args.a[row * args.a_row + l * args.a_step] *
                    (double)args.b[l * args.b_row + column];
        }
        if (!(fabs((double)args.out[i] - want) <= 1e-4)) {
            check_fail("%s: product %zu of %zu x %zu x %zu is %.9g, expected %.9g", isa, i, args.m,
                       args.k, args.n, (double)args.out[i], want);
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: a product of %zu x %zu wrote outside its output", isa, args.m, args.n);
    }
    check_free(&a);
    check_free(&b);
    check_free(&out);
}

/* Whole numbers and the error function where there is nothing to round. */
static void check_ends(const char *isa, const struct ifd_kern_eltwise *kern)
{
    static const int whole[] = {IFD_UNARY_ROUND, IFD_UNARY_FLOOR, IFD_UNARY_CEIL, IFD_UNARY_TRUNC};
    const float in[5 + 16] = {-INFINITY, INFINITY, NAN, 3e9f, 0.0f};
    float out[5];
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        kern->unary[whole[i]](5, in, out, 0.0f, 0.0f);
        const bool is_kept = whole[i] == IFD_UNARY_TRUNC ? out[2] == 0.0f : isnan(out[2]);
        if (out[0] != -INFINITY || out[1] != INFINITY || !is_kept || out[3] != 3e9f ||
            out[4] != 0.0f) {
            check_fail("%s: unary %d of infinities", isa, whole[i]);
        }
    }
    kern->unary[IFD_UNARY_ERF](5, in, out, 0.0f, 0.0f);
    if (out[0] != -1.0f || out[1] != 1.0f || !isnan(out[2]) || out[3] != 1.0f || out[4] != 0.0f) {
        check_fail("%s: erf of infinities", isa);
    }
}

static void check_specials(const char *isa, const struct ifd_kern_eltwise *kern)
{
    float in[4 + 16] = {-INFINITY, INFINITY, -200.0f, 200.0f}, out[4];
    kern->unary[IFD_UNARY_EXP](4, in, out, 0.0f, 0.0f);
    if (out[0] != 0.0f || !isinf(out[1]) || out[2] != 0.0f || !isinf(out[3])) {
        check_fail("%s: exp of infinities", isa);
    }
    kern->unary[IFD_UNARY_TANH](4, in, out, 0.0f, 0.0f);
    if (out[0] != -1.0f || out[1] != 1.0f || out[2] != -1.0f || out[3] != 1.0f) {
        check_fail("%s: tanh of infinities", isa);
    }
    kern->unary[IFD_UNARY_LOGISTIC](4, in, out, 0.0f, 0.0f);
    if (!(out[0] < 1e-37f) || out[1] != 1.0f || !(out[2] < 1e-37f) || out[3] != 1.0f) {
        check_fail("%s: logistic of infinities", isa);
    }
    kern->unary[IFD_UNARY_GELU](4, in, out, 0.0f, 0.0f);
    if (!isinf(out[1]) || out[2] != 0.0f || out[3] != 200.0f) {
        check_fail("%s: gelu far from 0", isa);
    }
    in[0] = 0.0f;
    in[2] = -1.0f;
    in[3] = NAN;
    kern->unary[IFD_UNARY_LOG](4, in, out, 0.0f, 0.0f);
    if (out[0] != -INFINITY || out[1] != INFINITY || !isnan(out[2]) || !isnan(out[3])) {
        check_fail("%s: log of what has none", isa);
    }
    in[0] = 1.0f;
    in[1] = 0x1p-126f;
    in[2] = 3e38f;
    in[3] = 1.00000012f;
    kern->unary[IFD_UNARY_LOG](4, in, out, 0.0f, 0.0f);
    for (int i = 0; i < 4; i++) {
        if (!(fabs(out[i] - log((double)in[i])) <= 0x1p-22 * fabs(log((double)in[i])))) {
            check_fail("%s: log of %.9g is %.9g", isa, (double)in[i], (double)out[i]);
        }
    }
}

struct bench {
    void (*unary)(size_t, const float *, float *, float, float);
    float *data;
};

static void bench_call(void *arg)
{
    struct bench *bench = arg;
    bench->unary(4096, bench->data, bench->data + 4096, 0.1f, 0.2f);
}

int main(int argc, char **argv)
{
    const bool timing = argc > 1 && strcmp(argv[1], "--bench") == 0;
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("eltwise", &at, &isa);) {
        const struct ifd_kern_eltwise *kern = &isa.kernels.eltwise;
        if (timing) {
            struct check_buffer data = random_floats(8192);
            static const int ops[] = {IFD_UNARY_CLAMP, IFD_UNARY_EXP,       IFD_UNARY_LOGISTIC,
                                      IFD_UNARY_TANH,  IFD_UNARY_HARDSWISH, IFD_UNARY_SILU};
            static const char *const names[] = {"clamp", "exp",       "logistic",
                                                "tanh",  "hardswish", "silu"};
            for (size_t op = 0; op < 6; op++) {
                struct bench bench = {kern->unary[ops[op]], data.data};
                printf("%-7s %-9s %6.2f G/s\n", isa.name, names[op],
                       4.096e-6 / check_time(bench_call, &bench));
            }
            check_free(&data);
            continue;
        }
        for (int round = 0; round < 60; round++) {
            for (int op = 0; op < IFD_UNARY_COUNT; op++) {
                check_unary(isa.name, kern, op, (size_t)check_int(1, 300));
            }
            for (int op = 0; op < IFD_BINARY_COUNT; op++) {
                check_binary(isa.name, kern, op);
            }
            check_prelu(isa.name, kern);
            check_matmul(isa.name, kern);
        }
        check_specials(isa.name, kern);
        check_ends(isa.name, kern);
    }
    return timing ? 0 : check_end("eltwise");
}
