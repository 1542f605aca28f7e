/* Splits media types at semicolons. */
#include "api/http/media_type.h"

#include "engine/base/str.h"

bool ifd_media_type_is(struct ifd_str header, const char *type)
{
    struct ifd_str rest = header;
    return ifd_str_equal_nocase(ifd_str_trim(ifd_str_part(&rest, ';')), type);
}

/* Cuts "name=value" off rest; a semicolon in quotes does not end it. */
static struct ifd_str next_parameter(struct ifd_str *rest)
{
    bool is_quoted = false;
    size_t size = 0;
    while (size < rest->size && (is_quoted || rest->data[size] != ';')) {
        is_quoted = rest->data[size] == '"' ? !is_quoted : is_quoted;
        size++;
    }
    const struct ifd_str parameter = {rest->data, size};
    const size_t used = size < rest->size ? size + 1 : size;
    *rest = (struct ifd_str){rest->data + used, rest->size - used};
    return parameter;
}

struct ifd_str ifd_media_type_parameter(struct ifd_str header, const char *name)
{
    struct ifd_str rest = header;
    (void)ifd_str_part(&rest, ';');
    while (rest.size > 0) {
        struct ifd_str value = next_parameter(&rest);
        const struct ifd_str key = ifd_str_trim(ifd_str_part(&value, '='));
        if (!value.data || !ifd_str_equal_nocase(key, name)) {
            continue;
        }
        value = ifd_str_trim(value);
        const bool is_quoted =
            value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"';
        return is_quoted ? (struct ifd_str){value.data + 1, value.size - 2} : value;
    }
    return (struct ifd_str){0};
}
