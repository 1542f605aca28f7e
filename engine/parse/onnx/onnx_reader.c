/* Field numbers of onnx.proto, and the structs that they fill: attributes, nodes, graphs,
 * functions, the model. */
#include "engine/parse/onnx/onnx_reader.h"

#include <string.h>

#include "engine/parse/onnx/reader_impl.h"

#define DEPTH_MAX     8
#define OPSETS_MAX    256
#define FUNCTIONS_MAX 4096

/* ---- attributes and nodes ---- */

/* AttributeProto */
enum {
    A_NAME = 1,
    A_F = 2,
    A_I = 3,
    A_S = 4,
    A_T = 5,
    A_G = 6,
    A_FLOATS = 7,
    A_INTS = 8,
    A_STRINGS = 9,
    A_REFERS_TO = 21
};

static float f32_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value = 0;
    memcpy(&value, &low, sizeof(value));
    return value;
}

static enum ifd_code read_graph(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                struct ifd_onnx_graph *ret);

/* A graph in a node. */
static enum ifd_code read_inner(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                const struct ifd_onnx_graph **ret)
{
    enum ifd_code code = IFD_OK;
    if (r->depth == DEPTH_MAX) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "graphs are nested more than %d deep", DEPTH_MAX);
    }
    struct ifd_onnx_graph *graph = ifd_onnx_reader_take(r, 1, sizeof(*graph), &code);
    r->depth++;
    code = graph ? read_graph(r, message, graph) : code;
    r->depth--;
    *ret = graph;
    return code;
}

static enum ifd_code read_attr(struct ifd_onnx_reader *r, struct ifd_bytes message,
                               struct ifd_onnx_attr *ret)
{
    struct ifd_onnx_attr attr = {0};
    struct ifd_onnx_tensor *tensor = NULL;
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    enum ifd_code code = IFD_OK;
    while (code == IFD_OK && ifd_wire_next(&wire, &field)) {
        const bool is_bytes = field.type == IFD_WIRE_BYTES;
        if (field.number == A_NAME && is_bytes) {
            attr.name = ifd_onnx_field_text(&field);
        } else if (field.number == A_REFERS_TO && is_bytes) {
            attr.refers_to = ifd_onnx_field_text(&field);
        } else if (field.number == A_S && is_bytes) {
            attr.s = ifd_onnx_field_text(&field);
        } else if (field.number == A_F && field.type == IFD_WIRE_FIXED32) {
            attr.f = f32_of(field.value);
        } else if (field.number == A_I && field.type == IFD_WIRE_VARINT) {
            attr.i = (int64_t)field.value;
        } else if (field.number == A_T && is_bytes) {
            tensor = ifd_onnx_reader_take(r, 1, sizeof(*tensor), &code);
            code = tensor ? ifd_onnx_read_tensor(r, field.bytes, tensor) : code;
            attr.tensor = tensor;
        } else if (field.number == A_G && is_bytes) {
            code = read_inner(r, field.bytes, &attr.graph);
        }
    }
    if (code == IFD_OK && wire.is_damaged) {
        code = ifd_onnx_damaged(r, "attribute");
    }
    attr.floats =
        ifd_onnx_read_numbers(r, message, A_FLOATS, IFD_ONNX_AS_F32, &attr.float_count, &code);
    attr.ints = ifd_onnx_read_numbers(r, message, A_INTS, IFD_ONNX_AS_INT, &attr.int_count, &code);
    attr.strings = ifd_onnx_read_strings(r, message, A_STRINGS, &attr.string_count, &code);
    *ret = attr;
    return code;
}

/* NodeProto */
enum {
    N_INPUT = 1,
    N_OUTPUT = 2,
    N_NAME = 3,
    N_OP = 4,
    N_ATTRIBUTE = 5,
    N_DOMAIN = 7,
    N_OVERLOAD = 8
};

