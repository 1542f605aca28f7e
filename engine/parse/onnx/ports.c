/* Inputs and outputs of a model: what the file says of them, and the values that they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/str.h"
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"

/* ---- inputs ---- */

/* Sizes below 1 count as open. */
static struct ifd_shape shape_of(const struct ifd_onnx_port *port)
{
    struct ifd_shape shape = {.rank = port->dim_count};
    for (uint32_t d = 0; d < port->dim_count && d < IFD_MAX_RANK; d++) {
        shape.dim[d] = port->dim[d] > 0 ? port->dim[d] : IFD_DIM_ANY;
    }
    return shape;
}

/* Is it the symbol of some input's first dimension? Then it gets the same size. */
static bool is_first_elsewhere(const struct ifd_onnx_build *build, struct ifd_str symbol)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    bool is_so = false;
    for (uint32_t i = 0; i < g->input_count; i++) {
        is_so =
            is_so || (g->input[i].dim_count > 0 && ifd_onnx_is_same(g->input[i].symbol[0], symbol));
    }
    return is_so;
}

/* The whole name, since clients ask by it; NULL: no memory. What is no text of one line has '?'. */
static const char *name_of(const struct ifd_onnx_build *build, struct ifd_str text)
{
    char *name = ifd_arena_text(build->b.graph->arena, text.data, text.size);
    const bool is_utf8 = ifd_str_is_utf8(text);
    for (size_t i = 0; name && i < text.size; i++) {
        const uint8_t byte = (uint8_t)name[i];
        name[i] = byte < ' ' || byte == 0x7f || (byte > 0x7f && !is_utf8) ? '?' : name[i];
    }
    return name;
}

/* Files before it list every constant as an input; inputs of newer ones may be given another
 * value. */
#define OPEN_IR_VERSION 4

void ifd_onnx_mark_open_inputs(const struct ifd_onnx_build *build)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    const struct ifd_parse_options *options = build->options;
    if (build->model->ir_version < OPEN_IR_VERSION) {
        return;
    }
    for (uint32_t i = 0; i < options->shape_count; i++) {
        struct ifd_onnx_name *name = ifd_onnx_find(build->scope, ifd_str(options->shape[i].name));
        if (name) {
            name->is_given = true;
        }
    }
    for (uint32_t i = 0; i < g->input_count; i++) {
        struct ifd_onnx_name *name = ifd_onnx_find(build->scope, g->input[i].name);
        if (name) {
            name->is_open_input = name->is_given;
        }
    }
}

/* The content of the initializer that an input has, in memory of its own: a run reads it where it
 * lies. Constants of every type of floats are f32, inputs are what the file says. */
static enum ifd_code take_value(struct ifd_onnx_build *build, const struct ifd_onnx_tensor *from,
                                const struct ifd_desc *desc, struct ifd_bytes *ret)
{
    enum ifd_dtype own = IFD_F32;
    uint32_t value = ifd_onnx_constant(&build->b, from);
    if (ifd_onnx_port_dtype(from->type, &own) && own == desc->dtype && ifd_onnx_is_real(own)) {
        value = ifd_build_cast(&build->b, value, own);
    }
    if (build->b.code != IFD_OK) {
        return build->b.code;
    }
    const struct ifd_value *v = &build->b.graph->value[value];
    uint8_t *content = ifd_arena_take_tensor(build->b.graph->arena, v->data.size);
    if (!v->is_constant || v->desc.dtype != desc->dtype || desc->dtype == IFD_STR ||
        !ifd_shape_equal(&v->desc.shape, &desc->shape)) {
        return ifd_fail(build->err, IFD_UNSUPPORTED, "input \"%s\" is %s %s, its value is %s %s",
                        ifd_onnx_text(from->name).s, ifd_dtype_name(desc->dtype),
                        ifd_shape_text(&desc->shape).s, ifd_dtype_name(v->desc.dtype),
                        ifd_shape_text(&v->desc.shape).s);
    }
    if (!content) {
        return ifd_arena_fail(build->b.graph->arena, v->data.size, build->err);
    }
    memcpy(content, v->data.data, v->data.size);
    *ret = (struct ifd_bytes){.data = content, .size = v->data.size};
    return IFD_OK;
}

