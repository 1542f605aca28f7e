/* Reads parameters of a config and of its preset. */
#include "server/objects/parameters_impl.h"

#include "engine/base/str.h"
#include "server/model/parameters.h"

struct ifd_str ifd_parameter(const struct ifd_model_desc *desc, const char *key)
{
    return ifd_str_trim(ifd_str(ifd_meaning_parameter(desc, key)));
}

static int shown(struct ifd_str text)
{
    return text.size < 60 ? (int)text.size : 60;
}

static enum ifd_code read_number(const char *key, struct ifd_str text, double low, double high,
                                 float *ret, struct ifd_err *err)
{
    double number = 0;
    if (!ifd_str_f64(text, &number) || !(number >= low && number <= high)) {
        return ifd_fail(err, IFD_INVALID, "parameter \"%s\": \"%.*s\" is not a number %g … %g", key,
                        shown(text), text.data, low, high);
    }
    *ret = (float)number;
    return IFD_OK;
}

enum ifd_code ifd_parameter_number(const struct ifd_model_desc *desc, const char *key, double low,
                                   double high, float *ret, struct ifd_err *err)
{
    const struct ifd_str text = ifd_parameter(desc, key);
    return text.data ? read_number(key, text, low, high, ret, err) : IFD_OK;
}

enum ifd_code ifd_parameter_count(const struct ifd_model_desc *desc, const char *key, uint32_t low,
                                  uint32_t high, uint32_t *ret, struct ifd_err *err)
{
    const struct ifd_str text = ifd_parameter(desc, key);
    uint64_t number = 0;
    if (!text.data) {
        return IFD_OK;
    }
    if (!ifd_str_u64(text, &number) || number < low || number > high) {
        return ifd_fail(err, IFD_INVALID, "parameter \"%s\": \"%.*s\" is not a count %u … %u", key,
                        shown(text), text.data, low, high);
    }
    *ret = (uint32_t)number;
    return IFD_OK;
}

enum ifd_code ifd_parameter_numbers(const struct ifd_model_desc *desc, const char *key,
                                    uint32_t max, float *ret, uint32_t *ret_count,
                                    struct ifd_err *err)
{
    struct ifd_str rest = ifd_parameter(desc, key);
    if (!rest.data) {
        return IFD_OK;
    }
    uint32_t count = 0;
    while (rest.data) {
        const struct ifd_str part = ifd_str_trim(ifd_str_part(&rest, ','));
        if (count == max) {
            return ifd_fail(err, IFD_INVALID, "parameter \"%s\": more than %u numbers", key, max);
        }
        enum ifd_code code = read_number(key, part, -1e9, 1e9, &ret[count], err);
        if (code) {
            return code;
        }
        count++;
    }
    *ret_count = count;
    return IFD_OK;
}

enum ifd_code ifd_parameter_word(const struct ifd_model_desc *desc, const char *key,
                                 const char *const *word, uint32_t count, uint32_t *ret,
                                 struct ifd_err *err)
{
    const struct ifd_str text = ifd_parameter(desc, key);
    char list[160] = "";
    size_t used = 0;
    if (!text.data) {
        return IFD_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (ifd_str_equal(text, word[i])) {
            *ret = i;
            return IFD_OK;
        }
        if (ifd_str_format(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", word[i])) {
            used += strlen(list + used);
        }
    }
    return ifd_fail(err, IFD_INVALID, "parameter \"%s\": \"%.*s\" is none of %s", key, shown(text),
                    text.data, list);
}
