/* Data movement. */
#include "backends/cpuacc/lower.h"

#include <string.h>

/* reshape: no step where both values share their memory, else a copy. */
struct copy_params {
    size_t bytes;
};

static void run_copy(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct copy_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->bytes, 4096);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    if (range.begin < range.end) {
        memcpy(out + range.begin, in + range.begin, range.end - range.begin);
    }
}

static bool reshape_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)reason;
    return ifd_dtype_bytes(node->output[0].dtype) > 0;
}

static enum ifd_code reshape_lower(struct ifd_acc_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const uint32_t in = node->input_value[0], out = node->output_value[0];
    if (ifd_acc_same_storage(lowering, in, out)) {
        return IFD_OK;
    }
    struct copy_params *p = ifd_acc_params(lowering, 1, sizeof(*p));
    struct ifd_acc_step *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_copy, p, &in, 1, out, &step, err);
    if (code == IFD_OK) {
        p->bytes = lowering->storage[lowering->value[out].storage].bytes;
        step->max_threads = (uint32_t)(p->bytes / 200000) + 1;
        ifd_acc_name_step(lowering, "memcpy", 0, "reshape");
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_reshape = {.takes = reshape_takes, .lower = reshape_lower};
