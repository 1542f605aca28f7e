/* A measured run of a model, and its plan. */
#include "server/serve/service_impl.h"

#include <stdio.h>

#include "server/serve/warm_up.h"

#define ID_BYTES 24

/* A sequence that begins and ends with this run, under an id that no client has by chance. */
static enum ifd_code make_sequence(struct ifd_infer_request *request, struct ifd_err *err)
{
    char *id = ifd_arena_take(request->arena, ID_BYTES);
    if (!id) {
        return ifd_arena_fail(request->arena, ID_BYTES, err);
    }
    const int size = snprintf(id, ID_BYTES, "%llu", (unsigned long long)request->received_ns);
    request->sequence_id = (struct ifd_str){.data = id, .size = (size_t)size};
    request->sequence_start = request->sequence_end = true;
    return IFD_OK;
}

enum ifd_code ifd_service_prepare_profile(struct ifd_service *service,
                                          struct ifd_infer_request *request, struct ifd_err *err)
{
    const struct ifd_version *version = (struct ifd_version *)request->model;
    (void)service;
    if (!version->engine) {
        return ifd_fail(err, IFD_UNSUPPORTED, "model '%s' has no steps: its backend is %s",
                        version->name, version->desc.backend);
    }
    const struct ifd_model_info *info = ifd_model_info(version->engine);
    enum ifd_code code = version->desc.has_sequences ? make_sequence(request, err) : IFD_OK;
    for (uint32_t i = 0; i < info->input_count && !code; i++) {
        code = ifd_zero_input(&info->input[i], request->arena, &request->input[i], err);
    }
    if (code) {
        return code;
    }
    const uint32_t steps = ifd_model_step_count(version->engine);
    request->step_ns = ifd_arena_take_array(request->arena, steps, sizeof(*request->step_ns));
    request->step_count = steps;
    return request->step_ns ? IFD_OK
                            : ifd_arena_fail(request->arena, steps * sizeof(uint64_t), err);
}

enum ifd_code ifd_service_write_plan(const struct ifd_model_ref *ref, ifd_sink_fn sink,
                                     void *context, struct ifd_err *err)
{
    const struct ifd_version *version = (const struct ifd_version *)ref;
    return ifd_model_dump(version->engine, IFD_DUMP_JSON, sink, context, err);
}
