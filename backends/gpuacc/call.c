/* Describes calls of kernels. */
#include "backends/gpuacc/call.h"

#include <stdarg.h>
#include <stdio.h>

struct ifd_gpu_call ifd_gpu_call(enum ifd_gpu_kernel kernel)
{
    return (struct ifd_gpu_call){.kernel = kernel, .items = {1, 1, 1}};
}

static void add_arg(struct ifd_gpu_call *call, const struct ifd_gpu_arg *arg)
{
    if (call->arg_count == IFD_GPU_ARGS_MAX) {
        call->is_too_large = true;
        return;
    }
    call->arg[call->arg_count++] = *arg;
}

void ifd_gpu_in_elements(struct ifd_gpu_call *call, uint32_t value, size_t element)
{
    add_arg(call,
            &(struct ifd_gpu_arg){.kind = IFD_GPU_ARG_IN, .value = value, .element = element});
}

void ifd_gpu_out_elements(struct ifd_gpu_call *call, uint32_t value, size_t element)
{
    add_arg(call,
            &(struct ifd_gpu_arg){.kind = IFD_GPU_ARG_OUT, .value = value, .element = element});
}

void ifd_gpu_in(struct ifd_gpu_call *call, uint32_t value)
{
    ifd_gpu_in_elements(call, value, 0);
}

void ifd_gpu_out(struct ifd_gpu_call *call, uint32_t value)
{
    ifd_gpu_out_elements(call, value, 0);
}

void ifd_gpu_constant(struct ifd_gpu_call *call, ifd_gpu_pack_fn pack, const void *params,
                      const void *source, size_t bytes)
{
    add_arg(call,
            &(struct ifd_gpu_arg){
                .kind = IFD_GPU_ARG_CONSTANT,
                .constant = {.pack = pack, .params = params, .source = source, .bytes = bytes}});
}

void ifd_gpu_in_rows(struct ifd_gpu_call *call, size_t row)
{
    if (call->arg_count > 0) {
        call->arg[call->arg_count - 1].constant.row = row;
    }
}

void ifd_gpu_as_image(struct ifd_gpu_call *call, const struct ifd_gpu_image *image)
{
    if (call->arg_count > 0) {
        call->arg[call->arg_count - 1].constant.image = *image;
    }
}

void ifd_gpu_int(struct ifd_gpu_call *call, int64_t number)
{
    call->is_too_large |= number < INT32_MIN || number > INT32_MAX;
    add_arg(call, &(struct ifd_gpu_arg){.kind = IFD_GPU_ARG_NUMBER,
                                        .number = {.integer = (int32_t)number}});
}

void ifd_gpu_float(struct ifd_gpu_call *call, float number)
{
    add_arg(call, &(struct ifd_gpu_arg){.kind = IFD_GPU_ARG_NUMBER, .number = {.real = number}});
}

void ifd_gpu_broadcast(struct ifd_gpu_call *call, const struct ifd_low_broadcast *broadcast,
                       uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++) {
        const bool exists = i < broadcast->rank;
        const uint32_t d = exists ? broadcast->rank - 1 - i : 0;
        ifd_gpu_int(call, exists ? (int64_t)broadcast->dim[d] : 1);
        ifd_gpu_int(call, exists ? (int64_t)broadcast->stride[IFD_LOW_A][d] : 0);
        ifd_gpu_int(call, exists ? (int64_t)broadcast->stride[IFD_LOW_B][d] : 0);
    }
}

void ifd_gpu_define(struct ifd_gpu_call *call, const char *format, ...)
{
    const size_t room = sizeof(call->defines) - call->defines_used;
    va_list args;
    va_start(args, format);
    const int written = vsnprintf(call->defines + call->defines_used, room, format, args);
    va_end(args);
    if (written < 0 || (size_t)written >= room) {
        call->is_too_large = true;
        call->defines[call->defines_used] = '\0';
        return;
    }
    call->defines_used += (size_t)written;
}

void ifd_gpu_items(struct ifd_gpu_call *call, size_t x, size_t y, size_t z)
{
    call->items[0] = x;
    call->items[1] = y;
    call->items[2] = z;
}

void ifd_gpu_group(struct ifd_gpu_call *call, size_t x, size_t y, size_t z)
{
    const size_t size[] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        call->group[i] = size[i];
        call->items[i] = (call->items[i] + size[i] - 1) / size[i] * size[i];
    }
}
