/** Inside api/http/infer_{request,inputs,outputs}.c and shared_memory.c: the JSON of an inference
 *  request while it is read. A function returns false after the reader failed. Thread: as struct
 *  ifd_codec says. */
#ifndef INFERD_API_HTTP_INFER_JSON_H
#define INFERD_API_HTTP_INFER_JSON_H

#include "api/http/infer.h"
#include "api/json/json_read.h"

/** An input that is taken once all of the JSON is read: a binary tensor behind it, or pictures, of
 *  which parameters may say more. */
struct ifd_infer_pending {
    int index;       /* of the model's input */
    bool has_base64; /* pictures; in the request's tensor */
    uint64_t bytes;
    size_t count; /* elements */
};

struct ifd_infer_parser {
    struct ifd_http_infer *infer;
    const struct ifd_model_desc *desc;
    struct ifd_arena *arena;
    struct ifd_json_in in;
    struct ifd_infer_pending *pending; /* by the model's number of inputs */
    size_t pending_count;
    struct ifd_bytes tail; /* behind the JSON */
    struct ifd_str image;  /* member "image": base64; {NULL,0} if absent */
};

/** One of "inputs" is next: matched with the model by name, type and shape; "data" is read into the
 *  request's tensors, others are left pending. (infer_inputs.c) */
bool ifd_infer_read_input(struct ifd_infer_parser *parser);
/** Gives the bytes behind the JSON to the pending inputs, in the request's order. Errors: INVALID
 *  (bytes are missing or left over). */
IFD_NODISCARD enum ifd_code ifd_infer_take_pending(struct ifd_infer_parser *parser,
                                                   struct ifd_err *err);

/** One of "outputs" is next: notes whether and how it is wanted. (infer_outputs.c) */
bool ifd_infer_read_output(struct ifd_infer_parser *parser);

/** Fails: the request names a shared memory region, and there are none. Returns false.
 *  (shared_memory.c) */
bool ifd_infer_fail_region(struct ifd_json_in *in, struct ifd_str region);

#endif
