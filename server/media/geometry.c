/* stretch, letterbox and crop in whole pixels. */
#include "server/media/geometry.h"

/* round(a × b / c), at least 1 and at most most; halves are rounded up. */
static uint32_t part(uint32_t a, uint32_t b, uint32_t c, uint32_t most)
{
    const uint64_t rounded = ((uint64_t)a * b * 2 + c) / ((uint64_t)c * 2);
    return rounded < 1 ? 1 : rounded > most ? most : (uint32_t)rounded;
}

/* Bars above and below, or beside, so that the region keeps its form. */
static void letterbox(struct ifd_geometry *g)
{
    const uint32_t width = g->to.width, height = g->to.height;
    const struct ifd_picture_region *r = &g->region;
    if ((uint64_t)width * r->height <= (uint64_t)height * r->width) {
        g->to.height = part(r->height, width, r->width, height);
    } else {
        g->to.width = part(r->width, height, r->height, width);
    }
    g->to.x = (width - g->to.width) / 2;
    g->to.y = (height - g->to.height) / 2;
}

/* The middle of the region in the form of the input. */
static void crop(struct ifd_geometry *g)
{
    const struct ifd_picture_region *r = &g->region;
    if ((uint64_t)g->to.width * r->height <= (uint64_t)g->to.height * r->width) {
        g->from.width = part(r->height, g->to.width, g->to.height, r->width);
    } else {
        g->from.height = part(r->width, g->to.height, g->to.width, r->height);
    }
    g->from.x += (r->width - g->from.width) / 2;
    g->from.y += (r->height - g->from.height) / 2;
}

enum ifd_code ifd_geometry_plan(const struct ifd_picture_region *region,
                                enum ifd_image_resize resize, uint32_t width, uint32_t height,
                                uint32_t to_width, uint32_t to_height, struct ifd_geometry *ret,
                                struct ifd_err *err)
{
    struct ifd_geometry g = {.width = width, .height = height};
    g.region = region ? *region : (struct ifd_picture_region){.width = width, .height = height};
    const struct ifd_picture_region *r = &g.region;
    if (r->width == 0 || r->height == 0 || r->x >= width || r->y >= height ||
        r->width > width - r->x || r->height > height - r->y) {
        return ifd_fail(err, IFD_INVALID,
                        "region %u,%u,%u,%u is empty or leaves the picture of %u×%u pixels", r->x,
                        r->y, r->width, r->height, width, height);
    }
    g.from = g.region;
    g.to = (struct ifd_picture_region){.width = to_width, .height = to_height};
    if (resize == IFD_RESIZE_LETTERBOX) {
        letterbox(&g);
    } else if (resize == IFD_RESIZE_CROP) {
        crop(&g);
    }
    *ret = g;
    return IFD_OK;
}

struct ifd_picture_view ifd_geometry_view(const struct ifd_geometry *geometry)
{
    const struct ifd_picture_region *from = &geometry->from, *to = &geometry->to;
    struct ifd_picture_view view = {
        .width = geometry->width, .height = geometry->height, .region = geometry->region};
    view.scale_x = (double)from->width / to->width;
    view.scale_y = (double)from->height / to->height;
    view.offset_x = from->x - to->x * view.scale_x;
    view.offset_y = from->y - to->y * view.scale_y;
    return view;
}
