/* Builds programs and keeps them. */
#include "backends/gpuacc/program.h"

#include "backends/gpuacc/cache.h"
#include "backends/gpuacc/kernels.h"
#include "backends/gpuacc/merge.h"
#include "backends/gpuacc/tuner.h"

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

/* ---- building ---- */

#define TEXTS 4 /* at most: options, definitions, what stands in front of each file, the file */

/* The texts of a program, or of several that are merged; NULL behind the last. */
struct source {
    const char *text[TEXTS];
    const struct ifd_gpu_file *file;
};

static cl_uint texts(const struct source *source)
{
    cl_uint count = 0;
    while (count < TEXTS && source->text[count]) {
        count++;
    }
    return count;
}

static enum ifd_code build_text(const struct ifd_device *device, const struct source *source,
                                cl_program *ret, struct ifd_err *err)
{
    cl_int error = CL_SUCCESS;
    const char *text[TEXTS];
    memcpy(text, source->text, sizeof(text));
    cl_program handle =
        device->cl.CreateProgramWithSource(device->context, texts(source), text, NULL, &error);
    if (!handle) {
        return ifd_cl_fail(err, error, "a program");
    }
    error = device->cl.BuildProgram(handle, 1, &device->id, options_of(device), NULL, NULL);
    if (error != CL_SUCCESS) {
        const enum ifd_code code = build_failed(device, handle, source->file, error, err);
        (void)device->cl.ReleaseProgram(handle);
        return code;
    }
    *ret = handle;
    return IFD_OK;
}

/* From the cache, or from its text. The device keeps it. */
static enum ifd_code build(struct ifd_device *device, const struct source *source,
                           struct ifd_gpu_unit **ret, bool *ret_cached, struct ifd_err *err)
{
    const struct source keyed = {{options_of(device), source->text[0], source->text[1],
                                  source->text[1] ? source->text[2] : NULL},
                                 NULL};
    const struct ifd_gpu_key key = ifd_gpu_cache_key(device, keyed.text, texts(&keyed));
    struct ifd_gpu_unit *unit = ifd_acquire(device->host->alloc, sizeof(*unit));
    if (!unit) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for a program");
    }
    unit->handle = ifd_gpu_cache_load(device, &key, options_of(device));
    *ret_cached = unit->handle != NULL;
    if (!*ret_cached) {
        const enum ifd_code code = build_text(device, source, &unit->handle, err);
        if (code != IFD_OK) {
            ifd_release(device->host->alloc, unit, sizeof(*unit));
            return code;
        }
        ifd_gpu_cache_store(device, &key, unit->handle);
    }
    unit->next = device->units;
    device->units = unit;
    *ret = unit;
    return IFD_OK;
}

static enum ifd_code build_alone(struct ifd_device *device, struct ifd_gpu_program *program)
{
    const struct source source = {{program->defines, ifd_gpu_file_common.text, program->file->text},
                                  program->file};
    struct ifd_gpu_unit *unit = NULL;
    program->code = build(device, &source, &unit, &program->is_cached, &program->why);
    program->unit = unit;
    return program->code;
}

/* Programs that are to be built. */
struct wanted {
    struct ifd_gpu_program *const *set;
    uint32_t count;
    bool is_part;
};

/* What the tuner measured is built, but no start builds it alone that has the tuner's file. */
static bool is_wanted(const struct wanted *wanted, uint32_t i)
{
    return !wanted->is_part || !wanted->set[i]->is_used;
}

static uint32_t missing(const struct wanted *wanted)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < wanted->count; i++) {
        count += wanted->set[i]->unit == NULL;
    }
    return count;
}

static uint32_t unused(const struct wanted *wanted)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < wanted->count; i++) {
        count += !wanted->set[i]->is_used;
    }
    return count;
}

#define MERGED_BYTES_MAX ((size_t)64 << 20) /* a program has some 30,000 */

