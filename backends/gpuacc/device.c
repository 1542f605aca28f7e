/* Lists the devices of all platforms, chooses one and opens it. */
#include "backends/gpuacc/device.h"

#include "backends/gpuacc/context.h"
#include "backends/gpuacc/program.h"
#include "backends/gpuacc/record.h"
#include "backends/gpuacc/tuner.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLATFORMS_MAX 16
#define DEVICES_MAX   64

#define COMPUTE_CAPABILITY_MAJOR_NV 0x4000

struct candidate {
    cl_device_id id;
    cl_device_type type;
    char platform[96], name[96];
};

struct candidates {
    struct candidate item[DEVICES_MAX];
    uint32_t count;
};

static void device_text(const struct ifd_cl *cl, cl_device_id id, cl_device_info what, char *ret,
                        size_t size)
{
    ret[0] = '\0';
    if (cl->GetDeviceInfo(id, what, size, ret, NULL) != CL_SUCCESS) {
        ret[0] = '\0';
    }
    ret[size - 1] = '\0';
}

static void add_devices(const struct ifd_cl *cl, cl_platform_id platform,
                        struct candidates *candidates)
{
    cl_device_id id[DEVICES_MAX];
    cl_uint count = 0;
    const uint32_t room = DEVICES_MAX - candidates->count;
    if (room == 0 ||
        cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, room, id, &count) != CL_SUCCESS) {
        return; /* a platform without devices */
    }
    for (uint32_t i = 0; i < count && i < room; i++) {
        struct candidate *item = &candidates->item[candidates->count++];
        *item = (struct candidate){.id = id[i]};
        (void)cl->GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(item->platform) - 1,
                                  item->platform, NULL);
        (void)cl->GetDeviceInfo(id[i], CL_DEVICE_TYPE, sizeof(item->type), &item->type, NULL);
        device_text(cl, id[i], CL_DEVICE_NAME, item->name, sizeof(item->name));
    }
}

static enum ifd_code list_devices(const struct ifd_cl *cl, struct candidates *ret,
                                  struct ifd_err *err)
{
    cl_platform_id platform[PLATFORMS_MAX];
    cl_uint count = 0;
    const cl_int error = cl->GetPlatformIDs(PLATFORMS_MAX, platform, &count);
    if (error != CL_SUCCESS || count == 0) {
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: OpenCL lists no platform: error %d (%s)",
                        error, ifd_cl_error_name(error));
    }
    ret->count = 0;
    for (uint32_t i = 0; i < count && i < PLATFORMS_MAX; i++) {
        add_devices(cl, platform[i], ret);
    }
    if (ret->count == 0) {
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: OpenCL lists %u platforms without a device",
                        count);
    }
    return IFD_OK;
}

static const struct candidate *first_of(const struct candidates *candidates, cl_device_type type)
{
    for (uint32_t i = 0; i < candidates->count; i++) {
        if (candidates->item[i].type & type) {
            return &candidates->item[i];
        }
    }
    return NULL;
}

static bool contains(const char *text, const char *part)
{
    const size_t size = strlen(part);
    for (; strlen(text) >= size; text++) {
        size_t same = 0;
        while (same < size &&
               tolower((unsigned char)text[same]) == tolower((unsigned char)part[same])) {
            same++;
        }
        if (same == size) {
            return true;
        }
    }
    return false;
}

static const struct candidate *first_named(const struct candidates *candidates, const char *name)
{
    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct candidate *item = &candidates->item[i];
        if (contains(item->name, name) || contains(item->platform, name)) {
            return item;
        }
    }
    return NULL;
}

static const struct candidate *any_device(const struct candidates *candidates)
{
    const struct candidate *gpu = first_of(candidates, CL_DEVICE_TYPE_GPU);
    return gpu ? gpu : &candidates->item[0];
}

