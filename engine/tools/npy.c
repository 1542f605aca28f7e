/* .npy files. The header is the text of a Python dictionary:
 * {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), } */
#include "engine/tools/npy.h"

#include "engine/base/buf.h"
#include "engine/base/file.h"
#include "engine/base/str.h"

#include <stdio.h>
#include <string.h>

static const struct {
    enum ifd_dtype dtype;
    const char *descr;
} types[] = {
    {IFD_F32, "<f4"}, {IFD_F16, "<f2"},  {IFD_F64, "<f8"}, {IFD_S8, "|i1"},  {IFD_U8, "|u1"},
    {IFD_S16, "<i2"}, {IFD_U16, "<u2"},  {IFD_S32, "<i4"}, {IFD_U32, "<u4"}, {IFD_S64, "<i8"},
    {IFD_U64, "<u8"}, {IFD_BOOL, "|b1"}, {IFD_C64, "<c8"},
};
#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

/* The header's text after 'key': without leading blanks; {NULL, 0} if the key is absent. */
static struct ifd_str field(struct ifd_str header, const char *key)
{
    char quoted[32];
    (void)snprintf(quoted, sizeof(quoted), "'%s':", key);
    size_t length = strlen(quoted);
    for (size_t i = 0; i + length <= header.size; i++) {
        if (memcmp(header.data + i, quoted, length) == 0) {
            struct ifd_str rest = {header.data + i + length, header.size - i - length};
            return ifd_str_trim(rest);
        }
    }
    return (struct ifd_str){0};
}

static bool parse_type(struct ifd_str text, enum ifd_dtype *ret)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (text.size > 4 && text.data[0] == '\'' &&
            memcmp(text.data + 1, types[i].descr, 3) == 0 && text.data[4] == '\'') {
            *ret = types[i].dtype;
            return true;
        }
    }
    return false;
}

static bool parse_shape(struct ifd_str text, struct ifd_shape *ret)
{
    *ret = (struct ifd_shape){0};
    const char *end = text.size ? memchr(text.data, ')', text.size) : NULL;
    if (!end || text.data[0] != '(') {
        return false;
    }
    struct ifd_str rest = {text.data + 1, (size_t)(end - text.data) - 1};
    while (rest.data) {
        struct ifd_str part = ifd_str_trim(ifd_str_part(&rest, ','));
        if (part.size == 0) {
            continue;
        }
        int64_t dim = 0;
        if (ret->rank == IFD_MAX_RANK || !ifd_str_s64(part, &dim) || dim < 0) {
            return false;
        }
        ret->dim[ret->rank++] = dim;
    }
    return true;
}

/* Finds the header's text and where the data begin. */
static bool split(struct ifd_bytes file, struct ifd_str *ret_header, size_t *ret_data)
{
    if (file.size < 10 || memcmp(file.data, "\x93NUMPY", 6) != 0 || file.data[6] < 1 ||
        file.data[6] > 3) {
        return false;
    }
    size_t start = file.data[6] == 1 ? 10 : 12;
    size_t length = (size_t)file.data[8] | (size_t)file.data[9] << 8;
    if (start == 12) {
        if (file.size < 12) {
            return false;
        }
        length |= (size_t)file.data[10] << 16 | (size_t)file.data[11] << 24;
    }
    if (length > file.size - start) {
        return false;
    }
    *ret_header = (struct ifd_str){(const char *)file.data + start, length};
    *ret_data = start + length;
    return true;
}

enum ifd_code ifd_npy_parse(struct ifd_bytes file, struct ifd_tensor *ret, struct ifd_err *err)
{
    struct ifd_str header = {0};
    size_t at = 0;
    struct ifd_tensor tensor = {0};
    if (!split(file, &header, &at)) {
        return ifd_fail(err, IFD_CORRUPT, "not a .npy file: wrong first bytes or header length");
    }
    struct ifd_str descr = field(header, "descr");
    if (!parse_type(descr, &tensor.dtype)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "element type %.*s is not supported",
                        descr.size > 12 ? 12 : (int)descr.size, descr.data ? descr.data : "(none)");
    }
    if (ifd_str_starts(field(header, "fortran_order"), "True")) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "Fortran order is not supported; save with order 'C'");
    }
    if (!parse_shape(field(header, "shape"), &tensor.shape)) {
        return ifd_fail(err, IFD_CORRUPT, "the header has no shape of at most %d dimensions",
                        IFD_MAX_RANK);
    }
    tensor.bytes = ifd_dtype_bytes(tensor.dtype);
    for (uint32_t i = 0; i < tensor.shape.rank; i++) {
        const uint64_t dim = (uint64_t)tensor.shape.dim[i];
        if (dim > SIZE_MAX || !ifd_size_mul(tensor.bytes, (size_t)dim, &tensor.bytes)) {
            return ifd_fail(err, IFD_TOO_LARGE, "the shape overflows");
        }
    }
    if (tensor.bytes != file.size - at) {
        return ifd_fail(err, IFD_CORRUPT, "%zu bytes of data, expected %zu from shape and type",
                        file.size - at, tensor.bytes);
    }
    tensor.data = (void *)(file.data + at);
    tensor.capacity = tensor.bytes;
    *ret = tensor;
    return IFD_OK;
}

enum ifd_code ifd_npy_write(const char *path, const struct ifd_tensor *tensor,
                            const struct ifd_alloc *alloc, struct ifd_err *err)
{
    const char *descr = NULL;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        descr = types[i].dtype == tensor->dtype ? types[i].descr : descr;
    }
    if (!descr) {
        return ifd_fail(err, IFD_UNSUPPORTED, "type %s cannot be written as .npy",
                        ifd_dtype_name(tensor->dtype));
    }
    struct ifd_buf buf;
    ifd_buf_init(&buf, alloc, tensor->bytes + 1024);
    ifd_buf_addf(&buf, "%c%s%c%c%c%c", 0x93, "NUMPY", 1, 0, 0, 0);
    ifd_buf_addf(&buf, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < tensor->shape.rank; i++) {
        ifd_buf_addf(&buf, "%lld,", (long long)tensor->shape.dim[i]);
    }
    ifd_buf_add_text(&buf, "), }");
    while ((buf.size + 1) % 64 != 0 && buf.failed == IFD_OK) {
        ifd_buf_add_text(&buf, " ");
    }
    ifd_buf_add_text(&buf, "\n");
    size_t header = buf.size - 10;
    ifd_buf_add(&buf, tensor->data, tensor->bytes);
    enum ifd_code code = ifd_buf_check(&buf, err);
    if (code == IFD_OK) {
        buf.data[8] = (uint8_t)(header & 0xff);
        buf.data[9] = (uint8_t)(header >> 8);
        code = ifd_file_write(path, (struct ifd_bytes){buf.data, buf.size}, err);
    }
    ifd_buf_finish(&buf);
    return code;
}
