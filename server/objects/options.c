/* What a client may choose, from text. */
#include "engine/base/str.h"
#include "server/objects/decoder_impl.h"

/* A request for more is cut: suppression takes the square of it. */
#define TOP_MAX  1000
#define ONLY_MAX 1000

static enum ifd_code read_share(struct ifd_str name, struct ifd_str value, float *ret,
                                struct ifd_err *err)
{
    double number = 0;
    if (!ifd_str_f64(value, &number) || !(number >= 0 && number <= 1)) {
        return ifd_fail(err, IFD_INVALID, "%.*s: \"%.*s\" is not a number 0 … 1", (int)name.size,
                        name.data, value.size < 40 ? (int)value.size : 40, value.data);
    }
    *ret = (float)number;
    return IFD_OK;
}

static enum ifd_code read_top(struct ifd_str value, uint32_t *ret, struct ifd_err *err)
{
    uint64_t number = 0;
    if (!ifd_str_u64(value, &number) || number == 0) {
        return ifd_fail(err, IFD_INVALID, "top_k: \"%.*s\" is not a count from 1",
                        value.size < 40 ? (int)value.size : 40, value.data);
    }
    *ret = number < TOP_MAX ? (uint32_t)number : TOP_MAX;
    return IFD_OK;
}

static enum ifd_code read_mask(struct ifd_str value, enum ifd_mask_form *ret, struct ifd_err *err)
{
#define X(id, name) name,
    static const char *const names[] = {IFD_MASK_FORMS(X)};
#undef X
    for (uint32_t i = 0; i < IFD_MASK_FORM_COUNT; i++) {
        if (ifd_str_equal(value, names[i])) {
            *ret = (enum ifd_mask_form)i;
            return IFD_OK;
        }
    }
    return ifd_fail(err, IFD_INVALID, "mask: \"%.*s\" is none of none, png, rle",
                    value.size < 40 ? (int)value.size : 40, value.data);
}

/* A class by its label or, if no label is so, its index. */
static bool find_class(const struct ifd_meaning *meaning, struct ifd_str text, uint32_t *ret)
{
    uint64_t number = 0;
    for (uint32_t i = 0; i < meaning->label_count; i++) {
        if (ifd_str_equal_nocase(text, meaning->label[i])) {
            *ret = i;
            return true;
        }
    }
    const bool is_index = ifd_str_u64(text, &number) && number <= INT32_MAX;
    *ret = (uint32_t)number;
    return is_index;
}

static enum ifd_code read_classes(const struct ifd_meaning *meaning, struct ifd_str value,
                                  struct ifd_arena *arena, struct ifd_object_options *ret,
                                  struct ifd_err *err)
{
    uint32_t count = 0, most = 1;
    for (size_t i = 0; i < value.size; i++) {
        most += value.data[i] == ',';
    }
    if (most > ONLY_MAX) {
        return ifd_fail(err, IFD_INVALID, "classes: %u names, the most are %d", most, ONLY_MAX);
    }
    uint32_t *only = ifd_arena_take_array(arena, most, sizeof(*only));
    if (!only) {
        return ifd_arena_fail(arena, most * sizeof(*only), err);
    }
    for (struct ifd_str rest = value; rest.data; count++) {
        const struct ifd_str part = ifd_str_trim(ifd_str_part(&rest, ','));
        if (!find_class(meaning, part, &only[count])) {
            return ifd_fail(err, IFD_INVALID,
                            "classes: \"%.*s\" is neither a label of the model nor an index",
                            part.size < 40 ? (int)part.size : 40, part.data);
        }
    }
    ret->only = only;
    ret->only_count = count;
    return IFD_OK;
}

enum ifd_code ifd_object_option(const struct ifd_meaning *meaning, struct ifd_str name,
                                struct ifd_str value, struct ifd_arena *arena,
                                struct ifd_object_options *ret, struct ifd_err *err)
{
    if (ifd_str_equal(name, "threshold")) {
        return read_share(name, value, &ret->threshold, err);
    }
    if (ifd_str_equal(name, "iou")) {
        return read_share(name, value, &ret->iou, err);
    }
    if (ifd_str_equal(name, "top_k")) {
        return read_top(value, &ret->top_k, err);
    }
    if (ifd_str_equal(name, "mask")) {
        return read_mask(value, &ret->mask, err);
    }
    if (ifd_str_equal(name, "classes")) {
        return read_classes(meaning, value, arena, ret, err);
    }
    return IFD_NOT_FOUND;
}

bool ifd_options_want(const struct ifd_object_options *options, uint32_t index)
{
    bool is_wanted = options->only_count == 0;
    for (uint32_t i = 0; i < options->only_count && !is_wanted; i++) {
        is_wanted = options->only[i] == index;
    }
    return is_wanted;
}
