/* Files and models of golden_run. */
#include "tests/golden/loaded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/builtin.h"
#include "engine/base/cpu.h"
#include "engine/base/file.h"
#include "engine/model/model.h"
#include "engine/tensor/half.h"

/* ---- files ---- */

enum ifd_code golden_read_file(const char *path, struct ifd_bytes *ret, struct ifd_err *err)
{
    return ifd_file_read(path, INT32_MAX, ifd_alloc_system(), ret, err);
}

void golden_free_file(struct ifd_bytes file)
{
    ifd_release_tensor(ifd_alloc_system(), (void *)file.data, file.size);
}

/* Exit status where this file or folder is absent. */
int golden_skip(const char *path)
{
    const bool is_allowed = getenv("INFERD_TEST_NO_SKIPS") == NULL;
    printf("%s: there is no %s\n", is_allowed ? "skipped" : "may not be skipped", path);
    return is_allowed ? 77 : 1;
}

/* ---- models ---- */

void golden_unload(struct golden_loaded *l)
{
    ifd_instance_destroy(l->instance);
    ifd_model_destroy(l->model);
    ifd_engine_destroy(l->engine);
    for (uint32_t i = 0; i < l->state_count; i++) {
        ifd_release_tensor(ifd_alloc_system(), l->state[i].data, l->state[i].bytes);
    }
    golden_free_file(l->file);
    *l = (struct golden_loaded){0};
}

/* Takes the states from the end of the ports, and lets a sequence begin. */
static enum ifd_code take_states(struct golden_loaded *l, struct ifd_err *err)
{
    const uint32_t count = l->info.state_count;
    l->info.input_count -= count;
    l->info.output_count -= count;
    for (; l->state_count < count; l->state_count++) {
        const struct ifd_port *port = &l->info.input[l->info.input_count + l->state_count];
        struct ifd_tensor *state = &l->state[l->state_count];
        *state = (struct ifd_tensor){.dtype = port->desc.dtype,
                                     .shape = port->desc.shape,
                                     .bytes = port->begin.size,
                                     .capacity = port->begin.size};
        state->data = ifd_acquire_tensor(ifd_alloc_system(), state->bytes);
        if (!state->data) {
            return ifd_fail(err, IFD_NOMEM, "no memory for state \"%s\"", port->name);
        }
        memcpy(state->data, port->begin.data, state->bytes);
    }
    return IFD_OK;
}

/* Rounds the weights of convolutions and fully connected layers, in the model, to a precision. */
static void round_weights(struct ifd_model *model, enum ifd_precision precision)
{
    const struct ifd_graph *g = &model->graph;
    for (uint32_t n = 0; precision != IFD_PRECISION_F32 && n < g->node_count; n++) {
        const struct ifd_node *node = &g->node[n];
        if (node->op != IFD_OP_CONV2D && node->op != IFD_OP_FULLY_CONNECTED) {
            continue;
        }
        const struct ifd_value *weights = &g->value[node->input[1]];
        float *w = (float *)(uintptr_t)weights->data.data;
        const size_t count = weights->desc.dtype == IFD_F32 ? weights->data.size / sizeof(*w) : 0;
        for (size_t i = 0; i < count; i++) {
            w[i] = precision == IFD_PRECISION_BF16 ? ifd_f32_from_bf16(ifd_bf16_from_f32(w[i]))
                                                   : ifd_f32_from_f16(ifd_f16_from_f32(w[i]));
        }
    }
}

enum ifd_code golden_load(const struct golden_options *options, const char *path,
                          struct golden_loaded *l, struct ifd_err *err)
{
    struct ifd_engine_options engine = {.exact = options->is_exact, .fast = options->is_fast};
    const struct ifd_model_options model = {
        .backends = options->backend_count > 0 ? options->backend : NULL,
        .backend_count = options->backend_count,
        .max_threads = options->threads,
        .precision = options->precision,
        .no_optimize = options->no_optimize,
        .keeps_state = true};
    engine.backends = ifd_backends_builtin(&engine.backend_count);
    engine.plugin_folders = &options->plugins;
    engine.plugin_folder_count = options->plugins ? 1 : 0;
    engine.backend_options = options->backend_option;
    engine.backend_option_count = options->backend_option_count;
    for (uint32_t i = 0; i < options->cpu_count; i++) {
        engine.cpu_mask |= ifd_cpu_flag_by_name(options->cpu[i], strlen(options->cpu[i]));
        engine.no_cpu_features = engine.cpu_mask == 0;
    }
    *l = (struct golden_loaded){0};
    enum ifd_code code = golden_read_file(path, &l->file, err);
    if (code == IFD_OK) {
        code = ifd_engine_create(&engine, &l->engine, err);
    }
    if (code == IFD_OK) {
        code = ifd_model_load(l->engine, l->file, &model, &l->model, err);
    }
    if (code == IFD_OK) {
        round_weights(l->model, options->rounding);
        l->info = *ifd_model_info(l->model);
        code = l->info.input_count > PORTS_MAX || l->info.output_count > PORTS_MAX
                   ? ifd_fail(err, IFD_UNSUPPORTED, "more than %d inputs or outputs", PORTS_MAX)
                   : take_states(l, err);
    }
    return code;
}

enum ifd_code golden_infer(struct golden_loaded *l, const struct ifd_tensor *input,
                           struct ifd_tensor *output, uint32_t batch, struct ifd_err *err)
{
    struct ifd_tensor in[PORTS_MAX], out[PORTS_MAX] = {0};
    const struct ifd_io io = {.input = in, .output = out, .batch = batch};
    memcpy(in, input, l->info.input_count * sizeof(*in));
    memcpy(in + l->info.input_count, l->state, l->state_count * sizeof(*in));
    const enum ifd_code code = ifd_instance_run(l->instance, &io, 1, err);
    for (uint32_t i = 0; code == IFD_OK && i < l->state_count; i++) {
        memcpy(l->state[i].data, out[l->info.output_count + i].data, l->state[i].bytes);
    }
    memcpy(output, out, l->info.output_count * sizeof(*output));
    return code;
}

enum ifd_code golden_instantiate(const struct golden_options *options, struct golden_loaded *l,
                                 int64_t batch, struct ifd_err *err)
{
    ifd_instance_destroy(l->instance);
    l->instance = NULL;
    return ifd_instance_create(
        l->model,
        &(struct ifd_instance_options){.threads = options->threads, .max_batch = (uint32_t)batch},
        &l->instance, err);
}
