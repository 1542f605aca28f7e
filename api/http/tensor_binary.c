/* Raw tensors of the binary extension. */
#include "api/http/tensor_binary.h"

#include <string.h>

#define LENGTH_BYTES 4

static size_t read_length(const uint8_t *at)
{
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

/* Makes views of exactly count BYTES elements in raw. */
static enum ifd_code read_strings(struct ifd_bytes raw, const char *name, size_t count,
                                  struct ifd_arena *arena, struct ifd_str **ret,
                                  struct ifd_err *err)
{
    if (count > raw.size / LENGTH_BYTES) {
        return ifd_fail(err, IFD_INVALID,
                        "input '%s': %zu bytes cannot hold the %zu strings of its shape", name,
                        raw.size, count);
    }
    struct ifd_str *text = ifd_arena_take_array(arena, count, sizeof(*text));
    if (!text) {
        return ifd_arena_fail(arena, count * sizeof(*text), err);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (raw.size - at < LENGTH_BYTES) {
            return ifd_fail(err, IFD_INVALID,
                            "incomplete string length for inference input '%s', element %zu: %zu "
                            "bytes available",
                            name, i, raw.size - at);
        }
        size_t size = read_length(raw.data + at);
        at += LENGTH_BYTES;
        if (size > raw.size - at) {
            return ifd_fail(err, IFD_INVALID,
                            "incomplete string data for inference input '%s', expecting string of "
                            "length %zu but only %zu bytes available",
                            name, size, raw.size - at);
        }
        text[i] = (struct ifd_str){.data = (const char *)raw.data + at, .size = size};
        at += size;
    }
    if (at != raw.size) {
        return ifd_fail(err, IFD_INVALID,
                        "input '%s': %zu bytes follow the %zu strings of its shape", name,
                        raw.size - at, count);
    }
    *ret = text;
    return IFD_OK;
}

static enum ifd_code check_truth(struct ifd_bytes raw, const char *name, struct ifd_err *err)
{
    for (size_t i = 0; i < raw.size; i++) {
        if (raw.data[i] > 1) {
            return ifd_fail(err, IFD_INVALID, "input '%s': BOOL element %zu is %u, expected 0 or 1",
                            name, i, raw.data[i]);
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_tensor_binary_read(struct ifd_bytes raw, size_t tail_bytes, const char *name,
                                     const char *model, size_t count, struct ifd_arena *arena,
                                     struct ifd_tensor *tensor, struct ifd_err *err)
{
    const size_t element = ifd_dtype_bytes(tensor->dtype);
    if (tensor->dtype == IFD_STR) {
        struct ifd_str *text = NULL;
        enum ifd_code code = read_strings(raw, name, count, arena, &text, err);
        tensor->data = text;
        tensor->bytes = tensor->capacity = count * element;
        return code;
    }
    size_t want = 0;
    if (!ifd_size_mul(count, element, &want) || want != raw.size) {
        return ifd_fail(err, IFD_INVALID,
                        "input byte size mismatch for input '%s' for model '%s'. Expected %zu, got "
                        "%zu",
                        name, model, want, raw.size);
    }
    if (tensor->dtype == IFD_BOOL) {
        enum ifd_code code = check_truth(raw, name, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    tensor->bytes = raw.size;
    tensor->capacity = raw.size + tail_bytes;
    tensor->data = (void *)(uintptr_t)raw.data; /* inputs are only read */
    if ((uintptr_t)raw.data % element != 0) {
        void *copy = ifd_arena_take_tensor(arena, raw.size);
        if (!copy) {
            return ifd_arena_fail(arena, raw.size, err);
        }
        memcpy(copy, raw.data, raw.size);
        tensor->data = copy;
        tensor->capacity = raw.size + IFD_TENSOR_PAD;
    }
    return IFD_OK;
}

enum ifd_code ifd_tensor_binary_join(const struct ifd_str *text, size_t count,
                                     struct ifd_arena *arena, struct ifd_bytes *ret,
                                     struct ifd_err *err)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (text[i].size > UINT32_MAX || !ifd_size_add(size, text[i].size + LENGTH_BYTES, &size)) {
            return ifd_fail(err, IFD_TOO_LARGE, "a BYTES element of %zu bytes does not fit",
                            text[i].size);
        }
    }
    uint8_t *to = ifd_arena_take(arena, size);
    if (!to) {
        return ifd_arena_fail(arena, size, err);
    }
    *ret = (struct ifd_bytes){.data = to, .size = size};
    for (size_t i = 0; i < count; i++) {
        const size_t length = text[i].size;
        const uint8_t prefix[LENGTH_BYTES] = {(uint8_t)length, (uint8_t)(length >> 8),
                                              (uint8_t)(length >> 16), (uint8_t)(length >> 24)};
        memcpy(to, prefix, LENGTH_BYTES);
        to += LENGTH_BYTES;
        if (length > 0) {
            memcpy(to, text[i].data, length);
            to += length;
        }
    }
    return IFD_OK;
}
