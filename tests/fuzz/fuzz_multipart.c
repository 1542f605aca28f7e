/* Any bytes as a header line and a form behind it: refused, or parts that lie inside of it, each
 * behind the one before. */
#include <string.h>

#include "api/http/multipart.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    const size_t type_bytes = line ? (size_t)(line - data) : size;
    const size_t body_at = line ? type_bytes + 1 : size;
    const struct ifd_str type = {(const char *)data, type_bytes};
    const uint8_t *last = data + body_at;
    struct ifd_multipart form;
    struct ifd_part part;
    struct ifd_err err = {0};
    bool is_there = true;
    enum ifd_code code =
        ifd_multipart_begin(type, (struct ifd_bytes){data + body_at, size - body_at}, &form, &err);
    while (!code && is_there) {
        code = ifd_multipart_next(&form, &part, &is_there, &err);
        if (!code && is_there) {
            MUST(part.name.data && part.content.data >= last);
            last = part.content.data + part.content.size;
            MUST(last <= data + size);
        }
    }
    MUST(!code || err.text[0] != '\0');
    return 0;
}
