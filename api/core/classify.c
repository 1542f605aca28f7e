/* Top k with labels. */
#include "api/core/classify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One candidate: its value as a number to compare. */
struct entry {
    double value;
    size_t index;
};

static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent != 31 ? ldexp(fraction + 1024, exponent - 25)
                   : fraction == 0  ? HUGE_VAL
                                    : (double)NAN;
    return bits & 0x8000 ? -value : value;
}

static double bfloat_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value = 0;
    memcpy(&value, &wide, sizeof(value));
    return (double)value;
}

static double value_at(enum ifd_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case IFD_F32:
        return (double)((const float *)data)[i];
    case IFD_F64:
        return ((const double *)data)[i];
    case IFD_F16:
        return half_value(((const uint16_t *)data)[i]);
    case IFD_BF16:
        return bfloat_value(((const uint16_t *)data)[i]);
    case IFD_S8:
        return ((const int8_t *)data)[i];
    case IFD_U8:
    case IFD_BOOL:
        return ((const uint8_t *)data)[i];
    case IFD_S16:
        return ((const int16_t *)data)[i];
    case IFD_U16:
        return ((const uint16_t *)data)[i];
    case IFD_S32:
        return ((const int32_t *)data)[i];
    case IFD_U32:
        return ((const uint32_t *)data)[i];
    case IFD_S64:
        return (double)((const int64_t *)data)[i];
    case IFD_U64:
        return (double)((const uint64_t *)data)[i];
    case IFD_C64:
    case IFD_STR:
    case IFD_DTYPE_COUNT:
        break;
    }
    return 0;
}

static bool is_better(struct entry a, struct entry b)
{
    if (a.value == b.value || (isnan(a.value) && isnan(b.value))) {
        return a.index < b.index;
    }
    return isnan(b.value) || a.value > b.value;
}

/* Restores the heap below at; the worst entry is on top. */
static void sift_down(struct entry *heap, size_t count, size_t at)
{
    for (;;) {
        size_t worst = at, left = 2 * at + 1;
        for (size_t child = left; child < count && child <= left + 1; child++) {
            worst = is_better(heap[worst], heap[child]) ? child : worst;
        }
        if (worst == at) {
            return;
        }
        struct entry moved = heap[at];
        heap[at] = heap[worst];
        heap[worst] = moved;
        at = worst;
    }
}

/* Selects the top best elements of the row, best first. */
static void select_best(enum ifd_dtype dtype, const void *row, size_t length, struct entry *heap,
                        size_t top)
{
    for (size_t i = 0; i < length; i++) {
        struct entry entry = {.value = value_at(dtype, row, i), .index = i};
        if (i < top) {
            heap[i] = entry;
            for (size_t at = i + 1 == top ? top / 2 : 0; at-- > 0;) {
                sift_down(heap, top, at);
            }
        } else if (is_better(entry, heap[0])) {
            heap[0] = entry;
            sift_down(heap, top, 0);
        }
    }
    for (size_t count = top; count > 1; count--) {
        struct entry worst = heap[0];
        heap[0] = heap[count - 1];
        heap[count - 1] = worst;
        sift_down(heap, count - 1, 0);
    }
}

static bool is_float(enum ifd_dtype dtype)
{
    return dtype == IFD_F32 || dtype == IFD_F64 || dtype == IFD_F16 || dtype == IFD_BF16;
}

/* "value:index[:label]", as Triton prints it. */
static bool print_entry(struct entry entry, enum ifd_dtype dtype, const void *row,
                        const struct ifd_tensor_info *info, struct ifd_arena *arena,
                        struct ifd_str *ret)
{
    char number[400];
    int size = 0;
    if (is_float(dtype)) {
        size = snprintf(number, sizeof(number), "%f:%zu", entry.value, entry.index);
    } else if (dtype == IFD_U64) {
        size = snprintf(number, sizeof(number), "%llu:%zu",
                        (unsigned long long)((const uint64_t *)row)[entry.index], entry.index);
    } else if (dtype == IFD_S64) {
        size = snprintf(number, sizeof(number), "%lld:%zu",
                        (long long)((const int64_t *)row)[entry.index], entry.index);
    } else {
        size = snprintf(number, sizeof(number), "%.0f:%zu", entry.value, entry.index);
    }
    const char *label = entry.index < info->label_count ? info->labels[entry.index] : NULL;
    size_t label_size = label ? strlen(label) + 1 : 0;
    char *text = ifd_arena_take(arena, (size_t)size + label_size);
    if (!text) {
        return false;
    }
    memcpy(text, number, (size_t)size);
    if (label) {
        text[size] = ':';
        memcpy(text + size + 1, label, label_size - 1);
    }
    *ret = (struct ifd_str){.data = text, .size = (size_t)size + label_size};
    return true;
}

enum ifd_code ifd_classify(const struct ifd_tensor *tensor, const struct ifd_tensor_info *info,
                           uint64_t top_wanted, bool is_batched, struct ifd_arena *arena,
                           struct ifd_tensor *ret, struct ifd_err *err)
{
    const size_t element = ifd_dtype_bytes(tensor->dtype);
    const size_t count = tensor->bytes / element;
    const size_t rows = is_batched && tensor->shape.rank > 0 ? (size_t)tensor->shape.dim[0] : 1;
    if (rows == 0 || count % rows != 0) {
        return ifd_fail(err, IFD_INTERNAL, "output '%s': %zu elements in %zu rows", info->name,
                        count, rows);
    }
    const size_t length = count / rows;
    const size_t top = top_wanted < length ? (size_t)top_wanted : length;
    struct ifd_str *text = ifd_arena_take_array(arena, rows * top, sizeof(*text));
    struct entry *heap = ifd_arena_take_array(arena, top, sizeof(*heap));
    if (!text || !heap) {
        return ifd_fail(err, IFD_NOMEM, "no memory to classify output '%s'", info->name);
    }
    for (size_t r = 0; r < rows; r++) {
        const void *row = (const uint8_t *)tensor->data + r * length * element;
        select_best(tensor->dtype, row, length, heap, top);
        for (size_t i = 0; i < top; i++) {
            if (!print_entry(heap[i], tensor->dtype, row, info, arena, &text[r * top + i])) {
                return ifd_fail(err, IFD_NOMEM, "no memory to classify output '%s'", info->name);
            }
        }
    }
    *ret = (struct ifd_tensor){.dtype = IFD_STR, .data = text};
    ret->bytes = ret->capacity = rows * top * sizeof(*text);
    if (is_batched) {
        ret->shape.dim[ret->shape.rank++] = (int64_t)rows;
    }
    ret->shape.dim[ret->shape.rank++] = (int64_t)top;
    return IFD_OK;
}