/* value: the file's, NULL if it has none. */
static enum ifd_code describe_input(struct ifd_onnx_build *build, const struct ifd_onnx_port *port,
                                    const char *whole_name, const struct ifd_onnx_tensor *value,
                                    struct ifd_desc *ret, struct ifd_shape *ret_declared)
{
    const struct ifd_onnx_text name = ifd_onnx_text(port->name);
    struct ifd_shape file = shape_of(port);
    *ret = (struct ifd_desc){.shape = {.rank = 0}};
    if (!port->is_tensor || port->is_sequence) {
        return ifd_fail(build->err, IFD_UNSUPPORTED, "input \"%s\" is %s", name.s,
                        port->is_sequence ? "a sequence; requests have tensors only" : "no tensor");
    }
    if (!ifd_onnx_outer_dtype(port->type, &ret->dtype)) {
        return ifd_fail(build->err, IFD_UNSUPPORTED, "input \"%s\" has element type %d%s", name.s,
                        port->type, port->type == IFD_ONNX_STRING ? " (string)" : "");
    }
    if (!port->has_shape && !ifd_onnx_find_shape(build, port->name, whole_name, &file)) {
        return ifd_fail(build->err, IFD_UNSUPPORTED,
                        "input \"%s\" is of unknown rank: the dims of a config say it", name.s);
    }
    if (file.rank > IFD_MAX_RANK) {
        return ifd_fail(build->err, IFD_UNSUPPORTED, "input \"%s\" has %u dimensions, limit %d",
                        name.s, file.rank, IFD_MAX_RANK);
    }
    ifd_parse_input_shape(build->options, whole_name, &file, NULL, ret_declared, &ret->shape);
    for (uint32_t d = 1; d < port->dim_count; d++) {
        if (ret_declared->dim[d] == IFD_DIM_ANY && is_first_elsewhere(build, port->symbol[d])) {
            ret->shape.dim[d] = build->options->open_first > 0 ? build->options->open_first : 1;
        }
    }
    for (uint32_t d = 0; value && d < port->dim_count && d < value->dim_count; d++) {
        ret->shape.dim[d] = ret_declared->dim[d] == IFD_DIM_ANY ? value->dim[d] : ret->shape.dim[d];
    }
    ifd_parse_note_open(&file, ret_declared, build->parsed);
    if (!ifd_desc_fits(ret, build->b.tensor_bytes)) {
        return ifd_fail(build->err, IFD_TOO_LARGE,
                        "input \"%s\" of shape %s has more than %zu bytes", name.s,
                        ifd_shape_text(&ret->shape).s, build->b.tensor_bytes);
    }
    return IFD_OK;
}

/* Every type of floats is computed as f32. */
static uint32_t inner_value(struct ifd_onnx_build *build, uint32_t input, int32_t type)
{
    if (ifd_onnx_is_narrow(type)) {
        return ifd_onnx_from_outer(&build->b, input, type);
    }
    const enum ifd_dtype dtype = build->b.graph->value[input].desc.dtype;
    return ifd_onnx_is_real(dtype) ? ifd_build_cast(&build->b, input, IFD_F32) : input;
}

static struct ifd_str first_symbol(const struct ifd_onnx_port *port)
{
    return port->dim_count > 0 ? port->symbol[0] : (struct ifd_str){.size = 0};
}

