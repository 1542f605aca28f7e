/* Recognises pictures, and words about them. */
#include "server/model/picture.h"

#include <string.h>

#include "engine/base/str.h"

static bool has(struct ifd_bytes bytes, size_t at, const char *magic, size_t magic_bytes)
{
    return bytes.size >= at + magic_bytes && memcmp(bytes.data + at, magic, magic_bytes) == 0;
}

enum ifd_picture_kind ifd_picture_kind(struct ifd_bytes bytes)
{
    return has(bytes, 0, "\xff\xd8\xff", 3)                       ? IFD_PICTURE_JPEG
           : has(bytes, 0, "\x89PNG\r\n\x1a\n", 8)                ? IFD_PICTURE_PNG
           : has(bytes, 0, "BM", 2)                               ? IFD_PICTURE_BMP
           : has(bytes, 0, "RIFF", 4) && has(bytes, 8, "WEBP", 4) ? IFD_PICTURE_WEBP
                                                                  : IFD_PICTURE_UNKNOWN;
}

bool ifd_picture_region_read(struct ifd_str text, struct ifd_picture_region *ret)
{
    uint32_t value[4];
    struct ifd_str rest = text;
    for (int i = 0; i < 4; i++) {
        uint64_t number = 0;
        if (!rest.data || !ifd_str_u64(ifd_str_trim(ifd_str_part(&rest, ',')), &number) ||
            number > UINT32_MAX) {
            return false;
        }
        value[i] = (uint32_t)number;
    }
    *ret = (struct ifd_picture_region){
        .x = value[0], .y = value[1], .width = value[2], .height = value[3]};
    return !rest.data;
}

/* The place of text among count names; -1 if it is none of them. */
static int find_name(struct ifd_str text, const char *const *name, int count)
{
    for (int i = 0; i < count; i++) {
        if (ifd_str_equal_nocase(text, name[i])) {
            return i;
        }
    }
    return -1;
}

bool ifd_image_resize_read(struct ifd_str text, enum ifd_image_resize *ret)
{
#define X(id, name) name,
    static const char *const names[] = {IFD_IMAGE_RESIZES(X)};
#undef X
    const int found = find_name(text, names, IFD_RESIZE_COUNT);
    *ret = found < 0 ? *ret : (enum ifd_image_resize)found;
    return found >= 0;
}

bool ifd_frame_format_read(struct ifd_str text, enum ifd_frame_format *ret)
{
#define X(id, name) name,
    static const char *const names[] = {IFD_FRAME_FORMATS(X)};
#undef X
    const int found = find_name(text, names, IFD_FRAME_COUNT - 1);
    *ret = found < 0 ? *ret : (enum ifd_frame_format)(found + 1); /* NONE is the first */
    return found >= 0;
}
