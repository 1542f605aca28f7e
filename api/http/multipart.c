/* Looks for boundaries and reads the headers of parts. */
#include "api/http/multipart.h"

#include "api/http/media_type.h"
#include "engine/base/str.h"

/* Of RFC 2046. */
#define BOUNDARY_MAX 70

static bool begins(struct ifd_bytes bytes, const char *text, size_t size)
{
    return bytes.size >= size && memcmp(bytes.data, text, size) == 0;
}

static struct ifd_bytes without(struct ifd_bytes bytes, size_t front)
{
    return (struct ifd_bytes){bytes.data + front, bytes.size - front};
}

/* Offset of "\r\n--BOUNDARY" in bytes; bytes.size if there is none. */
static size_t find_boundary(struct ifd_bytes bytes, struct ifd_str boundary)
{
    size_t at = 0;
    while (at < bytes.size) {
        const uint8_t *end = memchr(bytes.data + at, '\r', bytes.size - at);
        if (!end) {
            return bytes.size;
        }
        at = (size_t)(end - bytes.data);
        const struct ifd_bytes here = without(bytes, at);
        if (begins(here, "\r\n--", 4) && begins(without(here, 4), boundary.data, boundary.size)) {
            return at;
        }
        at++;
    }
    return bytes.size;
}

enum ifd_code ifd_multipart_begin(struct ifd_str type, struct ifd_bytes body,
                                  struct ifd_multipart *ret, struct ifd_err *err)
{
    const struct ifd_str boundary = ifd_media_type_parameter(type, "boundary");
    if (boundary.size == 0 || boundary.size > BOUNDARY_MAX) {
        return ifd_fail(err, IFD_INVALID,
                        "multipart form: Content-Type has a boundary of %zu characters, 1 to %d "
                        "are possible",
                        boundary.size, BOUNDARY_MAX);
    }
    if (!begins(body, "--", 2) || !begins(without(body, 2), boundary.data, boundary.size)) {
        return ifd_fail(err, IFD_INVALID,
                        "multipart form: the body does not begin with its boundary");
    }
    *ret = (struct ifd_multipart){.boundary = boundary, .rest = without(body, 2 + boundary.size)};
    return IFD_OK;
}

/* Cuts a line that ends with CR LF off rest; its data is NULL if there is none. */
static struct ifd_str next_line(struct ifd_bytes *rest)
{
    for (size_t i = 0; i + 1 < rest->size; i++) {
        if (rest->data[i] == '\r' && rest->data[i + 1] == '\n') {
            const struct ifd_str line = {(const char *)rest->data, i};
            *rest = without(*rest, i + 2);
            return line;
        }
    }
    return (struct ifd_str){0};
}

/* Reads the headers of a part up to the empty line. */
static enum ifd_code read_headers(struct ifd_bytes *rest, struct ifd_part *part,
                                  struct ifd_err *err)
{
    for (;;) {
        struct ifd_str line = next_line(rest);
        if (!line.data) {
            return ifd_fail(err, IFD_INVALID, "multipart form: a part ends in its headers");
        }
        if (line.size == 0) {
            return part->name.data
                       ? IFD_OK
                       : ifd_fail(err, IFD_INVALID, "multipart form: a part has no name");
        }
        const struct ifd_str name = ifd_str_trim(ifd_str_part(&line, ':'));
        if (ifd_str_equal_nocase(name, "Content-Disposition")) {
            part->name = ifd_media_type_parameter(line, "name");
            part->is_file = ifd_media_type_parameter(line, "filename").data;
        } else if (ifd_str_equal_nocase(name, "Content-Type")) {
            part->type = ifd_str_trim(line);
        }
    }
}

enum ifd_code ifd_multipart_next(struct ifd_multipart *multipart, struct ifd_part *ret,
                                 bool *ret_is_there, struct ifd_err *err)
{
    struct ifd_part part = {.is_file = false};
    struct ifd_bytes rest = multipart->rest;
    *ret_is_there = false;
    if (begins(rest, "--", 2)) {
        return IFD_OK;
    }
    const struct ifd_str line = next_line(&rest);
    if (!line.data || ifd_str_trim(line).size > 0) {
        return ifd_fail(err, IFD_INVALID, "multipart form: a boundary is not followed by a part");
    }
    enum ifd_code code = read_headers(&rest, &part, err);
    if (code) {
        return code;
    }
    const size_t size = find_boundary(rest, multipart->boundary);
    if (size == rest.size) {
        return ifd_fail(err, IFD_INVALID,
                        "multipart form: part \"%.*s\" does not end with the boundary",
                        part.name.size < 60 ? (int)part.name.size : 60, part.name.data);
    }
    part.content = (struct ifd_bytes){rest.data, size};
    multipart->rest = without(rest, size + 4 + multipart->boundary.size);
    *ret = part;
    *ret_is_there = true;
    return IFD_OK;
}
