/* Field numbers of onnx.proto, and the structs that they fill. Lists are counted first, then
 * filled. */
#include "engine/parse/onnx/onnx_reader.h"

#include <string.h>

#include "engine/parse/onnx/beside.h"
#include "engine/parse/onnx/wire.h"

#define DEPTH_MAX     8
#define OPSETS_MAX    256
#define FUNCTIONS_MAX 4096

struct reader {
    struct ifd_bytes file;
    struct ifd_onnx_places places;
    const struct ifd_limits *limits;
    struct ifd_arena *arena;
    uint32_t names; /* of values that nodes make, and constants */
    uint32_t nodes; /* of all graphs */
    uint32_t depth; /* of graphs in nodes */
    struct ifd_err *err;
};

static enum ifd_code damaged(struct reader *r, const char *what)
{
    return ifd_fail(r->err, IFD_CORRUPT, "%s: a protobuf field is cut off or of no known type",
                    what);
}

static void *take(struct reader *r, size_t count, size_t size, enum ifd_code *code)
{
    void *items = ifd_arena_take_array(r->arena, count, size);
    if (!items) {
        *code = ifd_arena_fail(r->arena, count * size, r->err);
    }
    return items;
}

static struct ifd_str text_of(const struct ifd_wire_field *field)
{
    return (struct ifd_str){.data = (const char *)field->bytes.data, .size = field->bytes.size};
}

/* How often a field is there; false if the message is damaged. */
static bool count_fields(struct ifd_bytes message, uint32_t number, enum ifd_wire_type type,
                         uint32_t *ret)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint32_t count = 0;
    while (ifd_wire_next(&wire, &field)) {
        count += field.number == number && field.type == type;
    }
    *ret = count;
    return !wire.is_damaged;
}

/* ---- numbers, packed or one by one ---- */

enum kind { AS_INT, AS_F32, AS_F64 };

static size_t kind_bytes(enum kind kind)
{
    return kind == AS_F32 ? sizeof(float) : sizeof(int64_t);
}

/* Appends one packed field; with to NULL it only counts. False if it is damaged. */
static bool unpack(struct ifd_bytes packed, enum kind kind, void *to, uint64_t *count)
{
    if (kind != AS_INT) {
        const size_t size = kind_bytes(kind);
        if (to && packed.size > 0) {
            memcpy((uint8_t *)to + *count * size, packed.data, packed.size);
        }
        *count += packed.size / size;
        return packed.size % size == 0;
    }
    const uint8_t *at = packed.data;
    const uint8_t *end = at + packed.size;
    while (packed.size > 0 && at < end) {
        uint64_t value = 0;
        if (!ifd_wire_varint(&at, end, &value)) {
            return false;
        }
        if (to) {
            ((int64_t *)to)[*count] = (int64_t)value;
        }
        ++*count;
    }
    return true;
}

static bool collect(struct ifd_bytes message, uint32_t number, enum kind kind, void *to,
                    uint64_t *ret_count)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint64_t count = 0;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number != number) {
            continue;
        }
        if (field.type == IFD_WIRE_BYTES) {
            if (!unpack(field.bytes, kind, to, &count)) {
                return false;
            }
        } else if (to) {
            memcpy((uint8_t *)to + count++ * kind_bytes(kind), &field.value, kind_bytes(kind));
        } else {
            count++;
        }
    }
    *ret_count = count;
    return !wire.is_damaged;
}

/* The numbers of all fields of one number, NULL if there are none. Does nothing if *code is not OK.
 */
static const void *read_numbers(struct reader *r, struct ifd_bytes message, uint32_t number,
                                enum kind kind, uint32_t *ret_count, enum ifd_code *code)
{
    uint64_t count = 0;
    if (*code != IFD_OK) {
        return NULL;
    }
    if (!collect(message, number, kind, NULL, &count)) {
        *code = damaged(r, "list of numbers");
        return NULL;
    }
    if (count > UINT32_MAX) {
        *code = ifd_fail(r->err, IFD_TOO_LARGE, "a list of %llu numbers, limit %u",
                         (unsigned long long)count, UINT32_MAX);
        return NULL;
    }
    void *items = count > 0 ? take(r, (size_t)count, kind_bytes(kind), code) : NULL;
    if (items && collect(message, number, kind, items, &count)) {
        *ret_count = (uint32_t)count;
    }
    return items;
}

