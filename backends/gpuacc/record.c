/* Command buffers. */
#include "backends/gpuacc/record.h"

#include <string.h>

#define EXTENSIONS_SIZE 16384

static bool has_extension(const struct ifd_device *device)
{
    char text[EXTENSIONS_SIZE] = "";
    const cl_int error =
        device->cl.GetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, sizeof(text) - 1, text, NULL);
    return error == CL_SUCCESS && strstr(text, "cl_khr_command_buffer") != NULL;
}

/* Into a queue as contexts have it? */
static bool takes_plain_queue(const struct ifd_device *device)
{
    cl_command_queue_properties needed = 0;
    const cl_int error =
        device->cl.GetDeviceInfo(device->id, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR,
                                 sizeof(needed), &needed, NULL);
    return error == CL_SUCCESS && needed == 0;
}

void ifd_gpu_find_recording(struct ifd_device *device)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
        {"clCreateCommandBufferKHR", offsetof(struct ifd_cl_recording, create)},
        {"clCommandNDRangeKernelKHR", offsetof(struct ifd_cl_recording, kernel)},
        {"clFinalizeCommandBufferKHR", offsetof(struct ifd_cl_recording, finalize)},
        {"clEnqueueCommandBufferKHR", offsetof(struct ifd_cl_recording, enqueue)},
        {"clReleaseCommandBufferKHR", offsetof(struct ifd_cl_recording, release)},
    };
    const struct ifd_cl *cl = &device->cl;
    struct ifd_cl_recording recording;
    cl_platform_id platform = NULL;
    if (!has_extension(device) || !takes_plain_queue(device) ||
        cl->GetDeviceInfo(device->id, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL) !=
            CL_SUCCESS) {
        return;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *found = cl->GetExtensionFunctionAddressForPlatform(platform, functions[i].name);
        if (!found) {
            return;
        }
        memcpy((char *)&recording + functions[i].offset, &found, sizeof(found));
    }
    device->recording = recording;
}

cl_command_buffer_khr ifd_gpu_record(const struct ifd_device *device, cl_command_queue queue,
                                     const struct ifd_partition *partition, const cl_kernel *kernel)
{
    const struct ifd_cl_recording *recording = &device->recording;
    cl_sync_point_khr before = 0;
    cl_int error = CL_SUCCESS;
    if (!recording->create) {
        return NULL;
    }
    cl_command_buffer_khr buffer = recording->create(1, &queue, NULL, &error);
    if (!buffer) {
        return NULL;
    }
    for (uint32_t i = 0; error == CL_SUCCESS && i < partition->step_count; i++) {
        const struct ifd_gpu_step *step = &partition->step[i];
        error = recording->kernel(buffer, NULL, NULL, kernel[i], 3, NULL, step->items,
                                  step->group[0] ? step->group : NULL, i > 0 ? 1 : 0,
                                  i > 0 ? &before : NULL, &before, NULL);
    }
    if (error == CL_SUCCESS) {
        error = recording->finalize(buffer);
    }
    if (error != CL_SUCCESS) {
        (void)recording->release(buffer);
        return NULL;
    }
    return buffer;
}
