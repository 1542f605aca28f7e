/* The .npy header is a Python dictionary in text; only the three keys that NumPy writes are
 * understood. */
#include "npy.h"

#include "client_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_BYTES = 6, ALIGNMENT = 64, HEADER_BYTES_MAX = 65535 };

static const char magic[MAGIC_BYTES] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

static const struct {
    const char *descr, *datatype;
} types[] = {
    {"|b1", "BOOL"},   {"|i1", "INT8"},  {"<i2", "INT16"},  {"<i4", "INT32"},
    {"<i8", "INT64"},  {"|u1", "UINT8"}, {"<u2", "UINT16"}, {"<u4", "UINT32"},
    {"<u8", "UINT64"}, {"<f2", "FP16"},  {"<f4", "FP32"},   {"<f8", "FP64"},
};

static const char *datatype_of(const char *descr)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strncmp(descr, types[i].descr, strlen(types[i].descr)) == 0) {
            return types[i].datatype;
        }
    }
    return NULL;
}

/* The text behind key and its colon in the dictionary, or NULL. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? strchr(at + strlen(key), ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool parse_shape(const char *text, struct ifd_client_npy *npy)
{
    if (*text != '(') {
        return false;
    }
    text++;
    for (;;) {
        text += strspn(text, " ,");
        if (*text == ')') {
            return true;
        }
        char *end = NULL;
        errno = 0;
        long long dim = strtoll(text, &end, 10);
        if (end == text || errno != 0 || dim < 0 || npy->tensor.rank == IFD_CLIENT_NPY_MAX_RANK) {
            return false;
        }
        npy->dims[npy->tensor.rank++] = dim;
        text = end;
    }
}

static enum ifd_client_code bad_file(const char *path, struct ifd_client_err *err, const char *why)
{
    return ifd_client_fail(err, IFD_CLIENT_INVALID, "%s: this .npy file cannot be sent: %s", path,
                           why);
}

static enum ifd_client_code parse_header(const char *path, const char *header,
                                         struct ifd_client_npy *npy, struct ifd_client_err *err)
{
    const char *descr = value_of(header, "'descr'");
    const char *order = value_of(header, "'fortran_order'");
    const char *shape = value_of(header, "'shape'");
    if (!descr || !order || !shape || *descr != '\'') {
        return bad_file(path, err, "descr, fortran_order or shape is missing");
    }
    npy->tensor.datatype = datatype_of(descr + 1);
    if (!npy->tensor.datatype) {
        return bad_file(path, err, "the protocol has no such element type");
    }
    if (strncmp(order, "False", strlen("False")) != 0) {
        return bad_file(path, err, "it is in Fortran order");
    }
    return parse_shape(shape, npy) ? IFD_CLIENT_OK
                                   : bad_file(path, err, "its shape cannot be read");
}

enum ifd_client_code ifd_client_npy_parse(const char *path, const void *data, size_t data_bytes,
                                          struct ifd_client_npy *ret_npy,
                                          struct ifd_client_err *err)
{
    const unsigned char *p = data;
    size_t prefix_bytes = MAGIC_BYTES + 2 + 2; /* version, 16-bit length */
    if (data_bytes < prefix_bytes + 2 || memcmp(p, magic, MAGIC_BYTES) != 0) {
        return bad_file(path, err, "it does not begin as a .npy file");
    }
    size_t header_bytes = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[MAGIC_BYTES] >= 2) { /* a 32-bit length */
        header_bytes |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
        prefix_bytes += 2;
    }
    if (header_bytes > HEADER_BYTES_MAX || header_bytes > data_bytes - prefix_bytes) {
        return bad_file(path, err, "its header runs over the end");
    }
    char *header = calloc(1, header_bytes + 1);
    if (!header) {
        return ifd_client_fail(err, IFD_CLIENT_NOMEM, "out of memory");
    }
    memcpy(header, p + prefix_bytes, header_bytes);
    ret_npy->tensor =
        (struct ifd_client_tensor){.shape = ret_npy->dims,
                                   .data = p + prefix_bytes + header_bytes,
                                   .data_bytes = data_bytes - prefix_bytes - header_bytes};
    enum ifd_client_code code = parse_header(path, header, ret_npy, err);
    free(header);
    return code;
}

static const char *descr_of(const char *datatype)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(datatype, types[i].datatype) == 0) {
            return types[i].descr;
        }
    }
    return NULL;
}

/* Writes the dictionary, padded so that the data begins at a multiple of ALIGNMENT. Returns its
 * size, 0 if it does not fit. */
static size_t format_header(char *header, size_t size, const struct ifd_client_tensor *tensor)
{
    int n = snprintf(header, size, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     descr_of(tensor->datatype));
    for (size_t i = 0; i < tensor->rank && n > 0 && (size_t)n < size; i++) {
        n += snprintf(header + n, size - (size_t)n, "%" PRId64 ", ", tensor->shape[i]);
    }
    if (n <= 0 || (size_t)n >= size) {
        return 0;
    }
    n += snprintf(header + n, size - (size_t)n, "), }");
    size_t prefix_bytes = MAGIC_BYTES + 4, length = (size_t)n;
    while (length + 1 < size && (prefix_bytes + length + 1) % ALIGNMENT != 0) {
        header[length++] = ' ';
    }
    if (length + 1 >= size) {
        return 0;
    }
    header[length++] = '\n';
    return length;
}

enum ifd_client_code ifd_client_npy_write(const char *path, const struct ifd_client_tensor *tensor,
                                          struct ifd_client_err *err)
{
    if (!descr_of(tensor->datatype)) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID, "output \"%s\": .npy has no type for %s",
                               tensor->name, tensor->datatype);
    }
    char header[1024];
    size_t header_bytes = format_header(header, sizeof(header), tensor);
    const unsigned char prefix[] = {1, 0, (unsigned char)header_bytes,
                                    (unsigned char)(header_bytes >> 8)};
    FILE *file = header_bytes != 0 ? fopen(path, "wb") : NULL;
    if (!file) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID, "%s: cannot be written: %s", path,
                               strerror(errno));
    }
    bool ok = fwrite(magic, 1, sizeof(magic), file) == sizeof(magic) &&
              fwrite(prefix, 1, sizeof(prefix), file) == sizeof(prefix) &&
              fwrite(header, 1, header_bytes, file) == header_bytes &&
              fwrite(tensor->data, 1, tensor->data_bytes, file) == tensor->data_bytes;
    ok = fclose(file) == 0 && ok;
    if (!ok) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID, "%s: cannot be written: %s", path,
                               strerror(errno));
    }
    return IFD_CLIENT_OK;
}
