/* Lowers nodes in order, lays out scratch, uploads constants, binds steps. */
#include "backends/gpuacc/compile.h"

#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/context.h"
#include "backends/gpuacc/halves.h"
#include "backends/gpuacc/tuner.h"
#include "backends/lowering/order.h"

#define ARENA_BYTES_MAX ((size_t)1 << 30)

static enum ifd_code no_memory(const struct ifd_partition *partition, struct ifd_err *err)
{
    return ifd_arena_fail(&partition->arena, 0, err);
}

/* ---- nodes ---- */

static bool moves(const void *context, uint32_t node)
{
    const struct ifd_gpu_lowering *lowering = context;
    return lowering->driver[node] == &ifd_gpu_driver_moves;
}

static bool reads_apart(const void *context, uint32_t node, uint32_t input)
{
    (void)context;
    (void)node;
    (void)input;
    return false;
}

/* NULL without memory. */
static const struct ifd_gpu_driver *const *choose_drivers(struct ifd_gpu_lowering *lowering)
{
    const struct ifd_partition_view *view = lowering->base.view;
    const struct ifd_gpu_driver **driver =
        ifd_low_params(&lowering->base, view->node_count, sizeof(*driver));
    for (uint32_t n = 0; driver && n < view->node_count; n++) {
        driver[n] = ifd_gpu_driver_of(&view->node[n].view, NULL);
    }
    return driver;
}

/* The engine asks what is taken, and compiles again. */
static enum ifd_code note_unbuilt(const struct ifd_gpu_lowering *lowering,
                                  const struct ifd_node_view *node, enum ifd_code code,
                                  struct ifd_err *err)
{
    if (code != IFD_UNSUPPORTED || !err) {
        return code;
    }
    const struct ifd_err why = *err;
    const enum ifd_code noted = ifd_gpu_note_unbuilt(lowering->device, node, &why, err);
    return noted == IFD_OK ? code : noted;
}

static enum ifd_code lower_node(struct ifd_gpu_lowering *lowering, uint32_t n, struct ifd_err *err)
{
    const struct ifd_partition_node *node = &lowering->base.view->node[n];
    const uint32_t before = lowering->draft_count;
    enum ifd_code code = IFD_OK;
    if (!lowering->base.node_done[n]) {
        lowering->base.node_done[n] = true;
        code = lowering->driver[n]->lower(lowering, node, err);
    }
    if (code != IFD_OK) {
        const char *op = ifd_gpu_op_name(node->view.op);
        ifd_err_prefix(err, "GpuAcc: %s of \"%s\"", op, node->view.name);
        return note_unbuilt(lowering, &node->view, code, err);
    }
    ifd_low_end_node(&lowering->base, n);
    for (uint32_t i = before; i < lowering->draft_count; i++) {
        lowering->draft[i].info.output = node->view.name;
    }
    return IFD_OK;
}