static enum ifd_code count_operands(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                    struct ifd_onnx_node *node)
{
    if (!ifd_onnx_count_fields(message, N_INPUT, IFD_WIRE_BYTES, &node->input_count) ||
        !ifd_onnx_count_fields(message, N_OUTPUT, IFD_WIRE_BYTES, &node->output_count) ||
        !ifd_onnx_count_fields(message, N_ATTRIBUTE, IFD_WIRE_BYTES, &node->attr_count)) {
        return ifd_onnx_damaged(r, "node");
    }
    if (node->input_count > r->limits->node_inputs || node->output_count > r->limits->node_inputs) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "a node has %u inputs and %u outputs, limit %u",
                        node->input_count, node->output_count, r->limits->node_inputs);
    }
    r->names += node->output_count;
    if (r->names > r->limits->values) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "more than %u values", r->limits->values);
    }
    return IFD_OK;
}

static enum ifd_code read_node(struct ifd_onnx_reader *r, struct ifd_bytes message,
                               struct ifd_onnx_node *ret)
{
    struct ifd_onnx_node node = {0};
    enum ifd_code code = count_operands(r, message, &node);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_str *input = ifd_onnx_reader_take(r, node.input_count, sizeof(*input), &code);
    struct ifd_str *output = ifd_onnx_reader_take(r, node.output_count, sizeof(*output), &code);
    struct ifd_onnx_attr *attr = ifd_onnx_reader_take(r, node.attr_count, sizeof(*attr), &code);
    node.input = input;
    node.output = output;
    node.attr = attr;
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (code == IFD_OK && ifd_wire_next(&wire, &field)) {
        if (field.type != IFD_WIRE_BYTES) {
            continue;
        }
        switch (field.number) {
        case N_INPUT:
            *input++ = ifd_onnx_field_text(&field);
            break;
        case N_OUTPUT:
            *output++ = ifd_onnx_field_text(&field);
            break;
        case N_ATTRIBUTE:
            code = read_attr(r, field.bytes, attr++);
            break;
        case N_NAME:
            node.name = ifd_onnx_field_text(&field);
            break;
        case N_OP:
            node.op = ifd_onnx_field_text(&field);
            break;
        case N_DOMAIN:
            node.domain = ifd_onnx_field_text(&field);
            break;
        case N_OVERLOAD:
            node.overload = ifd_onnx_field_text(&field);
            break;
        default:
            break;
        }
    }
    *ret = node;
    return code;
}

/* ---- graph ---- */

/* GraphProto */
enum { G_NODE = 1, G_INITIALIZER = 5, G_INPUT = 11, G_OUTPUT = 12 };

/* Counts nodes and values of a graph, whose counts are set. */
static enum ifd_code count_graph(struct ifd_onnx_reader *r, const struct ifd_onnx_graph *graph)
{
    const uint64_t nodes = (uint64_t)r->nodes + graph->node_count;
    if (nodes > r->limits->nodes) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "%llu nodes, limit %u", (unsigned long long)nodes,
                        r->limits->nodes);
    }
    r->nodes = (uint32_t)nodes;
    const uint64_t values =
        (uint64_t)r->names + graph->initializer_count + graph->input_count + graph->output_count;
    if (values > r->limits->values) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "%llu values, limit %u", (unsigned long long)values,
                        r->limits->values);
    }
    r->names = (uint32_t)values;
    return IFD_OK;
}

static enum ifd_code count_parts(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                 struct ifd_onnx_graph *graph)
{
    if (!ifd_onnx_count_fields(message, G_NODE, IFD_WIRE_BYTES, &graph->node_count) ||
        !ifd_onnx_count_fields(message, G_INITIALIZER, IFD_WIRE_BYTES, &graph->initializer_count) ||
        !ifd_onnx_count_fields(message, G_INPUT, IFD_WIRE_BYTES, &graph->input_count) ||
        !ifd_onnx_count_fields(message, G_OUTPUT, IFD_WIRE_BYTES, &graph->output_count)) {
        return ifd_onnx_damaged(r, "graph");
    }
    return count_graph(r, graph);
}

