/* ONNX file → graph: names become values, nodes are translated in the file's order. */
#include "engine/parse/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "engine/ir/shape.h"
#include "engine/ir/verify.h"
#include "engine/parse/onnx/onnx_build.h"

/* ONNX is a protobuf without a mark of its own. Its first field is ir_version (number 1, varint:
 * byte 08), a small number, followed by a field of the model with a length or by opset imports. */
bool ifd_onnx_sniff(struct ifd_bytes file)
{
    return file.size > 2 && file.data[0] == 0x08 && file.data[1] >= 1 && file.data[1] <= 0x20 &&
           (file.data[2] & 7) == 2 && file.data[2] >> 3 <= 20 && file.data[2] >> 3 >= 2;
}

/* ---- constants ---- */

static enum ifd_code add_initializers(struct ifd_onnx_build *build)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    const struct ifd_onnx_constant *known =
        build->kept && !build->scope->outer ? build->kept->constant : NULL;
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < g->initializer_count; i++) {
        struct ifd_onnx_name *name = ifd_onnx_find(build->scope, g->initializer[i].name);
        if (name && name->is_open_input) {
            code = name->initializer
                       ? ifd_fail(build->err, IFD_CORRUPT, "value \"%s\" is made twice",
                                  ifd_onnx_text(name->text).s)
                       : IFD_OK;
            name->initializer = &g->initializer[i];
            continue;
        }
        const uint32_t value =
            known && known[i].is_constant
                ? ifd_build_constant(&build->b, &known[i].desc, known[i].data, IFD_TENSOR_PAD)
                : ifd_onnx_constant(&build->b, &g->initializer[i]);
        code = build->b.code == IFD_OK ? ifd_onnx_define(build, g->initializer[i].name, value)
                                       : build->b.code;
        if (name) {
            name->is_fixed = true;
        }
    }
    return code;
}

/* Later readings take the constants of this graph. Where nodes make an initializer, such as large
 * ones of 8-bit floats, they make it again. */
static enum ifd_code keep_initializers(struct ifd_onnx_build *build)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    struct ifd_onnx_constant *constant =
        ifd_arena_take_array(&build->options->kept->arena, g->initializer_count, sizeof(*constant));
    if (!constant) {
        return ifd_arena_fail(&build->options->kept->arena, g->initializer_count, build->err);
    }
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const struct ifd_onnx_name *name = ifd_onnx_find(build->scope, g->initializer[i].name);
        if (name->value == IFD_NONE) { /* an input */
            continue;
        }
        const struct ifd_value *value = &build->b.graph->value[name->value];
        constant[i] = (struct ifd_onnx_constant){
            .is_constant = value->is_constant, .desc = value->desc, .data = value->data};
    }
    build->filling->constant = constant;
    return IFD_OK;
}

/* ---- nodes ---- */

/* Puts `Conv (node 5, output "x"): ` in front, in place of what the graph says of its own node,
 * which has no name yet. */
static enum ifd_code blame_node(const struct ifd_onnx_build *build, uint32_t index,
                                enum ifd_code code)
{
    const struct ifd_onnx_node *node = &build->scope->g->node[index];
    const bool is_deep = build->depth > 1 || build->levels > 4; /* the text has no room for all */
    if (code == IFD_OK || is_deep) {
        return code;
    }
    char *text = build->err->text;
    const char *inner = strstr(text, ", output \"\"): ");
    if (inner) {
        struct ifd_err rest;
        (void)snprintf(rest.text, sizeof(rest.text), "%s", inner + strlen(", output \"\"): "));
        (void)snprintf(text, sizeof(rest.text), "%s", rest.text);
    }
    ifd_err_prefix(build->err, "%s%s%s (node %u, output \"%s\")", ifd_onnx_text(node->domain).s,
                   node->domain.size > 0 ? "." : "", ifd_onnx_text(node->op).s, index,
                   node->output_count > 0 ? ifd_onnx_text(node->output[0]).s : "");
    return code;
}

