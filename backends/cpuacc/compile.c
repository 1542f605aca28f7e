/* A partition's nodes become drafts, then steps. */
#include "backends/cpuacc/compile.h"

#include "backends/cpuacc/driver.h"
#include "backends/cpuacc/partition.h"
#include "backends/cpuacc/rounding.h"
#include "backends/cpuacc/schedule/strips.h"
#include "backends/cpuacc/schedule/team.h"
#include "backends/cpuacc/schedule/threads.h"
#include "backends/lowering/order.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARENA_BYTES_MAX ((size_t)1 << 30)

static enum ifd_code no_memory(const struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    return ifd_arena_fail(lowering->base.arena, 0, err);
}

/* ---- drafts ---- */

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

enum ifd_code ifd_acc_add_work(struct ifd_acc_lowering *lowering, size_t bytes_per_thread,
                               struct ifd_err *err)
{
    const uint32_t index = lowering->draft_count - 1;
    size_t stride = 0, bytes = 0;
    if (!ifd_size_add(bytes_per_thread, IFD_TENSOR_PAD, &stride) ||
        !ifd_size_align(stride, IFD_TENSOR_ALIGN, &stride) ||
        !ifd_size_mul(stride, lowering->base.view->max_threads, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "work memory of %zu bytes per thread overflows",
                        bytes_per_thread);
    }
    lowering->draft[index].work_stride = stride;
    return ifd_low_add_storage(&lowering->base, bytes, index, index, &lowering->draft[index].work,
                               err);
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

/* ---- the border: s8 tensors on machines whose native form is u8 ---- */

struct flip_params {
    size_t bytes;
    uint8_t table[256];
};

static void run_flip(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct flip_params *params = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, params->bytes, 64);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    step->kernels->quant.lut_8(range.end - range.begin, in + range.begin, params->table,
                               out + range.begin);
}

static enum ifd_code add_flip(struct ifd_acc_lowering *lowering, uint32_t value,
                              struct ifd_err *err)
{
    struct flip_params *params = ifd_low_params(&lowering->base, 1, sizeof(*params));
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code = ifd_acc_add_step(lowering, run_flip, params, &value, 1, value, &step, err);
    if (code == IFD_OK) {
        const struct ifd_desc *desc = &lowering->base.value[value].view->desc;
        params->bytes = ifd_low_desc_bytes(desc);
        for (size_t i = 0; i < sizeof(params->table); i++) {
            params->table[i] = (uint8_t)(i ^ ifd_acc_flip(desc->dtype));
        }
        step->info = (struct ifd_step_info){.name = "flip", .kernel = "", .output = ""};
        step->max_threads = (uint32_t)(params->bytes / 8192) + 1;
    }
    return code;
}

/* Inputs: a copy in native form takes the value's place; the step reads the slot itself. */
static enum ifd_code flip_input(struct ifd_acc_lowering *lowering, uint32_t value,
                                struct ifd_err *err)
{
    struct ifd_low_place outside = {.where = IFD_LOW_ABSENT};
    enum ifd_code code = ifd_low_move_inside(&lowering->base, value, &outside, err);
    if (code == IFD_OK) {
        code = add_flip(lowering, value, err);
    }
    if (code == IFD_OK) {
        newest(lowering)->outside = outside;
    }
    return code;
}

static bool needs_flip(const struct ifd_partition_value *value, enum ifd_value_role role)
{
    return value->role == role && ifd_acc_flip(value->desc.dtype) != 0;
}

static enum ifd_code flip_all(struct ifd_acc_lowering *lowering, enum ifd_value_role role,
                              struct ifd_err *err)
{
    const struct ifd_partition_view *view = lowering->base.view;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < view->value_count; i++) {
        if (needs_flip(&view->value[i], role)) {
            code =
                role == IFD_VALUE_INPUT ? flip_input(lowering, i, err) : add_flip(lowering, i, err);
        }
    }
    return code;
}

/* ---- nodes ---- */

/* NULL without memory. */
static const struct ifd_acc_driver *const *choose_drivers(struct ifd_acc_lowering *lowering)
{
    const struct ifd_partition_view *view = lowering->base.view;
    const struct ifd_acc_driver **driver =
        ifd_low_params(&lowering->base, view->node_count, sizeof(*driver));
    for (uint32_t n = 0; driver && n < view->node_count; n++) {
        driver[n] = ifd_acc_driver(&view->node[n].view, NULL);
    }
    return driver;
}

static bool moves(const void *context, uint32_t node)
{
    const struct ifd_acc_lowering *lowering = context;
    return lowering->driver[node] == &ifd_acc_moves;
}

