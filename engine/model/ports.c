/* The description of a model: its ports, whether its batch is free, precision and rounding of its
 * plan. */
#include "engine/model/ports.h"

#include "engine/ir/batch.h"
#include "engine/ir/shape.h"

static enum ifd_code take_ports(struct ifd_model *model, const struct ifd_port *parsed,
                                const uint32_t *value, uint32_t count, struct ifd_port **ret_ports,
                                struct ifd_err *err)
{
    struct ifd_port *ports = ifd_arena_take_array(&model->arena, count, sizeof(*ports));
    if (!ports) {
        return ifd_arena_fail(&model->arena, count * sizeof(*ports), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_value *v = &model->graph.value[value[i]];
        ports[i] = parsed[i];
        ports[i].desc = v->desc;
        ports[i].example = v->desc.shape;
        if (!ifd_desc_fits(&v->desc, model->limits.tensor_bytes)) {
            return ifd_fail(err, IFD_TOO_LARGE,
                            "tensor \"%s\" of shape %s exceeds the limit of %zu bytes", v->name,
                            ifd_shape_text(&v->desc.shape).s, model->limits.tensor_bytes);
        }
    }
    *ret_ports = ports;
    return IFD_OK;
}

/* The batch rules promise that shapes follow; a trial with another batch makes sure. */
static enum ifd_code try_batch(struct ifd_model *model, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    ifd_arena_init(&arena, model->engine->alloc, 0);
    enum ifd_code code = ifd_graph_clone(&model->graph, &arena, &graph, err);
    if (code == IFD_OK) {
        code = ifd_graph_set_batch(&graph, 3, err);
    }
    ifd_arena_finish(&arena);
    return code;
}

/* Does the file say the same when it is read with several samples? */
static bool agrees(const struct ifd_model *model, struct ifd_err *why_not)
{
    if (model->probe.is_done && !model->probe.batch_is_free) {
        ifd_fail(why_not, IFD_UNSUPPORTED, "samples are not independent where there are several");
        return false;
    }
    return true;
}

static bool all_begin_with_1(const struct ifd_port *port, uint32_t count)
{
    bool all = count > 0;
    for (uint32_t i = 0; i < count; i++) {
        all &= port[i].desc.shape.rank > 0 && port[i].desc.shape.dim[0] == 1;
    }
    return all;
}

/* A first dimension that the file fixes beyond any batch is something else: boxes, points. */
static bool may_be_batch(const struct ifd_port *input, uint32_t count, struct ifd_err *why_not)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_shape *shape = &input[i].desc.shape;
        if (shape->rank > 0 && shape->dim[0] > IFD_MAX_BATCH) {
            ifd_fail(why_not, IFD_UNSUPPORTED, "input \"%s\" begins with %lld, a batch has %d",
                     input[i].name, (long long)shape->dim[0], IFD_MAX_BATCH);
            return false;
        }
    }
    return true;
}

/* Three kinds of models: the batch is free; every port begins with a dimension of 1, so samples run
 * one by one; neither, and shapes are those of the file. */
static enum ifd_code find_batch(struct ifd_model *model, struct ifd_port *input,
                                struct ifd_port *output, struct ifd_err *err)
{
    struct ifd_model_info *info = &model->info;
    bool *batched = ifd_arena_take_array(
        &model->arena, (size_t)info->input_count + info->output_count, sizeof(bool));
    if (!batched) {
        return ifd_arena_fail(&model->arena, info->input_count, err);
    }
    struct ifd_err *why_not = &model->batch_why_not;
    info->batch_is_free =
        may_be_batch(input, info->input_count, why_not) &&
        ifd_graph_batch_is_free(&model->graph, batched, batched + info->input_count, why_not) &&
        try_batch(model, why_not) == IFD_OK && agrees(model, why_not);
    if (why_not->code == IFD_NOMEM) {
        return ifd_fail(err, IFD_NOMEM, "%s", why_not->text);
    }
    const bool one_by_one =
        all_begin_with_1(input, info->input_count) && all_begin_with_1(output, info->output_count);
    for (uint32_t i = 0; i < info->input_count; i++) {
        input[i].batched = info->batch_is_free || one_by_one;
    }
    for (uint32_t i = 0; i < info->output_count; i++) {
        output[i].batched = info->batch_is_free || one_by_one;
    }
    return IFD_OK;
}