/* ---- tensors ---- */

/* TensorProto */
enum {
    T_DIMS = 1,
    T_TYPE = 2,
    T_FLOATS = 4,
    T_INT32S = 5,
    T_STRINGS = 6,
    T_INT64S = 7,
    T_NAME = 8,
    T_RAW = 9,
    T_DOUBLES = 10,
    T_UINT64S = 11,
    T_LOCATION = 14
};

static enum ifd_code read_tensor(struct reader *r, struct ifd_bytes message,
                                 struct ifd_onnx_tensor *ret)
{
    struct ifd_onnx_tensor tensor = {0};
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint32_t integers = T_INT32S;
    bool is_outside = false;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == T_TYPE && field.type == IFD_WIRE_VARINT) {
            tensor.type = (int32_t)field.value;
        } else if (field.number == T_NAME && field.type == IFD_WIRE_BYTES) {
            tensor.name = text_of(&field);
        } else if (field.number == T_RAW && field.type == IFD_WIRE_BYTES) {
            tensor.raw = field.bytes;
            tensor.room =
                (size_t)(r->file.data + r->file.size - (field.bytes.data + field.bytes.size));
            tensor.has_raw = true;
        } else if (field.number == T_LOCATION && field.type == IFD_WIRE_VARINT) {
            is_outside = field.value == 1;
        } else if (field.number == T_INT64S || field.number == T_UINT64S) {
            integers = field.number;
        }
    }
    if (wire.is_damaged) {
        return damaged(r, "tensor");
    }
    enum ifd_code code =
        is_outside ? ifd_onnx_find_beside(&r->places, r->arena, message, &tensor, r->err) : IFD_OK;
    tensor.dim = read_numbers(r, message, T_DIMS, AS_INT, &tensor.dim_count, &code);
    tensor.f32 = read_numbers(r, message, T_FLOATS, AS_F32, &tensor.f32_count, &code);
    tensor.f64 = read_numbers(r, message, T_DOUBLES, AS_F64, &tensor.f64_count, &code);
    tensor.integer = read_numbers(r, message, integers, AS_INT, &tensor.integer_count, &code);
    *ret = tensor;
    return code;
}

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

static const struct ifd_str *read_strings(struct reader *r, struct ifd_bytes message,
                                          uint32_t number, uint32_t *ret_count, enum ifd_code *code)
{
    uint32_t count = 0;
    if (*code != IFD_OK || !count_fields(message, number, IFD_WIRE_BYTES, &count) || count == 0) {
        return NULL;
    }
    struct ifd_str *text = take(r, count, sizeof(*text), code);
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (text && ifd_wire_next(&wire, &field)) {
        if (field.number == number && field.type == IFD_WIRE_BYTES) {
            text[(*ret_count)++] = text_of(&field);
        }
    }
    return text;
}

static enum ifd_code read_graph(struct reader *r, struct ifd_bytes message,
                                struct ifd_onnx_graph *ret);

/* A graph in a node. */
static enum ifd_code read_inner(struct reader *r, struct ifd_bytes message,
                                const struct ifd_onnx_graph **ret)
{
    enum ifd_code code = IFD_OK;
    if (r->depth == DEPTH_MAX) {
        return ifd_fail(r->err, IFD_TOO_LARGE, "graphs are nested more than %d deep", DEPTH_MAX);
    }
    struct ifd_onnx_graph *graph = take(r, 1, sizeof(*graph), &code);
    r->depth++;
    code = graph ? read_graph(r, message, graph) : code;
    r->depth--;
    *ret = graph;
    return code;
}