/* first: the one before it whose first dimension is open. */
static void note_apart(const struct ifd_onnx_port *port, const struct ifd_shape *declared,
                       const struct ifd_onnx_port **first, struct ifd_parsed *ret)
{
    if (declared->rank > 0 && declared->dim[0] == IFD_DIM_ANY) {
        ret->opens_apart = ret->opens_apart ||
                           (*first && !ifd_onnx_is_same(first_symbol(*first), first_symbol(port)));
        *first = *first ? *first : port;
    }
}

enum ifd_code ifd_onnx_add_inputs(struct ifd_onnx_build *build)
{
    const struct ifd_onnx_port *first = NULL;
    uint32_t *input = build->graph_input;
    const struct ifd_onnx_graph *g = build->scope->g;
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const struct ifd_onnx_name *entry = ifd_onnx_find(build->scope, g->input[i].name);
        if (entry && entry->is_fixed) {
            continue;
        }
        struct ifd_desc desc;
        struct ifd_shape *declared = &build->input[count].desc.shape;
        const char *name = name_of(build, g->input[i].name);
        if (!name) {
            return ifd_arena_fail(build->b.graph->arena, g->input[i].name.size, build->err);
        }
        const struct ifd_onnx_tensor *value = entry ? entry->initializer : NULL;
        enum ifd_code code = describe_input(build, &g->input[i], name, value, &desc, declared);
        if (code == IFD_OK && value && !build->options->are_final) {
            code = take_value(build, value, &desc, &build->input[count].value);
        }
        if (code == IFD_OK) {
            code = ifd_graph_add_value(build->b.graph, name, &desc, &input[count], build->err);
        }
        if (code == IFD_OK) {
            code = ifd_onnx_define(build, g->input[i].name,
                                   inner_value(build, input[count], g->input[i].type));
        }
        code = code == IFD_OK ? build->b.code : code;
        if (code != IFD_OK) {
            return code;
        }
        note_apart(&g->input[i], declared, &first, build->parsed);
        count++;
    }
    build->graph_input_count = count;
    return IFD_OK;
}

/* ---- outputs ---- */

/* What the engine hands out is made by a node of its own: not an input, a constant, or another
 * output. */
static uint32_t own_value(struct ifd_onnx_build *build, uint32_t value, const uint32_t *before,
                          uint32_t count)
{
    struct ifd_builder *b = &build->b;
    if (b->code != IFD_OK) { /* of what was built before */
        return IFD_NONE;
    }
    bool is_own = b->graph->value[value].producer != IFD_NONE;
    for (uint32_t i = 0; i < count; i++) {
        is_own = is_own && before[i] != value;
    }
    if (is_own || b->graph->value[value].is_constant) {
        return value;
    }
    const struct ifd_shape shape = b->graph->value[value].desc.shape;
    return ifd_build_reshape(b, value, shape.dim, shape.rank);
}

/* Floats go out in the type that the file says. */
static uint32_t outer_value(struct ifd_onnx_build *build, uint32_t value,
                            const struct ifd_onnx_port *port)
{
    enum ifd_dtype dtype = IFD_F32;
    if (ifd_onnx_is_narrow(port->type)) {
        return ifd_onnx_to_outer(&build->b, value, port->type);
    }
    const bool is_cast = ifd_onnx_port_dtype(port->type, &dtype) && ifd_onnx_is_real(dtype) &&
                         build->b.graph->value[value].desc.dtype == IFD_F32;
    return is_cast ? ifd_build_cast(&build->b, value, dtype) : value;
}

/* Most elements of the sequences that are outputs. */
#define ELEMENTS_MAX 1024

