/* Path segments against a table of routes. */
#include "api/http/route.h"

#include "api/http/query.h"
#include "engine/base/name.h"
#include "engine/base/str.h"

#include <string.h>

#define SEGMENTS_MAX 8

struct segments {
    struct ifd_str part[SEGMENTS_MAX];
    size_t count;
};

/* Splits "/a/b"; count 0 if the path does not begin with / or has too many parts. */
static enum ifd_code split(struct ifd_str path, struct ifd_arena *arena, struct segments *ret,
                           struct ifd_err *err)
{
    *ret = (struct segments){0};
    if (path.size == 0 || path.data[0] != '/') {
        return IFD_OK;
    }
    struct ifd_str rest = {.data = path.data + 1, .size = path.size - 1};
    while (rest.data) {
        if (ret->count == SEGMENTS_MAX) {
            ret->count = 0;
            return IFD_OK;
        }
        struct ifd_str *part = &ret->part[ret->count++];
        *part = ifd_str_part(&rest, '/');
        enum ifd_code code = ifd_percent_decode(part, "path", arena, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

/* Whether the segments match the row's path; sets the values of {model} and {version}. */
static bool fits(const struct ifd_route *route, const struct segments *segments,
                 struct ifd_str *ret_model, struct ifd_str *ret_version)
{
    struct ifd_str rest = ifd_str(route->path + 1);
    for (size_t i = 0; i < segments->count; i++) {
        if (!rest.data) {
            return false;
        }
        struct ifd_str want = ifd_str_part(&rest, '/');
        struct ifd_str got = segments->part[i];
        if (want.data[0] == '{') {
            if (got.size == 0) {
                return false;
            }
            if (want.data[1] == 'm') {
                *ret_model = got;
            } else if (want.data[1] == 'v') {
                *ret_version = got;
            }
        } else if (want.size != got.size || memcmp(want.data, got.data, got.size) != 0) {
            return false;
        }
    }
    return !rest.data;
}

static bool is_number(struct ifd_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
    }
    return text.size > 0;
}

static enum ifd_code take_names(struct ifd_route_match *match, struct ifd_str model,
                                struct ifd_str version, struct ifd_arena *arena,
                                struct ifd_err *err)
{
    if (model.data) {
        if (!ifd_name_is_valid(model)) {
            return ifd_fail(err, IFD_INVALID,
                            "model name: 1 … %d letters, digits or . _ - + (no dot in front), "
                            "got %zu bytes",
                            IFD_NAME_BYTES_MAX, model.size);
        }
        char *text = ifd_arena_text(arena, model.data, model.size);
        if (!text) {
            return ifd_arena_fail(arena, model.size, err);
        }
        match->model = (struct ifd_str){.data = text, .size = model.size};
    }
    uint64_t number = 0;
    if (version.data) {
        if (!ifd_str_u64(version, &number) || number == 0 || number > INT64_MAX) {
            return ifd_fail(
                err, IFD_NOT_FOUND, "Request for unknown model: '%s' version %.*s is not found",
                match->model.data, version.size > 40 ? 40 : (int)version.size, version.data);
        }
        match->version = (int64_t)number;
    }
    return IFD_OK;
}

enum ifd_code ifd_route_find(const struct ifd_route *route, size_t count,
                             enum ifd_http_method method, struct ifd_str path,
                             struct ifd_arena *arena, struct ifd_route_match *ret,
                             struct ifd_err *err)
{
    struct segments segments;
    const enum ifd_http_method wanted = method == IFD_HTTP_HEAD ? IFD_HTTP_GET : method;
    *ret = (struct ifd_route_match){0};
    enum ifd_code code = split(path, arena, &segments, err);
    if (code != IFD_OK) {
        return code;
    }
    for (size_t i = 0; i < count && segments.count > 0; i++) {
        struct ifd_str model = {0}, version = {0};
        if (!fits(&route[i], &segments, &model, &version) ||
            (version.data && !is_number(version))) {
            continue;
        }
        if (route[i].method == wanted) {
            ret->route = &route[i];
            ret->allowed = 0;
            return take_names(ret, model, version, arena, err);
        }
        ret->allowed |= IFD_BIT(route[i].method);
        if (route[i].method == IFD_HTTP_GET) {
            ret->allowed |= IFD_BIT(IFD_HTTP_HEAD);
        }
    }
    if (ret->allowed) {
        return ifd_fail(err, IFD_NOT_FOUND, "Method Not Allowed");
    }
    return ifd_fail(err, IFD_NOT_FOUND, "Not Found");
}
