/* A model as text: the graph after optimization, what the passes did, the plan, the memory map. */
#include "engine/base/text.h"
#include "engine/model/model.h"
#include "engine/ir/dump.h"

#include <stdlib.h>

/* ---- text ---- */

/* "conv2d 3 fewer, reshape 1 more" */
static void text_nodes(const struct ifd_writer *w, const struct ifd_pass_report *pass)
{
    const char *between = ": ";
    for (uint32_t op = 0; op < IFD_OP_COUNT; op++) {
        const int32_t count = pass->nodes_of[op];
        if (count != 0) {
            ifd_write(w, "%s%s %d %s", between, ifd_op_def((enum ifd_op)op)->name, abs(count),
                      count < 0 ? "fewer" : "more");
            between = ", ";
        }
    }
}

/* all: passes that found nothing to do, too. */
static void text_passes(const struct ifd_writer *w, const struct ifd_model *model, bool all)
{
    for (uint32_t i = 0; i < ifd_pass_count(); i++) {
        const struct ifd_pass_report *pass = &model->pass[i];
        if (pass->changes > 0) {
            ifd_write(w, "pass %s: %u changes, %u nodes to %u", pass->name, pass->changes,
                      pass->nodes_before, pass->nodes_after);
            text_nodes(w, pass);
            ifd_write(w, "\n");
        } else if (all) {
            ifd_write(w, "pass %s: nothing to do\n", pass->name);
        }
    }
}

static void text_memory(const struct ifd_writer *w, const struct ifd_model *model)
{
    const struct ifd_executable *executable = &model->plan[0]->executable;
    const struct ifd_plan *plan = &executable->plan;
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const struct ifd_plan_value *value = &plan->value[v];
        ifd_write(w, "memory %zu … %zu%s%s, partitions %u … %u, buffer %u: ", value->offset,
                  value->offset + value->bytes, value->memory > 0 ? " of " : "",
                  value->memory > 0 ? ifd_executable_memory_kind(executable, value->memory) : "",
                  value->first, value->last, value->buffer);
        ifd_write_quoted(w, value->name);
        ifd_write(w, "\n");
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        ifd_write(w, "arena of %s %zu bytes\n", ifd_executable_memory_kind(executable, d + 1),
                  plan->device[d].arena_bytes);
    }
    ifd_write(w, "arena %zu bytes, constants %zu bytes", plan->arena_bytes,
              model->info.constant_bytes);
    if (plan->device_count > 0) {
        ifd_write(w, ", on devices %zu bytes", model->info.device_bytes);
    }
    ifd_write(w, ", batch %s%s\n",
              model->info.batch_is_free ? "free" : "fixed: ", model->batch_why_not.text);
}

static void text_plan(const struct ifd_writer *w, const struct ifd_model *model)
{
    for (uint32_t i = 0; i < model->info.step_count; i++) {
        struct ifd_plan_step step;
        ifd_model_step(model, i, &step);
        const char *why = step.step.why;
        ifd_write(w, "step %u partition %u on %s: %s [%s%s%s] => ", i, step.partition, step.backend,
                  step.step.name, step.step.kernel, why ? ": " : "", why ? why : "");
        ifd_write_quoted(w, step.step.output);
        ifd_write(w, "\n");
    }
    text_memory(w, model);
    const uint32_t unworthy = model->plan[0]->executable.plan.unworthy_nodes;
    if (unworthy > 0) {
        ifd_write(w, "%u nodes stay off the device that takes them: copies would cost more\n",
                  unworthy);
    }
    if (model->info.taken_back[0] != '\0') {
        ifd_write(w, "left to the next backend: %s\n", model->info.taken_back);
    }
    ifd_write(w, "rounding of quantized results %s\n", model->info.exact ? "exact" : "fast");
    const char *why_not = model->info.precision_why_not;
    ifd_write(w, "precision %s%s%s\n", ifd_precision_name(model->info.precision),
              why_not[0] != '\0' ? ": " : "", why_not);
}

/* ---- JSON ---- */

static void json_passes(const struct ifd_writer *w, const struct ifd_model *model)
{
    ifd_write(w, "\"passes\":[");
    for (uint32_t i = 0; i < ifd_pass_count(); i++) {
        const struct ifd_pass_report *pass = &model->pass[i];
        ifd_write(w,
                  "%s{\"name\":\"%s\",\"changes\":%u,\"nodes_before\":%u,\"nodes_after\":%u,"
                  "\"nodes_of\":{",
                  i > 0 ? ",\n" : "\n", pass->name, pass->changes, pass->nodes_before,
                  pass->nodes_after);
        const char *between = "";
        for (uint32_t op = 0; op < IFD_OP_COUNT; op++) {
            if (pass->nodes_of[op] != 0) {
                ifd_write(w, "%s\"%s\":%d", between, ifd_op_def((enum ifd_op)op)->name,
                          pass->nodes_of[op]);
                between = ",";
            }
        }
        ifd_write(w, "}}");
    }
    ifd_write(w, "],\n");
}

