/* Names by allow-list. */
#include "engine/base/name.h"

#include <string.h>

bool ifd_name_is_valid(struct ifd_str name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-+";
    if (name.size == 0 || name.size > IFD_NAME_BYTES_MAX || name.data[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        if (!memchr(allowed, name.data[i], sizeof(allowed) - 1)) {
            return false;
        }
    }
    return true;
}
