/** The best of many candidates, suppression of those that mean the same, and their places in the
 *  picture. Thread: one at a time per object. */
#ifndef INFERD_SERVER_OBJECTS_CANDIDATES_IMPL_H
#define INFERD_SERVER_OBJECTS_CANDIDATES_IMPL_H

#include "server/objects/decoder_impl.h"

/** A box in pixels of the model's input, and where its outputs lie. */
struct ifd_candidate {
    float score;
    uint32_t index; /* of the class */
    uint32_t place; /* the decoder's: an anchor, a row */
    float box[4];   /* x_min, y_min, x_max, y_max */
};

/** Keeps the best ones; the order of equal scores is that of places. */
struct ifd_candidates {
    struct ifd_candidate *at;
    size_t count, capacity;
};

IFD_NODISCARD enum ifd_code ifd_candidates_init(struct ifd_candidates *candidates,
                                                struct ifd_arena *arena, struct ifd_err *err);
/** Takes a candidate that has the score and the class that the client wants; a box that is no
 *  number or has no extent is no candidate. */
void ifd_candidates_add(struct ifd_candidates *candidates, const struct ifd_object_options *options,
                        const struct ifd_candidate *candidate);

/** Reads the keypoints of a candidate, in pixels of the model's input. */
typedef void (*ifd_keypoints_fn)(const struct ifd_decoding *decoding,
                                 const struct ifd_candidate *candidate, struct ifd_keypoint *ret);

/** Suppresses within each class (unless is_final), cuts at top_k, maps to the picture and clips:
 *  decoding->ret gets the objects. keypoints may be NULL. */
IFD_NODISCARD enum ifd_code ifd_candidates_finish(struct ifd_candidates *candidates,
                                                  const struct ifd_decoding *decoding,
                                                  bool is_final, ifd_keypoints_fn keypoints,
                                                  uint32_t keypoint_count, struct ifd_err *err);

/** Maps points of the model's input to the picture; a number that is none becomes 0. */
void ifd_keypoints_map(const struct ifd_picture_view *view, struct ifd_keypoint *point,
                       uint32_t count);

#endif
