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
            have->bytes == constant->bytes && have->row == constant->row &&
            have->image.width == constant->image.width) {
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

/* memory: a buffer with its content, of which it is a view; NULL: it has memory of its own. */
static cl_mem make_image(const struct ifd_device *device, const struct ifd_gpu_image *image,
                         cl_mem memory, void *content, cl_int *ret_error)
{
    const cl_mem_flags flags = CL_MEM_READ_ONLY | (memory ? 0 : CL_MEM_COPY_HOST_PTR);
    const size_t texel = 4 * (image->is_half ? sizeof(cl_half) : sizeof(cl_float));
    const cl_image_format format = {CL_RGBA, image->is_half ? CL_HALF_FLOAT : CL_FLOAT};
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                .image_width = image->width,
                                .image_height = image->height,
                                .image_row_pitch = memory ? image->width * texel : 0,
                                .buffer = memory};
    return device->cl.CreateImage(device->context, flags, &format, &desc, content, ret_error);
}

cl_mem ifd_gpu_make_constant(const struct ifd_device *device,
                             const struct ifd_gpu_constant *constant, void *content,
                             cl_int *ret_error)
{
    return constant->image.width > 0
               ? make_image(device, &constant->image, NULL, content, ret_error)
               : device->cl.CreateBuffer(device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                         constant->bytes, content, ret_error);
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

static enum ifd_code find_or_upload(struct ifd_partition *partition,
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

/* Can an image be a view of the buffer that other kernels read the same constant from? */
static bool can_be_view(const struct ifd_device *device, const struct ifd_gpu_image *image)
{
    return image->width > 0 && device->info.image_pitch > 0 &&
           image->width % device->info.image_pitch == 0;
}

enum ifd_code ifd_gpu_keep_constant(struct ifd_partition *partition,
                                    const struct ifd_partition *older,
                                    const struct ifd_gpu_constant *constant, cl_mem *ret,
                                    struct ifd_err *err)
{
    struct ifd_gpu_constant plain = *constant;
    cl_mem memory = NULL;
    cl_int error = CL_SUCCESS;
    if (!can_be_view(partition->device, &constant->image) || find(partition, constant) ||
        find(older, constant)) {
        return find_or_upload(partition, older, constant, ret, err);
    }
    plain.image.width = 0;
    const enum ifd_code code = find_or_upload(partition, older, &plain, &memory, err);
    if (code != IFD_OK) {
        return code;
    }
    *ret = make_image(partition->device, &constant->image, memory, NULL, &error);
    if (!*ret) { /* a pitch that the driver does not take after all */
        return find_or_upload(partition, older, constant, ret, err);
    }
    keep(partition, constant, *ret);
    return IFD_OK;
}

void ifd_gpu_release_constants(struct ifd_partition *partition)
{
    for (uint32_t i = 0; i < partition->resident_count; i++) {
        (void)partition->device->cl.ReleaseMemObject(partition->resident[i].buffer);
    }
    partition->resident_count = 0;
}