/* rule: not NULL, since ifd_onnx_check_operators has looked at every graph. */
static enum ifd_code check_node(const struct ifd_onnx_build *build,
                                const struct ifd_onnx_call *call, const struct ifd_onnx_rule *rule)
{
    const struct ifd_onnx_node *node = call->node;
    if (call->opset < 1 && rule->domain[0] == '\0') {
        return ifd_fail(build->err, IFD_UNSUPPORTED, "the %s names no opset of ONNX",
                        build->depth > 0 ? "function" : "model");
    }
    if (node->input_count < rule->min_inputs || node->input_count > rule->max_inputs ||
        node->output_count == 0) {
        return ifd_fail(build->err, IFD_CORRUPT,
                        "%u inputs and %u outputs, expected %u to %u and 1", node->input_count,
                        node->output_count, rule->min_inputs, rule->max_inputs);
    }
    return IFD_OK;
}

/* rule: NULL for a function. */
static enum ifd_code take_inputs(struct ifd_onnx_build *build, const struct ifd_onnx_node *node,
                                 const struct ifd_onnx_rule *rule, struct ifd_onnx_call *call,
                                 struct ifd_arena *scratch)
{
    uint32_t *input = ifd_arena_take_array(scratch, node->input_count, sizeof(*input));
    const uint32_t outputs =
        !rule || node->output_count < rule->max_outputs ? node->output_count : rule->max_outputs;
    uint32_t *output = ifd_arena_take_array(scratch, outputs, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(scratch, node->input_count * sizeof(*input), build->err);
    }
    call->input = input;
    call->output = output;
    call->output_count = outputs;
    for (uint32_t i = 0; i < outputs; i++) {
        output[i] = IFD_NONE;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_named = node->input[i].size > 0;
        input[i] = is_named ? ifd_onnx_lookup(build, node->input[i]) : IFD_NONE;
        if (is_named && input[i] == IFD_NONE && !ifd_onnx_is_left_out(build, node->input[i])) {
            return ifd_fail(build->err, IFD_CORRUPT, "input %u \"%s\" is made by no node before it",
                            i, ifd_onnx_text(node->input[i]).s);
        }
        if (rule && input[i] == IFD_NONE && i < rule->min_inputs) {
            return ifd_fail(build->err, IFD_CORRUPT, "input %u is missing", i);
        }
        if (rule && ifd_onnx_is_list(input[i]) && !ifd_onnx_takes_lists(node)) {
            return ifd_fail(build->err, IFD_CORRUPT, "input %u is a sequence, or absent", i);
        }
        call->input_count = input[i] != IFD_NONE ? i + 1 : call->input_count;
    }
    return IFD_OK;
}

static enum ifd_code name_outputs(struct ifd_onnx_build *build, const struct ifd_onnx_call *call)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < call->output_count; i++) {
        const uint32_t value = call->output[i];
        if (call->node->output[i].size == 0 || value == IFD_NONE) {
            continue;
        }
        struct ifd_value *v = ifd_onnx_is_list(value) ? NULL : &build->b.graph->value[value];
        const struct ifd_onnx_text text = ifd_onnx_text(call->node->output[i]);
        if (v && v->name[0] == '\0') {
            v->name = ifd_arena_text(build->b.graph->arena, text.s, strlen(text.s));
            if (!v->name) {
                return ifd_arena_fail(build->b.graph->arena, sizeof(text), build->err);
            }
        }
        code = ifd_onnx_define(build, call->node->output[i], value);
    }
    return code;
}

enum ifd_code ifd_onnx_spend(struct ifd_onnx_build *build, uint32_t nodes)
{
    if (build->nodes_left < nodes) {
        build->is_exhausted = true;
        return ifd_fail(build->err, IFD_TOO_LARGE, "graphs of nodes become more than %u nodes",
                        ifd_parse_inlined_max(build->options));
    }
    build->nodes_left -= nodes;
    return IFD_OK;
}