/* False: they do not build together, or there is no memory. */
static bool build_together(struct ifd_device *device, const struct wanted *wanted)
{
    struct ifd_buf merged;
    struct ifd_gpu_unit *unit = NULL;
    bool is_cached = false;
    ifd_buf_init(&merged, device->host->alloc, MERGED_BYTES_MAX);
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (is_wanted(wanted, i)) {
            ifd_gpu_merge(&merged, wanted->set[i], i);
        }
    }
    ifd_buf_add(&merged, "", 1);
    bool ok = ifd_buf_check(&merged, NULL) == IFD_OK;
    if (ok) {
        const struct source source = {{(const char *)merged.data}, wanted->set[0]->file};
        ok = build(device, &source, &unit, &is_cached, NULL) == IFD_OK;
    }
    ifd_buf_finish(&merged);
    for (uint32_t i = 0; ok && i < wanted->count; i++) {
        struct ifd_gpu_program *program = wanted->set[i];
        if (!program->unit || !program->is_used) { /* what the tuner built is not bound yet */
            program->unit = unit;
            program->is_merged = true;
            program->number = i;
            program->is_cached = is_cached;
        }
    }
    return ok;
}

static enum ifd_code build_each(struct ifd_device *device, const struct wanted *wanted,
                                struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < wanted->count; i++) {
        struct ifd_gpu_program *program = wanted->set[i];
        if (!program->unit && build_alone(device, program) != IFD_OK && code == IFD_OK) {
            code = program->code;
            *err = program->why;
        }
    }
    return code;
}

enum ifd_code ifd_gpu_build_programs(struct ifd_device *device, struct ifd_gpu_program *const *set,
                                     uint32_t count, bool is_part, struct ifd_err *err)
{
    const struct wanted wanted = {set, count, is_part};
    struct ifd_err why = {0};
    enum ifd_code code = IFD_OK;
    ifd_mutex_lock(&device->lock);
    const uint32_t fresh = unused(&wanted);
    const bool is_one = count == 1 || (fresh == 1 && is_part);
    const bool is_for_next = fresh > 0 && device->cache && ifd_gpu_tuner_keeps_news(device);
    if ((missing(&wanted) > 0 || is_for_next) && (is_one || !build_together(device, &wanted))) {
        code = build_each(device, &wanted, &why);
    }
    for (uint32_t i = 0; i < count; i++) {
        set[i]->is_used = set[i]->unit != NULL;
    }
    ifd_mutex_unlock(&device->lock);
    if (code != IFD_OK && err) {
        *err = why;
    }
    return code;
}

enum ifd_code ifd_gpu_build_program(struct ifd_device *device, struct ifd_gpu_program *program,
                                    struct ifd_err *err)
{
    ifd_mutex_lock(&device->lock);
    const enum ifd_code code = program->unit ? IFD_OK : build_alone(device, program);
    if (code != IFD_OK && err) {
        *err = program->why;
    }
    ifd_mutex_unlock(&device->lock);
    return code;
}

/* ---- the list ---- */

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
    device->programs = program;
    *ret = program;
    return IFD_OK;
}

enum ifd_code ifd_gpu_program(struct ifd_device *device, const struct ifd_gpu_file *file,
                              const char *defines, struct ifd_gpu_program **ret_program,
                              struct ifd_err *err)
{
    ifd_mutex_lock(&device->lock);
    struct ifd_gpu_program *program = find(device, file, defines);
    enum ifd_code code = program ? program->code : add(device, file, defines, &program, err);
    if (program && code != IFD_OK && err) {
        *err = program->why;
    }
    ifd_mutex_unlock(&device->lock);
    if (code == IFD_OK) {
        *ret_program = program;
    }
    return code;
}

cl_kernel ifd_gpu_create_kernel(const struct ifd_device *device,
                                const struct ifd_gpu_program *program, const char *name,
                                cl_int *ret_error)
{
    char numbered[IFD_GPU_KERNEL_NAME];
    ifd_gpu_merged_name(name, program->number, numbered);
    return device->cl.CreateKernel(program->unit->handle, program->is_merged ? numbered : name,
                                   ret_error);
}

void ifd_gpu_forgive_programs(struct ifd_device *device)
{
    ifd_mutex_lock(&device->lock);
    for (struct ifd_gpu_program *program = device->programs; program; program = program->next) {
        program->code = program->code == IFD_UNSUPPORTED ? IFD_UNSUPPORTED : IFD_OK;
    }
    ifd_mutex_unlock(&device->lock);
}

void ifd_gpu_release_programs(struct ifd_device *device)
{
    while (device->units) {
        struct ifd_gpu_unit *unit = device->units;
        device->units = unit->next;
        (void)device->cl.ReleaseProgram(unit->handle);
        ifd_release(device->host->alloc, unit, sizeof(*unit));
    }
    while (device->programs) {
        struct ifd_gpu_program *program = device->programs;
        device->programs = program->next;
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
