/* Operators that the model defines itself: built in place, wherever they are called. */
#include <string.h>

#include "engine/parse/onnx/onnx_build.h"

#define DEPTH_MAX 32 /* of functions in functions */

static bool is_main(struct ifd_str domain)
{
    return domain.size == 0 || ifd_str_is(domain, "ai.onnx");
}

static bool same_domain(struct ifd_str x, struct ifd_str y)
{
    return (is_main(x) && is_main(y)) || ifd_onnx_order(x, y) == 0;
}

const struct ifd_onnx_local *ifd_onnx_local_of(const struct ifd_onnx_model *model,
                                               const struct ifd_onnx_node *node)
{
    for (uint32_t i = 0; i < model->function_count; i++) {
        const struct ifd_onnx_local *f = &model->function[i];
        if (ifd_onnx_order(f->op, node->op) == 0 && same_domain(f->domain, node->domain) &&
            ifd_onnx_order(f->overload, node->overload) == 0) {
            return f;
        }
    }
    return NULL;
}

/* The function whose nodes are being built; NULL: none. */
static const struct ifd_onnx_scope *function_scope(const struct ifd_onnx_scope *scope)
{
    while (scope && !scope->function) {
        scope = scope->outer;
    }
    return scope;
}

int64_t ifd_onnx_opset_of(const struct ifd_onnx_build *build, struct ifd_str domain)
{
    const struct ifd_onnx_scope *scope = function_scope(build->scope);
    const struct ifd_onnx_opset *opset = scope ? scope->function->opset : build->model->opset;
    const uint32_t count = scope ? scope->function->opset_count : build->model->opset_count;
    for (uint32_t i = 0; i < count; i++) {
        if (same_domain(opset[i].domain, domain)) {
            return opset[i].version;
        }
    }
    return 0;
}

static const struct ifd_onnx_attr *find(const struct ifd_onnx_attr *attr, uint32_t count,
                                        struct ifd_str name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ifd_onnx_order(attr[i].name, name) == 0) {
            return &attr[i];
        }
    }
    return NULL;
}

const struct ifd_onnx_attr *ifd_onnx_referred(const struct ifd_onnx_build *build,
                                              const struct ifd_onnx_attr *attr)
{
    const struct ifd_onnx_scope *scope = function_scope(build->scope);
    while (attr && attr->refers_to.size > 0) {
        if (!scope) {
            return NULL;
        }
        const struct ifd_str name = attr->refers_to;
        attr = find(scope->caller->attr, scope->caller->attr_count, name);
        if (!attr) {
            return find(scope->function->attr, scope->function->attr_count, name);
        }
        scope = function_scope(scope->outer);
    }
    return attr;
}

bool ifd_onnx_is_left_out(const struct ifd_onnx_build *build, struct ifd_str text)
{
    const struct ifd_onnx_scope *scope = function_scope(build->scope);
    for (uint32_t i = 0; scope && i < scope->g->input_count; i++) {
        if (ifd_onnx_order(scope->g->input[i].name, text) == 0) {
            const struct ifd_onnx_name *name = ifd_onnx_find(scope, text);
            return name && name->value == IFD_NONE;
        }
    }
    return false;
}

void ifd_onnx_call_local(struct ifd_onnx_call *call, const struct ifd_onnx_local *function)
{
    struct ifd_onnx_build *build = call->build;
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_graph *g = &function->graph;
    if (call->node->input_count > g->input_count || call->node->output_count > g->output_count) {
        ifd_build_fail(b, IFD_CORRUPT, "%u inputs and %u outputs for a function of %u and %u",
                       call->node->input_count, call->node->output_count, g->input_count,
                       g->output_count);
        return;
    }
    if (build->depth == DEPTH_MAX) {
        ifd_build_fail(b, IFD_TOO_LARGE, "functions call each other more than %d deep", DEPTH_MAX);
        return;
    }
    struct ifd_arena arena;
    ifd_arena_init(&arena, build->scratch->alloc, build->scratch->cap_bytes);
    uint32_t *value =
        ifd_arena_take_array(&arena, (size_t)g->input_count + g->output_count + 1, sizeof(*value));
    if (!value) {
        b->code = ifd_arena_fail(&arena, g->input_count * sizeof(*value), b->err);
    } else {
        uint32_t *output = value + g->input_count;
        for (uint32_t i = 0; i < g->input_count; i++) {
            value[i] = ifd_onnx_input(call, i);
        }
        build->depth++;
        const enum ifd_code code =
            ifd_onnx_inline(build, g, function, call->node, value, g->input_count, output);
        build->depth--;
        b->code = b->code == IFD_OK ? code : b->code;
        memcpy(call->output, output, call->output_count * sizeof(*output));
    }
    ifd_arena_finish(&arena);
}