static enum ifd_code build_node(struct ifd_onnx_build *build, uint32_t index,
                                struct ifd_arena *scratch)
{
    const struct ifd_onnx_node *node = &build->scope->g->node[index];
    const struct ifd_onnx_local *function = ifd_onnx_local_of(build->model, node);
    const struct ifd_onnx_rule *rule = function ? NULL : ifd_onnx_rule(node);
    struct ifd_onnx_call call = {.b = &build->b,
                                 .build = build,
                                 .node = node,
                                 .opset = ifd_onnx_opset_of(build, node->domain)};
    enum ifd_code code = build->scope->outer ? ifd_onnx_spend(build, 1) : IFD_OK;
    if (code == IFD_OK && !function) {
        code = check_node(build, &call, rule);
    }
    if (code == IFD_OK) {
        code = take_inputs(build, node, rule, &call, scratch);
    }
    if (code == IFD_OK && function) {
        ifd_onnx_call_local(&call, function);
        code = build->b.code;
    } else if (code == IFD_OK) {
        build->b.source_index = index;
        build->b.source_name = rule->op;
        rule->translate(&call, rule->argument);
        code = build->b.code;
    }
    return code == IFD_OK ? name_outputs(build, &call) : code;
}

static enum ifd_code build_nodes(struct ifd_onnx_build *build)
{
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, build->scratch->alloc, build->scratch->cap_bytes);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < build->scope->g->node_count; i++) {
        code = blame_node(build, i, build_node(build, i, &scratch));
        ifd_arena_reset(&scratch);
    }
    ifd_arena_finish(&scratch);
    return code;
}

/* Those of the model itself, up to one that needs content which only a run finds. */
static enum ifd_code build_main(struct ifd_onnx_build *build)
{
    const struct ifd_resume *resume = build->options->resume;
    const uint32_t count = build->scope->g->node_count;
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, build->scratch->alloc, build->scratch->cap_bytes);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = resume ? resume->node : 0; code == IFD_OK && i < count; i++) {
        build->node = i;
        build->asked = build->loops = 0;
        code = blame_node(build, i, build_node(build, i, &scratch));
        if (code == IFD_OK) {
            ifd_onnx_learn(build);
        }
        ifd_arena_reset(&scratch);
    }
    ifd_arena_finish(&scratch);
    return code;
}

/* ---- graphs of nodes ---- */

static enum ifd_code define_inputs(struct ifd_onnx_build *build, const uint32_t *input,
                                   uint32_t count)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    enum ifd_code code = IFD_OK;
    if (g->input_count != count) {
        return ifd_fail(build->err, IFD_CORRUPT, "a graph of %u inputs for %u", g->input_count,
                        count);
    }
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        if (input[i] != IFD_NONE) { /* else the caller of a function left it out */
            code = ifd_onnx_define(build, g->input[i].name, input[i]);
        }
    }
    return code;
}

static enum ifd_code find_outputs(struct ifd_onnx_build *build, uint32_t *ret_output)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    for (uint32_t i = 0; i < g->output_count; i++) {
        ret_output[i] = ifd_onnx_lookup(build, g->output[i].name);
        if (ret_output[i] == IFD_NONE && !ifd_onnx_is_left_out(build, g->output[i].name)) {
            return ifd_fail(build->err, IFD_CORRUPT, "output \"%s\" is made by no node",
                            ifd_onnx_text(g->output[i].name).s);
        }
    }
    return IFD_OK;
}

/* Graphs are nested as deep as the reader allows, but a function's graph may refer to itself. */
#define LEVELS_MAX 128