/* The values of output i: one, or the elements of a sequence. */
static enum ifd_code values_of(struct ifd_onnx_build *build, uint32_t i, uint32_t *single,
                               const uint32_t **ret_value, uint32_t *ret_count)
{
    const struct ifd_onnx_port *port = &build->scope->g->output[i];
    *single = ifd_onnx_lookup(build, port->name);
    *ret_value = single;
    *ret_count = 1;
    if (*single == IFD_NONE) {
        return ifd_fail(build->err, IFD_CORRUPT, "output \"%s\" is made by no node",
                        ifd_onnx_text(port->name).s);
    }
    if (ifd_onnx_is_list(*single)) {
        const struct ifd_onnx_list *list = ifd_onnx_list(build, *single);
        *ret_value = list->value;
        *ret_count = list->count;
        if (list->is_absent) {
            return ifd_fail(build->err, IFD_UNSUPPORTED,
                            "output \"%s\" of the model is an optional value that is absent",
                            ifd_onnx_text(port->name).s);
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_onnx_count_outputs(struct ifd_onnx_build *build, uint32_t *ret_count)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    uint32_t all = 0, elements = 0;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t *value = NULL;
        uint32_t single = 0, count = 0;
        const enum ifd_code code = values_of(build, i, &single, &value, &count);
        if (code != IFD_OK) {
            return code;
        }
        elements += ifd_onnx_is_list(single) ? count : 0;
        all += count;
        if (elements > ELEMENTS_MAX) {
            return ifd_fail(build->err, IFD_TOO_LARGE,
                            "output \"%s\": sequences of %u tensors, limit %d",
                            ifd_onnx_text(g->output[i].name).s, elements, ELEMENTS_MAX);
        }
    }
    if (all == 0) {
        return ifd_fail(build->err, IFD_UNSUPPORTED, "the model has no outputs");
    }
    *ret_count = all;
    return IFD_OK;
}

enum ifd_code ifd_onnx_take_outputs(struct ifd_onnx_build *build, uint32_t *output)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t *value = NULL;
        uint32_t single = 0, count = 0;
        const enum ifd_code code = values_of(build, i, &single, &value, &count);
        for (uint32_t k = 0; code == IFD_OK && build->b.code == IFD_OK && k < count; k++) {
            output[taken] =
                own_value(build, outer_value(build, value[k], &g->output[i]), output, taken);
            taken++;
        }
        if (code != IFD_OK || build->b.code != IFD_OK) {
            return code != IFD_OK ? code : build->b.code;
        }
    }
    return IFD_OK;
}

/* ---- what is told of both ---- */

static void name_inputs(const struct ifd_graph *graph, struct ifd_port *port)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        port[i].name = graph->value[graph->input[i]].name;
    }
}

static enum ifd_code take_ports(struct ifd_arena *arena, uint32_t count, struct ifd_port **ret,
                                struct ifd_err *err)
{
    *ret = ifd_arena_take_array(arena, count, sizeof(**ret));
    for (uint32_t i = 0; *ret && i < count; i++) {
        (*ret)[i].name = "";
    }
    return *ret ? IFD_OK : ifd_arena_fail(arena, count * sizeof(**ret), err);
}

/* The name of an element of a sequence: NAME.0, NAME.1 … */
static const char *element_name(const struct ifd_onnx_build *build, const char *name, uint32_t k)
{
    char number[16];
    const size_t length = strlen(name);
    const int more = snprintf(number, sizeof(number), ".%u", k);
    char *text = ifd_arena_take(build->b.graph->arena, length + (size_t)more + 1);
    if (text) {
        memcpy(text, name, length);
        memcpy(text + length, number, (size_t)more + 1);
    }
    return text;
}

/* An output of unknown rank is open in every dimension. Behind a cut, a sequence is one port. */
static enum ifd_code describe_outputs(struct ifd_onnx_build *build, struct ifd_port *ports)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    struct ifd_arena *arena = build->b.graph->arena;
    for (uint32_t i = 0, at = 0; i < g->output_count; i++) {
        const struct ifd_onnx_port *port = &g->output[i];
        const uint32_t value =
            build->parsed->cut.is_cut ? IFD_NONE : ifd_onnx_lookup(build, port->name);
        const bool is_list = ifd_onnx_is_list(value);
        const uint32_t count = is_list ? ifd_onnx_list(build, value)->count : 1;
        const char *name = name_of(build, port->name);
        for (uint32_t k = 0; k < count; k++, at++) {
            ports[at].name = is_list && name ? element_name(build, name, k) : name;
            if (!ports[at].name) {
                return ifd_arena_fail(arena, port->name.size, build->err);
            }
            if (port->has_shape && port->dim_count <= IFD_MAX_RANK) {
                ports[at].desc.shape = shape_of(port);
            }
        }
    }
    return IFD_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Clients ask for outputs by name. */
