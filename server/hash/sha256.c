/* nettle's SHA-256. */
#include "server/hash/sha256.h"

#include <nettle/memops.h>

_Static_assert(IFD_SHA256_BYTES == SHA256_DIGEST_SIZE, "the sum is SHA-256");

void ifd_sha256_begin(struct ifd_sha256 *sum)
{
    sha256_init(&sum->library);
}

void ifd_sha256_add(struct ifd_sha256 *sum, const void *data, size_t size)
{
    if (size > 0) {
        sha256_update(&sum->library, size, data);
    }
}

void ifd_sha256_end(struct ifd_sha256 *sum, uint8_t ret_sum[IFD_SHA256_BYTES])
{
    sha256_digest(&sum->library, IFD_SHA256_BYTES, ret_sum);
}

static int hex_value(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

bool ifd_sha256_read(struct ifd_str text, uint8_t ret_sum[IFD_SHA256_BYTES])
{
    for (size_t i = 0; i < IFD_SHA256_BYTES; i++) {
        int high = text.size >= IFD_SHA256_DIGITS ? hex_value(text.data[2 * i]) : -1;
        int low = text.size >= IFD_SHA256_DIGITS ? hex_value(text.data[2 * i + 1]) : -1;
        if (high < 0 || low < 0) {
            return false;
        }
        ret_sum[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

bool ifd_sha256_is_same(const uint8_t a[IFD_SHA256_BYTES], const uint8_t b[IFD_SHA256_BYTES])
{
    return memeql_sec(a, b, IFD_SHA256_BYTES) != 0;
}