/* A plan for one size has no batch. */
static void close_batch(struct ifd_port *port, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        port[i].batched = false;
    }
}

static void open_batch(struct ifd_port *port, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        port[i].desc.shape.dim[0] = IFD_DIM_ANY;
    }
}

/* A dimension of an output is open where the file says so, and where another reading has another
 * size than this one. declared, probed: NULL if nothing is known. */
static void open_output(const struct ifd_shape *declared, const struct ifd_shape *probed,
                        struct ifd_port *port)
{
    const struct ifd_shape *example = &port->example;
    if (probed && probed->rank != example->rank) { /* a Squeeze takes what is 1 */
        port->desc.shape.rank = probed->rank;
        for (uint32_t d = 0; d < probed->rank; d++) {
            port->desc.shape.dim[d] = IFD_DIM_ANY;
        }
        return;
    }
    declared = declared && declared->rank == example->rank ? declared : NULL;
    for (uint32_t d = 0; d < example->rank; d++) {
        const int64_t size = example->dim[d];
        const bool is_same = (!declared || declared->dim[d] == size) &&
                             (!probed || probed->dim[d] == size) && (declared || probed);
        port->desc.shape.dim[d] = is_same ? size : IFD_DIM_ANY;
    }
}

static struct ifd_port *copy_ports(struct ifd_arena *arena, const struct ifd_port *port,
                                   uint32_t count, bool are_batched)
{
    struct ifd_port *copy = ifd_arena_take_array(arena, count, sizeof(*copy));
    for (uint32_t i = 0; copy && i < count; i++) {
        copy[i] = port[i];
        copy[i].batched = are_batched;
    }
    return copy;
}

/* Sizes of results that follow behind a cut are known when they are there. */
static struct ifd_port *take_results(struct ifd_model *model, const struct ifd_parsed *parsed)
{
    struct ifd_model_info *info = &model->info;
    struct ifd_port *port = copy_ports(&model->arena, parsed->result, parsed->result_count, false);
    for (uint32_t i = 0; port && i < parsed->result_count; i++) {
        port[i].example = port[i].desc.shape;
        for (uint32_t d = 0; d < port[i].example.rank; d++) {
            port[i].example.dim[d] = port[i].example.dim[d] > 0 ? port[i].example.dim[d] : 1;
        }
    }
    info->output_count = parsed->result_count;
    return port;
}

static struct ifd_port *take_outputs(struct ifd_model *model, const struct ifd_parsed *parsed)
{
    struct ifd_model_info *info = &model->info;
    struct ifd_port *port =
        copy_ports(&model->arena, info->output, info->output_count, info->batch_is_free);
    for (uint32_t i = 0; port && i < info->output_count; i++) {
        open_output(parsed->is_bound ? NULL : &parsed->output[i].desc.shape,
                    model->probe.is_done ? &model->probe.output[i] : NULL, &port[i]);
    }
    return port;
}

/* Requests decide shapes. The file is read again for each, so its weights stay. */
static enum ifd_code open_ports(struct ifd_model *model, const struct ifd_parsed *parsed,
                                struct ifd_err *err)
{
    struct ifd_model_info *info = &model->info;
    model->plan_info = *info;
    model->plan_info.batch_is_free = false;
    struct ifd_port *input =
        copy_ports(&model->arena, info->input, info->input_count, info->batch_is_free);
    struct ifd_port *output =
        parsed->cut.is_cut ? take_results(model, parsed) : take_outputs(model, parsed);
    if (!input || !output) {
        return ifd_arena_fail(&model->arena, info->input_count * sizeof(*input), err);
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        input[i].desc.shape = parsed->input[i].desc.shape;
    }
    info->input = input;
    info->output = output;
    info->has_open_dims = true;
    model->releases_weights = false;
    return IFD_OK;
}

/* Also in branches and loops. */
static bool makes_texts(const struct ifd_graph *graph)
{
    for (; graph; graph = graph->next) {
        for (uint32_t n = 0; n < graph->node_count; n++) {
            if (ifd_op_def(graph->node[n].op)->makes_texts) {
                return true;
            }
        }
    }
    return false;
}