static const struct candidate *choose(const struct candidates *candidates, const char *wanted)
{
    static const struct {
        const char *name;
        cl_device_type type;
    } types[] = {{"gpu", CL_DEVICE_TYPE_GPU},
                 {"cpu", CL_DEVICE_TYPE_CPU},
                 {"accelerator", CL_DEVICE_TYPE_ACCELERATOR}};
    if (!wanted || !wanted[0]) {
        return any_device(candidates);
    }
    char *end = NULL;
    const unsigned long index = strtoul(wanted, &end, 10);
    if (*end == '\0' && isdigit((unsigned char)wanted[0])) {
        return index < candidates->count ? &candidates->item[index] : NULL;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, wanted) == 0) {
            return first_of(candidates, types[i].type);
        }
    }
    return first_named(candidates, wanted);
}

/* What there is, for the message about a device that there is not. */
static void list_text(const struct candidates *candidates, char *ret, size_t size)
{
    size_t used = 0;
    ret[0] = '\0';
    for (uint32_t i = 0; i < candidates->count && used < size; i++) {
        const int written = snprintf(ret + used, size - used, "%s%u \"%s\"", i ? ", " : "", i,
                                     candidates->item[i].name);
        used += written > 0 ? (size_t)written : 0;
    }
}

static bool has_extension(const struct ifd_cl *cl, cl_device_id id, const char *name)
{
    char extensions[8192];
    device_text(cl, id, CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
    return strstr(extensions, name) != NULL;
}

/* The major number, of a GPU by NVIDIA; 0: of another. */
static cl_uint compute_capability(const struct ifd_cl *cl, cl_device_id id)
{
    cl_uint major = 0;
    if (has_extension(cl, id, "cl_nv_device_attribute_query")) {
        (void)cl->GetDeviceInfo(id, COMPUTE_CAPABILITY_MAJOR_NV, sizeof(major), &major, NULL);
    }
    return major;
}

static void read_limits(const struct ifd_cl *cl, cl_device_id id, struct ifd_gpu_info *info)
{
    cl_ulong constant = 0;
    cl_bool has_images = CL_FALSE;
    (void)cl->GetDeviceInfo(id, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, sizeof(constant), &constant,
                            NULL);
    (void)cl->GetDeviceInfo(id, CL_DEVICE_IMAGE_SUPPORT, sizeof(has_images), &has_images, NULL);
    info->constant_bytes = constant < SIZE_MAX ? (size_t)constant : SIZE_MAX;
    if (has_images == CL_TRUE) {
        (void)cl->GetDeviceInfo(id, CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof(info->image_width),
                                &info->image_width, NULL);
        (void)cl->GetDeviceInfo(id, CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof(info->image_height),
                                &info->image_height, NULL);
    }
    if (has_images == CL_TRUE && has_extension(cl, id, "cl_khr_image2d_from_buffer")) {
        cl_uint pitch = 0;
        (void)cl->GetDeviceInfo(id, CL_DEVICE_IMAGE_PITCH_ALIGNMENT_KHR, sizeof(pitch), &pitch,
                                NULL);
        info->image_pitch = pitch;
    }
}

static void read_info(struct ifd_device *device, const struct candidate *chosen)
{
    const struct ifd_cl *cl = &device->cl;
    struct ifd_gpu_info *info = &device->info;
    cl_ulong memory = 0, buffer = UINT64_MAX, local = 0;
    cl_device_fp_config floats = 0;
    cl_uint units = 1, clock = 1000;
    cl_bool shares = CL_FALSE;
    memcpy(info->platform, chosen->platform, sizeof(info->platform));
    memcpy(info->name, chosen->name, sizeof(info->name));
    device_text(cl, device->id, CL_DRIVER_VERSION, info->driver, sizeof(info->driver));
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory), &memory, NULL);
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(buffer), &buffer,
                            NULL);
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(clock), &clock, NULL);
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(shares), &shares,
                            NULL);
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(info->max_group),
                            &info->max_group, NULL);
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(local), &local, NULL);
    (void)cl->GetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(floats), &floats, NULL);
    info->dot = has_extension(cl, device->id, "cl_khr_integer_dot_product") ? IFD_GPU_DOT_KHR
                : has_extension(cl, device->id, "cl_arm_integer_dot_product_int8")
                    ? IFD_GPU_DOT_ARM
                    : IFD_GPU_DOT_NONE;
    read_limits(cl, device->id, info);
    info->has_fp16 = has_extension(cl, device->id, "cl_khr_fp16");
    info->has_mma = compute_capability(cl, device->id) >= 8;
    info->local_bytes = local < SIZE_MAX ? (size_t)local : SIZE_MAX;
    info->divides_exactly = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    info->is_gpu = (chosen->type & CL_DEVICE_TYPE_GPU) != 0;
    info->shares_memory = shares == CL_TRUE;
    info->compute_units = units;
    info->clock_mhz = clock ? clock : 1000;
    info->max_buffer = buffer < SIZE_MAX ? (size_t)buffer : SIZE_MAX;
    info->memory_bytes = memory;
}

