/* A call's hold on its model, and the begin and end of an inference. */
#include "api/core/call.h"

enum ifd_code ifd_call_acquire(struct ifd_call *call, struct ifd_err *err)
{
    return ifd_call_ops(call)->acquire(ifd_call_service(call), call->model, call->version,
                                       &call->ref, err);
}

enum ifd_code ifd_call_begin_inference(struct ifd_call *call, struct ifd_err *err)
{
    enum ifd_code code = ifd_call_acquire(call, err);
    if (code != IFD_OK) {
        return code;
    }
    call->is_inference = true;
    call->all->inferences++;
    if (ifd_call_ops(call)->begun) {
        ifd_call_ops(call)->begun(ifd_call_service(call), call->ref);
    }
    return IFD_OK;
}

void ifd_call_coming(const struct ifd_call *call)
{
    if (call->is_inference && ifd_call_ops(call)->coming) {
        ifd_call_ops(call)->coming(ifd_call_service(call), call->ref);
    }
}

void ifd_call_close(struct ifd_call *call)
{
    if (call->is_inference) {
        call->all->inferences--;
        if (ifd_call_ops(call)->ended) {
            ifd_call_ops(call)->ended(ifd_call_service(call), call->ref, &call->end);
        }
    }
    if (call->ref) {
        ifd_call_ops(call)->release(ifd_call_service(call), call->ref);
        call->ref = NULL;
    }
}
