/* Strided copies: dimensions are merged as far as both sides allow, then the innermost run is a
 * memcpy, a column of a transposition, or single elements. */
#include "backends/cpuacc/ops/copy.h"

#include <string.h>

static void copy_elements(size_t element, const uint8_t *in, int64_t in_stride, uint8_t *out,
                          int64_t out_stride, int64_t count)
{
    switch (element) {
    case 1:
        for (int64_t i = 0; i < count; i++) {
            out[i * out_stride] = in[i * in_stride];
        }
        break;
    case 4:
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + i * out_stride, in + i * in_stride, 4);
        }
        break;
    case 8:
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + i * out_stride, in + i * in_stride, 8);
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + i * out_stride, in + i * in_stride, element);
        }
        break;
    }
}

/* Short rows, as of coordinates, take less than a call. */
static void copy_bytes(size_t bytes, const uint8_t *in, uint8_t *out)
{
    switch (bytes) {
    case 4:
        memcpy(out, in, 4);
        break;
    case 8:
        memcpy(out, in, 8);
        break;
    case 16:
        memcpy(out, in, 16);
        break;
    default:
        memcpy(out, in, bytes);
        break;
    }
}

/* The innermost dimension. */
static void copy_run(const struct ifd_low_copy *copy, const uint8_t *in, uint8_t *out)
{
    const uint32_t d = copy->rank - 1;
    const int64_t element = (int64_t)copy->element;
    if (copy->in_stride[d] == element && copy->out_stride[d] == element) {
        copy_bytes((size_t)(copy->dim[d] * element), in, out);
    } else {
        copy_elements(copy->element, in, copy->in_stride[d], out, copy->out_stride[d],
                      copy->dim[d]);
    }
}

/* Columns of the two innermost dimensions, where the output runs along the last and the input along
 * the one before. */
static void copy_transposed(const struct ifd_kern_move *move, const struct ifd_low_copy *copy,
                            const uint8_t *in, uint8_t *out, const struct ifd_acc_range *columns)
{
    const uint32_t x = copy->rank - 1, y = copy->rank - 2;
    const size_t rows = (size_t)copy->dim[x], n = columns->end - columns->begin;
    in += columns->begin * copy->element;
    out += (int64_t)columns->begin * copy->out_stride[y];
    const size_t in_row = (size_t)copy->in_stride[x] / copy->element;
    const size_t out_row = (size_t)copy->out_stride[y] / copy->element;
    if (copy->element == 1) {
        move->transpose_8(rows, n, in, in_row, out, out_row);
    } else {
        move->transpose_32(rows, n, (const uint32_t *)(const void *)in, in_row,
                           (uint32_t *)(void *)out, out_row);
    }
}

static bool is_transposed(const struct ifd_low_copy *copy)
{
    return copy->rank >= 2 && (copy->element == 1 || copy->element == 4) &&
           copy->in_stride[copy->rank - 2] == (int64_t)copy->element &&
           copy->out_stride[copy->rank - 1] == (int64_t)copy->element &&
           copy->in_stride[copy->rank - 1] > 0 && copy->out_stride[copy->rank - 2] > 0;
}

/* Outer dimensions are counted like an odometer. */
static void copy_parts(const struct ifd_acc_step *step, const uint8_t *in, uint8_t *out,
                       uint32_t outer, size_t begin, size_t end,
                       const struct ifd_acc_range *columns)
{
    const struct ifd_low_copy *copy = step->params;
    const bool transposed = outer + 2 == copy->rank;
    int64_t at[IFD_MAX_RANK] = {0};
    int64_t rest = (int64_t)begin, from = copy->in_offset, to = copy->out_offset;
    for (uint32_t d = outer; begin < end && d-- > 0; rest /= copy->dim[d]) {
        at[d] = rest % copy->dim[d];
        from += at[d] * copy->in_stride[d];
        to += at[d] * copy->out_stride[d];
    }
    for (size_t part = begin; part < end; part++) {
        if (transposed) {
            copy_transposed(&step->kernels->move, copy, in + from, out + to, columns);
        } else {
            copy_run(copy, in + from, out + to);
        }
        for (uint32_t d = outer; d-- > 0;) {
            from += copy->in_stride[d];
            to += copy->out_stride[d];
            if (++at[d] < copy->dim[d]) {
                break;
            }
            at[d] = 0;
            from -= copy->dim[d] * copy->in_stride[d];
            to -= copy->dim[d] * copy->out_stride[d];
        }
    }
}

