/* Spectra as products with constant matrices, windows, the mel scale. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

#define TABLE_MAX ((size_t)16 << 20) /* numbers of one matrix */
#define PI        3.14159265358979323846

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t value)
{
    return ifd_build_desc(call->b, value)->shape;
}

/* Memory for a matrix, NULL after a failure. */
static float *take_table(struct ifd_builder *b, int64_t rows, int64_t columns)
{
    size_t count = 0;
    if (rows < 0 || columns < 0 || !ifd_size_mul((size_t)rows, (size_t)columns, &count) ||
        count > TABLE_MAX) {
        ifd_build_fail(b, IFD_TOO_LARGE, "a table of %lld x %lld numbers, limit %zu",
                       (long long)rows, (long long)columns, TABLE_MAX);
        return NULL;
    }
    float *table = ifd_arena_take_tensor(b->graph->arena, count * sizeof(*table));
    if (!table) {
        b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*table), b->err);
    }
    return table;
}

static uint32_t table_value(struct ifd_builder *b, const float *table,
                            const struct ifd_shape *shape)
{
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = *shape};
    const size_t count = (size_t)(shape->dim[0] * (shape->rank > 1 ? shape->dim[1] : 1));
    return ifd_build_constant(
        b, &desc,
        (struct ifd_bytes){.data = (const uint8_t *)table, .size = count * sizeof(*table)},
        IFD_TENSOR_PAD);
}

/* ---- windows ---- */

void ifd_onnx_window_function(struct ifd_onnx_call *call, int which)
{
    /* a0 - a1 cos(x) + a2 cos(2x) */
    static const double share[][3] = {[IFD_ONNX_HANN] = {0.5, 0.5, 0},
                                      [IFD_ONNX_HAMMING] = {25.0 / 46, 21.0 / 46, 0},
                                      [IFD_ONNX_BLACKMAN] = {0.42, 0.5, 0.08}};
    struct ifd_builder *b = call->b;
    const int64_t size = ifd_build_int_of(b, call->input[0], "the size of a window");
    const bool is_periodic = ifd_onnx_int(call, "periodic", 1) != 0;
    float *table = take_table(b, size, 1);
    enum ifd_dtype dtype = IFD_F32;
    if (!table || !ifd_onnx_dtype(ifd_onnx_int(call, "output_datatype", IFD_ONNX_FLOAT), &dtype)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "attribute \"output_datatype\"");
        return;
    }
    for (int64_t i = 0; i < size; i++) {
        const int64_t steps = is_periodic ? size : size - 1;
        const double x = steps > 0 ? 2 * PI * (double)i / (double)steps : 0;
        table[i] =
            (float)(share[which][0] - share[which][1] * cos(x) + share[which][2] * cos(2 * x));
    }
    const struct ifd_shape shape = {.rank = 1, .dim = {size}};
    call->output[0] = ifd_build_cast(b, table_value(b, table, &shape), dtype);
}

/* ---- spectra ---- */

/* What a transform of n elements does to count of them, each of parts numbers (real, imaginary):
 * [lines * 2, count * parts]. */
static uint32_t spectrum_matrix(struct ifd_builder *b, int64_t n, int64_t lines, int64_t count,
                                int64_t parts, bool is_inverse)
{
    const int64_t columns = count * parts;
    float *table = take_table(b, lines * 2, columns);
    for (int64_t k = 0; table && k < lines; k++) {
        for (int64_t i = 0; i < count; i++) {
            /* the angle of the product modulo the circle keeps its precision */
            const double angle = 2 * PI * (double)(k * i % n) / (double)n;
            const double real = i < n ? cos(angle) / (is_inverse ? (double)n : 1) : 0;
            const double wave = i < n ? sin(angle) / (is_inverse ? (double)n : 1) : 0;
            const double imaginary = is_inverse ? wave : -wave;
            float *row = table + 2 * k * columns + i * parts;
            row[0] = (float)real;
            row[columns] = (float)imaginary;
            if (parts == 2) {
                row[1] = (float)-imaginary;
                row[columns + 1] = (float)real;
            }
        }
    }
    const struct ifd_shape shape = {.rank = 2, .dim = {lines * 2, columns}};
    return table ? table_value(b, table, &shape) : IFD_NONE;
}

