/* OpenCL over host memory and kernels that do nothing. */
#include "tests/support/fake_opencl.h"

#include "backends/gpuacc/cl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEVICES   2
#define FUNCTIONS 64

/* An object of any kind. */
struct object {
    unsigned references;
    unsigned device;           /* contexts and queues */
    unsigned recorded;         /* a command buffer: kernels in it */
    bool is_held;              /* a queue with kernels that do not end; an event behind them */
    cl_int failed;             /* a queue whose kernel failed, an event behind it */
    struct object *of;         /* an event's queue */
    struct object *next, **at; /* of all that exist: what is left over can be reached */
    unsigned char *memory;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock;
    char rule[128], name[64];
    int first, error, times; /* of the rule */
    bool hangs, has_failed;
    struct {
        const char *name;
        unsigned calls;
    } function[FUNCTIONS];
    unsigned any;
    int alive;
    struct object *first_object;
    unsigned launches[DEVICES];
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- rules; the lock is held ---- */

static void set_rule(const char *rule)
{
    int *const number[] = {&fake.first, &fake.error, &fake.times};
    const size_t size = strcspn(rule, " \n");
    const char *rest = rule + size;
    int fields = size > 0 ? 1 : 0;
    (void)snprintf(fake.rule, sizeof(fake.rule), "%s", rule);
    (void)snprintf(fake.name, sizeof(fake.name), "%.*s", (int)size, rule);
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        *number[i] = (int)strtol(rest, &end, 10);
        fields += end != rest ? 1 : 0;
        rest = end;
    }
    fake.hangs = fields == 1 && strcmp(fake.name, "hang") == 0;
    if (fields > 0 && fields != 4 && !fake.hangs) {
        (void)fprintf(stderr, "fake OpenCL: no such rule: %s\n", rule);
        exit(3);
    }
    fake.has_failed = false;
    fake.any = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        fake.function[i].calls = 0;
    }
}

static void read_rule(void)
{
    const char *path = getenv("IFD_FAKE_OPENCL");
    char text[sizeof(fake.rule)] = "";
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        (void)fclose(file);
        if (strcmp(text, fake.rule) != 0) {
            set_rule(text);
        }
    }
}

static unsigned count(const char *function)
{
    size_t i = 0;
    while (fake.function[i].name && strcmp(fake.function[i].name, function) != 0) {
        if (++i == FUNCTIONS) {
            abort();
        }
    }
    fake.function[i].name = function;
    return ++fake.function[i].calls;
}

/* The error that a call returns. Locks; unlock() follows. */
static cl_int enter(const char *function)
{
    pthread_mutex_lock(&fake.lock);
    read_rule();
    const bool is_any = strcmp(fake.name, "any") == 0;
    const unsigned own = count(function);
    const unsigned calls = is_any ? ++fake.any : own;
    const bool is_named = is_any || strcmp(fake.name, function) == 0;
    const bool fails = is_named && calls >= (unsigned)fake.first &&
                       (fake.times == 0 || calls < (unsigned)(fake.first + fake.times));
    fake.has_failed |= fails;
    return fails ? fake.error : CL_SUCCESS;
}

static void unlock(void)
{
    pthread_mutex_unlock(&fake.lock);
}

static cl_int leave(cl_int error)
{
    unlock();
    return error;
}

/* ---- objects; the lock is held ---- */

static struct object *make(size_t bytes)
{
    struct object *object = calloc(1, sizeof(*object));
    unsigned char *memory = bytes > 0 ? calloc(1, bytes) : NULL;
    if (!object || (bytes > 0 && !memory)) {
        abort();
    }
    *object = (struct object){.references = 1, .memory = memory, .bytes = bytes};
    object->next = fake.first_object;
    object->at = &fake.first_object;
    if (object->next) {
        object->next->at = &object->next;
    }
    fake.first_object = object;
    fake.alive++;
    return object;
}

static void drop(struct object *object)
{
    if (--object->references == 0) {
        fake.alive--;
        *object->at = object->next;
        if (object->next) {
            object->next->at = object->at;
        }
        free(object->memory);
        free(object);
    }
}

