/* What neither the file nor its reading says of outputs: where data decides sizes, only a run sees
 * what the last nodes make. */
#include "engine/base/clock.h"
#include "engine/ir/eval.h"
#include "engine/ir/shape.h"
#include "engine/model/shapes_impl.h"

#include <string.h>

/* Zeros, or empty texts. The memory goes with release_inputs, also after a failure. */
static enum ifd_code take_inputs(const struct ifd_model *model, struct ifd_tensor *input,
                                 struct ifd_err *err)
{
    for (uint32_t i = 0; i < model->info.input_count; i++) {
        const struct ifd_port *port = &model->info.input[i];
        struct ifd_desc desc = port->desc;
        size_t bytes = 0;
        desc.shape = port->example;
        if (!ifd_desc_bytes(&desc, &bytes)) {
            return ifd_fail(err, IFD_TOO_LARGE, "input \"%s\" of shape %s", port->name,
                            ifd_shape_text(&desc.shape).s);
        }
        void *data = ifd_acquire_zeroed(model->engine->alloc, bytes + 1, 1);
        if (!data) {
            return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes", bytes);
        }
        for (size_t at = 0; desc.dtype == IFD_STR && at < bytes; at += sizeof(struct ifd_str)) {
            const struct ifd_str empty = {.data = ""};
            memcpy((uint8_t *)data + at, &empty, sizeof(empty));
        }
        input[i] = (struct ifd_tensor){.dtype = desc.dtype,
                                       .shape = desc.shape,
                                       .data = data,
                                       .bytes = bytes,
                                       .capacity = bytes};
    }
    return IFD_OK;
}

static void release_inputs(const struct ifd_model *model, const struct ifd_tensor *input)
{
    for (uint32_t i = 0; input && i < model->info.input_count; i++) {
        if (input[i].data) {
            ifd_release(model->engine->alloc, input[i].data, input[i].bytes + 1);
        }
    }
}

static enum ifd_code describe(struct ifd_model *model, const bool *is_unknown,
                              const struct ifd_tensor *found, struct ifd_err *err)
{
    const uint32_t count = model->info.output_count;
    struct ifd_port *port = ifd_arena_take_array(&model->arena, count, sizeof(*port));
    if (!port) {
        return ifd_arena_fail(&model->arena, count * sizeof(*port), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        port[i] = model->info.output[i];
        if (is_unknown[i]) {
            port[i].desc = (struct ifd_desc){.dtype = found[i].dtype, .shape = found[i].shape};
            port[i].example = found[i].shape;
            for (uint32_t d = 0; d < found[i].shape.rank; d++) {
                port[i].desc.shape.dim[d] = IFD_DIM_ANY;
                port[i].example.dim[d] += found[i].shape.dim[d] == 0;
            }
        }
    }
    model->info.output = port;
    model->is_found = is_unknown;
    return IFD_OK;
}

/* Inputs are filled, whoever reads them. */
static double work_of(const struct ifd_model *model)
{
    double work = ifd_graph_work(&model->graph);
    for (uint32_t i = 0; i < model->info.input_count; i++) {
        double elements = 1;
        for (uint32_t d = 0; d < model->info.input[i].example.rank; d++) {
            elements *= (double)model->info.input[i].example.dim[d];
        }
        work += elements;
    }
    return work;
}

static enum ifd_code check_work(const struct ifd_model *model, struct ifd_err *err)
{
    const double work = work_of(model), limit = model->graph.work_limit;
    return work <= limit
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE,
                          "it has %.0f elements and products, the limit is %.0f", work, limit);
}

static enum ifd_code run(struct ifd_model *model, const struct ifd_tensor *input,
                         struct ifd_tensor *output, uint64_t *left_ns, struct ifd_instance **ret,
                         struct ifd_err *err)
{
    const struct ifd_instance_options options = {.threads = model->max_threads};
    enum ifd_code code = ifd_instance_create(model, &options, ret, err);
    if (code != IFD_OK) {
        return code;
    }
    const uint64_t before = ifd_monotonic_ns();
    const struct ifd_io io = {
        .input = input, .output = output, .batch = 1, .deadline_ns = before + *left_ns};
    struct ifd_shapes_of *shapes = (struct ifd_shapes_of *)(*ret)->shapes; /* it has a cut */
    shapes->work_limit = model->graph.work_limit;
    shapes->work = work_of(model);
    code = ifd_instance_run(*ret, &io, 1, err);
    const uint64_t took_ns = ifd_monotonic_ns() - before;
    *left_ns = took_ns < *left_ns ? *left_ns - took_ns : 0;
    model->probe.cost += shapes->work;
    return code;
}

enum ifd_code ifd_model_find_results(struct ifd_model *model, const bool *is_unknown,
                                     uint64_t *left_ns, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = model->engine->alloc;
    const size_t inputs = model->info.input_count + (size_t)1, outputs = model->info.output_count;
    struct ifd_tensor *input = ifd_acquire_zeroed(alloc, inputs, sizeof(*input));
    struct ifd_tensor *output = ifd_acquire_zeroed(alloc, outputs, sizeof(*output));
    struct ifd_instance *instance = NULL;
    enum ifd_code code = input && output
                             ? check_work(model, err)
                             : ifd_fail(err, IFD_NOMEM, "no memory for %zu tensors", outputs);
    if (code == IFD_OK) {
        code = take_inputs(model, input, err);
    }
    if (code == IFD_OK) {
        code = run(model, input, output, left_ns, &instance, err);
    }
    if (code == IFD_OK) {
        code = describe(model, is_unknown, output, err);
    } else if (code != IFD_NOMEM) {
        ifd_err_prefix(err, "the file does not say the dimensions of its outputs, and a run of "
                            "zeros does not find them");
        code = IFD_UNSUPPORTED;
        if (err) {
            err->code = code;
        }
    }
    ifd_instance_destroy(instance);
    release_inputs(model, input);
    ifd_release(alloc, output, outputs * sizeof(*output));
    ifd_release(alloc, input, inputs * sizeof(*input));
    return code;
}

enum ifd_code ifd_model_check_results(const struct ifd_model *root, const struct ifd_model *variant,
                                      struct ifd_err *err)
{
    const struct ifd_graph *graph = &variant->graph;
    if (graph->output_count != root->info.output_count) { /* of a sequence */
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "in this size the model has %u outputs, %u were promised",
                        graph->output_count, root->info.output_count);
    }
    for (uint32_t i = 0; root->is_found && i < graph->output_count; i++) {
        const struct ifd_desc *desc = &graph->value[graph->output[i]].desc;
        const struct ifd_port *promised = &root->info.output[i];
        if (root->is_found[i] && (desc->dtype != promised->desc.dtype ||
                                  desc->shape.rank != promised->desc.shape.rank)) {
            return ifd_fail(err, IFD_UNSUPPORTED,
                            "output \"%s\" is %s of %u dimensions, %s of %u were promised",
                            promised->name, ifd_dtype_name(desc->dtype), desc->shape.rank,
                            ifd_dtype_name(promised->desc.dtype), promised->desc.shape.rank);
        }
    }
    return IFD_OK;
}