static enum ifd_code lower(struct ifd_gpu_lowering *lowering, const struct ifd_partition *partition,
                           struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    lowering->driver = choose_drivers(lowering);
    if (!lowering->driver) {
        return no_memory(partition, err);
    }
    if (lowering->base.view->precision == IFD_PRECISION_FP16) {
        code = ifd_gpu_choose_halves(lowering, err);
    }
    if (code == IFD_OK) {
        code = ifd_low_make_values(&lowering->base, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_low_accepts accepts = {
        .context = lowering, .moves = moves, .reads_apart = reads_apart};
    ifd_low_join_subtensors(&lowering->base, &accepts);
    ifd_low_count_readers(&lowering->base);
    const uint32_t *order = ifd_low_order_nodes(&lowering->base);
    if (!order) {
        return no_memory(partition, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < lowering->base.view->node_count; i++) {
        code = lower_node(lowering, order[i], err);
    }
    return code;
}

/* ---- binding ---- */

struct binder {
    const struct ifd_gpu_lowering *lowering;
    struct ifd_partition *partition;
    const struct ifd_partition *older;
};

/* A value that is a constant of the model: all of it is uploaded as it is. */
static enum ifd_code bind_constant_value(const struct binder *binder,
                                         const struct ifd_low_storage *storage, cl_mem *ret,
                                         struct ifd_err *err)
{
    size_t *bytes = ifd_arena_take(&binder->partition->arena, sizeof(*bytes));
    if (!bytes) {
        return no_memory(binder->partition, err);
    }
    *bytes = storage->bytes;
    const struct ifd_gpu_constant constant = {.pack = ifd_gpu_pack_copy,
                                              .params = bytes,
                                              .source = storage->place.data,
                                              .bytes = storage->bytes};
    return ifd_gpu_keep_constant(binder->partition, binder->older, &constant, ret, err);
}

static enum ifd_code bind_value(const struct binder *binder, const struct ifd_gpu_arg *arg,
                                struct ifd_gpu_bound *ret, struct ifd_err *err)
{
    const struct ifd_lowering *base = &binder->lowering->base;
    const struct ifd_low_value *v = &base->value[arg->value];
    const struct ifd_low_storage *storage = &base->storage[ifd_low_storage_of(base, arg->value)];
    ret->place = ifd_low_place_of(base, arg->value);
    ret->element = arg->element ? arg->element : ifd_dtype_bytes(v->view->desc.dtype);
    if (ret->place.where == IFD_LOW_CONSTANT) {
        ret->place.offset = v->offset;
    }
    return ret->place.where == IFD_LOW_CONSTANT
               ? bind_constant_value(binder, storage, &ret->buffer, err)
               : IFD_OK;
}

static enum ifd_code bind_arg(const struct binder *binder, const struct ifd_gpu_arg *arg,
                              struct ifd_gpu_bound *ret, struct ifd_err *err)
{
    *ret = (struct ifd_gpu_bound){.kind = arg->kind, .number = arg->number.integer};
    if (arg->kind == IFD_GPU_ARG_CONSTANT) {
        return ifd_gpu_keep_constant(binder->partition, binder->older, &arg->constant, &ret->buffer,
                                     err);
    }
    return arg->kind == IFD_GPU_ARG_NUMBER ? IFD_OK : bind_value(binder, arg, ret, err);
}

static enum ifd_code bind_step(const struct binder *binder, const struct ifd_gpu_draft *draft,
                               struct ifd_gpu_step *ret, struct ifd_err *err)
{
    struct ifd_gpu_bound *bound =
        ifd_arena_take_array(&binder->partition->arena, draft->arg_count, sizeof(*bound));
    enum ifd_code code = bound ? IFD_OK : no_memory(binder->partition, err);
    for (uint32_t i = 0; code == IFD_OK && i < draft->arg_count; i++) {
        code = bind_arg(binder, &draft->arg[i], &bound[i], err);
    }
    *ret = (struct ifd_gpu_step){.program = draft->program,
                                 .kernel = draft->kernel,
                                 .arg = bound,
                                 .arg_count = draft->arg_count,
                                 .items = {draft->items[0], draft->items[1], draft->items[2]},
                                 .group = {draft->group[0], draft->group[1], draft->group[2]},
                                 .info = draft->info};
    return code;
}

/* Room for as many constants as there are arguments, and for buffers behind images. */
static bool make_room(struct ifd_partition *partition, const struct ifd_gpu_lowering *lowering)
{
    size_t count = 0;
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        count += 2 * (size_t)lowering->draft[i].arg_count;
    }
    partition->resident =
        ifd_arena_take_array(&partition->arena, count, sizeof(*partition->resident));
    return partition->resident != NULL;
}

static enum ifd_code bind(const struct ifd_gpu_lowering *lowering, struct ifd_partition *partition,
                          const struct ifd_partition *older, struct ifd_err *err)
{
    const struct binder binder = {lowering, partition, older};
    struct ifd_gpu_step *step =
        ifd_arena_take_array(&partition->arena, lowering->draft_count, sizeof(*step));
    if (!step || !make_room(partition, lowering)) {
        return no_memory(partition, err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < lowering->draft_count; i++) {
        code = bind_step(&binder, &lowering->draft[i], &step[i], err);
    }
    partition->step = step;
    partition->step_count = lowering->draft_count;
    return code;
}

/* ---- programs ---- */

/* Those of all steps, each once. *ret_repeat: one of them does not build; whoever needs it finds
 * its error, or another way, when all is lowered once more. */
static enum ifd_code build_programs(const struct ifd_gpu_lowering *lowering,
                                    const struct ifd_partition *older, bool *ret_repeat,
                                    struct ifd_err *err)
{
    struct ifd_arena *arena = lowering->base.arena;
    struct ifd_gpu_program **set = ifd_arena_take_array(arena, lowering->draft_count, sizeof(*set));
    uint32_t count = 0;
    if (!set) {
        return ifd_arena_fail(arena, 0, err);
    }
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        uint32_t at = 0;
        while (at < count && set[at] != lowering->draft[i].program) {
            at++;
        }
        set[at] = lowering->draft[i].program;
        count += at == count;
    }
    const enum ifd_code code =
        ifd_gpu_build_programs(lowering->device, set, count, older != NULL, err);
    *ret_repeat = code != IFD_OK;
    return code;
}

/* ---- all of it ---- */

static enum ifd_code compile(struct ifd_gpu_lowering *lowering, struct ifd_partition *partition,
                             const struct ifd_partition *older, size_t *ret_scratch,
                             bool *ret_repeat, struct ifd_err *err)
{
    enum ifd_code code = lower(lowering, partition, err);
    if (code == IFD_OK) {
        code = build_programs(lowering, older, ret_repeat, err);
    }
    if (code == IFD_OK) {
        code = ifd_low_lay_out(&lowering->base, lowering->device->host->alloc, ret_scratch, err);
    }
    return code == IFD_OK ? bind(lowering, partition, older, err) : code;
}

enum ifd_code ifd_gpu_compile(struct ifd_device *device, const struct ifd_partition_view *view,
                              struct ifd_partition *share_with,
                              struct ifd_partition **ret_partition,
                              struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = device->host->alloc;
    if (ifd_gpu_is_stuck(device)) {
        return ifd_fail(err, IFD_UNAVAILABLE, "GpuAcc: " IFD_GPU_STUCK);
    }
    struct ifd_partition *partition = ifd_acquire_zeroed(alloc, 1, sizeof(*partition));
    if (!partition) {
        return ifd_fail(err, IFD_NOMEM, "GpuAcc: no memory for a partition");
    }
    partition->device = device;
    struct ifd_gpu_lowering lowering;
    size_t scratch = 0;
    enum ifd_code code = IFD_OK;
    bool repeat = true;
    while (repeat) { /* each time with one program less */
        repeat = false;
        ifd_arena_init(&partition->arena, alloc, ARENA_BYTES_MAX);
        lowering = (struct ifd_gpu_lowering){.base = {.view = view, .arena = &partition->arena},
                                             .device = device};
        code = compile(&lowering, partition, share_with, &scratch, &repeat, err);
        if (repeat) {
            ifd_arena_finish(&partition->arena);
        }
    }
    ifd_gpu_forgive_programs(device);
    ifd_gpu_tuner_save(device);
    if (code != IFD_OK) {
        ifd_gpu_release(partition);
        return code;
    }
    *ret_info = (struct ifd_partition_info){
        .scratch_bytes = scratch,
        .step_count = partition->step_count,
        .constant_bytes = partition->constant_bytes,
        .exact = true,
        .precision = lowering.precision,
        .precision_why_not = view->precision == IFD_PRECISION_BF16 ? "GpuAcc has no bf16" : NULL};
    *ret_partition = partition;
    return IFD_OK;
}

void ifd_gpu_release(struct ifd_partition *partition)
{
    if (!partition) {
        return;
    }
    ifd_gpu_release_constants(partition);
    ifd_arena_finish(&partition->arena);
    ifd_release(partition->device->host->alloc, partition, sizeof(*partition));
}
