/* Shared memory is not supported: the list is empty, unregister succeeds, register is refused. */
#include "api/http/handlers.h"
#include "api/http/infer_json.h"

void ifd_handle_shared_memory_status(struct ifd_http_call *call)
{
    struct ifd_json_out out;
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '[');
    ifd_json_end(&out, ']');
    ifd_http_json(call, 200, &out);
}

void ifd_handle_shared_memory_unknown(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    (void)ifd_fail(&err, IFD_NOT_FOUND,
                   "Unable to find shared memory region: this server has none");
    ifd_http_fail(call, IFD_NOT_FOUND, &err);
}

void ifd_handle_shared_memory_register(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    (void)ifd_fail(&err, IFD_UNSUPPORTED,
                   "shared memory is not supported: send tensors in the request");
    ifd_http_fail(call, IFD_UNSUPPORTED, &err);
}

void ifd_handle_shared_memory_unregister(struct ifd_http_call *call)
{
    ifd_http_empty(call);
}

bool ifd_infer_fail_region(struct ifd_json_in *in, struct ifd_str region)
{
    return ifd_json_fail(in, IFD_NOT_FOUND,
                         "Unable to find shared memory region: '%.*s' (this server has none)",
                         ifd_json_shown(region), region.data);
}