/* Waits, with the lock released meanwhile, until a queue's kernels have ended. */
static void wait_for(struct object *queue)
{
    read_rule();
    while (queue->is_held && fake.hangs) {
        unlock();
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&fake.lock);
        read_rule();
    }
    queue->is_held = false;
}

static cl_int release(void *handle)
{
    pthread_mutex_lock(&fake.lock);
    drop(handle);
    return leave(CL_SUCCESS);
}

/* A new object, or NULL with the error. */
static void *create(cl_int error, size_t bytes, cl_int *ret_error)
{
    struct object *object = error == CL_SUCCESS ? make(bytes) : NULL;
    if (ret_error) {
        *ret_error = error;
    }
    unlock();
    return object;
}

/* ---- platforms and devices ---- */

static char platform_handle, device_handle[DEVICES];

static unsigned index_of(cl_device_id device)
{
    return (unsigned)((char *)device - device_handle);
}

static cl_int put(const void *value, size_t bytes, size_t size, void *ret)
{
    if (ret && size < bytes) {
        return CL_INVALID_VALUE;
    }
    if (ret) {
        memcpy(ret, value, bytes);
    }
    return CL_SUCCESS;
}

#define API __attribute__((visibility("default")))
/* What they get is OpenCL's choice. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

API cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *ret, cl_uint *ret_count)
{
    const cl_int error = enter(__func__);
    if (error == CL_SUCCESS) {
        *ret_count = 1;
        if (room > 0) {
            ret[0] = (cl_platform_id)&platform_handle;
        }
    }
    return leave(error);
}

API cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size, void *ret,
                             size_t *ret_size)
{
    const cl_int error = enter(__func__);
    return leave(error == CL_SUCCESS ? put("Fake", 5, size, ret) : error);
}

API cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                          cl_device_id *ret, cl_uint *ret_count)
{
    const cl_int error = enter(__func__);
    for (cl_uint i = 0; error == CL_SUCCESS && i < DEVICES && i < room; i++) {
        ret[i] = (cl_device_id)&device_handle[i];
        *ret_count = i + 1;
    }
    return leave(error);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] == '1';
}

static cl_int device_info(unsigned index, cl_device_info what, size_t size, void *ret)
{
    static const cl_command_queue_properties plain_queue = 0;
    const cl_platform_id platform = (cl_platform_id)&platform_handle;
    const char *extensions =
        is_set("IFD_FAKE_OPENCL_RECORDS") ? "cl_khr_a cl_khr_command_buffer" : "";
    static const char *const names[DEVICES] = {"Fake GPU", "Fake CPU"};
    static const cl_device_type types[DEVICES] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_CPU};
    const cl_bool is_shared = is_set("IFD_FAKE_OPENCL_SHARED") ? CL_TRUE : CL_FALSE;
    const cl_ulong memory = 1u << 30;
    const cl_uint small = 8;
    const size_t group = 256, side = 4096;
    const cl_bool has_images = CL_TRUE;
    switch (what) {
    case CL_DEVICE_NAME:
        return put(names[index], strlen(names[index]) + 1, size, ret);
    case CL_DEVICE_TYPE:
        return put(&types[index], sizeof(types[index]), size, ret);
    case CL_DEVICE_EXTENSIONS:
        return put(extensions, strlen(extensions) + 1, size, ret);
    case CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR:
        return put(&plain_queue, sizeof(plain_queue), size, ret);
    case CL_DEVICE_PLATFORM:
        return put(&platform, sizeof(platform), size, ret);
    case CL_DRIVER_VERSION:
        return put("1", 2, size, ret);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return put(&memory, sizeof(memory), size, ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return put(&small, sizeof(small), size, ret);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return put(&group, sizeof(group), size, ret);
    case CL_DEVICE_IMAGE_SUPPORT:
        return put(&has_images, sizeof(has_images), size, ret);
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT:
        return put(&side, sizeof(side), size, ret);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return put(&is_shared, sizeof(is_shared), size, ret);
    default:
        return CL_INVALID_VALUE;
    }
}

API cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *ret,
                           size_t *ret_size)
{
    const cl_int error = enter(__func__);
    return leave(error == CL_SUCCESS ? device_info(index_of(device), what, size, ret) : error);
}

/* ---- contexts, queues, buffers ---- */

API cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                               const cl_device_id *devices,
                               void(CL_CALLBACK *notify)(const char *, const void *, size_t,
                                                         void *),
                               void *data, cl_int *ret_error)
{
    return create(enter(__func__), 0, ret_error);
}

API cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int *ret_error)
{
    struct object *queue = create(enter(__func__), 0, ret_error);
    if (queue) {
        queue->device = index_of(device);
    }
    return (cl_command_queue)queue;
}

API cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                          cl_int *ret_error)
{
    struct object *buffer = create(enter(__func__), size, ret_error);
    if (buffer && flags & CL_MEM_COPY_HOST_PTR) {
        memcpy(buffer->memory, host, size);
    }
    return (cl_mem)buffer;
}

/* Rows of texels of 4 numbers. */
API cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format,
                         const cl_image_desc *desc, void *host, cl_int *ret_error)
{
    const size_t number = format->image_channel_data_type == CL_FLOAT ? 4 : 2;
    const size_t size = desc->image_width * desc->image_height * 4 * number;
    struct object *image = create(enter(__func__), size, ret_error);
    if (image && flags & CL_MEM_COPY_HOST_PTR) {
        memcpy(image->memory, host, size);
    }
    return (cl_mem)image;
}

API cl_int clRetainMemObject(cl_mem buffer)
{
    pthread_mutex_lock(&fake.lock);
    ((struct object *)buffer)->references++;
    return leave(CL_SUCCESS);
}

API cl_int clReleaseContext(cl_context context)
{
    return release(context);
}

/* As drivers may: it waits for what is in the queue. */
API cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    pthread_mutex_lock(&fake.lock);
    wait_for((struct object *)queue);
    drop((struct object *)queue);
    return leave(CL_SUCCESS);
}

API cl_int clReleaseMemObject(cl_mem buffer)
{
    return release(buffer);
}

/* ---- programs and kernels ---- */

API cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts,
                                         const size_t *sizes, cl_int *ret_error)
{
    return create(enter(__func__), 0, ret_error);
}

API cl_program clCreateProgramWithBinary(cl_context context, cl_uint count,
                                         const cl_device_id *devices, const size_t *sizes,
                                         const unsigned char **binaries, cl_int *status,
                                         cl_int *ret_error)
{
    *status = CL_SUCCESS;
    return create(enter(__func__), 0, ret_error);
}

API cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                          const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                          void *data)
{
    return leave(enter(__func__));
}

API cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t size, void *ret,
                            size_t *ret_size)
{
    static const size_t bytes = 4;
    const cl_int error = enter(__func__);
    if (error == CL_SUCCESS && what == CL_PROGRAM_BINARIES) {
        memcpy(*(unsigned char **)ret, "fake", bytes);
    }
    return leave(error == CL_SUCCESS && what == CL_PROGRAM_BINARY_SIZES
                     ? put(&bytes, sizeof(bytes), size, ret)
                     : error);
}

API cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                 cl_program_build_info what, size_t size, void *ret,
                                 size_t *ret_size)
{
    static const char log[] = "line 1\nerror: said by the fake compiler\n";
    const cl_int error = enter(__func__);
    return leave(error == CL_SUCCESS ? put(log, sizeof(log), size, ret) : error);
}

API cl_int clReleaseProgram(cl_program program)
{
    return release(program);
}

API cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *ret_error)
{
    return create(enter(__func__), 0, ret_error);
}

API cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    return leave(enter(__func__));
}

API cl_int clReleaseKernel(cl_kernel kernel)
{
    return release(kernel);
}

/* ---- queues ---- */

/* Of what the queue holds by now. */
static cl_event event_of(struct object *queue)
{
    struct object *event = make(0);
    event->of = queue;
    event->failed = queue->failed;
    event->is_held = queue->is_held;
    queue->references++;
    return (cl_event)event;
}

