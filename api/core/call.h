/** One request to the service, whatever protocol it came in. A protocol embeds the call in its own
 *  state, opens it when it knows the model, and closes it when the answer is sent. Thread: loop
 *  only. */
#ifndef INFERD_API_CORE_CALL_H
#define INFERD_API_CORE_CALL_H

#include "api/core/service.h"

/** What the calls of a protocol share. */
struct ifd_calls {
    const struct ifd_service_ops *ops;
    struct ifd_service *service;
    size_t inferences; /* open calls that infer */
};

struct ifd_call {
    struct ifd_calls *all;
    struct ifd_arena *arena;   /* of the request */
    struct ifd_str model;      /* {NULL,0} if the request names none; ended by NUL */
    int64_t version;           /* 0: whatever the version policy serves */
    uint64_t received_ns;      /* monotonic: when the request's headers were complete */
    struct ifd_model_ref *ref; /* pinned while the model is asked for anything; released in close */
    bool is_inference;         /* the service was told that it began */
    bool is_waiting;           /* the service holds memory of this call and will call back */
    bool is_abandoned;         /* the client is gone */
    struct ifd_request_end end; /* of an inference: its moments, for statistics */
};

static inline const struct ifd_service_ops *ifd_call_ops(const struct ifd_call *call)
{
    return call->all->ops;
}
static inline struct ifd_service *ifd_call_service(const struct ifd_call *call)
{
    return call->all->service;
}

/** Pins the model that the request names in call->ref. Errors: as ops->acquire. */
IFD_NODISCARD enum ifd_code ifd_call_acquire(struct ifd_call *call, struct ifd_err *err);
/** The same for an inference; tells the service that it begins. */
IFD_NODISCARD enum ifd_code ifd_call_begin_inference(struct ifd_call *call, struct ifd_err *err);
/** Little of an inference's body is missing: tells the service to get ready. */
void ifd_call_coming(const struct ifd_call *call);
/** Releases what the call holds, after ifd_infer_close. The protocol has filled end.outcome,
 *  end.received_ns and end.ended_ns. */
void ifd_call_close(struct ifd_call *call);

#endif