static enum ifd_code read_attr(struct reader *r, struct ifd_bytes message,
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
            attr.name = text_of(&field);
        } else if (field.number == A_REFERS_TO && is_bytes) {
            attr.refers_to = text_of(&field);
        } else if (field.number == A_S && is_bytes) {
            attr.s = text_of(&field);
        } else if (field.number == A_F && field.type == IFD_WIRE_FIXED32) {
            attr.f = f32_of(field.value);
        } else if (field.number == A_I && field.type == IFD_WIRE_VARINT) {
            attr.i = (int64_t)field.value;
        } else if (field.number == A_T && is_bytes) {
            tensor = take(r, 1, sizeof(*tensor), &code);
            code = tensor ? read_tensor(r, field.bytes, tensor) : code;
            attr.tensor = tensor;
        } else if (field.number == A_G && is_bytes) {
            code = read_inner(r, field.bytes, &attr.graph);
        }
    }
    if (code == IFD_OK && wire.is_damaged) {
        code = damaged(r, "attribute");
    }
    attr.floats = read_numbers(r, message, A_FLOATS, AS_F32, &attr.float_count, &code);
    attr.ints = read_numbers(r, message, A_INTS, AS_INT, &attr.int_count, &code);
    attr.strings = read_strings(r, message, A_STRINGS, &attr.string_count, &code);
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

static enum ifd_code count_operands(struct reader *r, struct ifd_bytes message,
                                    struct ifd_onnx_node *node)
{
    if (!count_fields(message, N_INPUT, IFD_WIRE_BYTES, &node->input_count) ||
        !count_fields(message, N_OUTPUT, IFD_WIRE_BYTES, &node->output_count) ||
        !count_fields(message, N_ATTRIBUTE, IFD_WIRE_BYTES, &node->attr_count)) {
        return damaged(r, "node");
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

static enum ifd_code read_node(struct reader *r, struct ifd_bytes message,
                               struct ifd_onnx_node *ret)
{
    struct ifd_onnx_node node = {0};
    enum ifd_code code = count_operands(r, message, &node);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_str *input = take(r, node.input_count, sizeof(*input), &code);
    struct ifd_str *output = take(r, node.output_count, sizeof(*output), &code);
    struct ifd_onnx_attr *attr = take(r, node.attr_count, sizeof(*attr), &code);
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
            *input++ = text_of(&field);
            break;
        case N_OUTPUT:
            *output++ = text_of(&field);
            break;
        case N_ATTRIBUTE:
            code = read_attr(r, field.bytes, attr++);
            break;
        case N_NAME:
            node.name = text_of(&field);
            break;
        case N_OP:
            node.op = text_of(&field);
            break;
        case N_DOMAIN:
            node.domain = text_of(&field);
            break;
        case N_OVERLOAD:
            node.overload = text_of(&field);
            break;
        default:
            break;
        }
    }
    *ret = node;
    return code;
}

/* ---- inputs and outputs ---- */

/* The first field of a number within a message; empty if there is none. */
static struct ifd_bytes field_of(struct ifd_bytes message, uint32_t number, bool *ret_has)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == number && field.type == IFD_WIRE_BYTES) {
            *ret_has = true;
            return field.bytes;
        }
    }
    *ret_has = false;
    return (struct ifd_bytes){0};
}

