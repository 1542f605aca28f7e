/* Turns decoded pixels as EXIF's orientation says. */
#include <string.h>

#include "server/media/codecs_impl.h"

static bool is_mirrored_x(unsigned orientation)
{
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static bool is_mirrored_y(unsigned orientation)
{
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

struct ifd_picture_region ifd_codec_stored_part(const struct ifd_codec_request *request)
{
    const struct ifd_picture_region *seen = &request->shown;
    const unsigned o = request->orientation;
    struct ifd_picture_region part = *seen;
    if (ifd_orientation_is_across(o)) {
        part = (struct ifd_picture_region){
            .x = seen->y, .y = seen->x, .width = seen->height, .height = seen->width};
    }
    if (is_mirrored_x(o)) {
        part.x = request->stored_width - part.x - part.width;
    }
    if (is_mirrored_y(o)) {
        part.y = request->stored_height - part.y - part.height;
    }
    return part;
}

/* Of a stored picture, the step from one seen pixel to the next, in stored pixels. */
struct walk {
    ptrdiff_t first, right, down;
};

static struct walk walk_of(const struct ifd_plane *stored, unsigned orientation)
{
    const ptrdiff_t row = (ptrdiff_t)stored->width, last_x = row - 1;
    const ptrdiff_t last_y = ((ptrdiff_t)stored->height - 1) * row;
    switch (orientation) {
    case 2:
        return (struct walk){last_x, -1, row};
    case 3:
        return (struct walk){last_x + last_y, -1, -row};
    case 4:
        return (struct walk){last_y, 1, -row};
    case 5:
        return (struct walk){0, row, 1};
    case 6:
        return (struct walk){last_y, -row, 1};
    case 7:
        return (struct walk){last_x + last_y, -row, -1};
    case 8:
        return (struct walk){last_x, row, -1};
    default:
        return (struct walk){0, 1, row};
    }
}

static void copy_turned(const struct ifd_plane *stored, struct walk walk,
                        const struct ifd_plane *ret, uint8_t *to)
{
    const size_t bytes = stored->channels;
    for (uint32_t y = 0; y < ret->height; y++) {
        ptrdiff_t at = walk.first + (ptrdiff_t)y * walk.down;
        for (uint32_t x = 0; x < ret->width; x++, at += walk.right, to += bytes) {
            memcpy(to, stored->data + (size_t)at * bytes, bytes);
        }
    }
}

/* What was left out in front of a picture on one axis; when it is mirrored, what was left out
 * behind, and the rest of its last pixel where it is reduced. */
static double left_out(bool is_mirrored, uint32_t size, double scale, uint32_t reduced, double left)
{
    return is_mirrored ? size * scale - reduced - left : left;
}

enum ifd_code ifd_decoded_turn(const struct ifd_codec_request *request)
{
    const unsigned o = request->orientation;
    if (o == 1) {
        return IFD_OK;
    }
    struct ifd_decoded stored = *request->ret;
    const struct ifd_plane *p = &stored.plane[0];
    const bool is_across = ifd_orientation_is_across(o);
    const double x =
        left_out(is_mirrored_x(o), request->stored_width, p->scale_x, p->width, p->left);
    const double y =
        left_out(is_mirrored_y(o), request->stored_height, p->scale_y, p->height, p->top);
    *request->ret = (struct ifd_decoded){0};
    enum ifd_code code = ifd_decoded_take(request, is_across ? p->height : p->width,
                                          is_across ? p->width : p->height, p->channels);
    if (!code) {
        struct ifd_plane *turned = &request->ret->plane[0];
        turned->scale_x = p->scale_x; /* the same on both axes */
        turned->scale_y = p->scale_y;
        turned->left = is_across ? y : x;
        turned->top = is_across ? x : y;
        copy_turned(p, walk_of(p, o), turned, request->ret->memory);
    }
    ifd_decoded_free(&stored, request->alloc);
    return code;
}