/* Puts a kernel into a queue, and an event behind it. */
static void launch(struct object *queue, cl_event *event)
{
    const cl_int failed = enter("kernel");
    fake.launches[queue->device]++;
    queue->is_held |= fake.hangs;
    queue->failed = failed ? failed : queue->failed;
    if (event) {
        *event = event_of(queue);
    }
    unlock();
}

API cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                  const size_t *offset, const size_t *items, const size_t *group,
                                  cl_uint count_, const cl_event *list, cl_event *event)
{
    const cl_int error = leave(enter(__func__));
    if (error == CL_SUCCESS) {
        launch((struct object *)queue, event);
    }
    return error;
}

API cl_int clEnqueueMarkerWithWaitList(cl_command_queue handle, cl_uint count_,
                                       const cl_event *list, cl_event *ret_event)
{
    const cl_int error = enter(__func__);
    if (error == CL_SUCCESS) {
        *ret_event = event_of((struct object *)handle);
    }
    return leave(error);
}

API cl_int clGetEventProfilingInfo(cl_event handle, cl_profiling_info what, size_t size, void *ret,
                                   size_t *ret_size)
{
    const cl_ulong ns = what == CL_PROFILING_COMMAND_END ? 1000 : 0;
    const cl_int error = enter(__func__);
    return leave(error == CL_SUCCESS ? put(&ns, sizeof(ns), size, ret) : error);
}

API cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem handle, const void *pattern,
                               size_t pattern_size, size_t offset, size_t size, cl_uint count_,
                               const cl_event *list, cl_event *event)
{
    struct object *buffer = (struct object *)handle;
    const cl_int error = enter(__func__);
    if (error == CL_SUCCESS) {
        wait_for((struct object *)queue);
        for (size_t i = 0; i + pattern_size <= size; i += pattern_size) {
            memcpy(buffer->memory + offset + i, pattern, pattern_size);
        }
    }
    return leave(error);
}

API cl_int clGetEventInfo(cl_event handle, cl_event_info what, size_t size, void *ret,
                          size_t *ret_size)
{
    struct object *event = (struct object *)handle;
    const cl_int error = enter(__func__);
    event->is_held &= fake.hangs;
    const cl_int status = event->is_held ? CL_RUNNING : event->failed ? event->failed : CL_COMPLETE;
    return leave(error == CL_SUCCESS ? put(&status, sizeof(status), size, ret) : error);
}

API cl_int clReleaseEvent(cl_event handle)
{
    struct object *event = (struct object *)handle;
    pthread_mutex_lock(&fake.lock);
    drop(event->of);
    drop(event);
    return leave(CL_SUCCESS);
}

API cl_int clFlush(cl_command_queue queue)
{
    return leave(enter(__func__));
}

API cl_int clFinish(cl_command_queue queue)
{
    const cl_int error = enter(__func__);
    if (error == CL_SUCCESS) {
        wait_for((struct object *)queue);
    }
    return leave(error != CL_SUCCESS ? error : ((struct object *)queue)->failed);
}

API cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem handle, cl_bool blocks,
                                size_t offset, size_t size, const void *from, cl_uint count_,
                                const cl_event *list, cl_event *event)
{
    struct object *buffer = (struct object *)handle;
    const cl_int error = enter(__func__);
    if (error == CL_SUCCESS) {
        wait_for((struct object *)queue);
        memcpy(buffer->memory + offset, from, size);
    }
    return leave(error);
}

API cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem handle, cl_bool blocks, size_t offset,
                               size_t size, void *to, cl_uint count_, const cl_event *list,
                               cl_event *event)
{
    struct object *buffer = (struct object *)handle;
    const cl_int error = enter(__func__);
    if (error == CL_SUCCESS) {
        wait_for((struct object *)queue);
        memcpy(to, buffer->memory + offset, size);
    }
    return leave(error);
}

API void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem handle, cl_bool blocks,
                             cl_map_flags flags, size_t offset, size_t size, cl_uint count_,
                             const cl_event *list, cl_event *event, cl_int *ret_error)
{
    struct object *buffer = (struct object *)handle;
    *ret_error = enter(__func__);
    if (*ret_error == CL_SUCCESS) {
        wait_for((struct object *)queue);
    }
    unlock();
    return *ret_error == CL_SUCCESS ? buffer->memory + offset : NULL;
}

API cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void *mapped,
                                   cl_uint count_, const cl_event *list, cl_event *event)
{
    return leave(enter(__func__));
}

/* ---- command buffers ---- */

static cl_command_buffer_khr create_commands(cl_uint count_, const cl_command_queue *queues,
                                             const cl_command_buffer_properties_khr *properties,
                                             cl_int *ret_error)
{
    return create(enter("clCreateCommandBufferKHR"), 0, ret_error);
}

static cl_int record_kernel(cl_command_buffer_khr commands, cl_command_queue queue,
                            const cl_ndrange_kernel_command_properties_khr *properties,
                            cl_kernel kernel, cl_uint dims, const size_t *offset,
                            const size_t *items, const size_t *group, cl_uint count_,
                            const cl_sync_point_khr *list, cl_sync_point_khr *point,
                            cl_mutable_command_khr *handle)
{
    const cl_int error = enter("clCommandNDRangeKernelKHR");
    ((struct object *)commands)->recorded += error == CL_SUCCESS ? 1 : 0;
    return leave(error);
}

static cl_int finalize_commands(cl_command_buffer_khr commands)
{
    return leave(enter("clFinalizeCommandBufferKHR"));
}

static cl_int enqueue_commands(cl_uint count_, cl_command_queue *queues,
                               cl_command_buffer_khr commands, cl_uint list_count,
                               const cl_event *list, cl_event *event)
{
    const cl_int error = leave(enter("clEnqueueCommandBufferKHR"));
    for (unsigned i = 0; error == CL_SUCCESS && i < ((struct object *)commands)->recorded; i++) {
        launch((struct object *)queues[0], NULL);
    }
    return error;
}

static cl_int release_commands(cl_command_buffer_khr commands)
{
    return release(commands);
}

API void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    static const clCreateCommandBufferKHR_fn create_ = create_commands;
    static const clCommandNDRangeKernelKHR_fn record = record_kernel;
    static const clFinalizeCommandBufferKHR_fn finalize = finalize_commands;
    static const clEnqueueCommandBufferKHR_fn enqueue = enqueue_commands;
    static const clReleaseCommandBufferKHR_fn release_ = release_commands;
    const struct {
        const char *name;
        const void *function; /* where its address is */
    } functions[] = {{"clCreateCommandBufferKHR", &create_},
                     {"clCommandNDRangeKernelKHR", &record},
                     {"clFinalizeCommandBufferKHR", &finalize},
                     {"clEnqueueCommandBufferKHR", &enqueue},
                     {"clReleaseCommandBufferKHR", &release_}};
    void *found = NULL;
    const cl_int error = leave(enter(__func__));
    for (size_t i = 0; error == CL_SUCCESS && i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, name) == 0) {
            memcpy(&found, functions[i].function, sizeof(found));
        }
    }
    return found;
}

/* ---- for tests ---- */

static void set(const char *rule)
{
    pthread_mutex_lock(&fake.lock);
    set_rule(rule);
    unlock();
}

static unsigned calls(const char *function)
{
    unsigned result = 0;
    pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < FUNCTIONS && fake.function[i].name; i++) {
        if (strcmp(fake.function[i].name, function) == 0) {
            result = fake.function[i].calls;
        }
    }
    unlock();
    return result;
}

static bool has_failed(void)
{
    pthread_mutex_lock(&fake.lock);
    const bool result = fake.has_failed;
    unlock();
    return result;
}

static int alive(void)
{
    pthread_mutex_lock(&fake.lock);
    const int result = fake.alive;
    unlock();
    return result;
}

static unsigned launches(unsigned index)
{
    pthread_mutex_lock(&fake.lock);
    const unsigned result = fake.launches[index];
    unlock();
    return result;
}

extern const struct fake_opencl fake_opencl_table;
API const struct fake_opencl fake_opencl_table = {set, calls, has_failed, alive, launches};