enum ifd_code ifd_onnx_inline(struct ifd_onnx_build *build, const struct ifd_onnx_graph *g,
                              const struct ifd_onnx_local *function,
                              const struct ifd_onnx_node *caller, const uint32_t *input,
                              uint32_t input_count, uint32_t *ret_output)
{
    struct ifd_onnx_scope scope = {.outer = build->scope,
                                   .function = function,
                                   .caller = caller,
                                   .g = g,
                                   .level = build->level};
    struct ifd_onnx_scope *outer = build->scope;
    struct ifd_arena arena;
    if (build->levels == LEVELS_MAX) {
        return ifd_fail(build->err, IFD_TOO_LARGE,
                        "graphs and functions are nested more than %d deep", LEVELS_MAX);
    }
    build->levels++;
    ifd_arena_init(&arena, build->scratch->alloc, build->scratch->cap_bytes);
    build->scope = &scope;
    enum ifd_code code = ifd_onnx_spend(
        build, 1 + (g->initializer_count + g->input_count + g->output_count) / IFD_ONNX_NODE_NAMES);
    if (code == IFD_OK) {
        code = ifd_onnx_collect_names(build, &scope, &arena);
    }
    if (code == IFD_OK) {
        code = add_initializers(build);
    }
    if (code == IFD_OK) {
        code = define_inputs(build, input, input_count);
    }
    if (code == IFD_OK) {
        code = build_nodes(build);
    }
    if (code == IFD_OK) {
        code = find_outputs(build, ret_output);
    }
    build->scope = outer;
    build->levels--;
    ifd_arena_finish(&arena);
    return code;
}

/* ---- the whole ---- */

static enum ifd_code begin_graph(struct ifd_onnx_build *build)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    struct ifd_arena *arena = build->b.graph->arena;
    enum ifd_code code = ifd_onnx_collect_names(build, build->scope, build->scratch);
    if (code != IFD_OK || build->options->resume) {
        return code == IFD_OK ? ifd_onnx_take_resumed(build) : code;
    }
    build->graph_input =
        ifd_arena_take_array(build->scratch, g->input_count, sizeof(*build->graph_input));
    build->input = ifd_arena_take_array(arena, g->input_count, sizeof(*build->input));
    if (!build->graph_input || !build->input) {
        return ifd_arena_fail(arena, g->input_count * sizeof(*build->input), build->err);
    }
    code = ifd_onnx_check_operators(build);
    ifd_onnx_mark_open_inputs(build);
    if (code == IFD_OK) {
        code = add_initializers(build);
    }
    if (code == IFD_OK && build->filling) {
        code = keep_initializers(build);
    }
    return code == IFD_OK ? ifd_onnx_add_inputs(build) : code;
}

static enum ifd_code end_graph(struct ifd_onnx_build *build)
{
    uint32_t count = 0;
    enum ifd_code code = ifd_onnx_count_outputs(build, &count);
    if (code != IFD_OK) {
        return code;
    }
    uint32_t *output = ifd_arena_take_array(build->scratch, count, sizeof(*output));
    if (!output) {
        return ifd_arena_fail(build->scratch, count * sizeof(*output), build->err);
    }
    code = ifd_onnx_take_outputs(build, output);
    return code == IFD_OK ? ifd_graph_set_io(build->b.graph, build->graph_input,
                                             build->graph_input_count, output, count, build->err)
                          : code;
}

/* In front of the first node. A graph has an output; nobody wants this one. */
static enum ifd_code end_before_nodes(struct ifd_onnx_build *build)
{
    const uint32_t first = build->graph_input_count > 0 ? build->graph_input[0] : IFD_NONE;
    if (first == IFD_NONE) {
        return ifd_fail(build->err, IFD_UNSUPPORTED, "the model has no inputs");
    }
    const struct ifd_shape shape = build->b.graph->value[first].desc.shape;
    const uint32_t output = ifd_build_reshape(&build->b, first, shape.dim, shape.rank);
    build->parsed->cut = (struct ifd_cut){.is_cut = true};
    return build->b.code == IFD_OK
               ? ifd_graph_set_io(build->b.graph, build->graph_input, build->graph_input_count,
                                  &output, 1, build->err)
               : build->b.code;
}

static enum ifd_code build_graph(struct ifd_onnx_build *build)
{
    enum ifd_code code = begin_graph(build);
    build->parsed->input = build->input;
    if (code == IFD_OK && build->options->ports_only) {
        code = end_before_nodes(build);
    } else if (code == IFD_OK) {
        code = build_main(build);
        if (code != IFD_OK && build->wanted != IFD_NONE) {
            code = ifd_onnx_make_cut(build, &build->parsed->cut);
        } else if (code == IFD_OK) {
            code = end_graph(build);
        }
    }
    if (code == IFD_OK) {
        code = ifd_graph_verify(build->b.graph, IFD_INVALID, build->err);
    }
    return code == IFD_OK ? ifd_onnx_describe_ports(build) : code;
}