static bool reads_apart(const void *context, uint32_t node, uint32_t input)
{
    const struct ifd_acc_lowering *lowering = context;
    const struct ifd_acc_driver *driver = lowering->driver[node];
    return driver->reads_apart && driver->reads_apart(&lowering->base.view->node[node].view, input);
}

struct ifd_low_accepts ifd_acc_accepts(const struct ifd_acc_lowering *lowering)
{
    return (struct ifd_low_accepts){
        .context = lowering, .moves = moves, .reads_apart = reads_apart};
}

static enum ifd_code lower_node(struct ifd_acc_lowering *lowering, uint32_t n, struct ifd_err *err)
{
    const struct ifd_partition_node *node = &lowering->base.view->node[n];
    const uint32_t before = lowering->draft_count;
    enum ifd_code code = IFD_OK;
    if (!lowering->base.node_done[n]) {
        lowering->base.node_done[n] = true;
        code = lowering->driver[n]->lower(lowering, node, err);
    }
    if (code != IFD_OK) {
        ifd_err_prefix(err, "CpuAcc: \"%s\"", node->view.name);
        return code;
    }
    ifd_low_end_node(&lowering->base, n);
    for (uint32_t i = before; i < lowering->draft_count; i++) {
        struct ifd_step_info *info = &lowering->draft[i].info;
        info->output = info->output ? info->output : node->view.name;
    }
    return IFD_OK;
}

static enum ifd_code lower_nodes(struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    const uint32_t *order = ifd_low_order_nodes(&lowering->base);
    enum ifd_code code = order ? IFD_OK : no_memory(lowering, err);
    for (uint32_t n = 0; code == IFD_OK && n < lowering->base.view->node_count; n++) {
        code = lower_node(lowering, order[n], err);
    }
    return code;
}

/* Makes the drafts of all nodes. */
static enum ifd_code lower(struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    enum ifd_code code = ifd_low_make_values(&lowering->base, err);
    if (code != IFD_OK) {
        return code;
    }
    lowering->driver = lowering->driver ? lowering->driver : choose_drivers(lowering);
    if (!lowering->driver) {
        return no_memory(lowering, err);
    }
    const struct ifd_low_accepts accepts = ifd_acc_accepts(lowering);
    ifd_low_join_subtensors(&lowering->base, &accepts);
    ifd_low_count_readers(&lowering->base);
    code = flip_all(lowering, IFD_VALUE_INPUT, err);
    if (code == IFD_OK) {
        code = lower_nodes(lowering, err);
    }
    return code == IFD_OK ? flip_all(lowering, IFD_VALUE_OUTPUT, err) : code;
}

/* ---- steps ---- */

static struct ifd_acc_step bind_step(const struct ifd_acc_lowering *lowering,
                                     const struct ifd_acc_draft *draft)
{
    const struct ifd_lowering *base = &lowering->base;
    struct ifd_acc_step step = {
        .run = draft->is_chained ? NULL
               : draft->chain    ? ifd_acc_run_chain
                                 : draft->run,
        .lines = draft->lines,
        .chain = draft->chain,
        .params = draft->params,
        .kernels = lowering->kernels,
        .out = ifd_low_place_of(base, draft->out),
        .is_gemm_f32 = draft->is_gemm_f32,
        .work = draft->work == IFD_NO_VALUE ? 0 : base->storage[draft->work].place.offset,
        .work_stride = draft->work_stride,
        .max_threads = draft->max_threads,
        .chunks = draft->chunks,
        .joins = draft->joins,
        .info = draft->info};
    for (uint32_t i = 0; i < IFD_ACC_STEP_INPUTS; i++) {
        if (draft->in[i] != IFD_NO_VALUE) {
            step.in[i] = ifd_low_place_of(base, draft->in[i]);
        }
    }
    if (draft->outside.where != IFD_LOW_ABSENT) {
        step.in[0] = draft->outside;
    }
    return step;
}

/* Tells every step where its packed constants are, and which weights come next. */
static void link_packed(const struct ifd_low_packed *packed, struct ifd_acc_step *step,
                        uint32_t count)
{
    for (uint32_t i = 0; i < packed->job_count; i++) {
        const struct ifd_low_pack_job *job = &packed->job[i];
        step[job->step].block = job->block;
        step[job->step].packed = job->offset;
    }
    const struct ifd_packed *later = NULL;
    for (uint32_t i = count; i-- > 0;) {
        step[i].later = later;
        if (step[i].block && step[i].run && step[i].is_gemm_f32) {
            later = (const struct ifd_packed *)(const void *)(step[i].block + step[i].packed);
        }
    }
}

