/* Attributes by name: the one place that checks kinds and ranges. */
#include "engine/ir/attrs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void *field_of(void *attrs, const struct ifd_attr_def *attr)
{
    return (char *)attrs + attr->offset;
}

static const void *const_field_of(const void *attrs, const struct ifd_attr_def *attr)
{
    return (const char *)attrs + attr->offset;
}

static const char *kind_name(enum ifd_attr_kind kind)
{
    switch (kind) {
    case IFD_ATTR_INT:
        return "a number";
    case IFD_ATTR_F32:
        return "a float";
    case IFD_ATTR_BOOL:
        return "true or false";
    case IFD_ATTR_INTS:
        return "a list of numbers";
    case IFD_ATTR_ENUM:
        return "an enum";
    }
    return "?";
}

void ifd_attrs_defaults(const struct ifd_op_def *def, void *attrs)
{
    if (def->attrs_bytes == 0) {
        return;
    }
    memset(attrs, 0, def->attrs_bytes);
    for (uint32_t i = 0; i < def->attr_count; i++) {
        const struct ifd_attr_def *attr = &def->attrs[i];
        void *field = field_of(attrs, attr);
        switch (attr->kind) {
        case IFD_ATTR_INT:
        case IFD_ATTR_ENUM:
            *(int32_t *)field = (int32_t)attr->default_value;
            break;
        case IFD_ATTR_F32:
            *(float *)field = (float)attr->default_value;
            break;
        case IFD_ATTR_BOOL:
            *(bool *)field = attr->default_value != 0;
            break;
        case IFD_ATTR_INTS:
            break; /* an empty list */
        }
    }
}

static enum ifd_code find(const struct ifd_op_def *def, const char *name,
                          const struct ifd_attr_def **ret_attr, struct ifd_err *err)
{
    for (uint32_t i = 0; i < def->attr_count; i++) {
        if (strcmp(def->attrs[i].name, name) == 0) {
            *ret_attr = &def->attrs[i];
            return IFD_OK;
        }
    }
    return ifd_fail(err, IFD_INVALID, "%s has no attribute \"%s\"", def->name, name);
}

static enum ifd_code fail_kind(const struct ifd_op_def *def, const struct ifd_attr_def *attr,
                               const char *got, struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID, "%s: attribute \"%s\" is %s, got %s", def->name, attr->name,
                    kind_name(attr->kind), got);
}

static enum ifd_code check_int(const struct ifd_op_def *def, const struct ifd_attr_def *attr,
                               int64_t value, struct ifd_err *err)
{
    /* Limits are whole numbers up to 2^53, which doubles hold exactly, or ±HUGE_VAL: no limit. */
    if ((double)value < attr->min || (double)value > attr->max) {
        return ifd_fail(err, IFD_INVALID, "%s: attribute \"%s\" is %lld, expected %.0f to %.0f",
                        def->name, attr->name, (long long)value, attr->min, attr->max);
    }
    return IFD_OK;
}

static enum ifd_code check_f32(const struct ifd_op_def *def, const struct ifd_attr_def *attr,
                               double value, struct ifd_err *err)
{
    if (!(value >= attr->min && value <= attr->max)) {
        return ifd_fail(err, IFD_INVALID, "%s: attribute \"%s\" is %g, expected %g to %g",
                        def->name, attr->name, value, attr->min, attr->max);
    }
    return IFD_OK;
}

