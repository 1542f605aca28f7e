/** Inside api/http/infer*.c: the codec of inferences over HTTP: JSON, binary tensors, pictures.
 *  Thread: as struct ifd_codec says. */
#ifndef INFERD_API_HTTP_INFER_H
#define INFERD_API_HTTP_INFER_H

#include "api/core/infer.h"
#include "api/http/call.h"
#include "api/http/query.h"

/** In what form the client wants an output. */
struct ifd_output_form {
    bool has_binary, binary; /* the request's default holds where has_binary is false */
};

struct ifd_windows; /* infer_sound.c */

struct ifd_http_infer {
    struct ifd_infer core; /* first: the codec's functions cast back */
    struct ifd_http_call *http;
    struct ifd_str id;
    struct ifd_str content_type, accept_encoding; /* headers */
    struct ifd_output_form *form;                 /* by the model's outputs */
    bool binary_default;
    bool answers_objects; /* what the outputs mean, not the outputs */
    bool answers_times;
    struct ifd_object_options options; /* of objects */
    enum ifd_drawing drawing;          /* of objects: a picture instead of JSON */
    struct ifd_windows *windows;       /* of a sound; NULL: the request has none */

    /* of pictures; arrays in the arena */
    struct ifd_query_parameter *field; /* of a form, or of JSON */
    size_t field_count;
    bool has_resize;
    enum ifd_image_resize resize;
    struct ifd_picture_region *region;
    size_t region_count;
};

/* ---- the three kinds of body ---- */

/** JSON in the first json_bytes of the body, binary tensors behind it.
 *  (infer_request.c) */
IFD_NODISCARD enum ifd_code ifd_infer_parse_json(struct ifd_http_infer *infer, size_t json_bytes,
                                                 struct ifd_err *err);
/** The one number that a member "timeout" has in text, 0 without one; UINT64_MAX if there may be
 *  others. It looks for the name and reads nothing else. (infer_request.c) */
uint64_t ifd_infer_expected_timeout_us(struct ifd_str text, struct ifd_arena *arena);
/** The whole body is one tensor for the model's one input; outputs come back binary.
 *  (infer_raw.c) */
IFD_NODISCARD enum ifd_code ifd_infer_parse_raw(struct ifd_http_infer *infer, struct ifd_err *err);
/** The Content-Type says that the body is a picture, or its first bytes do. (infer_picture.c) */
bool ifd_infer_is_picture(const struct ifd_http_infer *infer);
struct ifd_part;
/** The first file of a form; plain parts become parameters. Errors: INVALID (no form, no file). */
IFD_NODISCARD enum ifd_code ifd_infer_read_form(struct ifd_http_infer *infer, struct ifd_part *ret,
                                                struct ifd_err *err);
/** The body is one picture, or a form with one, for the model's one picture input. */
IFD_NODISCARD enum ifd_code ifd_infer_parse_picture(struct ifd_http_infer *infer,
                                                    struct ifd_err *err);
/** The same of base64 text, a member of a JSON object. */
IFD_NODISCARD enum ifd_code ifd_infer_parse_base64_picture(struct ifd_http_infer *infer,
                                                           struct ifd_str text,
                                                           struct ifd_err *err);
/** Input index gets count pictures from strings. Answers tensors unless the query wants objects. */
IFD_NODISCARD enum ifd_code ifd_infer_add_text_pictures(struct ifd_http_infer *infer, int index,
                                                        const struct ifd_str *text, size_t count,
                                                        struct ifd_err *err);
/** The same from JSON strings, which hold base64. */
IFD_NODISCARD enum ifd_code ifd_infer_add_base64_pictures(struct ifd_http_infer *infer, int index,
                                                          const struct ifd_str *text, size_t count,
                                                          struct ifd_err *err);

/* ---- parameters of a picture's request (infer_parameters.c) ---- */

typedef enum ifd_code (*ifd_parameter_fn)(struct ifd_http_infer *infer,
                                          const struct ifd_query_parameter *parameter,
                                          struct ifd_err *err);