/* x [..., count, parts] becomes [..., lines, 2]. */
static uint32_t transformed(struct ifd_builder *b, uint32_t x, int64_t n, int64_t lines,
                            bool is_inverse)
{
    struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    if (shape.rank < 2) { /* something has failed before */
        return IFD_NONE;
    }
    const uint32_t last = shape.rank - 1;
    const int64_t count = shape.dim[last - 1], parts = shape.dim[last];
    const uint32_t matrix = spectrum_matrix(b, n, lines, count, parts, is_inverse);
    shape.dim[last - 1] = count * parts;
    const uint32_t rows = ifd_build_reshape(b, x, shape.dim, last);
    const uint32_t y = ifd_build_layer(b, rows, matrix, IFD_NONE);
    shape.dim[last - 1] = lines;
    shape.dim[last] = 2;
    return ifd_build_reshape(b, y, shape.dim, shape.rank);
}

/* The half spectrum x [..., lines, 2] of n real numbers, as the whole: what is behind the half
 * mirrors it, conjugated. */
static uint32_t mirrored(struct ifd_builder *b, uint32_t x, int64_t n)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    const struct ifd_shape signs = {.rank = 2, .dim = {n, 2}};
    if (b->code != IFD_OK) {
        return IFD_NONE; /* x has no description any more */
    }
    const int64_t lines = shape.dim[shape.rank - 2];
    int64_t *from = ifd_arena_take_array(b->graph->arena, (size_t)n, sizeof(*from));
    float *table = take_table(b, n, 2);
    if (!from || !table || lines < n / 2 + 1 || shape.dim[shape.rank - 1] != 2) {
        return ifd_build_fail(b, IFD_INVALID, "half a spectrum of shape %s for %lld numbers",
                              ifd_shape_text(&shape).s, (long long)n);
    }
    for (int64_t k = 0; k < n; k++) {
        from[k] = k <= n / 2 ? k : n - k;
        table[2 * k] = 1;
        table[2 * k + 1] = k <= n / 2 ? 1 : -1;
    }
    const struct ifd_gather_attrs along = {.axis = (int32_t)shape.rank - 2};
    const uint32_t pick[2] = {x, ifd_build_list(b, from, (uint32_t)n)};
    return ifd_build_binary(b, IFD_OP_MUL, ifd_build_node(b, IFD_OP_GATHER, pick, 2, NULL, &along),
                            table_value(b, table, &signs));
}

void ifd_onnx_dft(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, call->input[0]);
    const uint32_t rank = shape.rank, length = ifd_onnx_input(call, 1);
    const int64_t parts = rank > 0 ? shape.dim[rank - 1] : 0;
    const int64_t given = ifd_onnx_input(call, 2) != IFD_NONE
                              ? ifd_build_int_of(b, call->input[2], "the axis")
                              : ifd_onnx_int(call, "axis", call->opset >= 20 ? -2 : 1);
    const uint32_t axis = ifd_build_axis(b, given, rank);
    if (rank < 2 || axis + 1 == rank || (parts != 1 && parts != 2)) {
        ifd_build_fail(b, IFD_INVALID, "a transform of shape %s along %u", ifd_shape_text(&shape).s,
                       axis);
        return;
    }
    const bool is_half = ifd_onnx_int(call, "onesided", 0) != 0;
    const bool is_inverse = ifd_onnx_int(call, "inverse", 0) != 0;
    const int64_t n = length != IFD_NONE      ? ifd_build_int_of(b, length, "the length")
                      : is_half && is_inverse ? 2 * (shape.dim[axis] - 1)
                                              : shape.dim[axis];
    if (n < 1 || n > INT32_MAX) {
        ifd_build_fail(b, IFD_INVALID, "a transform of %lld elements", (long long)n);
        return;
    }
    const uint32_t x = ifd_build_swap(b, call->input[0], axis, rank - 2);
    uint32_t y = IFD_NONE;
    if (is_half && is_inverse) { /* to real numbers */
        y = transformed(b, mirrored(b, x, n), n, n, true);
        y = ifd_build_cut(b, y, rank - 1, 0, 1);
    } else {
        y = transformed(b, x, n, is_half ? n / 2 + 1 : n, is_inverse);
    }
    call->output[0] = ifd_build_swap(b, y, axis, rank - 2);
}

