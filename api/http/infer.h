/** Inside api/http/infer*.c: the codec of inferences over HTTP: JSON, binary tensors, pictures.
 *  Thread: as struct ifd_codec says. */
#ifndef INFERD_API_HTTP_INFER_H
#define INFERD_API_HTTP_INFER_H

#include "api/core/infer.h"
#include "api/http/call.h"

/** In what form the client wants an output. */
struct ifd_output_form {
    bool has_binary, binary; /* the request's default holds where has_binary is false */
};

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
};

/* ---- the three kinds of body ---- */

/** JSON in the first json_bytes of the body, binary tensors behind it.
 *  (infer_request.c) */
IFD_NODISCARD enum ifd_code ifd_infer_parse_json(struct ifd_http_infer *infer, size_t json_bytes,
                                                 struct ifd_err *err);
/** The whole body is one tensor for the model's one input; outputs come back binary.
 *  (infer_raw.c) */
IFD_NODISCARD enum ifd_code ifd_infer_parse_raw(struct ifd_http_infer *infer, struct ifd_err *err);
/** The Content-Type says that the body is a picture. (infer_picture.c) */
bool ifd_infer_is_picture(const struct ifd_http_infer *infer);
/** The whole body is one picture for the model's one picture input. */
IFD_NODISCARD enum ifd_code ifd_infer_parse_picture(struct ifd_http_infer *infer,
                                                    struct ifd_err *err);
/** Input index gets count pictures from strings. */
IFD_NODISCARD enum ifd_code ifd_infer_add_text_pictures(struct ifd_http_infer *infer, int index,
                                                        const struct ifd_str *text, size_t count,
                                                        struct ifd_err *err);
/** The same from JSON strings, which hold base64. */
IFD_NODISCARD enum ifd_code ifd_infer_add_base64_pictures(struct ifd_http_infer *infer, int index,
                                                          const struct ifd_str *text, size_t count,
                                                          struct ifd_err *err);

/* ---- what the outputs mean (infer_objects.c) ---- */

/** Reads from the query whether objects or tensors are wanted (objects, if the query does not say
 *  it and the model's meaning is known), and which. */
IFD_NODISCARD enum ifd_code ifd_infer_read_objects(struct ifd_http_infer *infer,
                                                   struct ifd_err *err);
/** Writes what the outputs mean for the request's pictures. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_write_objects(struct ifd_http_infer *infer,
                                                    struct ifd_json_out *out, struct ifd_err *err);

/* ---- the answer (infer_answer.c) ---- */

/** Bytes of JSON that are nearly always enough for the answer. */
size_t ifd_infer_answer_bytes(const struct ifd_http_infer *infer);
/** Fills the answer from the outputs. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_write_answer(struct ifd_http_infer *infer,
                                                   struct ifd_err *err);

#endif
