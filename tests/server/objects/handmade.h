/** Models of a few numbers for tests of server/objects: a picture input, outputs with values,
 *  parameters of a config. Thread: one at a time. */
#ifndef INFERD_TESTS_SERVER_OBJECTS_HANDMADE_H
#define INFERD_TESTS_SERVER_OBJECTS_HANDMADE_H

#include "server/objects/objects.h"

#define HANDMADE_OUTPUTS    4
#define HANDMADE_PARAMETERS 16

/** A description whose arrays are its own. The picture's pixels are those of the input, unless a
 *  test changes the view. */
struct handmade {
    struct ifd_model_desc desc;
    struct ifd_tensor_info input, output[HANDMADE_OUTPUTS];
    struct ifd_tensor tensor[HANDMADE_OUTPUTS];
    struct ifd_parameter_info parameter[HANDMADE_PARAMETERS];
    struct ifd_arena arena;
    struct ifd_picture_view view;
    struct ifd_objects found;
    struct ifd_err err;
};

void handmade_init(struct handmade *model, uint32_t width, uint32_t height);
void handmade_finish(struct handmade *model);
void handmade_set(struct handmade *model, const char *key, const char *value);
/** Adds an output [1, dim…] of floats; a dimension of 0 ends the list. values may be NULL for
 *  zeros. */
void handmade_output(struct handmade *model, const char *name, const int64_t *dim,
                     const float *values);
/** Reads the meaning; what is wrong with it is in err. */
enum ifd_code handmade_read(struct handmade *model);
/** Decodes with the model's options, changed by the text "name=value" or NULL. Ends the test if
 *  that fails. */
void handmade_find(struct handmade *model, const char *option);

#endif
