/* A partition's nodes become drafts, then steps. */
#include "backends/cpuacc/compile.h"

#include "backends/cpuacc/driver.h"
#include "backends/cpuacc/narrow.h"
#include "backends/cpuacc/rounding.h"
#include "backends/cpuacc/schedule/strips.h"
#include "backends/cpuacc/schedule/team.h"
#include "backends/cpuacc/schedule/threads.h"
#include "backends/lowering/order.h"

#define ARENA_BYTES_MAX ((size_t)1 << 30)

static enum ifd_code no_memory(const struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    return ifd_arena_fail(lowering->base.arena, 0, err);
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
        lowering->draft[lowering->draft_count - 1].outside = outside;
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
    lowering->driver = lowering->driver ? lowering->driver : choose_drivers(lowering);
    if (!lowering->driver) {
        return no_memory(lowering, err);
    }
    enum ifd_code code = ifd_acc_choose_narrow(lowering, err);
    if (code == IFD_OK) {
        code = ifd_low_make_values(&lowering->base, err);
    }
    if (code != IFD_OK) {
        return code;
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
    for (uint32_t i = 0; i < IFD_ACC_STEP_MORE; i++) {
        if (draft->more[i] != IFD_NO_VALUE) {
            step.more[i] = ifd_low_place_of(base, draft->more[i]);
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
