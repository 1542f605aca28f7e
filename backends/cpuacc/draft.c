/* Drafts of steps: added, named, given memory. */
#include "backends/cpuacc/draft.h"

#include "backends/cpuacc/native.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum ifd_code no_memory(const struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    return ifd_arena_fail(lowering->base.arena, 0, err);
}

/* A constant that a step reads like activations: a copy in native form takes its place. Constants
 * that are only packed (filters) never get here. */
static enum ifd_code native_constant(struct ifd_acc_lowering *lowering, uint32_t value,
                                     struct ifd_err *err)
{
    struct ifd_low_storage *storage =
        &lowering->base.storage[ifd_low_storage_of(&lowering->base, value)];
    const uint8_t mask = ifd_acc_flip(lowering->base.value[value].view->desc.dtype);
    if (storage->place.where != IFD_LOW_CONSTANT || mask == 0 || storage->is_copied) {
        return IFD_OK;
    }
    uint8_t *copy = ifd_arena_take_tensor(lowering->base.arena, storage->bytes);
    if (!copy) {
        return no_memory(lowering, err);
    }
    const uint8_t *data = storage->place.data;
    for (size_t i = 0; i < storage->bytes; i++) {
        copy[i] = data[i] ^ mask;
    }
    storage->place.data = copy;
    storage->is_copied = true;
    return IFD_OK;
}

enum ifd_code ifd_acc_add_step(struct ifd_acc_lowering *lowering, ifd_acc_step_fn run,
                               const void *params, const uint32_t *in, uint32_t count, uint32_t out,
                               struct ifd_acc_draft **ret_step, struct ifd_err *err)
{
    struct ifd_lowering *base = &lowering->base;
    struct ifd_acc_draft *drafts = ifd_low_grow(base, lowering->draft, lowering->draft_count,
                                                &lowering->draft_capacity, sizeof(*drafts));
    if (!params || !drafts) {
        return no_memory(lowering, err);
    }
    lowering->draft = drafts;
    const uint32_t index = lowering->draft_count++;
    struct ifd_acc_draft *draft = &drafts[index];
    *draft = (struct ifd_acc_draft){.run = run,
                                    .params = params,
                                    .out = out,
                                    .more = {IFD_NO_VALUE, IFD_NO_VALUE},
                                    .work = IFD_NO_VALUE,
                                    .max_threads = UINT32_MAX,
                                    .chunks = IFD_ACC_CHUNKS_MAX,
                                    .info = {.kernel = ""}};
    for (uint32_t i = 0; i < IFD_ACC_STEP_INPUTS; i++) {
        draft->in[i] = i < count ? in[i] : IFD_NO_VALUE;
        if (draft->in[i] == IFD_NO_VALUE) {
            continue;
        }
        ifd_low_touch(base, ifd_low_storage_of(base, draft->in[i]), index);
        const enum ifd_code code = native_constant(lowering, draft->in[i], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    ifd_low_touch(base, ifd_low_storage_of(base, out), index);
    *ret_step = draft;
    return IFD_OK;
}

static struct ifd_acc_draft *newest(struct ifd_acc_lowering *lowering)
{
    return &lowering->draft[lowering->draft_count - 1];
}

void ifd_acc_add_output(struct ifd_acc_lowering *lowering, uint32_t index, uint32_t value)
{
    newest(lowering)->more[index] = value;
    ifd_low_touch(&lowering->base, ifd_low_storage_of(&lowering->base, value),
                  lowering->draft_count - 1);
}

static enum ifd_code add_work(struct ifd_acc_lowering *lowering, size_t bytes_per_thread,
                              uint32_t threads, struct ifd_err *err)
{
    const uint32_t index = lowering->draft_count - 1;
    size_t stride = 0, bytes = 0;
    if (!ifd_size_add(bytes_per_thread, IFD_TENSOR_PAD, &stride) ||
        !ifd_size_align(stride, IFD_TENSOR_ALIGN, &stride) ||
        !ifd_size_mul(stride, threads, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "work memory of %zu bytes per thread overflows",
                        bytes_per_thread);
    }
    lowering->draft[index].work_stride = stride;
    return ifd_low_add_storage(&lowering->base, bytes, index, index, &lowering->draft[index].work,
                               err);
}

enum ifd_code ifd_acc_add_work(struct ifd_acc_lowering *lowering, size_t bytes_per_thread,
                               struct ifd_err *err)
{
    return add_work(lowering, bytes_per_thread, lowering->base.view->max_threads, err);
}

enum ifd_code ifd_acc_add_work_of_one(struct ifd_acc_lowering *lowering, size_t bytes,
                                      struct ifd_err *err)
{
    newest(lowering)->max_threads = 1;
    return add_work(lowering, bytes, 1, err);
}

enum ifd_code ifd_acc_add_pack(struct ifd_acc_lowering *lowering, const void *source, size_t bytes,
                               size_t workspace_bytes, ifd_low_pack_fn pack, const void *params,
                               struct ifd_err *err)
{
    const struct ifd_low_pack_job job = {.pack = pack,
                                         .params = params,
                                         .source = source,
                                         .bytes = bytes,
                                         .step = lowering->draft_count - 1};
    const enum ifd_code code =
        ifd_low_add_pack(lowering->packed, &lowering->base, &job, workspace_bytes, err);
    if (code == IFD_OK) {
        newest(lowering)->packed_bytes =
            lowering->packed->job[lowering->packed->job_count - 1].bytes;
    }
    return code;
}

void ifd_acc_compare_pack(struct ifd_acc_lowering *lowering, ifd_low_same_fn same)
{
    lowering->packed->job[lowering->packed->job_count - 1].same = same;
}

void ifd_acc_name_step(struct ifd_acc_lowering *lowering, const char *kernel, uint64_t macs,
                       const char *format, ...)
{
    char text[96];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *name = ifd_arena_text(lowering->base.arena, text, strlen(text));
    struct ifd_step_info *info = &newest(lowering)->info;
    info->name = name ? name : "";
    info->kernel = kernel;
    info->macs = macs;
}
