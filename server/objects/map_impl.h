/** An output that is a map: rows, columns and channels in either order. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_MAP_IMPL_H
#define INFERD_SERVER_OBJECTS_MAP_IMPL_H

#include "server/objects/decoder_impl.h"

struct ifd_map {
    const struct ifd_values *values;
    size_t rows, columns, channels;
    size_t row_step, column_step, channel_step;
};

/** Channels of a map's form; IFD_DIM_ANY if the form is none of a map. */
static inline int64_t ifd_map_channels(const struct ifd_shape *shape, bool channels_first)
{
    return shape->rank == 3 ? shape->dim[channels_first ? 0 : 2] : IFD_DIM_ANY;
}

/** False if values are no map of so many channels, or of other rows and columns than like, which
 *  may be NULL. */
static inline bool ifd_map_init(struct ifd_map *map, const struct ifd_values *values,
                                bool channels_first, size_t channels, const struct ifd_map *like)
{
    const struct ifd_shape *shape = &values->shape;
    const int lead = channels_first ? 1 : 0;
    if (ifd_map_channels(shape, channels_first) != (int64_t)channels) {
        return false;
    }
    *map = (struct ifd_map){.values = values,
                            .rows = (size_t)shape->dim[lead],
                            .columns = (size_t)shape->dim[lead + 1],
                            .channels = channels};
    map->column_step = channels_first ? 1 : channels;
    map->row_step = map->column_step * map->columns;
    map->channel_step = channels_first ? map->rows * map->columns : 1;
    return !like || (map->rows == like->rows && map->columns == like->columns);
}

static inline float ifd_map_at(const struct ifd_map *map, size_t row, size_t column, size_t channel)
{
    return ifd_value(map->values,
                     row * map->row_step + column * map->column_step + channel * map->channel_step);
}

#endif
