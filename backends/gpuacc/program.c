/* Builds programs and keeps them. */
#include "backends/gpuacc/program.h"

#include "backends/gpuacc/cache.h"
#include "backends/gpuacc/kernels.h"

#include <string.h>

/* Of the compiler. A device that rounds quotients as the reference kernels do is asked for it. */
static const char *options_of(const struct ifd_device *device)
{
    const bool has_dot = device->info.dot == IFD_GPU_DOT_KHR; /* not in OpenCL C 1.2 */
    if (device->info.divides_exactly) {
        return has_dot ? "-cl-std=CL3.0 -cl-fp32-correctly-rounded-divide-sqrt"
                       : "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt";
    }
    return has_dot ? "-cl-std=CL3.0" : "-cl-std=CL1.2";
}

static struct ifd_gpu_program *find(const struct ifd_device *device,
                                    const struct ifd_gpu_file *file, const char *defines)
{
    struct ifd_gpu_program *program = device->programs;
    while (program && (program->file != file || strcmp(program->defines, defines) != 0)) {
        program = program->next;
    }
    return program;
}

/* The first line of the compiler's log that names an error. */
static enum ifd_code build_failed(const struct ifd_device *device, cl_program handle,
                                  const struct ifd_gpu_file *file, cl_int error,
                                  struct ifd_err *err)
{
    char log[4096] = "";
    (void)device->cl.GetProgramBuildInfo(handle, device->id, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1,
                                         log, NULL);
    const char *found = strstr(log, "error");
    const char *line = found ? found : log;
    /* what the compiler refuses, or cannot fit into the device */
    const bool is_unsupported = error == CL_BUILD_PROGRAM_FAILURE ||
                                error == CL_COMPILER_NOT_AVAILABLE || error == CL_OUT_OF_RESOURCES;
    return ifd_fail(err, is_unsupported ? IFD_UNSUPPORTED : IFD_INTERNAL,
                    "kernel file %s does not build on %s: error %d (%s): %.*s", file->name,
                    device->info.name, error, ifd_cl_error_name(error), (int)strcspn(line, "\n"),
                    line);
}

#define TEXTS 3 /* of a program */

static enum ifd_code build_text(const struct ifd_device *device, const struct ifd_gpu_file *file,
                                const char *text[TEXTS], cl_program *ret, struct ifd_err *err)
{
    cl_int error = CL_SUCCESS;
    cl_program handle =
        device->cl.CreateProgramWithSource(device->context, TEXTS, text, NULL, &error);
    if (!handle) {
        return ifd_cl_fail(err, error, "a program");
    }
    error = device->cl.BuildProgram(handle, 1, &device->id, options_of(device), NULL, NULL);
    if (error != CL_SUCCESS) {
        const enum ifd_code code = build_failed(device, handle, file, error, err);
        (void)device->cl.ReleaseProgram(handle);
        return code;
    }
    *ret = handle;
    return IFD_OK;
}

/* From the cache, or from its text. */
static enum ifd_code build(const struct ifd_device *device, const struct ifd_gpu_file *file,
                           const char *defines, struct ifd_gpu_program *ret, struct ifd_err *err)
{
    const char *text[] = {defines, ifd_gpu_file_common.text, file->text, options_of(device)};
    const struct ifd_gpu_key key = ifd_gpu_cache_key(device, text, TEXTS + 1);
    ret->handle = ifd_gpu_cache_load(device, &key, options_of(device));
    ret->is_cached = ret->handle != NULL;
    if (ret->is_cached) {
        return IFD_OK;
    }
    const enum ifd_code code = build_text(device, file, text, &ret->handle, err);
    if (code == IFD_OK) {
        ifd_gpu_cache_store(device, &key, ret->handle);
    }
    return code;
}

static enum ifd_code add(struct ifd_device *device, const struct ifd_gpu_file *file,
                         const char *defines, struct ifd_gpu_program **ret, struct ifd_err *err)
{
    const size_t text = strlen(defines) + 1;
    const size_t bytes = sizeof(struct ifd_gpu_program) + text;
    struct ifd_gpu_program *program = ifd_acquire(device->host->alloc, bytes);
    if (!program) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for a program");
    }
    *program = (struct ifd_gpu_program){.next = device->programs, .file = file, .bytes = bytes};
    memcpy(program->defines, defines, text);
    const enum ifd_code code = build(device, file, defines, program, err);
    if (code != IFD_OK) {
        ifd_release(device->host->alloc, program, bytes);
        return code;
    }
    device->programs = program;
    *ret = program;
    return IFD_OK;
}

enum ifd_code ifd_gpu_program(struct ifd_device *device, const struct ifd_gpu_file *file,
                              const char *defines, cl_program *ret_program, struct ifd_err *err)
{
    ifd_mutex_lock(&device->lock);
    struct ifd_gpu_program *program = find(device, file, defines);
    const enum ifd_code code = program ? IFD_OK : add(device, file, defines, &program, err);
    ifd_mutex_unlock(&device->lock);
    if (code == IFD_OK) {
        *ret_program = program->handle;
    }
    return code;
}

void ifd_gpu_release_programs(struct ifd_device *device)
{
    while (device->programs) {
        struct ifd_gpu_program *program = device->programs;
        device->programs = program->next;
        (void)device->cl.ReleaseProgram(program->handle);
        ifd_release(device->host->alloc, program, program->bytes);
    }
}

/* ---- what does not build ---- */

/* f16 counts as f32: it may be how a tensor is stored that the engine knows as f32 (halves.h). */
static enum ifd_dtype first_type(const struct ifd_node_view *node)
{
    const bool has_type = node->input_count > 0 && node->input[0].desc;
    const enum ifd_dtype dtype = has_type ? node->input[0].desc->dtype : IFD_F32;
    return dtype == IFD_F16 ? IFD_F32 : dtype;
}

enum ifd_code ifd_gpu_note_unbuilt(struct ifd_device *device, const struct ifd_node_view *node,
                                   const struct ifd_err *why, struct ifd_err *err)
{
    struct ifd_gpu_unbuilt *unbuilt = ifd_acquire(device->host->alloc, sizeof(*unbuilt));
    if (!unbuilt) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for a note on a kernel");
    }
    *unbuilt = (struct ifd_gpu_unbuilt){
        .next = device->unbuilt, .op = node->op, .dtype = first_type(node), .why = *why};
    device->unbuilt = unbuilt;
    return IFD_OK;
}

const struct ifd_err *ifd_gpu_why_unbuilt(const struct ifd_device *device,
                                          const struct ifd_node_view *node)
{
    const struct ifd_gpu_unbuilt *at = device->unbuilt;
    while (at && (at->op != node->op || at->dtype != first_type(node))) {
        at = at->next;
    }
    return at ? &at->why : NULL;
}

void ifd_gpu_forget_unbuilt(struct ifd_device *device)
{
    while (device->unbuilt) {
        struct ifd_gpu_unbuilt *first = device->unbuilt;
        device->unbuilt = first->next;
        ifd_release(device->host->alloc, first, sizeof(*first));
    }
}
