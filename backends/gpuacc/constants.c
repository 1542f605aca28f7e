/* Packs, uploads, shares. */
#include "backends/gpuacc/constants.h"

#include <string.h>

void ifd_gpu_pack_copy(const void *params, const void *source, void *packed)
{
    memcpy(packed, source, *(const size_t *)params);
}

static cl_mem find(const struct ifd_partition *partition, const struct ifd_gpu_constant *constant)
{
    for (uint32_t i = 0; partition && i < partition->resident_count; i++) {
        const struct ifd_gpu_constant *have = &partition->resident[i].constant;
        if (constant->source && have->source == constant->source && have->pack == constant->pack &&
            have->bytes == constant->bytes && have->image.width == constant->image.width) {
            return partition->resident[i].buffer;
        }
    }
    return NULL;
}

static void keep(struct ifd_partition *partition, const struct ifd_gpu_constant *constant,
                 cl_mem buffer)
{
    partition->resident[partition->resident_count++] =
        (struct ifd_gpu_resident){.constant = *constant, .buffer = buffer};
}

cl_mem ifd_gpu_make_constant(const struct ifd_device *device,
                             const struct ifd_gpu_constant *constant, void *content,
                             cl_int *ret_error)
{
    const struct ifd_gpu_image *image = &constant->image;
    const cl_mem_flags flags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    const cl_image_format format = {CL_RGBA, image->is_half ? CL_HALF_FLOAT : CL_FLOAT};
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                .image_width = image->width,
                                .image_height = image->height};
    return image->width > 0
               ? device->cl.CreateImage(device->context, flags, &format, &desc, content, ret_error)
               : device->cl.CreateBuffer(device->context, flags, constant->bytes, content,
                                         ret_error);
}

static enum ifd_code upload(const struct ifd_device *device,
                            const struct ifd_gpu_constant *constant, cl_mem *ret,
                            struct ifd_err *err)
{
    void *packed = ifd_acquire_tensor(device->host->alloc, constant->bytes);
    cl_int error = CL_SUCCESS;
    if (!packed) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory to pack %zu bytes", constant->bytes);
    }
    constant->pack(constant->params, constant->source, packed);
    *ret = ifd_gpu_make_constant(device, constant, packed, &error);
    ifd_release_tensor(device->host->alloc, packed, constant->bytes);
    return *ret ? IFD_OK : ifd_cl_fail(err, error, "a constant");
}

enum ifd_code ifd_gpu_keep_constant(struct ifd_partition *partition,
                                    const struct ifd_partition *older,
                                    const struct ifd_gpu_constant *constant, cl_mem *ret,
                                    struct ifd_err *err)
{
    *ret = find(partition, constant);
    if (*ret) {
        return IFD_OK;
    }
    *ret = find(older, constant);
    if (*ret) {
        (void)partition->device->cl.RetainMemObject(*ret);
        keep(partition, constant, *ret);
        return IFD_OK;
    }
    const enum ifd_code code = upload(partition->device, constant, ret, err);
    if (code == IFD_OK) {
        keep(partition, constant, *ret);
        partition->constant_bytes += constant->bytes;
    }
    return code;
}

void ifd_gpu_release_constants(struct ifd_partition *partition)
{
    for (uint32_t i = 0; i < partition->resident_count; i++) {
        (void)partition->device->cl.ReleaseMemObject(partition->resident[i].buffer);
    }
    partition->resident_count = 0;
}
