/* GET …/stats: counters of models, as in Triton. */
#include "api/http/handlers.h"

static void put_duration(struct ifd_json_out *out, const char *key,
                         const struct ifd_duration_stat *stat)
{
    ifd_json_key(out, key);
    ifd_json_begin(out, '{');
    ifd_json_member_u64(out, "count", stat->count);
    ifd_json_member_u64(out, "ns", stat->ns);
    ifd_json_end(out, '}');
}

static void put_model(void *arg, const struct ifd_model_stats *stats)
{
    struct ifd_json_out *out = arg;
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "name", stats->name);
    ifd_json_member_text(out, "version", stats->version_text);
    ifd_json_member_u64(out, "last_inference", stats->last_inference_ms);
    ifd_json_member_u64(out, "inference_count", stats->inference_count);
    ifd_json_member_u64(out, "execution_count", stats->execution_count);
    ifd_json_key(out, "inference_stats");
    ifd_json_begin(out, '{');
    put_duration(out, "success", &stats->success);
    put_duration(out, "fail", &stats->fail);
    put_duration(out, "queue", &stats->queue);
    put_duration(out, "compute_input", &stats->compute_input);
    put_duration(out, "compute_infer", &stats->compute_infer);
    put_duration(out, "compute_output", &stats->compute_output);
    put_duration(out, "cache_hit", &stats->cache_hit);
    put_duration(out, "cache_miss", &stats->cache_miss);
    ifd_json_end(out, '}');
    ifd_json_key(out, "response_stats");
    ifd_json_begin(out, '{');
    ifd_json_end(out, '}');
    ifd_json_key(out, "batch_stats");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < stats->batch_count; i++) {
        const struct ifd_batch_stat *batch = &stats->batch[i];
        if (batch->compute_infer.count > 0) {
            ifd_json_begin(out, '{');
            ifd_json_member_u64(out, "batch_size", i + 1);
            put_duration(out, "compute_input", &batch->compute_input);
            put_duration(out, "compute_infer", &batch->compute_infer);
            put_duration(out, "compute_output", &batch->compute_output);
            ifd_json_end(out, '}');
        }
    }
    ifd_json_end(out, ']');
    ifd_json_key(out, "memory_usage");
    ifd_json_begin(out, '[');
    ifd_json_end(out, ']');
    ifd_json_end(out, '}');
}

static void answer(struct ifd_http_call *call, struct ifd_str model)
{
    struct ifd_err err = {0};
    struct ifd_json_out out;
    if (!ifd_http_ops(call)->stats) {
        (void)ifd_fail(&err, IFD_UNSUPPORTED, "this server does not keep statistics");
        ifd_http_fail(call, IFD_UNSUPPORTED, &err);
        return;
    }
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_key(&out, "model_stats");
    ifd_json_begin(&out, '[');
    enum ifd_code code = ifd_http_ops(call)->stats(ifd_http_service(call), model,
                                                   call->core.version, put_model, &out, &err);
    ifd_json_end(&out, ']');
    ifd_json_end(&out, '}');
    if (code == IFD_NOT_FOUND || code == IFD_UNAVAILABLE) {
        code = IFD_INVALID; /* 400, as clients of Triton expect */
    }
    if (code != IFD_OK) {
        ifd_http_fail(call, code, &err);
    } else {
        ifd_http_json(call, 200, &out);
    }
}

void ifd_handle_stats(struct ifd_http_call *call)
{
    answer(call, call->core.model);
}

void ifd_handle_stats_all(struct ifd_http_call *call)
{
    answer(call, (struct ifd_str){0});
}