static void json_steps(const struct ifd_writer *w, const struct ifd_model *model)
{
    ifd_write(w, "\"steps\":[");
    for (uint32_t i = 0; i < model->info.step_count; i++) {
        struct ifd_plan_step step;
        ifd_model_step(model, i, &step);
        ifd_write(w, "%s{\"name\":", i > 0 ? ",\n" : "\n");
        ifd_write_quoted(w, step.step.name);
        ifd_write(w, ",\"kernel\":");
        ifd_write_quoted(w, step.step.kernel);
        if (step.step.why) {
            ifd_write(w, ",\"why\":");
            ifd_write_quoted(w, step.step.why);
        }
        ifd_write(w, ",\"output\":");
        ifd_write_quoted(w, step.step.output);
        ifd_write(
            w, ",\"backend\":\"%s\",\"partition\":%u,\"macs\":%llu,\"offset\":%zu,\"bytes\":%zu}",
            step.backend, step.partition, (unsigned long long)step.step.macs, step.arena_offset,
            step.arena_bytes);
    }
    ifd_write(w, "],\n");
}

static void json_memory(const struct ifd_writer *w, const struct ifd_model *model)
{
    const struct ifd_executable *executable = &model->plan[0]->executable;
    const struct ifd_plan *plan = &executable->plan;
    ifd_write(w, "\"memory\":[");
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const struct ifd_plan_value *value = &plan->value[v];
        ifd_write(w, "%s{\"name\":", v > 0 ? ",\n" : "\n");
        ifd_write_quoted(w, value->name);
        ifd_write(w,
                  ",\"kind\":\"%s\",\"offset\":%zu,\"bytes\":%zu,\"first\":%u,\"last\":%u,"
                  "\"buffer\":%u}",
                  ifd_executable_memory_kind(executable, value->memory), value->offset,
                  value->bytes, value->first, value->last, value->buffer);
    }
    ifd_write(w, "],\n\"unworthy_nodes\":%u,\"devices\":[", plan->unworthy_nodes);
    for (uint32_t d = 0; d < plan->device_count; d++) {
        ifd_write(w, "%s{\"kind\":\"%s\",\"arena_bytes\":%zu}", d > 0 ? "," : "",
                  ifd_executable_memory_kind(executable, d + 1), plan->device[d].arena_bytes);
    }
    ifd_write(w,
              "],\n\"arena_bytes\":%zu,\"constant_bytes\":%zu,\"device_bytes\":%zu,"
              "\"batch_is_free\":%s",
              plan->arena_bytes, model->info.constant_bytes, model->info.device_bytes,
              model->info.batch_is_free ? "true" : "false");
    ifd_write(w, ",\"batch_why_not\":");
    ifd_write_quoted(w, model->batch_why_not.text);
    ifd_write(w, ",\"exact\":%s", model->info.exact ? "true" : "false");
    ifd_write(w, ",\"precision\":\"%s\",\"precision_why_not\":",
              ifd_precision_name(model->info.precision));
    ifd_write_quoted(w, model->info.precision_why_not);
    ifd_write(w, ",\"taken_back\":");
    ifd_write_quoted(w, model->info.taken_back);
}

/* ---- public ---- */

enum ifd_code ifd_model_dump(const struct ifd_model *model, enum ifd_dump_format format,
                             ifd_sink_fn sink, void *context, struct ifd_err *err)
{
    const struct ifd_writer w = {.sink = sink, .context = context};
    switch (format) {
    case IFD_DUMP_TEXT:
        ifd_graph_dump(&model->graph, format, sink, context);
        text_passes(&w, model, false);
        text_plan(&w, model);
        return IFD_OK;
    case IFD_DUMP_JSON:
        ifd_write(&w, "{\"graph\":");
        ifd_graph_dump(&model->graph, format, sink, context);
        ifd_write(&w, ",\n");
        json_passes(&w, model);
        json_steps(&w, model);
        json_memory(&w, model);
        ifd_write(&w, "}\n");
        return IFD_OK;
    case IFD_DUMP_PASSES:
        text_passes(&w, model, true);
        return IFD_OK;
    case IFD_DUMP_DOT:
        ifd_graph_dump(&model->graph, format, sink, context);
        return IFD_OK;
    }
    return ifd_fail(err, IFD_INVALID, "no dump format %d", (int)format);
}
