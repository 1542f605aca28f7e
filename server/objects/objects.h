/** From a model's outputs to what they mean: classes, boxes, points, masks, text.
 *
 *  When a model is loaded, its meaning is read from config, preset and file, and checked against
 *  its outputs. For an answer, the decoder of the meaning reads the outputs. Knows no protocol, no
 *  picture format and no engine. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_OBJECTS_H
#define INFERD_SERVER_OBJECTS_OBJECTS_H

#include "engine/base/arena.h"
#include "inferd/status.h"
#include "server/model/desc.h"
#include "server/model/objects.h"
#include "server/model/picture.h"

/** Reads what the outputs of a described model mean: from its parameters `preset`, `task`,
 *  `decoder` and those of the decoder; without these from labels and forms of its outputs.
 *  *ret is NULL if nobody says what they mean. Errors: INVALID (a wrong parameter, or one that
 *  contradicts the model, with both numbers), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_meaning_read(const struct ifd_model_desc *desc,
                                             struct ifd_arena *arena,
                                             const struct ifd_meaning **ret, struct ifd_err *err);

/** Sets the option called name: threshold, top_k, iou, classes, mask. What it refers to lies in
 *  arena. Errors: NOT_FOUND (no such option), INVALID (with what is expected), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_object_option(const struct ifd_meaning *meaning,
                                              struct ifd_str name, struct ifd_str value,
                                              struct ifd_arena *arena,
                                              struct ifd_object_options *ret, struct ifd_err *err);

/** Outputs of a run, and which of its samples is wanted. */
struct ifd_sample {
    const struct ifd_tensor *output; /* in the model's order */
    size_t index, count;             /* of samples in the run */
    const struct ifd_picture_view *view;
};

/** Finds objects in a sample. Errors: INVALID (outputs of another form than the meaning expects),
 *  NOMEM. */
IFD_NODISCARD enum ifd_code ifd_objects_find(const struct ifd_model_desc *desc,
                                             const struct ifd_sample *sample,
                                             const struct ifd_object_options *options,
                                             struct ifd_arena *arena, struct ifd_objects *ret,
                                             struct ifd_err *err);

#endif
