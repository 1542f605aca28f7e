/* Names of an ONNX file: each is of one graph, and graphs in nodes see those outside. */
#include <stdlib.h>
#include <string.h>

#include "engine/parse/onnx/onnx_build.h"

int ifd_onnx_order(struct ifd_str x, struct ifd_str y)
{
    const size_t least = x.size < y.size ? x.size : y.size;
    const int order = least > 0 ? memcmp(x.data, y.data, least) : 0;
    return order != 0 ? order : x.size < y.size ? -1 : x.size > y.size;
}

static int compare_names(const void *a, const void *b)
{
    return ifd_onnx_order(((const struct ifd_onnx_name *)a)->text,
                          ((const struct ifd_onnx_name *)b)->text);
}

struct ifd_onnx_name *ifd_onnx_find(const struct ifd_onnx_scope *scope, struct ifd_str text)
{
    const struct ifd_onnx_name wanted = {.text = text};
    return scope->name_count == 0 ? NULL
                                  : bsearch(&wanted, scope->name, scope->name_count,
                                            sizeof(*scope->name), compare_names);
}

enum ifd_code ifd_onnx_collect_names(struct ifd_onnx_build *build, struct ifd_onnx_scope *scope,
                                     struct ifd_arena *arena)
{
    const struct ifd_onnx_graph *g = scope->g;
    scope->name_count = 0;
    scope->name = ifd_arena_take_array(arena, g->name_count, sizeof(*scope->name));
    if (!scope->name) {
        return ifd_arena_fail(arena, g->name_count * sizeof(*scope->name), build->err);
    }
    for (size_t i = 0; i < g->name_count; i++) {
        scope->name[i] = (struct ifd_onnx_name){
            .text = g->name[i].text, .value = IFD_NONE, .maker = g->name[i].maker};
    }
    scope->name_count = g->name_count;
    return IFD_OK;
}

enum ifd_code ifd_onnx_define(struct ifd_onnx_build *build, struct ifd_str text, uint32_t value)
{
    struct ifd_onnx_name *name = ifd_onnx_find(build->scope, text);
    if (!name || name->value != IFD_NONE) {
        return ifd_fail(build->err, IFD_CORRUPT, "value \"%s\" is %s", ifd_onnx_text(text).s,
                        name ? "made twice" : "not named");
    }
    name->value = value;
    return IFD_OK;
}

const struct ifd_onnx_node *ifd_onnx_maker(const struct ifd_onnx_build *build, struct ifd_str text)
{
    const struct ifd_onnx_name *name = ifd_onnx_find(build->scope, text);
    const struct ifd_resume *resume = build->options->resume;
    const bool is_past = name && resume && !build->scope->outer && name->maker &&
                         name->maker - build->scope->g->node < (ptrdiff_t)resume->node;
    return name && !is_past ? name->maker : NULL;
}

static uint32_t find_outside(const struct ifd_onnx_scope *scope, struct ifd_str text,
                             const struct ifd_onnx_level **ret_level)
{
    for (; scope; scope = scope->outer) {
        const struct ifd_onnx_name *name = ifd_onnx_find(scope, text);
        if (name && name->value != IFD_NONE) {
            *ret_level = scope->level;
            return name->value;
        }
        if (scope->function) {
            break;
        }
    }
    return IFD_NONE;
}

/* The input by which a value of the level outside comes in. */
static uint32_t input_of(const struct ifd_onnx_level *level, uint32_t value)
{
    uint32_t first = 0, behind = level->captured_count;
    while (first < behind) {
        const uint32_t middle = first + (behind - first) / 2;
        if (level->captured[middle] == value) {
            return level->input[middle];
        }
        if (level->captured[middle] < value) {
            first = middle + 1;
        } else {
            behind = middle;
        }
    }
    return IFD_NONE;
}

uint32_t ifd_onnx_lookup(struct ifd_onnx_build *build, struct ifd_str text)
{
    const struct ifd_onnx_level *from = build->level;
    uint32_t value = find_outside(build->scope, text, &from);
    if (ifd_onnx_is_list(value)) {
        build->is_stuck = build->is_stuck || from != build->level;
        return from == build->level ? value : IFD_NONE;
    }
    if (value != IFD_NONE && from != build->level && from->graph->value[value].is_constant) {
        const struct ifd_value *constant = &from->graph->value[value];
        return ifd_build_constant(&build->b, &constant->desc, constant->data, IFD_TENSOR_PAD);
    }
    while (value != IFD_NONE && from != build->level) {
        const struct ifd_onnx_level *level = build->level;
        while (level->outer != from) {
            level = level->outer;
        }
        value = input_of(level, value);
        from = level;
    }
    return value;
}
