/* A model and the packed weights of earlier starts: finds them, shows them to backends, writes what
 * was packed now. */
#include "engine/model/cached.h"

#include <stdio.h>

/* Shapes decide what is folded into constants. Returns the new length of text. */
static size_t name_shapes(const struct ifd_model_options *options, char *text, size_t used,
                          size_t size)
{
    for (uint32_t i = 0; i < options->input_shape_count && used < size; i++) {
        const struct ifd_input_shape *given = &options->input_shape[i];
        used += (size_t)snprintf(text + used, size - used, " %s", given->name);
        for (uint32_t d = 0; d < given->shape.rank && used < size; d++) {
            used +=
                (size_t)snprintf(text + used, size - used, ",%lld", (long long)given->shape.dim[d]);
        }
    }
    return used;
}

void ifd_model_find_cached(struct ifd_model *model, const struct ifd_model_options *options)
{
    const struct ifd_engine *engine = model->engine;
    const struct ifd_cpu *cpu = &engine->registry.host.cpu;
    char setup[512];
    struct ifd_err *note = &model->cache_note;
    if (!engine->cache) {
        *note = engine->cache_why_not;
        return;
    }
    size_t used = (size_t)snprintf(setup, sizeof(setup), "%x %zu %zu %zu %u %d%d%d%d%d", cpu->flags,
                                   cpu->l1d_bytes, cpu->l2_bytes, cpu->l3_bytes, model->max_threads,
                                   engine->registry.host.exact, engine->registry.host.fast,
                                   model->no_optimize, model->keeps_state, (int)model->precision);
    for (uint32_t i = 0; i < model->preference_count && used < sizeof(setup); i++) {
        used += (size_t)snprintf(setup + used, sizeof(setup) - used, " %s",
                                 engine->registry.slot[model->preference[i]].name);
    }
    if (options->signature && used < sizeof(setup)) {
        used += (size_t)snprintf(setup + used, sizeof(setup) - used, " %s", options->signature);
    }
    if (used < sizeof(setup)) {
        used = name_shapes(options, setup, used, sizeof(setup));
    }
    if (used >= sizeof(setup)) {
        ifd_fail(note, IFD_UNAVAILABLE,
                 "%u backends and %u shapes, too many for a name in the cache",
                 model->preference_count, options->input_shape_count);
        return;
    }
    struct ifd_arena arena; /* of the list of parts */
    ifd_arena_init(&arena, engine->alloc, 0);
    struct ifd_bytes *part =
        ifd_arena_take_array(&arena, model->external_count + (size_t)2, sizeof(*part));
    if (!part) {
        (void)ifd_arena_fail(&arena, model->external_count * sizeof(*part), note);
        return;
    }
    part[0] = (struct ifd_bytes){.data = (const uint8_t *)setup, .size = used};
    part[1] = model->file;
    for (uint32_t i = 0; i < model->external_count; i++) {
        part[2 + i] = model->external[i].content;
    }
    model->cache_name = ifd_cache_name(engine->cache, part, model->external_count + (size_t)2);
    ifd_arena_finish(&arena);
    model->info.is_from_cache =
        ifd_cache_find(engine->cache, model->cache_name, &model->cache_entry, note) == IFD_OK;
}

static enum ifd_code write_cached(struct ifd_model *model, const struct ifd_bytes *part,
                                  size_t count)
{
    struct ifd_err *note = &model->cache_note, why = {0};
    const bool is_new = note->code == IFD_NOT_FOUND;
    const enum ifd_code code =
        ifd_cache_write(model->engine->cache, model->cache_name, part, count, &why);
    if (code != IFD_OK) {
        *note = why;
        ifd_err_prefix(note, "packed weights not written");
    } else if (is_new) {
        ifd_fail(note, IFD_OK, "packed weights written");
    } else {
        ifd_err_prefix(note, "packed weights written again");
    }
    return code == IFD_NOMEM ? code : IFD_OK;
}

/* What a plan with a plugin packs depends on the plugin's build and its device, which name no
 * entry. */
static bool uses_plugin(const struct ifd_executable *executable)
{
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        const uint32_t backend = executable->plan.partition[p].backend;
        if (backend != IFD_PLAN_CONTROL && executable->registry->slot[backend].plugin) {
            return true;
        }
    }
    return false;
}

enum ifd_code ifd_model_settle_cached(struct ifd_model *model, struct ifd_err *err)
{
    const struct ifd_executable *executable = &model->plan[0]->executable;
    const uint32_t count = executable->plan.partition_count;
    struct ifd_model_info *info = &model->info;
    struct ifd_bytes *part = ifd_arena_take_array(&model->arena, count, sizeof(*part));
    size_t bytes = 0;
    if (!part) {
        return ifd_arena_fail(&model->arena, count * sizeof(*part), err);
    }
    info->is_from_cache = info->is_from_cache && model->cache_entry.part_count == count;
    for (uint32_t p = 0; p < count; p++) {
        part[p] = executable->part[p].info.packed;
        bytes += part[p].size;
        info->is_from_cache =
            info->is_from_cache &&
            (part[p].size == 0 || part[p].data == ifd_cache_part(&model->cache_entry, p).data);
    }
    info->cache = model->cache_note.text;
    if (uses_plugin(executable)) {
        info->is_from_cache = false;
        ifd_fail(&model->cache_note, IFD_OK, "plans with plugins are not kept");
    } else if (bytes == 0) {
        info->is_from_cache = false;
        ifd_fail(&model->cache_note, IFD_OK, "no packed weights");
    } else if (info->is_from_cache) {
        ifd_fail(&model->cache_note, IFD_OK, "%zu bytes of packed weights mapped", bytes);
    } else if (model->engine->cache && write_cached(model, part, count) == IFD_NOMEM) {
        return ifd_fail(err, IFD_NOMEM, "no memory to write packed weights");
    }
    return IFD_OK;
}

void ifd_model_offer_cached(const struct ifd_model *model, const struct ifd_plan *plan)
{
    const struct ifd_cache_entry *entry = &model->cache_entry;
    for (uint32_t p = 0; entry->part_count == plan->partition_count && p < entry->part_count; p++) {
        plan->view[p].packed = ifd_cache_part(entry, p);
    }
}
