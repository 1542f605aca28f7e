/* Reads one number of a TIFF directory. */
#include "server/media/exif.h"

#include <string.h>

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT      3
#define ENTRY_BYTES     12

struct tiff {
    struct ifd_bytes bytes;
    bool is_big_endian;
};

/* 0 beyond the end. */
static uint32_t u16_at(const struct tiff *tiff, size_t at)
{
    if (at > tiff->bytes.size || tiff->bytes.size - at < 2) {
        return 0;
    }
    const uint8_t *data = tiff->bytes.data + at;
    return tiff->is_big_endian ? (uint32_t)data[0] << 8 | data[1]
                               : (uint32_t)data[1] << 8 | data[0];
}

static uint32_t u32_at(const struct tiff *tiff, size_t at)
{
    const uint32_t first = u16_at(tiff, at), second = u16_at(tiff, at + 2);
    return tiff->is_big_endian ? first << 16 | second : second << 16 | first;
}

unsigned ifd_exif_orientation(struct ifd_bytes exif)
{
    struct tiff tiff = {.bytes = exif};
    if (exif.size < 8 ||
        (memcmp(exif.data, "II*\0", 4) != 0 && memcmp(exif.data, "MM\0*", 4) != 0)) {
        return 1;
    }
    tiff.is_big_endian = exif.data[0] == 'M';
    const size_t directory = u32_at(&tiff, 4);
    const uint32_t count = u16_at(&tiff, directory);
    for (uint32_t i = 0; i < count; i++) {
        const size_t entry = directory + 2 + (size_t)i * ENTRY_BYTES;
        if (u16_at(&tiff, entry) == TAG_ORIENTATION && u16_at(&tiff, entry + 2) == TYPE_SHORT) {
            const uint32_t value = u16_at(&tiff, entry + 8);
            return value >= 1 && value <= 8 ? value : 1;
        }
    }
    return 1;
}