static enum ifd_code check_ints(const struct ifd_op_def *def, const struct ifd_attr_def *attr,
                                const int64_t *value, size_t count, struct ifd_err *err)
{
    if (count > IFD_MAX_RANK) {
        return ifd_fail(err, IFD_INVALID,
                        "%s: attribute \"%s\" has %zu numbers, expected at most %d", def->name,
                        attr->name, count, IFD_MAX_RANK);
    }
    for (size_t i = 0; i < count; i++) {
        const enum ifd_code code = check_int(def, attr, value[i], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_attrs_set_int(const struct ifd_op_def *def, void *attrs, const char *name,
                                int64_t value, struct ifd_err *err)
{
    const struct ifd_attr_def *attr = NULL;
    enum ifd_code code = find(def, name, &attr, err);
    if (code != IFD_OK) {
        return code;
    }
    if (attr->kind == IFD_ATTR_BOOL) {
        *(bool *)field_of(attrs, attr) = value != 0;
        return IFD_OK;
    }
    if (attr->kind != IFD_ATTR_INT && attr->kind != IFD_ATTR_ENUM) {
        return fail_kind(def, attr, "a number", err);
    }
    code = check_int(def, attr, value, err);
    if (code == IFD_OK && (value < INT32_MIN || value > INT32_MAX)) {
        code = ifd_fail(err, IFD_INVALID,
                        "%s: attribute \"%s\" is %lld, which needs more than 32 bits", def->name,
                        attr->name, (long long)value);
    }
    if (code == IFD_OK) {
        *(int32_t *)field_of(attrs, attr) = (int32_t)value;
    }
    return code;
}

enum ifd_code ifd_attrs_set_f32(const struct ifd_op_def *def, void *attrs, const char *name,
                                double value, struct ifd_err *err)
{
    const struct ifd_attr_def *attr = NULL;
    enum ifd_code code = find(def, name, &attr, err);
    if (code != IFD_OK) {
        return code;
    }
    if (attr->kind != IFD_ATTR_F32) {
        return fail_kind(def, attr, "a float", err);
    }
    code = check_f32(def, attr, value, err);
    if (code == IFD_OK) {
        *(float *)field_of(attrs, attr) = (float)value;
    }
    return code;
}

enum ifd_code ifd_attrs_set_ints(const struct ifd_op_def *def, void *attrs, const char *name,
                                 const int64_t *value, size_t count, struct ifd_err *err)
{
    const struct ifd_attr_def *attr = NULL;
    enum ifd_code code = find(def, name, &attr, err);
    if (code != IFD_OK) {
        return code;
    }
    if (attr->kind != IFD_ATTR_INTS) {
        return fail_kind(def, attr, "a list of numbers", err);
    }
    code = check_ints(def, attr, value, count, err);
    if (code == IFD_OK) {
        struct ifd_ints ints = {.count = (uint32_t)count};
        for (size_t i = 0; i < count; i++) {
            ints.value[i] = value[i];
        }
        *(struct ifd_ints *)field_of(attrs, attr) = ints;
    }
    return code;
}

static enum ifd_code check_field(const struct ifd_op_def *def, const struct ifd_attr_def *attr,
                                 const void *field, struct ifd_err *err)
{
    switch (attr->kind) {
    case IFD_ATTR_INT:
    case IFD_ATTR_ENUM:
        return check_int(def, attr, *(const int32_t *)field, err);
    case IFD_ATTR_F32:
        return check_f32(def, attr, (double)*(const float *)field, err);
    case IFD_ATTR_BOOL:
        return IFD_OK;
    case IFD_ATTR_INTS: {
        const struct ifd_ints *ints = field;
        return check_ints(def, attr, ints->value, ints->count, err);
    }
    }
    return ifd_fail(err, IFD_INTERNAL, "%s: attribute \"%s\" has no known kind", def->name,
                    attr->name);
}

enum ifd_code ifd_attrs_check(const struct ifd_op_def *def, const void *attrs, struct ifd_err *err)
{
    if (def->attrs_bytes > 0 && !attrs) {
        return ifd_fail(err, IFD_INVALID, "%s: no attributes", def->name);
    }
    for (uint32_t i = 0; i < def->attr_count; i++) {
        const enum ifd_code code =
            check_field(def, &def->attrs[i], const_field_of(attrs, &def->attrs[i]), err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

/* A text that grows up to a size; what does not fit is cut. */
struct text {
    char *at;
    size_t left;
};

IFD_PRINTF(2, 3) static void append(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int count = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (count > 0 && text->left > 0) {
        const size_t used = (size_t)count < text->left ? (size_t)count : text->left - 1;
        text->at += used;
        text->left -= used;
    }
}

static void append_value(struct text *text, enum ifd_attr_kind kind, const void *field)
{
    switch (kind) {
    case IFD_ATTR_INT:
    case IFD_ATTR_ENUM:
        append(text, "%d", *(const int32_t *)field);
        break;
    case IFD_ATTR_F32:
        append(text, "%.9g", (double)*(const float *)field);
        break;
    case IFD_ATTR_BOOL:
        append(text, "%s", *(const bool *)field ? "true" : "false");
        break;
    case IFD_ATTR_INTS: {
        const struct ifd_ints *ints = field;
        append(text, "[");
        for (uint32_t i = 0; i < ints->count && i < IFD_MAX_RANK; i++) {
            append(text, "%s%lld", i > 0 ? "," : "", (long long)ints->value[i]);
        }
        append(text, "]");
        break;
    }
    }
}

void ifd_attrs_text(const struct ifd_op_def *def, const void *attrs, char *text, size_t size)
{
    if (size == 0) {
        return;
    }
    struct text out = {.at = text, .left = size};
    *text = '\0';
    for (uint32_t i = 0; i < def->attr_count; i++) {
        append(&out, "%s%s=", i > 0 ? " " : "", def->attrs[i].name);
        append_value(&out, def->attrs[i].kind, const_field_of(attrs, &def->attrs[i]));
    }
}
