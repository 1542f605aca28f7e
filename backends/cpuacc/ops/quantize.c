/* quantize and dequantize: between f32 and 8 bits; quantize of 8 bits is a table. */
#include "backends/cpuacc/ops/copy.h"
#include "backends/cpuacc/ops/reduce.h"
#include "backends/cpuacc/ops/tail.h"

struct quant_params {
    size_t count;  /* of a plane */
    size_t planes; /* several become the channels of pixels */
    float scale;
    int32_t zero;
    struct ifd_q8_beyond beyond;
};

enum {
    PLANES_MAX = 16,
    PIXELS = 1024 /* whose planes and channels stay in the first-level cache */
};

/* Some of each plane, then these pixels. */
static void quantize(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                     void (*kernel)(size_t, const float *, float, int32_t, struct ifd_q8_beyond,
                                    ifd_q8 *))
{
    const struct quant_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->count, 64);
    const float *in = ifd_acc_in(step, frame, 0);
    ifd_q8 *out = ifd_acc_out(step, frame);
    if (p->planes == 1) {
        kernel(range.end - range.begin, in + range.begin, p->scale, p->zero, p->beyond,
               out + range.begin);
        return;
    }
    uint8_t *part = ifd_acc_work(step, frame);
    for (size_t i = range.begin; i < range.end; i += PIXELS) {
        const size_t n = range.end - i < PIXELS ? range.end - i : PIXELS;
        for (size_t plane = 0; plane < p->planes; plane++) {
            kernel(n, in + plane * p->count + i, p->scale, p->zero, p->beyond,
                   (ifd_q8 *)part + plane * PIXELS);
        }
        step->kernels->move.transpose_8(p->planes, n, part, PIXELS, (uint8_t *)out + i * p->planes,
                                        p->planes);
    }
}

static void run_quantize(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    quantize(step, frame, step->kernels->quant.quantize);
}

static void run_quantize_even(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    quantize(step, frame, step->kernels->quant.quantize_even);
}

static void run_dequantize(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct quant_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->count, 64);
    const ifd_q8 *in = ifd_acc_in(step, frame, 0);
    float *out = ifd_acc_out(step, frame);
    step->kernels->quant.dequantize(range.end - range.begin, in + range.begin, p->scale, p->zero,
                                    out + range.begin);
}

static bool quantize_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype in = node->input[0].desc->dtype, out = node->output[0].dtype;
    const bool fits =
        (ifd_acc_is_q8(in) && ifd_acc_is_q8(out)) || (in == IFD_F32 && ifd_acc_is_q8(out));
    if (!fits || node->output[0].quant.count != 1) {
        ifd_fail(reason, IFD_UNSUPPORTED, "types %s to %s", ifd_dtype_name(in),
                 ifd_dtype_name(out));
        return false;
    }
    return true;
}

static bool dequantize_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_desc *in = node->input[0].desc;
    if (!ifd_acc_is_q8(in->dtype) || node->output[0].dtype != IFD_F32 || in->quant.count != 1) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(in->dtype));
        return false;
    }
    return true;
}

/* The transposition that alone reads a value and makes pixels of its planes, as where a picture
 * comes in planes; how many these are. NULL, and 1, if there is none. */
static const struct ifd_partition_node *find_turn(const struct ifd_acc_lowering *lowering,
                                                  uint32_t value, size_t *ret_planes,
                                                  uint32_t *ret_node)
{
    const struct ifd_partition_node *turn = ifd_low_sole_reader(&lowering->base, value, ret_node);
    struct ifd_low_move move = {.converts = false};
    *ret_planes = 1;
    if (!turn || turn->view.op != IFD_OP_TRANSPOSE || !ifd_low_moves(&turn->view, NULL) ||
        !ifd_low_move(&turn->view, 0, &move) || move.converts) {
        return NULL;
    }
    struct ifd_low_copy *copy = &move.copy;
    ifd_low_merge(copy);
    if (copy->rank != 2 || copy->in_stride[0] != 1 || copy->out_stride[1] != 1 ||
        copy->dim[1] > PLANES_MAX) {
        return NULL;
    }
    *ret_planes = (size_t)copy->dim[1];
    return turn;
}

static enum ifd_code add_quant(struct ifd_acc_lowering *lowering,
                               const struct ifd_partition_node *node, ifd_acc_step_fn run,
                               const struct ifd_desc *quantized, uint32_t out, size_t planes,
                               struct ifd_err *err)
{
    struct quant_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code = ifd_acc_add_step(lowering, run, p, node->input_value, 1, out, &step, err);
    if (code == IFD_OK && planes > 1) {
        code = ifd_acc_add_work(lowering, planes * PIXELS, err);
    }
    if (code == IFD_OK) {
        const size_t bytes = lowering->base.value[node->output_value[0]].bytes;
        const size_t count = bytes / ifd_dtype_bytes(node->view.output[0].dtype);
        const char *name = ifd_op_def(node->view.op)->name;
        p->planes = planes;
        p->count = count / planes;
        p->scale = quantized->quant.scale[0];
        p->zero = ifd_acc_zero(quantized);
        p->beyond = ifd_acc_beyond(quantized);
        step->max_threads = (uint32_t)(count / 4096) + 1;
        ifd_acc_name_step(lowering, name, 0, planes > 1 ? "%s+transpose" : "%s", name);
    }
    return code;
}

static enum ifd_code quantize_lower(struct ifd_acc_lowering *lowering,
                                    const struct ifd_partition_node *node, struct ifd_err *err)
{
    if (node->view.input[0].desc->dtype != IFD_F32) {
        return ifd_acc_lower_unary(lowering, node, err);
    }
    const struct ifd_quantize_attrs *attrs = node->view.attrs;
    size_t planes = 0;
    uint32_t index = 0, out = node->output_value[0];
    const struct ifd_partition_node *turn = find_turn(lowering, out, &planes, &index);
    if (turn) {
        ifd_low_fuse_node(&lowering->base, index);
        out = turn->output_value[0];
    }
    return add_quant(lowering, node, attrs->rounds_even ? run_quantize_even : run_quantize,
                     &node->view.output[0], out, planes, err);
}

static enum ifd_code dequantize_lower(struct ifd_acc_lowering *lowering,
                                      const struct ifd_partition_node *node, struct ifd_err *err)
{
    bool is_done = false;
    const enum ifd_code code = ifd_acc_lower_stored_mean(lowering, node, &is_done, err);
    return code != IFD_OK || is_done
               ? code
               : add_quant(lowering, node, run_dequantize, node->view.input[0].desc,
                           node->output_value[0], 1, err);
}

const struct ifd_acc_driver ifd_acc_quantize = {.takes = quantize_takes, .lower = quantize_lower};
const struct ifd_acc_driver ifd_acc_dequantize = {.takes = dequantize_takes,
                                                  .lower = dequantize_lower};
