/** Levels of cells that cover a model's input, and the boxes that each cell begins with. Thread:
 *  any. */
#ifndef INFERD_SERVER_OBJECTS_ANCHORS_IMPL_H
#define INFERD_SERVER_OBJECTS_ANCHORS_IMPL_H

#include "server/objects/decoder_impl.h"

#define IFD_LEVELS_MAX  8
#define IFD_ANCHORS_MAX 16 /* of a cell */

struct ifd_level {
    uint32_t rows, columns;
    float step_x, step_y; /* from cell to cell, in pixels of the input */
    uint32_t count;       /* anchors of a cell */
    float width[IFD_ANCHORS_MAX], height[IFD_ANCHORS_MAX]; /* pixels */
};

struct ifd_levels {
    struct ifd_level level[IFD_LEVELS_MAX];
    uint32_t count;
    size_t anchor_count; /* of all levels */
};

/** Reads the parameter `anchors`: levels with ";" between them. A level begins with its stride, or
 *  its columns "x" rows; behind ":" follow the sizes of its anchors in pixels, "16x32, 24x24"; or
 *  behind "*" the number of anchors of one pixel. Without the parameter there are none. The text is
 *  checked, the input's size is known. Errors: INVALID. */
IFD_NODISCARD enum ifd_code ifd_levels_read(const struct ifd_setup *setup, struct ifd_levels *ret,
                                            struct ifd_err *err);
/** One anchor for each cell: the parameter `strides`, numbers with commas between them; text if
 *  nobody sets it. */
IFD_NODISCARD enum ifd_code ifd_strides_read(const struct ifd_setup *setup, const char *text,
                                             struct ifd_levels *ret, struct ifd_err *err);

/** Where an anchor lies. */
struct ifd_anchor {
    uint32_t level, row, column, number; /* number: among those of its cell */
};

/** Walks levels, rows, columns, anchors: the order in which outputs list them. Begin with a zeroed
 *  anchor; false behind the last one. */
static inline bool ifd_anchor_next(const struct ifd_levels *levels, struct ifd_anchor *anchor)
{
    const struct ifd_level *level = &levels->level[anchor->level];
    if (++anchor->number < level->count) {
        return true;
    }
    anchor->number = 0;
    if (++anchor->column < level->columns) {
        return true;
    }
    anchor->column = 0;
    if (++anchor->row < level->rows) {
        return true;
    }
    anchor->row = 0;
    return ++anchor->level < levels->count;
}

#endif
