/** One inference: decode, pictures, submit, encode. The core leads it; a codec translates between
 *  the request's bytes and tensors, so that another protocol is another codec.
 *
 *      decode (any thread) → frames of a source wait for their turn → pictures are decoded →
 *      submit … done → encode (any thread) → finish
 *
 *  Thread: the loop, but for decode and encode, which have the inference for themselves while they
 *  run. */
#ifndef INFERD_API_CORE_INFER_H
#define INFERD_API_CORE_INFER_H

#include "api/core/call.h"

struct ifd_infer;

/** What a protocol does for an inference. */
struct ifd_codec {
    /** Fills request, has_input, wanted, top and the pictures from the request's bytes. Thread:
     *  any. */
    enum ifd_code (*decode)(struct ifd_infer *infer, struct ifd_err *err);
    /** Writes the answer from the outputs. Thread: any. */
    enum ifd_code (*encode)(struct ifd_infer *infer, struct ifd_err *err);
    /** The timeout in µs that decode will find in the request's bytes, 0: none, found without
     *  reading them all; UINT64_MAX if that does not tell. Only asked before decode waits for a
     *  thread. Thread: loop. */
    uint64_t (*expected_timeout_us)(const struct ifd_infer *infer);
    /** Bytes of JSON that take about as long as decode and encode; they decide where these run. */
    size_t (*decode_cost)(const struct ifd_infer *infer);
    size_t (*encode_cost)(const struct ifd_infer *infer);
    /** After a run that is not the last one: keeps what the outputs say, which are given back then,
     *  and sets the inputs of the next run. Thread: loop. NULL: there is one run. */
    enum ifd_code (*next)(struct ifd_infer *infer, struct ifd_err *err);
    /** Sends the answer that was written, or the error. Last call of an inference that
     *  ifd_infer_run began. */
    void (*finish)(struct ifd_infer *infer, enum ifd_code code, const struct ifd_err *err);
};

/** A codec embeds it in its own state. Arrays lie in the request's arena. */
struct ifd_infer {
    const struct ifd_codec *codec;
    struct ifd_call *call;
    const struct ifd_model_desc *desc;
    struct ifd_infer_request request;
    bool *has_input; /* by the model's inputs */
    bool *wanted;    /* by the model's outputs, as all below; none: all */
    uint64_t *top;   /* classification: number of best elements; 0: the tensor itself */

    struct ifd_picture *picture; /* those of one input lie in the order of its samples */
    size_t picture_count;
    size_t decoding_count;   /* pictures at the service, plus one while they are being started */
    enum ifd_code work_code; /* of decode, encode and the pictures */
    struct ifd_err work_err;

    size_t runs_left;               /* behind the present one: a sound has one for each window */
    bool is_submitting, is_settled; /* done() came before submit() returned */

    bool is_lined_up;  /* a frame that waits for its turn, or has it */
    bool is_submitted; /* done() will come */
    bool has_outputs;  /* release_outputs() is due */
};

/** infer: zeroed. The call has pinned its model. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_infer_init(struct ifd_infer *infer, const struct ifd_codec *codec,
                                           struct ifd_call *call, struct ifd_err *err);
/** Leads the inference; codec->finish is called now or later. */
void ifd_infer_run(struct ifd_infer *infer);
/** The client is gone. True: nothing of the inference is used any more. False: codec->finish
 *  follows, with CANCELLED. */
bool ifd_infer_abandon(struct ifd_infer *infer);
/** Gives the outputs back. */
void ifd_infer_close(struct ifd_infer *infer);

/* ---- for decode ---- */

/** Writes "'A','B'": the names of tensors that clients see, as far as they fit. (check.c) */
void ifd_infer_list_names(const struct ifd_tensor_info *tensor, uint32_t count, char *text,
                          size_t size);
/** All required inputs are there and agree on a batch size, which is set. (check.c) */
IFD_NODISCARD enum ifd_code ifd_infer_check_inputs(struct ifd_infer *infer, struct ifd_err *err);
/** All outputs are wanted if none is named; classification is possible where it is asked for.
 *  (check.c) */
IFD_NODISCARD enum ifd_code ifd_infer_check_outputs(struct ifd_infer *infer, struct ifd_err *err);

/** Whether strings sent to this input may be pictures (as OpenVINO Model Server takes them).
 *  (pictures.c) */
bool ifd_input_takes_pictures(const struct ifd_tensor_info *input);
/** The model's input that takes a picture if no other input is required, else -1. */
int ifd_infer_picture_input(const struct ifd_infer *infer);
/** Input index gets count pictures, one for each sample. */
IFD_NODISCARD enum ifd_code ifd_infer_add_pictures(struct ifd_infer *infer, int index,
                                                   const struct ifd_picture_source *source,
                                                   size_t count, struct ifd_err *err);

/* ---- for encode ---- */

/** Output index as the client wants it: the tensor, or its best elements as strings. */
IFD_NODISCARD enum ifd_code ifd_infer_take_output(const struct ifd_infer *infer, uint32_t index,
                                                  struct ifd_tensor *ret, struct ifd_err *err);

#endif
