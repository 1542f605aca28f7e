/* Shapes of inputs: what the file fixes, what the caller knows, what a request decides. */
#include "engine/parse/parse.h"

#include <string.h>

static const struct ifd_shape *find_given(const struct ifd_parse_options *options, const char *name,
                                          uint32_t rank)
{
    for (uint32_t i = 0; i < options->shape_count; i++) {
        const struct ifd_input_shape *given = &options->shape[i];
        if (strcmp(given->name, name) == 0) {
            return given->shape.rank == rank ? &given->shape : NULL;
        }
    }
    return NULL;
}

static int64_t declare(const struct ifd_parse_options *options, uint32_t d, int64_t file,
                       int64_t given)
{
    const bool binds = file == IFD_DIM_ANY && given > 0;
    const bool opens = file != IFD_DIM_ANY && given == IFD_DIM_ANY && d > 0;
    return options->are_final || binds || opens ? given : file;
}

static int64_t open_size(const struct ifd_parse_options *options, uint32_t d, int64_t example)
{
    const int64_t wanted = d == 0 ? options->open_first : options->open_other;
    const int64_t otherwise = d == 0 ? 1 : IFD_PARSE_OPEN_DIM;
    return wanted > 0 ? wanted : example > 0 ? example : otherwise;
}

void ifd_parse_input_shape(const struct ifd_parse_options *options, const char *name,
                           const struct ifd_shape *file, const struct ifd_shape *example,
                           struct ifd_shape *ret_declared, struct ifd_shape *ret_shape)
{
    const struct ifd_shape *given = find_given(options, name, file->rank);
    const struct ifd_shape *numbers = example ? example : file;
    struct ifd_shape declared = *file, shape = *file;
    for (uint32_t d = 0; d < file->rank; d++) {
        declared.dim[d] = given ? declare(options, d, file->dim[d], given->dim[d]) : file->dim[d];
        shape.dim[d] = declared.dim[d] == IFD_DIM_ANY ? open_size(options, d, numbers->dim[d])
                                                      : declared.dim[d];
    }
    *ret_declared = declared;
    *ret_shape = shape;
}

void ifd_parse_note_open(const struct ifd_shape *file, const struct ifd_shape *declared,
                         struct ifd_parsed *ret)
{
    for (uint32_t d = 0; d < declared->rank; d++) {
        const bool is_open = declared->dim[d] == IFD_DIM_ANY;
        ret->is_bound = ret->is_bound || (file->dim[d] == IFD_DIM_ANY && !is_open);
        ret->opens_first = ret->opens_first || (is_open && d == 0);
        ret->opens_others = ret->opens_others || (is_open && d > 0);
    }
}
