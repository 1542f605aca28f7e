/* Reads levels and their anchors. */
#include "server/objects/anchors_impl.h"

#include "engine/base/str.h"

#define SIDE_MAX 4096

static enum ifd_code fail_level(struct ifd_str text, const char *why, struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID, "parameter \"anchors\": \"%.*s\": %s",
                    text.size < 60 ? (int)text.size : 60, text.data, why);
}

/* "16x32"; false if it is anything else. */
static bool read_pair(struct ifd_str text, float *ret_a, float *ret_b)
{
    struct ifd_str rest = text;
    double a = 0, b = 0;
    const bool has_a = ifd_str_f64(ifd_str_trim(ifd_str_part(&rest, 'x')), &a);
    if (!has_a || !rest.data || !ifd_str_f64(ifd_str_trim(rest), &b) || !(a > 0 && a <= SIDE_MAX) ||
        !(b > 0 && b <= SIDE_MAX)) {
        return false;
    }
    *ret_a = (float)a;
    *ret_b = (float)b;
    return true;
}

/* A stride, or columns "x" rows. */
static bool read_cells(struct ifd_str text, float width, float height, struct ifd_level *ret)
{
    double stride = 0;
    float columns = 0, rows = 0;
    if (read_pair(text, &columns, &rows) && columns >= 1 && rows >= 1) {
        ret->columns = (uint32_t)columns;
        ret->rows = (uint32_t)rows;
        ret->step_x = width / (float)ret->columns;
        ret->step_y = height / (float)ret->rows;
        return true;
    }
    if (!ifd_str_f64(text, &stride) || !(stride >= 1 && stride <= SIDE_MAX)) {
        return false;
    }
    ret->step_x = ret->step_y = (float)stride;
    ret->columns = (uint32_t)ceilf(width / (float)stride);
    ret->rows = (uint32_t)ceilf(height / (float)stride);
    return true;
}

static enum ifd_code read_sizes(struct ifd_str text, struct ifd_level *ret, struct ifd_err *err)
{
    for (struct ifd_str rest = text; rest.data; ret->count++) {
        const struct ifd_str size = ifd_str_part(&rest, ',');
        if (ret->count == IFD_ANCHORS_MAX) {
            return fail_level(text, "more than 16 anchors", err);
        }
        if (!read_pair(size, &ret->width[ret->count], &ret->height[ret->count])) {
            return fail_level(size, "not WIDTHxHEIGHT in pixels", err);
        }
    }
    return IFD_OK;
}

static enum ifd_code read_level(struct ifd_str text, float width, float height,
                                struct ifd_level *ret, struct ifd_err *err)
{
    uint64_t count = 0;
    struct ifd_str rest = text, head = ifd_str_part(&rest, '*');
    const bool is_counted = rest.data;
    if (!is_counted) {
        rest = text;
        head = ifd_str_part(&rest, ':');
    }
    if (!rest.data || !read_cells(ifd_str_trim(head), width, height, ret)) {
        return fail_level(text, "not STRIDE: sizes, COLUMNSxROWS: sizes or STRIDE*count", err);
    }
    if (!is_counted) {
        return read_sizes(rest, ret, err);
    }
    if (!ifd_str_u64(ifd_str_trim(rest), &count) || count < 1 || count > IFD_ANCHORS_MAX) {
        return fail_level(text, "not 1 to 16 anchors", err);
    }
    ret->count = (uint32_t)count;
    for (uint32_t i = 0; i < ret->count; i++) {
        ret->width[i] = ret->height[i] = 1;
    }
    return IFD_OK;
}

/* Levels cannot have more cells than pixels. */
static enum ifd_code add_level(struct ifd_levels *levels, struct ifd_str text, float width,
                               float height, struct ifd_err *err)
{
    struct ifd_level level = {0};
    if (levels->count == IFD_LEVELS_MAX) {
        return fail_level(text, "more than 8 levels", err);
    }
    enum ifd_code code = read_level(text, width, height, &level, err);
    if (!code) {
        levels->anchor_count += (size_t)level.rows * level.columns * level.count;
        levels->level[levels->count++] = level;
    }
    return code;
}

static enum ifd_code check_picture(const struct ifd_setup *setup, struct ifd_err *err)
{
    return setup->meaning->input_width > 0
               ? IFD_OK
               : ifd_fail(err, IFD_INVALID, "the model takes no picture");
}

enum ifd_code ifd_levels_read(const struct ifd_setup *setup, struct ifd_levels *ret,
                              struct ifd_err *err)
{
    struct ifd_str rest = ifd_parameter(setup->desc, "anchors");
    enum ifd_code code = check_picture(setup, err);
    *ret = (struct ifd_levels){0};
    while (rest.data && !code) {
        code = add_level(ret, ifd_str_trim(ifd_str_part(&rest, ';')), setup->meaning->input_width,
                         setup->meaning->input_height, err);
    }
    return code;
}

enum ifd_code ifd_strides_read(const struct ifd_setup *setup, const char *text,
                               struct ifd_levels *ret, struct ifd_err *err)
{
    const struct ifd_str given = ifd_parameter(setup->desc, "strides");
    struct ifd_str rest = given.data ? given : ifd_str(text);
    enum ifd_code code = check_picture(setup, err);
    *ret = (struct ifd_levels){0};
    while (rest.data && !code) {
        const struct ifd_str stride = ifd_str_trim(ifd_str_part(&rest, ','));
        char level[40];
        if (!ifd_str_format(level, sizeof(level), "%.*s*1",
                            stride.size < 30 ? (int)stride.size : 30, stride.data)) {
            return fail_level(stride, "not a stride", err);
        }
        code = add_level(ret, ifd_str(level), setup->meaning->input_width,
                         setup->meaning->input_height, err);
    }
    return code;
}