/* TensorShapeProto: dim (1); TensorShapeProto.Dimension: dim_value (1), dim_param (2) */
static enum ifd_code read_dims(struct reader *r, struct ifd_bytes shape, struct ifd_onnx_port *port)
{
    enum ifd_code code = IFD_OK;
    if (!count_fields(shape, 1, IFD_WIRE_BYTES, &port->dim_count)) {
        return damaged(r, "shape");
    }
    int64_t *dim = take(r, port->dim_count, sizeof(*dim), &code);
    struct ifd_str *symbol = take(r, port->dim_count, sizeof(*symbol), &code);
    port->dim = dim;
    port->symbol = symbol;
    struct ifd_wire wire = ifd_wire_open(shape);
    struct ifd_wire_field field;
    while (code == IFD_OK && ifd_wire_next(&wire, &field)) {
        if (field.number != 1 || field.type != IFD_WIRE_BYTES) {
            continue;
        }
        struct ifd_wire inner = ifd_wire_open(field.bytes);
        struct ifd_wire_field size;
        *dim = IFD_DIM_ANY;
        while (ifd_wire_next(&inner, &size)) {
            if (size.number == 1 && size.type == IFD_WIRE_VARINT) {
                *dim = (int64_t)size.value;
            } else if (size.number == 2 && size.type == IFD_WIRE_BYTES) {
                *symbol = text_of(&size);
            }
        }
        dim++;
        symbol++;
    }
    return code;
}

/* ValueInfoProto: name (1), type (2); TypeProto: tensor_type (1); TypeProto.Tensor: elem_type (1),
 * shape (2) */
static enum ifd_code read_port(struct reader *r, struct ifd_bytes message,
                               struct ifd_onnx_port *ret)
{
    struct ifd_onnx_port port = {0};
    bool has = false;
    const struct ifd_bytes name = field_of(message, 1, &has);
    port.name = (struct ifd_str){.data = (const char *)name.data, .size = name.size};
    struct ifd_bytes type = field_of(message, 2, &has);
    const struct ifd_bytes optional = field_of(type, 9, &has);
    if (has) { /* an optional tensor is one: callers bring all inputs */
        type = field_of(optional, 1, &has);
    }
    const struct ifd_bytes tensor = field_of(type, 1, &port.is_tensor);
    struct ifd_wire wire = ifd_wire_open(tensor);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == IFD_WIRE_VARINT) {
            port.type = (int32_t)field.value;
        }
    }
    enum ifd_code code = wire.is_damaged ? damaged(r, "type of a value") : IFD_OK;
    const struct ifd_bytes shape = field_of(tensor, 2, &port.has_shape);
    if (code == IFD_OK) {
        code = read_dims(r, shape, &port);
    }
    *ret = port;
    return code;
}

/* ---- graph and model ---- */

/* GraphProto */
enum { G_NODE = 1, G_INITIALIZER = 5, G_INPUT = 11, G_OUTPUT = 12 };

/* Counts nodes and values of a graph, whose counts are set. */
static enum ifd_code count_graph(struct reader *r, const struct ifd_onnx_graph *graph)
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

static enum ifd_code count_parts(struct reader *r, struct ifd_bytes message,
                                 struct ifd_onnx_graph *graph)
{
    if (!count_fields(message, G_NODE, IFD_WIRE_BYTES, &graph->node_count) ||
        !count_fields(message, G_INITIALIZER, IFD_WIRE_BYTES, &graph->initializer_count) ||
        !count_fields(message, G_INPUT, IFD_WIRE_BYTES, &graph->input_count) ||
        !count_fields(message, G_OUTPUT, IFD_WIRE_BYTES, &graph->output_count)) {
        return damaged(r, "graph");
    }
    return count_graph(r, graph);
}

static enum ifd_code read_graph(struct reader *r, struct ifd_bytes message,
                                struct ifd_onnx_graph *ret)
{
    struct ifd_onnx_graph graph = {0};
    enum ifd_code code = count_parts(r, message, &graph);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_onnx_node *node = take(r, graph.node_count, sizeof(*node), &code);
    struct ifd_onnx_tensor *tensor = take(r, graph.initializer_count, sizeof(*tensor), &code);
    struct ifd_onnx_port *input = take(r, graph.input_count, sizeof(*input), &code);
    struct ifd_onnx_port *output = take(r, graph.output_count, sizeof(*output), &code);
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
            code = read_tensor(r, field.bytes, tensor++);
            break;
        case G_INPUT:
            code = read_port(r, field.bytes, input++);
            break;
        case G_OUTPUT:
            code = read_port(r, field.bytes, output++);
            break;
        default:
            break;
        }
    }
    *ret = graph;
    return code;
}

