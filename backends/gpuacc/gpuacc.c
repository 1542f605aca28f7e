/* GpuAcc's descriptor. */
#include "backends/gpuacc/gpuacc.h"

#include "backends/gpuacc/compile.h"
#include "backends/gpuacc/context.h"
#include "backends/gpuacc/cost.h"
#include "backends/gpuacc/lower.h"
#include "backends/gpuacc/partition.h"
#include "backends/gpuacc/tuner.h"
#include "engine/base/str.h"

#define TIMEOUT_MS_MAX 86400000

static enum ifd_code read_timeout(const char *value, struct ifd_gpu_options *ret,
                                  struct ifd_err *err)
{
    uint64_t ms = 0;
    if (!ifd_str_u64(ifd_str(value), &ms) || ms == 0 || ms > TIMEOUT_MS_MAX) {
        return ifd_fail(err, IFD_INVALID, "timeout-ms: got \"%s\", expected 1 to %d", value,
                        TIMEOUT_MS_MAX);
    }
    ret->timeout_ms = ms;
    return IFD_OK;
}

/* One of three words, the last of which may be NULL. */
static enum ifd_code read_word(const struct ifd_backend_option *option, const char *const word[3],
                               uint32_t *ret_index, struct ifd_err *err)
{
    for (uint32_t i = 0; i < 3 && word[i]; i++) {
        if (strcmp(option->value, word[i]) == 0) {
            *ret_index = i;
            return IFD_OK;
        }
    }
    return ifd_fail(err, IFD_INVALID, "%s: got \"%s\", expected %s, %s%s%s", option->key,
                    option->value, word[0], word[1], word[2] ? ", " : "", word[2] ? word[2] : "");
}

static enum ifd_code read_level(const char *text, uint32_t *ret, struct ifd_err *err)
{
    if (text[0] < '0' || text[0] > '0' + IFD_GPU_TUNING_MAX || text[1] != '\0') {
        return ifd_fail(err, IFD_INVALID, "option tuning of GpuAcc: got \"%s\", expected 0 to %d",
                        text, IFD_GPU_TUNING_MAX);
    }
    *ret = (uint32_t)(text[0] - '0');
    return IFD_OK;
}

/* Texts of options live as long as the host. */
static enum ifd_code read_options(const struct ifd_host *host, struct ifd_gpu_options *ret,
                                  struct ifd_err *err)
{
    static const char *const transfers[] = {"auto", "copy", NULL};
    static const char *const records[] = {[IFD_GPU_RECORD_AUTO] = "auto",
                                          [IFD_GPU_RECORD_ALWAYS] = "always",
                                          [IFD_GPU_RECORD_NEVER] = "never"};
    static const char *const sums[] = {
        [IFD_GPU_SUMS_F32] = "f32", [IFD_GPU_SUMS_FP16] = "fp16", NULL};
    enum ifd_code code = IFD_OK;
    uint32_t transfer = 0;
    for (uint32_t i = 0; code == IFD_OK && i < host->option_count; i++) {
        const struct ifd_backend_option *option = &host->option[i];
        if (strcmp(option->key, "device") == 0) {
            ret->device = option->value;
        } else if (strcmp(option->key, "cache") == 0) {
            ret->cache = option->value;
        } else if (strcmp(option->key, "timeout-ms") == 0) {
            code = read_timeout(option->value, ret, err);
        } else if (strcmp(option->key, "transfer") == 0) {
            code = read_word(option, transfers, &transfer, err);
            ret->copies = transfer == 1;
        } else if (strcmp(option->key, "record") == 0) {
            code = read_word(option, records, &ret->record, err);
        } else if (strcmp(option->key, "sums") == 0) {
            code = read_word(option, sums, &ret->sums, err);
        } else if (strcmp(option->key, "tuning-file") == 0) {
            ret->tuning_file = option->value;
        } else if (strcmp(option->key, "tuning") == 0) {
            code = read_level(option->value, &ret->tuning, err);
        } else {
            code = ifd_fail(err, IFD_INVALID,
                            "no option \"%s\": GpuAcc has device, cache, timeout-ms, transfer, "
                            "record, sums, tuning and tuning-file",
                            option->key);
        }
    }
    return code;
}

static enum ifd_code gpuacc_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    struct ifd_gpu_options options = {.device = NULL};
    const enum ifd_code code = read_options(host, &options, err);
    return code == IFD_OK ? ifd_gpu_open(host, &options, ret_device, err) : code;
}

static uint32_t gpuacc_cost(struct ifd_device *device, const struct ifd_node_view *node,
                            struct ifd_err *reason)
{
    if (!ifd_gpu_driver_of(node, reason)) {
        return 0;
    }
    const struct ifd_err *why = ifd_gpu_why_unbuilt(device, node);
    if (why && reason) {
        *reason = *why;
    }
    return why ? 0 : ifd_gpu_cost(device, node);
}

static void gpuacc_describe(struct ifd_partition *partition, uint32_t step,
                            struct ifd_step_info *ret)
{
    *ret = partition->step[step].info;
}

const struct ifd_backend ifd_backend_gpuacc = {
    .abi = IFD_BACKEND_ABI,
    .bytes = sizeof(struct ifd_backend),
    .name = "GpuAcc",
    .open = gpuacc_open,
    .cost = gpuacc_cost,
    .compile = ifd_gpu_compile,
    .describe = gpuacc_describe,
    .release = ifd_gpu_release,
    .close = ifd_gpu_close,
    .memory = &ifd_gpu_memory_ops,
};
