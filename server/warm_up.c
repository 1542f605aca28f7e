/* A request that nobody sent. */
#include "server/warm_up.h"

#include <string.h>

#define ARENA_BYTES ((size_t)1 << 30)

/* One sample's shape and bytes; false if a request would have to decide them. */
static bool zero_shape(const struct ifd_port *port, struct ifd_shape *shape, size_t *ret_bytes)
{
    *shape = port->desc.shape;
    *ret_bytes = ifd_dtype_bytes(port->desc.dtype);
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (d == 0 && port->batched) {
            shape->dim[0] = 1;
        }
        if (shape->dim[d] < 0 || !ifd_size_mul(*ret_bytes, (size_t)shape->dim[d], ret_bytes)) {
            return false;
        }
    }
    return *ret_bytes > 0;
}

static enum ifd_code run_once(struct ifd_runner *runner, const struct ifd_model_info *info,
                              struct ifd_arena *arena, struct ifd_err *err)
{
    struct ifd_tensor *input = ifd_arena_take_array(arena, info->input_count, sizeof(*input));
    struct ifd_tensor *output = ifd_arena_take_array(arena, info->output_count, sizeof(*output));
    bool *wanted = ifd_arena_take_array(arena, info->output_count, sizeof(*wanted));
    if (!input || !output || !wanted) {
        return ifd_arena_fail(arena, sizeof(*input), err);
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        size_t bytes = 0;
        if (!zero_shape(&info->input[i], &input[i].shape, &bytes)) {
            return IFD_OK;
        }
        input[i].dtype = info->input[i].desc.dtype;
        input[i].data = ifd_arena_take_tensor(arena, bytes);
        if (!input[i].data) {
            return ifd_arena_fail(arena, bytes, err);
        }
        input[i].bytes = input[i].capacity = bytes;
    }
    memset(wanted, true, info->output_count * sizeof(*wanted));
    struct ifd_job job = {.input = input,
                          .output = output,
                          .wanted = wanted,
                          .input_count = info->input_count,
                          .output_count = info->output_count,
                          .batch = 1};
    struct ifd_job *jobs[] = {&job};
    enum ifd_code code = runner->run(runner, jobs, 1, err);
    ifd_release_tensor(arena->alloc, job.memory, job.memory_bytes);
    return code;
}

enum ifd_code ifd_warm_up(struct ifd_runner *runner, const struct ifd_version *version,
                          const struct ifd_alloc *alloc, struct ifd_err *err)
{
    struct ifd_arena arena;
    if (!version->engine) {
        return IFD_OK;
    }
    ifd_arena_init(&arena, alloc, ARENA_BYTES);
    enum ifd_code code = run_once(runner, ifd_model_info(version->engine), &arena, err);
    ifd_arena_finish(&arena);
    return code == IFD_INVALID ? IFD_OK : code; /* it is zeros that the model does not take */
}
