/** Inside api/: the state of one exchange, how handlers answer, and every handler of route_list.inc. Thread: loop only. */
#ifndef INFERD_API_HTTP_API_IMPL_H
#define INFERD_API_HTTP_API_IMPL_H

#include "api/http/api.h"
#include "api/json/json_write.h"
#include "api/http/route.h"

struct ifd_infer;

struct ifd_api {
    struct ifd_api_options options;
    size_t inferences; /* open exchanges that infer */
};

/** One exchange as the API sees it; lives in the exchange's arena from open to close. */
struct ifd_call {
    struct ifd_api *api;
    struct ifd_http_exchange *exchange;
    struct ifd_route_match match;
    struct ifd_str coding;      /* header Content-Encoding */
    struct ifd_str json_length; /* header Inference-Header-Content-Length */
    struct ifd_bytes body;      /* decompressed; set before the handler runs, but for inferences */
    struct ifd_model_ref *ref;  /* pinned while a model is asked for anything; released in close */
    struct ifd_infer *infer;    /* api/core/infer.c */
    bool is_inference;          /* it was told to begin, and is told to end */
    bool is_refused; /* the answer was made from the headers, and waits for the body to be read */
    bool is_waiting; /* the service holds memory of this exchange and will call back */
    bool is_abandoned;
    struct ifd_request_end end; /* of an inference: its moments, for statistics */
};

static inline const struct ifd_service_ops *ifd_call_ops(const struct ifd_call *call)
{
    return call->api->options.ops;
}
static inline struct ifd_service *ifd_call_service(const struct ifd_call *call)
{
    return call->api->options.service;
}

/* ---- answers (answer.c): the first three fill exchange->response, the others also send it ---- */

/** name and value: static or in the arena. More than IFD_HTTP_HEADERS_MAX are dropped (a programming error). */
void ifd_answer_header(struct ifd_http_response *response, const char *name, const char *value);
void ifd_answer_error(struct ifd_http_exchange *exchange, int status, struct ifd_str text);
/** Status and body of a code, Retry-After where it helps. */
void ifd_answer_fail(struct ifd_http_exchange *exchange, enum ifd_code code,
                     const struct ifd_err *err);

void ifd_call_fail(struct ifd_call *call, enum ifd_code code, const struct ifd_err *err);
/** Sends the written JSON with a status. */
void ifd_call_json(struct ifd_call *call, int status, struct ifd_json_out *out);
/** 200 with an empty body. */
void ifd_call_empty(struct ifd_call *call);

/** Fills call->body. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_call_read_body(struct ifd_call *call, struct ifd_err *err);

/** Pins the model of the path. Errors: as ops->acquire. */
IFD_NODISCARD enum ifd_code ifd_call_acquire(const struct ifd_call *call,
                                             struct ifd_model_ref **ret_ref, struct ifd_err *err);

/* ---- handlers ---- */

#define ROUTE(method, path, handler, body, access) void ifd_handle_##handler(struct ifd_call *call);
#include "api/http/route_list.inc"
#undef ROUTE

/** The client is gone: true if nothing of the inference is used any more. */
bool ifd_infer_abandon(struct ifd_call *call);
/** Gives outputs back. */
void ifd_infer_close(struct ifd_call *call);

#endif
