/* Extremes of rows and columns: every table beside plain loops. */
#include <math.h>
#include <stdlib.h>
#include "tests/kernels/check.h"

struct shape {
    size_t count, n, row;
    int is_min;
};

static struct shape any_shape(void)
{
    const int is_row = check_int(0, 1);
    struct shape s = {.count = (size_t)check_int(1, check_int(0, 3) ? 40 : 300),
                      .n = is_row ? 1 : (size_t)check_int(1, 150),
                      .is_min = check_int(0, 1)};
    s.row = is_row ? 1 : s.n + (size_t)check_int(1, 3);
    return s;
}

/* Few different values, so that many are equal; sometimes NaN. */
static void check_floats(const char *isa, const struct ifd_kern_extreme *kern)
{
    const struct shape s = any_shape();
    const size_t elements = (s.count - 1) * s.row + s.n;
    struct check_buffer in = check_input(elements * sizeof(float));
    struct check_buffer out = check_output(s.n * sizeof(float));
    struct check_buffer at = check_output(s.n * sizeof(int32_t));
    const int has_nan = check_int(0, 3) == 0;
    for (size_t i = 0; i < elements; i++) {
        ((float *)in.data)[i] =
            has_nan && check_int(0, 2) == 0 ? NAN : (float)check_int(-9, 9) * 0.5f;
    }
    struct ifd_extreme_args args = {.count = s.count,
                                    .n = s.n,
                                    .row = s.row,
                                    .in = in.data,
                                    .out = out.data,
                                    .is_min = s.is_min};
    kern->f32(&args);
    args.out = at.data;
    kern->arg_f32(&args);
    for (size_t c = 0; c < s.n; c++) {
        const float *x = (const float *)in.data + c;
        float most = s.is_min ? INFINITY : -INFINITY;
        size_t best = 0;
        for (size_t k = 0; k < s.count; k++) {
            const float y = x[k * s.row], held = x[best * s.row];
            most = (s.is_min ? y < most : y > most) ? y : most;
            best = (s.is_min ? y < held : y > held) ? k : best;
        }
        if (((const float *)out.data)[c] != most ||
            ((const int32_t *)at.data)[c] != (int32_t)best) {
            check_fail("%s: extreme %zu of %zux%zu is %g at %d, expected %g at %zu", isa, c,
                       s.count, s.n, ((const float *)out.data)[c], ((const int32_t *)at.data)[c],
                       most, best);
        }
    }
    if (!check_guards(&out) || !check_guards(&at)) {
        check_fail("%s: extremes of %zux%zu wrote outside their output", isa, s.count, s.n);
    }
    check_free(&in);
    check_free(&out);
    check_free(&at);
}

static void check_bytes(const char *isa, const struct ifd_kern_extreme *kern)
{
    const struct shape s = any_shape();
    const size_t elements = (s.count - 1) * s.row + s.n;
    struct check_buffer in = check_input(elements);
    struct check_buffer out = check_output(s.n), at = check_output(s.n * sizeof(int32_t));
    const int low = check_int(IFD_Q8_MIN, IFD_Q8_MAX), high = check_int(low, IFD_Q8_MAX);
    for (size_t i = 0; i < elements; i++) {
        ((ifd_q8 *)in.data)[i] = (ifd_q8)check_int(low, high);
    }
    struct ifd_extreme_args args = {.count = s.count,
                                    .n = s.n,
                                    .row = s.row,
                                    .in = in.data,
                                    .out = out.data,
                                    .is_min = s.is_min};
    kern->q8(&args);
    args.out = at.data;
    kern->arg_q8(&args);
    for (size_t c = 0; c < s.n; c++) {
        const ifd_q8 *x = (const ifd_q8 *)in.data + c;
        size_t best = 0;
        for (size_t k = 0; k < s.count; k++) {
            const ifd_q8 y = x[k * s.row], held = x[best * s.row];
            best = (s.is_min ? y < held : y > held) ? k : best;
        }
        if (((const ifd_q8 *)out.data)[c] != x[best * s.row] ||
            ((const int32_t *)at.data)[c] != (int32_t)best) {
            check_fail("%s: 8-bit extreme %zu of %zux%zu differs", isa, c, s.count, s.n);
        }
    }
    if (!check_guards(&out) || !check_guards(&at)) {
        check_fail("%s: 8-bit extremes of %zux%zu wrote outside their output", isa, s.count, s.n);
    }
    check_free(&in);
    check_free(&out);
    check_free(&at);
}

int main(void)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("extreme", &at, &isa);) {
        for (int round = 0; round < 300; round++) {
            check_floats(isa.name, &isa.kernels.extreme);
            check_bytes(isa.name, &isa.kernels.extreme);
        }
    }
    return check_end("extreme");
}