uint32_t ifd_onnx_windows(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t size,
                          int64_t step)
{
    struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    struct ifd_desc list = {.dtype = IFD_S64, .shape = {.rank = 1}};
    const int64_t count = (shape.dim[axis] - size) / step + 1;
    if (__builtin_mul_overflow(count, size, &list.shape.dim[0]) ||
        !ifd_desc_fits(&list, b->tensor_bytes)) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "%lld windows of %lld", (long long)count,
                              (long long)size);
    }
    const size_t all = (size_t)list.shape.dim[0];
    int64_t *from = ifd_arena_take_array(b->graph->arena, all, sizeof(*from));
    if (!from) {
        b->code = ifd_arena_fail(b->graph->arena, all * sizeof(*from), b->err);
        return IFD_NONE;
    }
    for (size_t i = 0; i < all; i++) {
        from[i] = (int64_t)i / size * step + (int64_t)i % size;
    }
    const struct ifd_gather_attrs along = {.axis = (int32_t)axis};
    const uint32_t pick[2] = {x, ifd_build_list(b, from, (uint32_t)all)};
    const uint32_t y = ifd_build_node(b, IFD_OP_GATHER, pick, 2, NULL, &along);
    for (uint32_t d = shape.rank++; d > axis + 1; d--) {
        shape.dim[d] = shape.dim[d - 1];
    }
    shape.dim[axis] = count;
    shape.dim[axis + 1] = size;
    return ifd_build_reshape(b, y, shape.dim, shape.rank);
}

/* Frames of a signal, times a window, as spectra. */
void ifd_onnx_stft(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, call->input[0]);
    const uint32_t window = ifd_onnx_input(call, 2), length = ifd_onnx_input(call, 3);
    const int64_t step = ifd_build_int_of(b, call->input[1], "the step");
    const int64_t n = length != IFD_NONE   ? ifd_build_int_of(b, length, "the length of a frame")
                      : window != IFD_NONE ? shape_of(call, window).dim[0]
                                           : 0;
    const int64_t parts = shape.rank == 3 ? shape.dim[2] : 1;
    if (shape.rank < 2 || shape.rank > 3 || parts < 1 || parts > 2 || step < 1 || n < 1 ||
        n > shape.dim[1]) {
        ifd_build_fail(b, IFD_INVALID, "frames of %lld each %lld of shape %s", (long long)n,
                       (long long)step, ifd_shape_text(&shape).s);
        return;
    }
    const int64_t frames = (shape.dim[1] - n) / step + 1;
    const int64_t dim[4] = {shape.dim[0], frames, n, parts};
    uint32_t x = ifd_build_reshape(b, ifd_onnx_windows(b, call->input[0], 1, n, step), dim, 4);
    if (window != IFD_NONE) {
        const int64_t column[2] = {n, 1};
        x = ifd_build_binary(b, IFD_OP_MUL, x, ifd_build_reshape(b, window, column, 2));
    }
    const bool is_half = ifd_onnx_int(call, "onesided", 1) != 0;
    call->output[0] = transformed(b, x, n, is_half ? n / 2 + 1 : n, false);
}

/* ---- the mel scale ---- */

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* Triangles between neighbours among bins + 2 frequencies that are equally far apart in mel. */
void ifd_onnx_mel_weights(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const int64_t bins = ifd_build_int_of(b, call->input[0], "the number of bins");
    const int64_t length = ifd_build_int_of(b, call->input[1], "the length");
    const double rate = ifd_build_number_of(b, call->input[2], "the sample rate");
    const double low = mel_of(ifd_build_number_of(b, call->input[3], "the lowest frequency"));
    const double high = mel_of(ifd_build_number_of(b, call->input[4], "the highest frequency"));
    const int64_t lines = length / 2 + 1;
    float *table = bins > 0 && length > 0 ? take_table(b, lines, bins) : NULL;
    if (!table || !(rate > 0)) {
        ifd_build_fail(b, IFD_INVALID, "%lld bins of a transform of %lld", (long long)bins,
                       (long long)length);
        return;
    }
    memset(table, 0, (size_t)(lines * bins) * sizeof(*table));
    for (int64_t m = 0; m < bins; m++) {
        double at[3];
        for (int i = 0; i < 3; i++) {
            const double mel = low + (double)(m + i) * (high - low) / (double)(bins + 2);
            at[i] = floor((double)(length + 1) * 700 * (pow(10, mel / 2595) - 1) / rate);
        }
        for (int64_t k = 0; k < lines; k++) {
            const double x = (double)k;
            float *weight = &table[k * bins + m];
            if (x >= at[0] && x < at[1]) {
                *weight = (float)((x - at[0]) / (at[1] - at[0]));
            } else if (x >= at[1] && x < at[2]) {
                *weight = (float)((at[2] - x) / (at[2] - at[1]));
            } else if (x == at[1]) {
                *weight = 1;
            }
        }
    }
    const struct ifd_shape shape = {.rank = 2, .dim = {lines, bins}};
    call->output[0] = table_value(b, table, &shape);
}
