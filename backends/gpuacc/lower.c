/* Drafts of steps, and the table of drivers. */
#include "backends/gpuacc/lower.h"

#include "backends/gpuacc/halves.h"
#include "backends/lowering/requantize.h"

#include <string.h>

static enum ifd_code no_memory(const struct ifd_gpu_lowering *lowering, struct ifd_err *err)
{
    return ifd_arena_fail(lowering->base.arena, 0, err);
}

static bool is_value(const struct ifd_gpu_arg *arg)
{
    return arg->kind == IFD_GPU_ARG_IN || arg->kind == IFD_GPU_ARG_OUT;
}

static bool has_items(const struct ifd_gpu_call *call)
{
    return call->items[0] > 0 && call->items[1] > 0 && call->items[2] > 0;
}

/* Groups that are wide enough for a GPU, where the driver did not choose: left to itself, OpenCL
 * takes groups that divide the items, of one item if their number is prime. CPUs get the same
 * groups for all layers: PoCL compiles a kernel once more for each size. */
static void choose_group(const struct ifd_gpu_lowering *lowering, struct ifd_gpu_call *call)
{
    const size_t wanted = lowering->device->info.max_group < 128 ? 1 : 128;
    size_t x = 1, y = 1;
    if (wanted > 1 && !lowering->device->info.is_gpu) {
        const bool is_line = call->items[1] == 1;
        ifd_gpu_group(call, is_line ? 64 : 8, is_line ? 1 : 8, 1);
        return;
    }
    while (x < call->items[0] && x < wanted) {
        x *= 2;
    }
    while (y < call->items[1] && x * y < wanted) {
        y *= 2;
    }
    ifd_gpu_group(call, x, y, 1);
}

void ifd_gpu_define_aligned(struct ifd_gpu_lowering *lowering, struct ifd_gpu_call *call)
{
    struct ifd_lowering *base = &lowering->base;
    bool is_aligned = true;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (is_value(&call->arg[i])) {
            const uint32_t value = call->arg[i].value;
            (void)ifd_low_storage_of(base, value);
            is_aligned &= base->value[value].offset % (4 * sizeof(float)) == 0;
        }
    }
    if (is_aligned) {
        ifd_gpu_define(call, "#define ALIGNED\n");
    }
}

enum ifd_code ifd_gpu_program_of(const struct ifd_gpu_lowering *lowering,
                                 const struct ifd_gpu_call *call,
                                 struct ifd_gpu_program **ret_program, struct ifd_err *err)
{
    struct ifd_gpu_call typed = *call;
    ifd_gpu_define_reals(lowering, &typed);
    if (typed.is_too_large) {
        return ifd_fail(err, IFD_INTERNAL, "kernel %s: arguments or definitions do not fit",
                        ifd_gpu_kernel_name(call->kernel));
    }
    return ifd_gpu_program(lowering->device, ifd_gpu_kernel_file(call->kernel), typed.defines,
                           ret_program, err);
}

enum ifd_code ifd_gpu_add_step(struct ifd_gpu_lowering *lowering, const struct ifd_gpu_call *call,
                               const char *name, uint64_t macs, struct ifd_err *err)
{
    struct ifd_lowering *base = &lowering->base;
    if (!has_items(call)) {
        return ifd_fail(err, IFD_INTERNAL, "kernel %s: no work items",
                        ifd_gpu_kernel_name(call->kernel));
    }
    struct ifd_gpu_draft *drafts = ifd_low_grow(base, lowering->draft, lowering->draft_count,
                                                &lowering->draft_capacity, sizeof(*drafts));
    struct ifd_gpu_arg *arg = ifd_low_params(base, call->arg_count, sizeof(*arg));
    const char *text = ifd_arena_text(base->arena, name, strlen(name));
    if (!drafts || !arg || !text) {
        return no_memory(lowering, err);
    }
    memcpy(arg, call->arg, call->arg_count * sizeof(*arg));
    lowering->draft = drafts;
    const uint32_t index = lowering->draft_count++;
    drafts[index] = (struct ifd_gpu_draft){
        .kernel = call->kernel,
        .arg = arg,
        .arg_count = call->arg_count,
        .info = {.name = text, .kernel = ifd_gpu_kernel_name(call->kernel), .macs = macs}};
    struct ifd_gpu_call sized = *call;
    if (call->group[0] == 0) {
        choose_group(lowering, &sized);
    }
    memcpy(drafts[index].items, sized.items, sizeof(sized.items));
    memcpy(drafts[index].group, sized.group, sizeof(sized.group));
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (is_value(&arg[i])) {
            ifd_low_touch(base, ifd_low_storage_of(base, arg[i].value), index);
        }
    }
    return ifd_gpu_program_of(lowering, call, &drafts[index].program, err);
}