static bool fills_with_bytes(const struct ifd_low_copy *copy)
{
    bool is_byte = true;
    for (size_t i = 1; i < copy->element; i++) {
        is_byte = is_byte && copy->fill[i] == copy->fill[0];
    }
    return is_byte;
}

/* Fills the whole output, including what is copied afterwards. */
static void fill(const struct ifd_low_copy *copy, uint8_t *out)
{
    if (fills_with_bytes(copy)) {
        memset(out, copy->fill[0], copy->out_bytes);
        return;
    }
    for (size_t i = 0; i < copy->out_bytes; i += copy->element) {
        memcpy(out + i, copy->fill, copy->element);
    }
}

/* Does the copy only make rows longer? */
static bool pads_rows(const struct ifd_low_copy *copy)
{
    const int64_t element = (int64_t)copy->element;
    return copy->fills && fills_with_bytes(copy) && copy->rank == 2 &&
           copy->in_stride[1] == element && copy->out_stride[1] == element &&
           copy->dim[0] * copy->out_stride[0] == (int64_t)copy->out_bytes &&
           copy->out_offset + copy->dim[1] * element <= copy->out_stride[0];
}

static void run_pad_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct ifd_low_copy *copy = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, (size_t)copy->dim[0], 1);
    const size_t before = (size_t)copy->out_offset, row = (size_t)copy->dim[1] * copy->element;
    const size_t whole = (size_t)copy->out_stride[0], after = whole - before - row;
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    in += copy->in_offset + (int64_t)range.begin * copy->in_stride[0];
    uint8_t *out = (uint8_t *)ifd_acc_out(step, frame) + range.begin * whole;
    for (size_t i = range.begin; i < range.end; i++, in += copy->in_stride[0], out += whole) {
        memset(out, copy->fill[0], before);
        memcpy(out + before, in, row);
        memset(out + before + row, copy->fill[0], after);
    }
}

static void run_copy(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct ifd_low_copy *copy = step->params;
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    if (copy->fills) { /* by one thread: steps that fill have max_threads 1 */
        fill(copy, out);
    }
    const uint32_t outer = is_transposed(copy) ? copy->rank - 2 : copy->rank - 1;
    size_t parts = 1;
    for (uint32_t d = 0; d < outer; d++) {
        parts *= (size_t)copy->dim[d];
    }
    struct ifd_acc_range range = {0, parts}, columns = {0, 0};
    if (outer + 2 == copy->rank) {
        columns.end = (size_t)copy->dim[outer];
    }
    if (parts < frame->threads && columns.end > parts) {
        columns = ifd_acc_share(frame, columns.end, 16);
    } else {
        range = ifd_acc_share(frame, parts, 1);
    }
    copy_parts(step, in, out, outer, range.begin, range.end, &columns);
}

enum ifd_code ifd_acc_add_copy(struct ifd_acc_lowering *lowering, const struct ifd_low_copy *copy,
                               uint32_t in, uint32_t out, const char *name, struct ifd_err *err)
{
    struct ifd_low_copy *mine = ifd_low_params(&lowering->base, 1, sizeof(*mine));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_copy, mine, &in, 1, out, &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *mine = *copy;
    ifd_low_spread_rows(&lowering->base.value[in], mine);
    ifd_low_merge(mine);
    if (mine->rank == 0) {
        mine->rank = 1;
        mine->dim[0] = 1;
        mine->in_stride[0] = mine->out_stride[0] = (int64_t)mine->element;
    }
    size_t bytes = mine->element;
    for (uint32_t d = 0; d < mine->rank; d++) {
        bytes *= (size_t)mine->dim[d];
    }
    step->run = pads_rows(mine) ? run_pad_rows : run_copy;
    step->max_threads = mine->fills && step->run == run_copy ? 1 : (uint32_t)(bytes / 8192) + 1;
    ifd_acc_name_step(lowering, is_transposed(mine) ? "copy transposed" : "copy", 0, "%s", name);
    return IFD_OK;
}
