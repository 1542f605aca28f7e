/** Inside api/infer_*.c: one inference from bytes to bytes. Thread: the loop, or where infer.c says so another that has the
 *  inference for itself meanwhile. */
#ifndef INFERD_API_CORE_INFER_IMPL_H
#define INFERD_API_CORE_INFER_IMPL_H

#include "api/http/api_impl.h"

/** How the client wants an output. */
struct ifd_output_choice {
    bool is_wanted;
    bool has_binary, binary; /* the request's default holds where has_binary is false */
    uint64_t top;            /* classification: the best so many; 0 = the tensor itself */
};

/** A picture on its way into a sample of an input. */
struct ifd_picture {
    struct ifd_bytes image;
    const struct ifd_tensor_info *input;
    struct ifd_tensor sample;
};

struct ifd_infer {
    struct ifd_call *call;
    const struct ifd_model_desc *desc;
    struct ifd_infer_request request;
    struct ifd_str id;
    struct ifd_str content_type, accept_encoding; /* headers */
    bool *has_input;                              /* by the model's inputs */
    struct ifd_output_choice *choice;             /* by the model's outputs */
    bool binary_default;

    struct ifd_picture *picture;
    size_t picture_count, picture_capacity;
    size_t decoding_count;   /* the service's, plus one while they are being started */
    enum ifd_code work_code; /* of what the loop does not do itself */
    struct ifd_err work_err;

    bool is_submitted; /* done() will come */
    bool has_outputs;  /* release_outputs() is due */
};

/** Fills infer->request from the call's body. Errors: as an HTTP client should see them. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_parse(struct ifd_infer *infer, struct ifd_err *err);

/* ---- the three kinds of body: JSON (infer_request.c), a tensor (infer_raw.c), a picture (infer_picture.c) ---- */

/** The whole body is one tensor for the model's one input; outputs come back binary. */
IFD_NODISCARD enum ifd_code ifd_infer_parse_raw(struct ifd_infer *infer, struct ifd_err *err);
/** All required inputs are there and agree on a batch size, which is set. (infer_check.c) */
IFD_NODISCARD enum ifd_code ifd_infer_check(struct ifd_infer *infer, struct ifd_err *err);
/** The body is a picture, says its type. */
bool ifd_infer_is_picture(const struct ifd_infer *infer);
/** The whole body is one picture for the model's one picture input. Labelled outputs are answered as the best five. */
IFD_NODISCARD enum ifd_code ifd_infer_parse_picture(struct ifd_infer *infer, struct ifd_err *err);
/** Whether strings sent to this input may be pictures (as OpenVINO Model Server takes them). */
bool ifd_input_takes_pictures(const struct ifd_tensor_info *input);
/** Input index gets count pictures, one for each sample. */
IFD_NODISCARD enum ifd_code ifd_infer_add_pictures(struct ifd_infer *infer, int index,
                                                   const struct ifd_str *image, size_t count,
                                                   struct ifd_err *err);

/** The same for pictures that came as JSON strings, which hold base64 since pictures are no text. */
IFD_NODISCARD enum ifd_code ifd_infer_add_base64_pictures(struct ifd_infer *infer, int index,
                                                          const struct ifd_str *text, size_t count,
                                                          struct ifd_err *err);

/** Bytes of JSON that the answer is going to be, nearly always at most. */
size_t ifd_infer_answer_bytes(const struct ifd_infer *infer);
/** Fills the answer from the outputs. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_infer_encode(struct ifd_infer *infer, struct ifd_err *err);

#endif