static enum ifd_code read_graph(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                struct ifd_onnx_graph *ret)
{
    struct ifd_onnx_graph graph = {0};
    enum ifd_code code = count_parts(r, message, &graph);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_onnx_node *node = ifd_onnx_reader_take(r, graph.node_count, sizeof(*node), &code);
    struct ifd_onnx_node *const nodes = node;
    struct ifd_onnx_tensor *tensor =
        ifd_onnx_reader_take(r, graph.initializer_count, sizeof(*tensor), &code);
    struct ifd_onnx_port *input = ifd_onnx_reader_take(r, graph.input_count, sizeof(*input), &code);
    struct ifd_onnx_port *output =
        ifd_onnx_reader_take(r, graph.output_count, sizeof(*output), &code);
    graph.node = node;
    graph.initializer = tensor;
    graph.input = input;
    graph.output = output;
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (code == IFD_OK && ifd_wire_next(&wire, &field)) {
        if (field.type != IFD_WIRE_BYTES) {
            continue;
        }
        switch (field.number) {
        case G_NODE:
            code = read_node(r, field.bytes, node++);
            break;
        case G_INITIALIZER:
            code = ifd_onnx_read_tensor(r, field.bytes, tensor++);
            break;
        case G_INPUT:
            code = ifd_onnx_read_port(r, field.bytes, input++);
            break;
        case G_OUTPUT:
            code = ifd_onnx_read_port(r, field.bytes, output++);
            break;
        default:
            break;
        }
    }
    *ret = graph;
    code = code == IFD_OK ? ifd_onnx_sort(r, ret, nodes) : code;
    return code == IFD_OK ? ifd_onnx_sort_names(r, ret) : code;
}

/* OperatorSetIdProto: domain (1), version (2) */
static void read_opset(struct ifd_bytes message, struct ifd_onnx_opset *ret)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == IFD_WIRE_BYTES) {
            ret->domain = ifd_onnx_field_text(&field);
        } else if (field.number == 2 && field.type == IFD_WIRE_VARINT) {
            ret->version = (int64_t)field.value;
        }
    }
}

/* ---- functions ---- */

/* FunctionProto */
enum {
    F_NAME = 1,
    F_INPUT = 4,
    F_OUTPUT = 5,
    F_NODE = 7,
    F_OPSET = 9,
    F_DOMAIN = 10,
    F_DEFAULT = 11,
    F_OVERLOAD = 13
};

/* Names of inputs or outputs as ports. */
static const struct ifd_onnx_port *read_formals(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                                uint32_t number, uint32_t *ret_count,
                                                enum ifd_code *code)
{
    uint32_t count = 0;
    const struct ifd_str *name = ifd_onnx_read_strings(r, message, number, &count, code);
    struct ifd_onnx_port *port =
        count > 0 ? ifd_onnx_reader_take(r, count, sizeof(*port), code) : NULL;
    for (uint32_t i = 0; port && i < count; i++) {
        port[i] = (struct ifd_onnx_port){.name = name[i]};
    }
    *ret_count = port ? count : 0;
    return port;
}

/* Lists that are looked through for every node: no tool writes as many. */
static enum ifd_code check_count(struct ifd_onnx_reader *r, const char *what, uint32_t count,
                                 uint32_t most)
{
    return count <= most ? IFD_OK
                         : ifd_fail(r->err, IFD_TOO_LARGE, "%u %s, limit %u", count, what, most);
}

/* Counts what the limits count. */
static enum ifd_code count_function(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                    struct ifd_onnx_local *ret)
{
    struct ifd_onnx_graph *graph = &ret->graph;
    if (!ifd_onnx_count_fields(message, F_NODE, IFD_WIRE_BYTES, &graph->node_count) ||
        !ifd_onnx_count_fields(message, F_OPSET, IFD_WIRE_BYTES, &ret->opset_count) ||
        !ifd_onnx_count_fields(message, F_DEFAULT, IFD_WIRE_BYTES, &ret->attr_count)) {
        return ifd_onnx_damaged(r, "function");
    }
    enum ifd_code code = check_count(r, "operator sets", ret->opset_count, OPSETS_MAX);
    graph->input = read_formals(r, message, F_INPUT, &graph->input_count, &code);
    graph->output = read_formals(r, message, F_OUTPUT, &graph->output_count, &code);
    return code == IFD_OK ? count_graph(r, graph) : code;
}

