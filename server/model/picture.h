/** Pictures as requests send them and models want them, and the way back from a model's input to
 *  the picture. Shared by the API, which reads requests and writes answers, by server/serve and by
 *  server/media, which decodes. */
#ifndef INFERD_SERVER_MODEL_PICTURE_H
#define INFERD_SERVER_MODEL_PICTURE_H

#include "inferd/types.h"

struct ifd_tensor_info;

/** How a picture becomes as large as the input: X(id, name in configs and requests).
 *  STRETCH ignores the aspect ratio; LETTERBOX shows the whole picture between bars; CROP fills the
 *  input with the middle of the picture. */
#define IFD_IMAGE_RESIZES(X)                                                                       \
    X(STRETCH, "stretch")                                                                          \
    X(LETTERBOX, "letterbox")                                                                      \
    X(CROP, "crop")

#define X(id, name) IFD_RESIZE_##id,
enum ifd_image_resize { IFD_IMAGE_RESIZES(X) IFD_RESIZE_COUNT };
#undef X

/** The order of an input's channels: X(id, name in configs). */
#define IFD_IMAGE_COLORS(X)                                                                        \
    X(RGB, "RGB")                                                                                  \
    X(BGR, "BGR")                                                                                  \
    X(GRAY, "GRAY")

#define X(id, name) IFD_COLOR_##id,
enum ifd_image_color { IFD_IMAGE_COLORS(X) IFD_COLOR_COUNT };
#undef X

/** Frames without a header, as `video/x-raw; format=…` names them (GStreamer): X(id, name). */
#define IFD_FRAME_FORMATS(X)                                                                       \
    X(NV12, "NV12")                                                                                \
    X(I420, "I420")                                                                                \
    X(YUYV, "YUYV")                                                                                \
    X(RGB, "RGB")                                                                                  \
    X(BGR, "BGR")                                                                                  \
    X(GRAY8, "GRAY8")

#define X(id, name) IFD_FRAME_##id,
enum ifd_frame_format { IFD_FRAME_NONE, IFD_FRAME_FORMATS(X) IFD_FRAME_COUNT };
#undef X

/** Formats that the first bytes tell. */
enum ifd_picture_kind {
    IFD_PICTURE_UNKNOWN,
    IFD_PICTURE_JPEG,
    IFD_PICTURE_PNG,
    IFD_PICTURE_BMP,
    IFD_PICTURE_WEBP,
    IFD_PICTURE_KINDS
};

enum ifd_picture_kind ifd_picture_kind(struct ifd_bytes bytes);

/** A rectangle in pixels. */
struct ifd_picture_region {
    uint32_t x, y, width, height;
};

/** "x,y,width,height" in whole numbers. False if text is anything else. */
bool ifd_picture_region_read(struct ifd_str text, struct ifd_picture_region *ret) IFD_NODISCARD;
/** A name of IFD_IMAGE_RESIZES, in any case. False if there is none. */
bool ifd_image_resize_read(struct ifd_str text, enum ifd_image_resize *ret) IFD_NODISCARD;
/** A name of IFD_FRAME_FORMATS, in any case. False if there is none. */
bool ifd_frame_format_read(struct ifd_str text, enum ifd_frame_format *ret) IFD_NODISCARD;

/** A picture as a request brings it. */
struct ifd_picture_source {
    struct ifd_bytes bytes;
    enum ifd_frame_format format; /* NONE: the first bytes tell what it is */
    uint32_t width, height;       /* of a frame */
    uint32_t stride; /* bytes of a row of its first plane; 0: without padding behind rows */
    bool has_resize; /* else the model's */
    enum ifd_image_resize resize;
    bool has_region; /* else the model's, or the whole picture */
    struct ifd_picture_region region;
};

/** Where the pixels of a model's input come from: picture = offset + scale × input on each axis. A
 *  pixel's upper left corner has whole coordinates, its centre those plus one half. */
struct ifd_picture_view {
    uint32_t width, height;           /* of the whole picture as a person sees it, in pixels */
    struct ifd_picture_region region; /* what was asked for; else the whole picture */
    double offset_x, offset_y;
    double scale_x, scale_y; /* pixels of the picture for one of the input */
};

/** A picture on its way into a sample of an input. */
struct ifd_picture {
    struct ifd_picture_source source;
    const struct ifd_tensor_info *input;
    struct ifd_tensor sample;
    struct ifd_picture_view view; /* once it is decoded */
};

/** A point of the model's input in pixels of the picture. It may lie outside of it. */
static inline void ifd_picture_view_to_picture(const struct ifd_picture_view *view, double x,
                                               double y, double *ret_x, double *ret_y)
{
    *ret_x = view->offset_x + view->scale_x * x;
    *ret_y = view->offset_y + view->scale_y * y;
}

#endif
