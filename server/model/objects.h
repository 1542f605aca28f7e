/** What a picture or a sound is answered with, whatever model found it: classes, objects, segments,
 *  a text. server/objects makes it from the outputs, the API writes it. Arrays lie in the request's
 *  arena. */
#ifndef INFERD_SERVER_MODEL_OBJECTS_H
#define INFERD_SERVER_MODEL_OBJECTS_H

#include "inferd/types.h"

/** What a model does: X(id, name in a config). */
#define IFD_TASKS(X)                                                                               \
    X(CLASSIFICATION, "classification")                                                            \
    X(DETECTION, "detection")                                                                      \
    X(SEGMENTATION, "segmentation")                                                                \
    X(KEYPOINTS, "keypoints")                                                                      \
    X(TEXT, "text")                                                                                \
    X(AUDIO_CLASSIFICATION, "audio_classification")

#define X(id, name) IFD_TASK_##id,
enum ifd_model_task { IFD_TASKS(X) IFD_TASK_COUNT };
#undef X

/** Form of a mask in an answer: X(id, value of the parameter). */
#define IFD_MASK_FORMS(X)                                                                          \
    X(NONE, "none")                                                                                \
    X(PNG, "png") /* one 8-bit palette picture; a pixel is the index of its class */               \
    X(RLE, "rle") /* COCO's uncompressed counts, for each segment */

#define X(id, name) IFD_MASK_##id,
enum ifd_mask_form { IFD_MASK_FORMS(X) IFD_MASK_FORM_COUNT };
#undef X

/** What a request is answered with: X(id, value of the parameter `outputs`). */
#define IFD_ANSWER_KINDS(X)                                                                        \
    X(OBJECTS, "objects")                                                                          \
    X(TENSORS, "tensors")

#define X(id, name) IFD_ANSWER_##id,
enum ifd_answer_kind { IFD_ANSWER_OPEN, IFD_ANSWER_KINDS(X) IFD_ANSWER_COUNT };
#undef X

/** A picture as the answer. */
enum ifd_drawing { IFD_DRAWING_NONE, IFD_DRAWING_JPEG, IFD_DRAWING_PNG };

/** What a client may choose; a model's config has the defaults. */
struct ifd_object_options {
    float threshold; /* least score */
    float iou;       /* objects of a class that overlap more are one */
    uint32_t top_k;  /* most objects or classes */
    enum ifd_mask_form mask;
    const uint32_t *only; /* indexes of the classes that are wanted; only_count 0: all */
    uint32_t only_count;
};

struct ifd_keypoint {
    float x, y, score; /* pixels of the picture */
};

/** Something that was found, or a class of the whole picture, which has neither box nor points. */
struct ifd_object {
    uint32_t index; /* of the class */
    float score;
    bool has_box;
    float box[4]; /* x_min, y_min, x_max, y_max: pixels of the picture */
    const struct ifd_keypoint *keypoint;
    uint32_t keypoint_count;
};

/** A class that covers a part of the picture. */
struct ifd_segment {
    uint32_t index;
    float area; /* its share of the picture */
};

struct ifd_objects {
    struct ifd_object *object; /* best first */
    uint32_t object_count;
    struct ifd_segment *segment; /* largest first */
    uint32_t segment_count;
    /** Index of the class of each pixel of the picture, in rows; NULL if no mask is wanted. */
    const uint8_t *mask;
    uint32_t mask_width, mask_height;
    struct ifd_str text;
    float text_score;
};

/** Two keypoints that a drawing connects. */
struct ifd_bone {
    uint8_t from, to;
};

struct ifd_decoder; /* server/objects */

/** What a model's outputs mean. Lies in the version's arena. */
struct ifd_meaning {
    enum ifd_model_task task;
    float input_width, input_height; /* of the picture that the model takes; 0 without one */
    const char *const *label;        /* of class i; classes beyond have none */
    uint32_t label_count;
    const char *const *keypoint_name;
    uint32_t keypoint_name_count;
    const struct ifd_bone *bone;
    uint32_t bone_count;
    struct ifd_object_options options; /* of requests that say nothing */
    enum ifd_answer_kind usual_answer; /* to them; OPEN: pictures and sounds get objects */
    const struct ifd_decoder *decoder;
    const void *plan; /* the decoder's */
};

#endif