static enum ifd_code bind(struct ifd_acc_lowering *lowering, struct ifd_partition *partition,
                          struct ifd_err *err)
{
    struct ifd_acc_step *step =
        ifd_low_params(&lowering->base, lowering->draft_count, sizeof(*step));
    if (!step) {
        return no_memory(lowering, err);
    }
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        step[i] = bind_step(lowering, &lowering->draft[i]);
    }
    link_packed(&partition->packed, step, lowering->draft_count);
    partition->step = step;
    partition->step_count = lowering->draft_count;
    return IFD_OK;
}

/* ---- all of it ---- */

/* The share of a model's weights that may be spent on a small gain of speed. */
#define SPARE_PART 16

static size_t constant_bytes(const struct ifd_partition_view *view)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < view->value_count; i++) {
        bytes += view->value[i].role == IFD_VALUE_CONSTANT ? view->value[i].data.size : 0;
    }
    return bytes;
}

static enum ifd_code pack(struct ifd_acc_lowering *lowering, const struct ifd_partition *share_with,
                          struct ifd_partition *partition, struct ifd_err *err)
{
    const enum ifd_code code =
        ifd_low_pack(&partition->packed, share_with ? &share_with->packed : NULL,
                     lowering->base.view, lowering->kernels, partition->alloc, err);
    if (code != IFD_OK) {
        ifd_err_prefix(err, "CpuAcc");
    }
    return code;
}

static enum ifd_code compile(struct ifd_acc_lowering *lowering,
                             const struct ifd_partition *share_with,
                             struct ifd_partition *partition, size_t *ret_scratch,
                             struct ifd_err *err)
{
    enum ifd_code code = lower(lowering, err);
    if (code == IFD_OK) {
        code = ifd_acc_join_strips(lowering, err);
    }
    if (code == IFD_OK) {
        code = ifd_low_lay_out(&lowering->base, lowering->host->alloc, ret_scratch, err);
    }
    if (code == IFD_OK) {
        code = ifd_acc_plan_threads(lowering, &partition->is_parallel, err);
    }
    if (code == IFD_OK) {
        code = pack(lowering, share_with, partition, err);
    }
    return code == IFD_OK ? bind(lowering, partition, err) : code;
}

enum ifd_code ifd_acc_compile(struct ifd_device *device, const struct ifd_partition_view *view,
                              struct ifd_partition *share_with,
                              struct ifd_partition **ret_partition,
                              struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = device->host->alloc;
    struct ifd_partition *partition = ifd_acquire_zeroed(alloc, 1, sizeof(*partition));
    if (!partition) {
        return ifd_fail(err, IFD_NOMEM, "CpuAcc: no memory for a partition");
    }
    partition->alloc = alloc;
    ifd_arena_init(&partition->arena, alloc, ARENA_BYTES_MAX);
    /* plans for several batch sizes share their weights, which know how sums are rounded */
    partition->exact = share_with ? share_with->exact : ifd_acc_rounds_exactly(view, device->host);
    struct ifd_acc_lowering lowering = {.base = {.view = view, .arena = &partition->arena},
                                        .kernels = &device->kernels,
                                        .host = device->host,
                                        .driver = share_with ? share_with->driver : NULL,
                                        .packed = &partition->packed,
                                        .spare_bytes = constant_bytes(view) / SPARE_PART,
                                        .exact = partition->exact};
    size_t scratch = 0;
    const enum ifd_code code = compile(&lowering, share_with, partition, &scratch, err);
    if (code != IFD_OK) {
        ifd_acc_release(partition);
        return code;
    }
    partition->team_bytes = ifd_acc_team_bytes(view->max_threads);
    partition->driver = lowering.driver;
    const struct ifd_low_packed *packed = &partition->packed;
    *ret_info = (struct ifd_partition_info){.scratch_bytes = partition->team_bytes + scratch,
                                            .step_count = partition->step_count,
                                            .constant_bytes = packed->bytes,
                                            .packed = {.data = packed->data, .size = packed->bytes},
                                            .exact = partition->exact,
                                            .precision = lowering.precision,
                                            .precision_why_not = lowering.precision_why_not};
    *ret_partition = partition;
    return IFD_OK;
}

void ifd_acc_release(struct ifd_partition *partition)
{
    if (!partition) {
        return;
    }
    ifd_low_release_packed(&partition->packed, partition->alloc);
    ifd_arena_finish(&partition->arena);
    ifd_release(partition->alloc, partition, sizeof(*partition));
}