/* Kernels count elements of a tensor in 32 bits with a sign. The work items behind its end do so,
 * too: groups are full, and an item has several elements. */
#define ELEMENTS_MAX ((size_t)INT32_MAX - UINT16_MAX)

static bool has_sizes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    size_t most = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct ifd_desc *desc = node->input[i].desc;
        const size_t count = desc ? ifd_gpu_elements(&desc->shape) : 0;
        most = count > most ? count : most;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const size_t count = ifd_gpu_elements(&node->output[i].shape);
        if (count == 0) {
            ifd_fail(reason, IFD_UNSUPPORTED, "an empty tensor");
            return false;
        }
        most = count > most ? count : most;
    }
    if (most > ELEMENTS_MAX) {
        ifd_fail(reason, IFD_UNSUPPORTED, "a tensor of %zu elements, at most %zu", most,
                 ELEMENTS_MAX);
        return false;
    }
    return true;
}

const struct ifd_gpu_driver *ifd_gpu_driver_of(const struct ifd_node_view *node,
                                               struct ifd_err *reason)
{
    static const struct ifd_gpu_driver *const drivers[IFD_OP_COUNT] = {
#define DRIVER(op, symbol) [IFD_OP_##op] = &ifd_gpu_driver_##symbol,
#include "backends/gpuacc/ops/op_list.inc"
#undef DRIVER
    };
    const struct ifd_gpu_driver *driver =
        (unsigned)node->op < IFD_OP_COUNT ? drivers[node->op] : NULL;
    if (!driver) {
        ifd_fail(reason, IFD_UNSUPPORTED, "GpuAcc has no kernel for this operator");
        return NULL;
    }
    if (ifd_low_has_odd_scale(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "a scale that is 0, denormal or too far from the others");
        return NULL;
    }
    if (ifd_low_wraps(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "scales that are too far apart");
        return NULL;
    }
    return has_sizes(node, reason) && driver->takes(node, reason) ? driver : NULL;
}

const char *ifd_gpu_op_name(enum ifd_op op)
{
    static const char *const names[] = {
#define OP(ID, symbol) [IFD_OP_##ID] = #symbol,
#include "inferd/op_list.inc"
#undef OP
    };
    return names[op];
}

const char *ifd_gpu_element_type(size_t bytes)
{
    return bytes == 1   ? "uchar"
           : bytes == 2 ? "ushort"
           : bytes == 4 ? "uint"
           : bytes == 8 ? "ulong"
                        : NULL;
}

const char *ifd_gpu_number_type(enum ifd_dtype dtype)
{
    static const char *const types[IFD_DTYPE_COUNT] = {
        [IFD_F32] = "float", [IFD_S8] = "char",    [IFD_U8] = "uchar",
        [IFD_S16] = "short", [IFD_U16] = "ushort", [IFD_S32] = "int",
        [IFD_U32] = "uint",  [IFD_S64] = "long",   [IFD_BOOL] = "uchar"};
    return types[dtype];
}

size_t ifd_gpu_elements(const struct ifd_shape *shape)
{
    size_t count = 1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        count *= (size_t)shape->dim[d]; /* fits: the engine has sized every value */
    }
    return count;
}
