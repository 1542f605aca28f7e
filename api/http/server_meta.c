/* GET /v2. */
#include "api/http/handlers.h"

void ifd_handle_server_metadata(struct ifd_http_call *call)
{
    const struct ifd_server_info *info = ifd_http_ops(call)->info(ifd_http_service(call));
    struct ifd_json_out out;
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_text(&out, "name", info->name);
    ifd_json_member_text(&out, "version", info->version);
    ifd_json_key(&out, "extensions");
    ifd_json_begin(&out, '[');
    for (uint32_t i = 0; i < info->extension_count; i++) {
        ifd_json_put_text(&out, info->extensions[i]);
    }
    ifd_json_end(&out, ']');
    ifd_json_end(&out, '}');
    ifd_http_json(call, 200, &out);
}