static enum ifd_code open_chosen(struct ifd_device *device, const struct candidate *chosen,
                                 const struct ifd_gpu_options *options, struct ifd_err *err)
{
    const struct ifd_cl *cl = &device->cl;
    cl_int error = CL_SUCCESS;
    device->id = chosen->id;
    read_info(device, chosen);
    device->sums_fp16 = options->sums == IFD_GPU_SUMS_FP16;
    if (device->sums_fp16 && !device->info.has_fp16) {
        return ifd_fail(err, IFD_INVALID,
                        "sums: got \"fp16\", but device \"%s\" has no cl_khr_fp16",
                        device->info.name);
    }
    device->maps = !options->copies && device->info.shares_memory;
    if (options->record == IFD_GPU_RECORD_ALWAYS ||
        (options->record == IFD_GPU_RECORD_AUTO && device->info.is_gpu)) {
        ifd_gpu_find_recording(device);
    }
    device->context = cl->CreateContext(NULL, 1, &device->id, NULL, NULL, &error);
    if (device->context) {
        device->queue = cl->CreateCommandQueue(device->context, device->id, 0, &error);
    }
    if (!device->queue) {
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: device \"%s\" does not open: error %d (%s)",
                        device->info.name, error, ifd_cl_error_name(error));
    }
    return IFD_OK;
}

static enum ifd_code find_and_open(struct ifd_device *device, const struct ifd_gpu_options *options,
                                   struct ifd_err *err)
{
    const char *wanted = options->device;
    struct candidates candidates;
    enum ifd_code code = list_devices(&device->cl, &candidates, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct candidate *chosen = choose(&candidates, wanted);
    if (!chosen) {
        char list[160];
        list_text(&candidates, list, sizeof(list));
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: no device \"%s\", there are: %s", wanted,
                        list);
    }
    return open_chosen(device, chosen, options, err);
}

enum ifd_code ifd_gpu_open(const struct ifd_host *host, const struct ifd_gpu_options *options,
                           struct ifd_device **ret_device, struct ifd_err *err)
{
    struct ifd_device *device = ifd_acquire_zeroed(host->alloc, 1, sizeof(*device));
    if (!device) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for the device");
    }
    device->host = host;
    device->cache = options->cache;
    device->timeout_ns = (options->timeout_ms ? options->timeout_ms : IFD_GPU_TIMEOUT_MS) * 1000000;
    ifd_mutex_init(&device->lock);
    enum ifd_code code = ifd_cl_open(NULL, &device->cl, err);
    if (code == IFD_OK) {
        code = find_and_open(device, options, err);
    }
    if (code != IFD_OK) {
        ifd_gpu_close(device);
        return code;
    }
    ifd_gpu_tuner_open(device, options);
    *ret_device = device;
    return IFD_OK;
}

void ifd_gpu_close(struct ifd_device *device)
{
    if (!device) {
        return;
    }
    const struct ifd_cl *cl = &device->cl;
    const bool is_stuck = ifd_gpu_drop_stuck(device);
    ifd_gpu_tuner_close(device);
    ifd_gpu_release_programs(device);
    ifd_gpu_forget_unbuilt(device);
    if (device->queue) {
        (void)cl->ReleaseCommandQueue(device->queue);
    }
    if (device->context && !is_stuck) { /* else the driver might wait for the kernel */
        (void)cl->ReleaseContext(device->context);
    }
    ifd_cl_close(&device->cl);
    ifd_mutex_finish(&device->lock);
    ifd_release(device->host->alloc, device, sizeof(*device));
}