static enum ifd_code share(struct ifd_model *model, struct ifd_port *input, struct ifd_port *output,
                           struct ifd_err *err)
{
    const enum ifd_code code = model->cut.is_cut ? IFD_OK : find_batch(model, input, output, err);
    return code != IFD_OK || model->info.batch_is_free
               ? code
               : ifd_fail(err, IFD_UNSUPPORTED, "requests cannot share a run: %s",
                          model->cut.is_cut ? "data decides sizes" : model->batch_why_not.text);
}

static bool has_loops(const struct ifd_graph *graph)
{
    for (; graph; graph = graph->next) {
        for (uint32_t n = 0; n < graph->node_count; n++) {
            if (graph->node[n].op == IFD_OP_LOOP) {
                return true;
            }
        }
    }
    return false;
}

enum ifd_code ifd_model_describe(struct ifd_model *model, const struct ifd_parsed *parsed,
                                 struct ifd_err *err)
{
    const struct ifd_graph *graph = &model->graph;
    struct ifd_port *input = NULL, *output = NULL;
    model->info.format = parsed->format;
    model->info.format_version = parsed->format_version;
    model->info.description = parsed->description ? parsed->description : "";
    model->info.signatures = parsed->signatures ? parsed->signatures : "";
    enum ifd_code code =
        take_ports(model, parsed->input, graph->input, graph->input_count, &input, err);
    if (code == IFD_OK) {
        code = take_ports(model, parsed->output, graph->output, graph->output_count, &output, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    model->info.input = input;
    model->info.input_count = graph->input_count;
    model->info.output = output;
    model->info.output_count = graph->output_count;
    model->info.state_count = parsed->state_count;
    model->info.node_count = graph->node_count;
    model->info.makes_texts = makes_texts(graph);
    model->info.has_loops = has_loops(graph);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        model->info.constant_bytes += graph->value[v].data.size;
    }
    model->cut = parsed->cut;
    if (model->is_bound) {
        return model->is_shared ? share(model, input, output, err) : IFD_OK;
    }
    if (parsed->cut.is_cut) {
        (void)ifd_fail(&model->batch_why_not, IFD_UNSUPPORTED, "sizes depend on data");
        return open_ports(model, parsed, err);
    }
    const bool by_shape = parsed->opens_others || parsed->opens_apart;
    code = find_batch(model, input, output, err);
    if (by_shape && model->info.batch_is_free) {
        close_batch(input, model->info.input_count);
        close_batch(output, model->info.output_count);
    }
    if (parsed->opens_first && !by_shape && model->info.batch_is_free) {
        open_batch(input, model->info.input_count);
        open_batch(output, model->info.output_count);
    }
    /* Samples that run one by one serve every batch where the file takes no other than 1. */
    const bool is_shape = parsed->opens_first && !model->info.batch_is_free &&
                          (model->probe.is_done || !input[0].batched);
    if (code == IFD_OK && (by_shape || is_shape)) {
        code = open_ports(model, parsed, err);
    }
    return code;
}

/* The precision that the plan has, and why not the one that was asked for. */
static void describe_precision(struct ifd_model *model, const struct ifd_executable *executable)
{
    struct ifd_model_info *info = &model->info;
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        const struct ifd_partition_info *part = &executable->part[p].info;
        if (part->precision != IFD_PRECISION_F32) {
            info->precision = part->precision;
        } else if (part->precision_why_not) {
            info->precision_why_not = part->precision_why_not;
        }
    }
    if (info->precision == model->precision) {
        info->precision_why_not = "";
    } else if (info->precision_why_not[0] == '\0') {
        info->precision_why_not = "no gemm of f32 is faster with it";
    }
}

/* Exact if every partition is. */
static void describe_rounding(struct ifd_model *model, const struct ifd_executable *executable)
{
    model->info.exact = true;
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        model->info.exact &= executable->part[p].info.exact;
    }
}

void ifd_model_describe_plan(struct ifd_model *model)
{
    const struct ifd_executable *executable = &model->plan[0]->executable;
    model->info.constant_bytes += executable->constant_bytes - model->weights.released_bytes;
    model->info.released_bytes = model->weights.released_bytes;
    model->info.packed_bytes = executable->constant_bytes;
    model->info.arena_bytes = executable->plan.arena_bytes;
    model->info.device_bytes = executable->device_bytes;
    model->info.step_count = executable->step_count;
    describe_precision(model, executable);
    describe_rounding(model, executable);
}
