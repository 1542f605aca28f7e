/** Which part of a picture goes where in a model's input. Whole pixels of the picture as a person
 *  sees it. Thread: any. */
#ifndef INFERD_SERVER_MEDIA_GEOMETRY_H
#define INFERD_SERVER_MEDIA_GEOMETRY_H

#include "inferd/status.h"
#include "server/model/picture.h"

struct ifd_geometry {
    uint32_t width, height;           /* of the picture */
    struct ifd_picture_region region; /* what was asked for; else the whole picture */
    struct ifd_picture_region from;   /* the part of region that is shown */
    struct ifd_picture_region to;     /* where it is shown in the input */
};

/** Plans for a picture of width × height and an input of to_width × to_height. region: NULL for the
 *  whole picture. Errors: INVALID (a region that is empty or leaves the picture). */
IFD_NODISCARD enum ifd_code ifd_geometry_plan(const struct ifd_picture_region *region,
                                              enum ifd_image_resize resize, uint32_t width,
                                              uint32_t height, uint32_t to_width,
                                              uint32_t to_height, struct ifd_geometry *ret,
                                              struct ifd_err *err);
struct ifd_picture_view ifd_geometry_view(const struct ifd_geometry *geometry);

#endif
