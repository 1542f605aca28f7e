/** Draws what was found onto the picture: boxes with names, skeletons, masks, classes as lines of
 *  text. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_DRAW_H
#define INFERD_SERVER_OBJECTS_DRAW_H

#include "server/model/objects.h"

/** Pixels of red, green, blue; rows from the top. */
struct ifd_canvas {
    uint8_t *data;
    uint32_t width, height;
};

/** Color of a class: neighbours differ much. */
void ifd_class_color(uint32_t index, uint8_t *ret_rgb);

/** found has places in pixels of the canvas. A mask has its size, or is not drawn. */
void ifd_objects_draw(const struct ifd_canvas *canvas, const struct ifd_meaning *meaning,
                      const struct ifd_objects *found);

#endif