/* *ret_kept: what the reading fills; its model is what was read. */
static enum ifd_code read(struct ifd_bytes file, const struct ifd_parse_options *options,
                          struct ifd_arena *arena, struct ifd_onnx_kept **ret_kept,
                          struct ifd_err *err)
{
    struct ifd_onnx_kept *kept = ifd_arena_take(arena, sizeof(*kept));
    const struct ifd_onnx_beside beside = {.file = options->external,
                                           .count = options->external_count};
    if (!kept) {
        return ifd_arena_fail(arena, sizeof(*kept), err);
    }
    *ret_kept = kept;
    return ifd_onnx_read(file, &beside, options->limits, arena, &kept->model, err);
}

static enum ifd_code parse(struct ifd_bytes file, const struct ifd_parse_options *options,
                           struct ifd_graph *graph, struct ifd_arena *scratch,
                           struct ifd_parsed *ret, struct ifd_err *err)
{
    struct ifd_parse_kept *keep = options->kept;
    const struct ifd_onnx_kept *kept = keep ? keep->read : NULL;
    const bool fills = keep && !keep->content;
    struct ifd_onnx_kept *fresh = NULL;
    enum ifd_code code =
        kept ? IFD_OK : read(file, options, fills ? &keep->arena : scratch, &fresh, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_onnx_model *model = kept ? &kept->model : &fresh->model;
    const struct ifd_onnx_level level = {.graph = graph};
    struct ifd_onnx_scope scope = {.g = &model->graph, .level = &level};
    struct ifd_onnx_build build = {.model = model,
                                   .filling = fills ? fresh : NULL,
                                   .kept = kept,
                                   .options = options,
                                   .file = file,
                                   .scratch = scratch,
                                   .scope = &scope,
                                   .level = &level,
                                   .main = graph,
                                   .nodes_left = ifd_parse_inlined_max(options),
                                   .wanted = IFD_NONE,
                                   .parsed = ret,
                                   .err = err};
    ifd_builder_init(&build.b, graph, options->limits->tensor_bytes, err);
    build.b.ask = ifd_onnx_ask;
    build.b.ask_context = &build;
    code = build_graph(&build);
    if (code == IFD_OK && build.filling) {
        keep->read = build.filling;
    }
    if (code == IFD_OK) {
        ret->format = "onnx";
        ret->format_version = (uint32_t)ifd_onnx_opset_of(&build, (struct ifd_str){0});
        ret->description = "";
    }
    return code;
}

enum ifd_code ifd_onnx_parse(struct ifd_bytes file, const struct ifd_parse_options *options,
                             struct ifd_graph *graph, struct ifd_parsed *ret, struct ifd_err *err)
{
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, graph->arena->alloc, options->limits->arena_bytes);
    struct ifd_err unheard = {0};
    const enum ifd_code code = parse(file, options, graph, &scratch, ret, err ? err : &unheard);
    ifd_arena_finish(&scratch);
    return code;
}

enum ifd_code ifd_onnx_externals(struct ifd_bytes file, const struct ifd_limits *limits,
                                 struct ifd_arena *arena, struct ifd_external_names *ret,
                                 struct ifd_err *err)
{
    struct ifd_onnx_model model;
    enum ifd_code code = ifd_onnx_read(file, NULL, limits, arena, &model, err);
    if (code != IFD_OK) {
        return code;
    }
    const char **name = ifd_arena_take_array(arena, model.place_count, sizeof(*name));
    for (uint32_t i = 0; name && i < model.place_count; i++) {
        const struct ifd_str text = model.place[i].name;
        name[i] = ifd_arena_text(arena, text.data, text.size);
        if (!name[i]) {
            return ifd_arena_fail(arena, text.size, err);
        }
    }
    *ret = (struct ifd_external_names){.name = name, .count = model.place_count};
    return name ? IFD_OK : ifd_arena_fail(arena, model.place_count * sizeof(*name), err);
}
