/** Inside api/http: the state of one exchange, its body, and how handlers answer. Thread: loop
 *  only. */
#ifndef INFERD_API_HTTP_CALL_H
#define INFERD_API_HTTP_CALL_H

#include "api/core/call.h"
#include "api/http/answer.h"
#include "api/http/route.h"

struct ifd_http_infer;

/** One exchange as the API sees it; lives in the exchange's arena from open to close. */
struct ifd_http_call {
    struct ifd_call core;
    struct ifd_http_exchange *exchange;
    const struct ifd_route *route; /* NULL: none fits */
    struct ifd_str coding;         /* header Content-Encoding */
    struct ifd_str json_length;    /* header Inference-Header-Content-Length */
    struct ifd_bytes body; /* decompressed; set before the handler runs, but for inferences */
    struct ifd_http_infer *infer;  /* NULL until an inference begins (api/http/infer.h) */
    const struct ifd_guard *guard; /* NULL: there are no tokens */
    size_t max_input_bytes;
    bool has_console; /* as of struct ifd_api_options */
    bool may_control; /* this connection reaches what changes the server */
    const char *vision_detection, *vision_face; /* as of struct ifd_api_options */
    bool awaits_key; /* a token is expected in the body; model and access are not checked yet */
    bool is_refused; /* the answer is made, and waits for the end of the body */
};

static inline const struct ifd_service_ops *ifd_http_ops(const struct ifd_http_call *call)
{
    return ifd_call_ops(&call->core);
}
static inline struct ifd_service *ifd_http_service(const struct ifd_http_call *call)
{
    return ifd_call_service(&call->core);
}

/** Maximum bytes of the body, before and after decompression. */
size_t ifd_http_body_cap(const struct ifd_http_call *call);
/** Fills call->body. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_http_read_body(struct ifd_http_call *call, struct ifd_err *err);

static inline struct ifd_str ifd_http_body_text(const struct ifd_http_call *call)
{
    return (struct ifd_str){.data = (const char *)call->body.data, .size = call->body.size};
}

/* ---- answers that are sent at once ---- */

void ifd_http_respond(struct ifd_http_call *call);
void ifd_http_fail(struct ifd_http_call *call, enum ifd_code code, const struct ifd_err *err);
/** Sends the written JSON with a status. */
void ifd_http_json(struct ifd_http_call *call, int status, struct ifd_json_out *out);
/** 200 with an empty body. */
void ifd_http_empty(struct ifd_http_call *call);

#endif