static enum ifd_code check_names(const struct ifd_onnx_build *build, const struct ifd_port *port,
                                 uint32_t count)
{
    struct ifd_arena *arena = build->b.graph->arena;
    const char **name = ifd_arena_take_array(arena, count, sizeof(*name));
    if (!name) {
        return ifd_arena_fail(arena, count * sizeof(*name), build->err);
    }
    for (uint32_t i = 0; i < count; i++) {
        name[i] = port[i].name;
    }
    qsort(name, count, sizeof(*name), compare_names);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(name[i - 1], name[i]) == 0) {
            return ifd_fail(build->err, IFD_UNSUPPORTED, "two outputs have the name \"%.150s\"",
                            name[i]);
        }
    }
    return IFD_OK;
}

/* Type and number of dimensions of an output that the file does not say, only a run finds. */
static enum ifd_code check_results(const struct ifd_onnx_build *build, struct ifd_port *ports)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    bool *is_unknown = ifd_arena_take_array(build->b.graph->arena, g->output_count, sizeof(bool));
    if (!is_unknown) {
        return ifd_arena_fail(build->b.graph->arena, g->output_count, build->err);
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        const struct ifd_onnx_port *port = &g->output[i];
        const struct ifd_onnx_name *name = ifd_onnx_find(build->scope, port->name);
        if (name && name->maker && ifd_str_is(name->maker->op, "ZipMap")) { /* stays numbers */
            ports[i].desc = (struct ifd_desc){
                .dtype = IFD_F32, .shape = {.rank = 2, .dim = {IFD_DIM_ANY, IFD_DIM_ANY}}};
            continue;
        }
        if (port->is_sequence) {
            return ifd_fail(build->err, IFD_UNSUPPORTED,
                            "output \"%s\" is a sequence, and sizes depend on data: only a run "
                            "finds how many tensors it has",
                            ifd_onnx_text(port->name).s);
        }
        is_unknown[i] = !port->has_shape || port->dim_count > IFD_MAX_RANK ||
                        !ifd_onnx_outer_dtype(port->type, &ports[i].desc.dtype);
        if (is_unknown[i] && build->options->ports_only) {
            return ifd_fail(
                build->err, IFD_UNSUPPORTED,
                "output \"%s\": its size depends on data, and the file does not say its "
                "number of dimensions and its type",
                ifd_onnx_text(port->name).s);
        }
        build->parsed->is_unknown = is_unknown[i] ? is_unknown : build->parsed->is_unknown;
    }
    return IFD_OK;
}

enum ifd_code ifd_onnx_describe_ports(struct ifd_onnx_build *build)
{
    struct ifd_graph *graph = build->b.graph;
    struct ifd_parsed *parsed = build->parsed;
    name_inputs(graph, build->input);
    parsed->result_count = parsed->cut.is_cut ? build->scope->g->output_count : graph->output_count;
    enum ifd_code code =
        take_ports(graph->arena, parsed->result_count, &parsed->result, build->err);
    if (code == IFD_OK) {
        code = describe_outputs(build, parsed->result);
    }
    if (code == IFD_OK) {
        code = check_names(build, parsed->result, parsed->result_count);
    }
    if (code != IFD_OK || !parsed->cut.is_cut) {
        parsed->output = parsed->result;
        return code;
    }
    code = check_results(build, parsed->result);
    return code == IFD_OK
               ? take_ports(graph->arena, graph->output_count, &parsed->output, build->err)
               : code;
}