/** Adds a field that a body has. Errors: TOO_LARGE (more than 4096), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_infer_add_field(struct ifd_http_infer *infer,
                                                const struct ifd_query_parameter *field,
                                                struct ifd_err *err);
/** Calls read for each field of the body, then for each parameter of the query. */
IFD_NODISCARD enum ifd_code ifd_infer_each_parameter(struct ifd_http_infer *infer,
                                                     ifd_parameter_fn read, struct ifd_err *err);
/** INVALID: the value is not what is wanted. */
enum ifd_code ifd_infer_fail_parameter(const struct ifd_query_parameter *parameter,
                                       const char *wanted, struct ifd_err *err);
/** Errors: INVALID (a name that is nearly that of a parameter of pictures). */
IFD_NODISCARD enum ifd_code ifd_infer_check_names(struct ifd_http_infer *infer,
                                                  struct ifd_err *err);
/** Reads resize and regions. */
IFD_NODISCARD enum ifd_code ifd_infer_read_geometry(struct ifd_http_infer *infer,
                                                    struct ifd_err *err);

/** Reads the source of a frame, from the request or else the model's config. */
IFD_NODISCARD enum ifd_code ifd_infer_read_source(struct ifd_http_infer *infer,
                                                  struct ifd_err *err);

/* ---- sounds (infer_sound.c) ---- */

/** The Content-Type or the first bytes say that the body is a sound, or it is a form and the model
 *  takes sounds. */
bool ifd_infer_is_sound(const struct ifd_http_infer *infer);
/** The whole body is a sound for the model's one input; the first window is that of the first
 *  run. */
IFD_NODISCARD enum ifd_code ifd_infer_parse_sound(struct ifd_http_infer *infer,
                                                  struct ifd_err *err);
/** Keeps what the present window's run found; the next window is in the input then. */
IFD_NODISCARD enum ifd_code ifd_infer_next_window(struct ifd_http_infer *infer,
                                                  struct ifd_err *err);
/** Writes what each window shows. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_write_windows(struct ifd_http_infer *infer,
                                                    struct ifd_json_out *out, struct ifd_err *err);

/* ---- what the outputs mean (infer_objects.c) ---- */

/** Reads whether objects or tensors are wanted, and which. by_default: objects, if the request does
 *  not say it and the model's meaning is known. */
IFD_NODISCARD enum ifd_code ifd_infer_read_objects(struct ifd_http_infer *infer, bool by_default,
                                                   struct ifd_err *err);
/** What the outputs mean for each of the request's pictures, in the arena. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_find_objects(struct ifd_http_infer *infer,
                                                   struct ifd_objects **ret, struct ifd_err *err);
/** Fills the answer with the picture and what was found drawn on it. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_draw_objects(struct ifd_http_infer *infer,
                                                   struct ifd_err *err);
/** Writes the member "label" of a class, which is its index if it has none. (objects_json.c) */
void ifd_infer_write_label(struct ifd_json_out *out, const struct ifd_meaning *meaning,
                           uint32_t index);
/** Writes the member "classes". (objects_json.c) */
void ifd_infer_write_classes(const struct ifd_http_infer *infer, struct ifd_json_out *out,
                             const struct ifd_objects *found);
/** Writes the members of what was found in one picture. Thread: any. (objects_json.c) */
IFD_NODISCARD enum ifd_code ifd_infer_write_found(struct ifd_http_infer *infer,
                                                  struct ifd_json_out *out,
                                                  const struct ifd_objects *found,
                                                  struct ifd_err *err);
/** Writes what was found in all of them. Thread: any. (objects_answer.c) */
IFD_NODISCARD enum ifd_code ifd_infer_write_objects(struct ifd_http_infer *infer,
                                                    struct ifd_json_out *out, struct ifd_err *err);

/* ---- the answer (infer_answer.c) ---- */

/** Bytes of JSON that are nearly always enough for the answer. */
size_t ifd_infer_answer_bytes(const struct ifd_http_infer *infer);
/** Fills the answer from the outputs. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_write_answer(struct ifd_http_infer *infer,
                                                   struct ifd_err *err);

#endif
