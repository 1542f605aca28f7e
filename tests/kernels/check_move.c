/* Transposes and resizing: every table against the definition. */
#include <math.h>
#include <stdlib.h>
#include "tests/kernels/check.h"

static void check_transpose(const char *isa, const struct ifd_kern_move *kern, size_t element)
{
    /* few planes or channels without gaps take another path */
    size_t rows = (size_t)check_int(1, check_int(0, 2) ? 70 : 5);
    size_t n = (size_t)check_int(1, check_int(0, 2) ? 70 : 5);
    size_t in_row = n + (size_t)(check_int(0, 1) * check_int(1, 3));
    size_t out_row = rows + (size_t)(check_int(0, 1) * check_int(1, 3));
    struct check_buffer in = check_input(((rows - 1) * in_row + n) * element);
    struct check_buffer out = check_output(((n - 1) * out_row + rows) * element);
    for (size_t i = 0; i < in.bytes; i++) {
        ((uint8_t *)in.data)[i] = (uint8_t)check_int(0, 255);
    }
    if (element == 1) {
        kern->transpose_8(rows, n, in.data, in_row, out.data, out_row);
    } else {
        kern->transpose_32(rows, n, in.data, in_row, out.data, out_row);
    }
    const uint8_t *from = in.data, *to = out.data;
    for (size_t c = 0; c < n; c++) {
        for (size_t r = 0; r < out_row && (c * out_row + r) * element < out.bytes; r++) {
            for (size_t b = 0; b < element; b++) {
                uint8_t want = r < rows ? from[(r * in_row + c) * element + b] : 0xa5;
                if (to[(c * out_row + r) * element + b] != want) {
                    check_fail("%s: transpose of %zux%zu differs at (%zu, %zu)", isa, rows, n, r,
                               c);
                }
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: transpose of %zux%zu wrote outside its output", isa, rows, n);
    }
    check_free(&in);
    check_free(&out);
}

static void check_resize(const char *isa, const struct ifd_kern_move *kern)
{
    size_t in_w = (size_t)check_int(1, 9), out_w = (size_t)check_int(1, 15),
           c = (size_t)check_int(1, 40);
    struct check_buffer top = check_input(in_w * c * 4), bottom = check_input(in_w * c * 4);
    struct check_buffer out = check_output(out_w * c * 4);
    uint32_t x0[16], x1[16];
    float dx[16], dy = check_float(0.0f, 1.0f);
    for (size_t i = 0; i < in_w * c; i++) {
        ((float *)top.data)[i] = check_float(-1.0f, 1.0f);
        ((float *)bottom.data)[i] = check_float(-1.0f, 1.0f);
    }
    for (size_t x = 0; x < out_w; x++) {
        const bool is_like_before = x > 0 && check_int(0, 2) > 0; /* an image that grows */
        x0[x] = is_like_before ? x0[x - 1] : (uint32_t)(c * (size_t)check_int(0, (int)in_w - 1));
        x1[x] = is_like_before ? x1[x - 1] : (uint32_t)(c * (size_t)check_int(0, (int)in_w - 1));
        dx[x] = check_float(0.0f, 1.0f);
    }
    struct ifd_resize_args args = {top.data, bottom.data, out.data, x0, x1, dx, dy, out_w, c, c};
    kern->resize_bilinear_f32(&args);
    for (size_t i = 0; i < out_w * c; i++) {
        size_t x = i / c;
        double t0 = args.top[x0[x] + i % c], t1 = args.top[x1[x] + i % c];
        double b0 = args.bottom[x0[x] + i % c], b1 = args.bottom[x1[x] + i % c];
        double want =
            (t0 * (1.0 - dx[x]) + t1 * dx[x]) * (1.0 - dy) + (b0 * (1.0 - dx[x]) + b1 * dx[x]) * dy;
        if (!(fabs(args.out[i] - want) <= 0x1p-20)) {
            check_fail("%s: resize differs at %zu of %zu channels", isa, i, c);
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: resize wrote outside its output", isa);
    }
    check_free(&top);
    check_free(&bottom);
    check_free(&out);
}

int main(void)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("move", &at, &isa);) {
        for (int round = 0; round < 100; round++) {
            check_transpose(isa.name, &isa.kernels.move, 1);
            check_transpose(isa.name, &isa.kernels.move, 4);
            check_resize(isa.name, &isa.kernels.move);
        }
    }
    return check_end("move");
}