static enum ifd_code read_function(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                   struct ifd_onnx_local *ret)
{
    enum ifd_code code = count_function(r, message, ret);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_onnx_node *node =
        ifd_onnx_reader_take(r, ret->graph.node_count, sizeof(*node), &code);
    struct ifd_onnx_node *const nodes = node;
    struct ifd_onnx_opset *opset = ifd_onnx_reader_take(r, ret->opset_count, sizeof(*opset), &code);
    struct ifd_onnx_attr *attr = ifd_onnx_reader_take(r, ret->attr_count, sizeof(*attr), &code);
    ret->graph.node = node;
    ret->opset = opset;
    ret->attr = attr;
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (code == IFD_OK && ifd_wire_next(&wire, &field)) {
        if (field.type != IFD_WIRE_BYTES) {
            continue;
        }
        switch (field.number) {
        case F_NAME:
            ret->op = ifd_onnx_field_text(&field);
            break;
        case F_DOMAIN:
            ret->domain = ifd_onnx_field_text(&field);
            break;
        case F_OVERLOAD:
            ret->overload = ifd_onnx_field_text(&field);
            break;
        case F_NODE:
            code = read_node(r, field.bytes, node++);
            break;
        case F_OPSET:
            read_opset(field.bytes, opset++);
            break;
        case F_DEFAULT:
            code = read_attr(r, field.bytes, attr++);
            break;
        default:
            break;
        }
    }
    code = code == IFD_OK ? ifd_onnx_sort(r, &ret->graph, nodes) : code;
    return code == IFD_OK ? ifd_onnx_sort_names(r, &ret->graph) : code;
}

/* ---- model ---- */

/* ModelProto */
enum { M_IR = 1, M_PRODUCER = 2, M_DOC = 6, M_GRAPH = 7, M_OPSET = 8, M_FUNCTION = 25 };

static enum ifd_code read_parts(struct ifd_onnx_reader *r, struct ifd_onnx_model *model)
{
    struct ifd_bytes graph = {0};
    enum ifd_code code = IFD_OK;
    struct ifd_onnx_opset *opset =
        ifd_onnx_reader_take(r, model->opset_count, sizeof(*opset), &code);
    struct ifd_onnx_local *function =
        ifd_onnx_reader_take(r, model->function_count, sizeof(*function), &code);
    model->opset = opset;
    model->function = function;
    struct ifd_wire wire = ifd_wire_open(r->file);
    struct ifd_wire_field field;
    while (code == IFD_OK && ifd_wire_next(&wire, &field)) {
        if (field.number == M_IR && field.type == IFD_WIRE_VARINT) {
            model->ir_version = (int64_t)field.value;
        } else if (field.type != IFD_WIRE_BYTES) {
            continue;
        } else if (field.number == M_GRAPH) {
            graph = field.bytes;
        } else if (field.number == M_OPSET) {
            read_opset(field.bytes, opset++);
        } else if (field.number == M_PRODUCER) {
            model->producer = ifd_onnx_field_text(&field);
        } else if (field.number == M_DOC) {
            model->description = ifd_onnx_field_text(&field);
        } else if (field.number == M_FUNCTION) {
            code = read_function(r, field.bytes, function++);
        }
    }
    if (code == IFD_OK && !graph.data) {
        code = ifd_fail(r->err, IFD_CORRUPT, "the model has no graph");
    }
    return code == IFD_OK ? read_graph(r, graph, &model->graph) : code;
}

enum ifd_code ifd_onnx_read(struct ifd_bytes file, const struct ifd_onnx_beside *beside,
                            const struct ifd_limits *limits, struct ifd_arena *arena,
                            struct ifd_onnx_model *ret, struct ifd_err *err)
{
    struct ifd_onnx_reader r = {
        .file = file, .places = {.beside = beside}, .limits = limits, .arena = arena, .err = err};
    struct ifd_onnx_model model = {0};
    if (!ifd_onnx_count_fields(file, M_OPSET, IFD_WIRE_BYTES, &model.opset_count) ||
        !ifd_onnx_count_fields(file, M_FUNCTION, IFD_WIRE_BYTES, &model.function_count)) {
        return ifd_onnx_damaged(&r, "model");
    }
    enum ifd_code code = check_count(&r, "operator sets", model.opset_count, OPSETS_MAX);
    if (code == IFD_OK) {
        code = check_count(&r, "functions", model.function_count, FUNCTIONS_MAX);
    }
    if (code == IFD_OK) {
        code = read_parts(&r, &model);
    }
    if (code == IFD_OK) {
        model.place = r.places.place;
        model.place_count = r.places.count;
        *ret = model;
    }
    return code;
}
