/* Which drivers can store values in half precision. */
#include "backends/gpuacc/halves.h"

#include "backends/lowering/narrow.h"

#include <string.h>

/* Results of the first layers, if they are images of few channels, stay f32. They are sums of few
 * numbers, so that their rounding errors hardly cancel, and all further layers amplify them. */
#define WIDE_LAYERS   3
#define WIDE_CHANNELS 16

static bool is_among(const struct ifd_gpu_driver *driver,
                     const struct ifd_gpu_driver *const *drivers, size_t count)
{
    bool is_there = false;
    for (size_t i = 0; i < count; i++) {
        is_there |= driver == drivers[i];
    }
    return is_there;
}

/* Its kernels load and store what common.cl calls reals. */
static bool converts(const void *context, uint32_t n)
{
    static const struct ifd_gpu_driver *const drivers[] = {
        &ifd_gpu_driver_conv2d,          &ifd_gpu_driver_transpose_conv2d,
        &ifd_gpu_driver_fully_connected, &ifd_gpu_driver_depthwise,
        &ifd_gpu_driver_elementwise,     &ifd_gpu_driver_pool2d,
        &ifd_gpu_driver_softmax,         &ifd_gpu_driver_reduce,
        &ifd_gpu_driver_resize_bilinear, &ifd_gpu_driver_batch_matmul,
    };
    const struct ifd_gpu_lowering *lowering = context;
    return is_among(lowering->driver[n], drivers, sizeof(drivers) / sizeof(drivers[0]));
}

/* Its kernels know the size of elements only. */
static bool moves(const void *context, uint32_t n)
{
    static const struct ifd_gpu_driver *const drivers[] = {
        &ifd_gpu_driver_moves,          &ifd_gpu_driver_pad,
        &ifd_gpu_driver_space_depth,    &ifd_gpu_driver_space_batch,
        &ifd_gpu_driver_resize_nearest, &ifd_gpu_driver_tile,
        &ifd_gpu_driver_broadcast_to,   &ifd_gpu_driver_reverse,
        &ifd_gpu_driver_gather,         &ifd_gpu_driver_mirror_pad,
    };
    const struct ifd_gpu_lowering *lowering = context;
    return is_among(lowering->driver[n], drivers, sizeof(drivers) / sizeof(drivers[0]));
}

static bool is_layer(enum ifd_op op)
{
    return op == IFD_OP_CONV2D || op == IFD_OP_DEPTHWISE_CONV2D || op == IFD_OP_TRANSPOSE_CONV2D;
}

static bool has_few_channels(const struct ifd_shape *shape)
{
    return shape->rank == 4 && shape->dim[3] <= WIDE_CHANNELS;
}

/* depth: of values, layers before them; zeros. */
static void keep_first_layers(const struct ifd_partition_view *view, uint32_t *depth, bool *is_half)
{
    for (uint32_t n = 0; n < view->node_count; n++) {
        const struct ifd_partition_node *node = &view->node[n];
        uint32_t layers = 0;
        for (uint32_t i = 0; i < node->view.input_count; i++) {
            const uint32_t v = node->input_value[i];
            layers = v != IFD_NO_VALUE && depth[v] > layers ? depth[v] : layers;
        }
        layers += is_layer(node->view.op);
        for (uint32_t i = 0; i < node->view.output_count; i++) {
            const uint32_t v = node->output_value[i];
            depth[v] = layers;
            is_half[v] = layers > WIDE_LAYERS || !has_few_channels(&view->value[v].desc.shape);
        }
    }
}

enum ifd_code ifd_gpu_choose_halves(struct ifd_gpu_lowering *lowering, struct ifd_err *err)
{
    struct ifd_lowering *base = &lowering->base;
    const struct ifd_low_narrow narrow = {
        .dtype = IFD_F16, .context = lowering, .converts = converts, .moves = moves};
    const uint32_t values = base->view->value_count;
    bool *is_half = ifd_low_params(base, values, sizeof(*is_half));
    uint32_t *depth = ifd_low_params(base, values, sizeof(*depth));
    uint32_t count = 0;
    if (!is_half || !depth) {
        return ifd_arena_fail(base->arena, 0, err);
    }
    memset(is_half, true, values * sizeof(*is_half));
    keep_first_layers(base->view, depth, is_half);
    const enum ifd_code code = ifd_low_narrow_values(base, &narrow, is_half, &count, err);
    lowering->precision = count > 0 ? IFD_PRECISION_FP16 : lowering->precision;
    return code;
}

/* ---- calls ---- */

bool ifd_gpu_is_half(const struct ifd_gpu_lowering *lowering, uint32_t value)
{
    return lowering->base.value[value].view->desc.dtype == IFD_F16;
}

void ifd_gpu_define_reals(const struct ifd_gpu_lowering *lowering, struct ifd_gpu_call *call)
{
    static const char *const operand_name[] = {"IN", "B"};
    uint32_t in = 0, i = 0;
    for (; i < call->arg_count && call->arg[i].kind != IFD_GPU_ARG_OUT; i++) {
        if (call->arg[i].kind == IFD_GPU_ARG_IN && in < 2) {
            if (ifd_gpu_is_half(lowering, call->arg[i].value)) {
                ifd_gpu_define(call, "#define REAL_%s half\n", operand_name[in]);
            }
            in++;
        }
    }
    if (i < call->arg_count && ifd_gpu_is_half(lowering, call->arg[i].value)) {
        ifd_gpu_define(call, "#define REAL_OUT half\n");
    }
    for (uint32_t t = 0; i < call->arg_count; i++) {
        if (call->arg[i].kind == IFD_GPU_ARG_IN) {
            ifd_gpu_define(call, "#define REAL_T%u %s\n", t++,
                           ifd_gpu_is_half(lowering, call->arg[i].value) ? "half" : "float");
        }
    }
}