/* OperatorSetIdProto: domain (1), version (2) */
static void read_opset(struct ifd_bytes message, struct ifd_onnx_opset *ret)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == IFD_WIRE_BYTES) {
            ret->domain = text_of(&field);
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
static const struct ifd_onnx_port *read_formals(struct reader *r, struct ifd_bytes message,
                                                uint32_t number, uint32_t *ret_count,
                                                enum ifd_code *code)
{
    uint32_t count = 0;
    const struct ifd_str *name = read_strings(r, message, number, &count, code);
    struct ifd_onnx_port *port = count > 0 ? take(r, count, sizeof(*port), code) : NULL;
    for (uint32_t i = 0; port && i < count; i++) {
        port[i] = (struct ifd_onnx_port){.name = name[i]};
    }
    *ret_count = port ? count : 0;
    return port;
}

/* Lists that are looked through for every node: no tool writes as many. */
static enum ifd_code check_count(struct reader *r, const char *what, uint32_t count, uint32_t most)
{
    return count <= most ? IFD_OK
                         : ifd_fail(r->err, IFD_TOO_LARGE, "%u %s, limit %u", count, what, most);
}

/* Counts what the limits count. */
static enum ifd_code count_function(struct reader *r, struct ifd_bytes message,
                                    struct ifd_onnx_local *ret)
{
    struct ifd_onnx_graph *graph = &ret->graph;
    if (!count_fields(message, F_NODE, IFD_WIRE_BYTES, &graph->node_count) ||
        !count_fields(message, F_OPSET, IFD_WIRE_BYTES, &ret->opset_count) ||
        !count_fields(message, F_DEFAULT, IFD_WIRE_BYTES, &ret->attr_count)) {
        return damaged(r, "function");
    }
    enum ifd_code code = check_count(r, "operator sets", ret->opset_count, OPSETS_MAX);
    graph->input = read_formals(r, message, F_INPUT, &graph->input_count, &code);
    graph->output = read_formals(r, message, F_OUTPUT, &graph->output_count, &code);
    return code == IFD_OK ? count_graph(r, graph) : code;
}

static enum ifd_code read_function(struct reader *r, struct ifd_bytes message,
                                   struct ifd_onnx_local *ret)
{
    enum ifd_code code = count_function(r, message, ret);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_onnx_node *node = take(r, ret->graph.node_count, sizeof(*node), &code);
    struct ifd_onnx_opset *opset = take(r, ret->opset_count, sizeof(*opset), &code);
    struct ifd_onnx_attr *attr = take(r, ret->attr_count, sizeof(*attr), &code);
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
            ret->op = text_of(&field);
            break;
        case F_DOMAIN:
            ret->domain = text_of(&field);
            break;
        case F_OVERLOAD:
            ret->overload = text_of(&field);
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
    return code;
}

/* ---- model ---- */

/* ModelProto */
enum { M_IR = 1, M_PRODUCER = 2, M_DOC = 6, M_GRAPH = 7, M_OPSET = 8, M_FUNCTION = 25 };

static enum ifd_code read_parts(struct reader *r, struct ifd_onnx_model *model)
{
    struct ifd_bytes graph = {0};
    enum ifd_code code = IFD_OK;
    struct ifd_onnx_opset *opset = take(r, model->opset_count, sizeof(*opset), &code);
    struct ifd_onnx_local *function = take(r, model->function_count, sizeof(*function), &code);
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
            model->producer = text_of(&field);
        } else if (field.number == M_DOC) {
            model->description = text_of(&field);
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
    struct reader r = {
        .file = file, .places = {.beside = beside}, .limits = limits, .arena = arena, .err = err};
    struct ifd_onnx_model model = {0};
    if (!count_fields(file, M_OPSET, IFD_WIRE_BYTES, &model.opset_count) ||
        !count_fields(file, M_FUNCTION, IFD_WIRE_BYTES, &model.function_count)) {
        return damaged(&r, "model");
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
