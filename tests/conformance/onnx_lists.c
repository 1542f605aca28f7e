/* Rewrites messages of onnx.proto field by field. */
#include "tests/conformance/onnx_lists.h"

#include <stdio.h>
#include <string.h>

#include "engine/parse/onnx/wire.h"
#include "tests/support/test.h"

#define FILE_BYTES ((size_t)64 << 20)

enum { G_NODE = 1, G_INPUT = 11, G_OUTPUT = 12 };

/* ---- messages ---- */

static void put_varint(struct ifd_buf *buf, uint64_t number)
{
    for (; number >= 0x80; number >>= 7) {
        ifd_buf_add(buf, &(uint8_t){(uint8_t)(number | 0x80)}, 1);
    }
    ifd_buf_add(buf, &(uint8_t){(uint8_t)number}, 1);
}

void onnx_put_number(struct ifd_buf *buf, uint32_t number, uint64_t value)
{
    put_varint(buf, number << 3);
    put_varint(buf, value);
}

void onnx_put_field(struct ifd_buf *buf, uint32_t number, const void *data, size_t size)
{
    put_varint(buf, number << 3 | 2);
    put_varint(buf, size);
    ifd_buf_add(buf, data, size);
}

static void begin(struct ifd_buf *buf)
{
    ifd_buf_init(buf, ifd_alloc_system(), FILE_BYTES);
}

/* A message becomes a field of another one. */
static void put_message(struct ifd_buf *to, uint32_t number, struct ifd_buf *message)
{
    REQUIRE(ifd_buf_check(message, NULL) == IFD_OK);
    onnx_put_field(to, number, message->data, message->size);
    ifd_buf_finish(message);
}

static void put_text(struct ifd_buf *to, uint32_t number, const char *text)
{
    onnx_put_field(to, number, text, strlen(text));
}

static struct ifd_bytes field_of(struct ifd_bytes message, uint32_t number, bool *ret_has)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    struct ifd_bytes found = {0};
    *ret_has = false;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == number && field.type == IFD_WIRE_BYTES) {
            found = field.bytes;
            *ret_has = true;
        }
    }
    return found;
}

static uint64_t number_of(struct ifd_bytes message, uint32_t number)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint64_t found = 0;
    while (ifd_wire_next(&wire, &field)) {
        found = field.number == number && field.type == IFD_WIRE_VARINT ? field.value : found;
    }
    return found;
}

/* ---- types and values ---- */

/* What a port of the graph is: ValueInfoProto.type (2): tensor (1), sequence (4), optional (9). */
struct port {
    char name[ONNX_LISTS_NAME];
    bool is_list, is_optional;
};

static struct port port_of(struct ifd_bytes info)
{
    struct port port = {.is_list = false};
    bool has = false;
    const struct ifd_bytes name = field_of(info, 1, &has);
    (void)snprintf(port.name, sizeof(port.name), "%.*s", (int)name.size, (const char *)name.data);
    struct ifd_bytes type = field_of(info, 2, &has);
    const struct ifd_bytes optional = field_of(type, 9, &port.is_optional);
    type = port.is_optional ? field_of(optional, 1, &has) : type;
    (void)field_of(type, 4, &port.is_list);
    return port;
}

/* The value in an OptionalProto: tensor (3) or sequence (5); none if it is absent. */
static struct ifd_bytes value_of(const struct port *port, struct ifd_bytes file, bool *ret_has)
{
    *ret_has = true;
    return port->is_optional ? field_of(file, port->is_list ? 5 : 3, ret_has) : file;
}

static struct onnx_lists_tensor *add_tensor(struct onnx_lists_side *side, const char *name,
                                            struct ifd_bytes message)
{
    REQUIRE(side->count < ONNX_LISTS_MAX);
    struct onnx_lists_tensor *tensor = &side->tensor[side->count++];
    (void)snprintf(tensor->name, sizeof(tensor->name), "%s", name);
    begin(&tensor->message);
    ifd_buf_add(&tensor->message, message.data, message.size);
    return tensor;
}

/* A port for a tensor like this one: element type (2), dimensions (1). */
static void put_port(struct ifd_buf *graph, uint32_t number, const char *name,
                     struct ifd_bytes tensor)
{
    struct ifd_buf info, type, inner, shape;
    struct ifd_wire wire = ifd_wire_open(tensor);
    struct ifd_wire_field field;
    begin(&info);
    begin(&type);
    begin(&inner);
    begin(&shape);
    onnx_put_number(&inner, 1, number_of(tensor, 2));
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == IFD_WIRE_VARINT) {
            struct ifd_buf dim;
            begin(&dim);
            onnx_put_number(&dim, 1, field.value);
            put_message(&shape, 1, &dim);
        }
        REQUIRE(field.number != 1 || field.type == IFD_WIRE_VARINT);
    }
    put_text(&info, 1, name);
    put_message(&inner, 2, &shape);
    put_message(&type, 1, &inner);
    put_message(&info, 2, &type);
    put_message(graph, number, &info);
}

/* ---- inputs ---- */

static void put_node(struct ifd_buf *graph, struct ifd_buf *node, const char *op,
                     const char *output)
{
    put_text(node, 2, output);
    put_text(node, 4, op);
    put_message(graph, G_NODE, node);
}

static void join_elements(const struct port *port, struct ifd_bytes sequence, struct ifd_buf *graph,
                          struct onnx_lists_side *inputs)
{
    struct ifd_wire wire = ifd_wire_open(sequence);
    struct ifd_wire_field field;
    struct ifd_buf node;
    uint32_t count = 0;
    begin(&node);
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == 3 && field.type == IFD_WIRE_BYTES) {
            char name[ONNX_LISTS_NAME + 16];
            (void)snprintf(name, sizeof(name), "%s_%u", port->name, count++);
            put_port(graph, G_INPUT, name, field.bytes);
            put_text(&node, 1, name);
            add_tensor(inputs, name, field.bytes);
        }
    }
    put_node(graph, &node, count > 0 ? "SequenceConstruct" : "SequenceEmpty", port->name);
}

static void rewrite_input(struct ifd_bytes info, struct ifd_bytes file, struct ifd_buf *graph,
                          struct onnx_lists_side *inputs)
{
    const struct port port = port_of(info);
    bool has = false;
    const struct ifd_bytes value = value_of(&port, file, &has);
    if (!has) {
        struct ifd_buf node;
        begin(&node);
        put_node(graph, &node, "Optional", port.name);
    } else if (port.is_list) {
        join_elements(&port, value, graph, inputs);
    } else {
        onnx_put_field(graph, G_INPUT, info.data, info.size);
        add_tensor(inputs, port.name, value);
    }
}

/* ---- outputs ---- */

static void put_position(struct ifd_buf *graph, const char *name, uint32_t position)
{
    struct ifd_buf node, attribute;
    begin(&node);
    begin(&attribute);
    put_text(&attribute, 1, "value_int");
    onnx_put_number(&attribute, 3, position);
    onnx_put_number(&attribute, 20, 2); /* an integer */
    put_message(&node, 5, &attribute);
    put_node(graph, &node, "Constant", name);
}

static void put_length(const struct port *port, uint32_t count, struct ifd_buf *graph,
                       struct onnx_lists_side *outputs)
{
    char name[ONNX_LISTS_NAME + 16];
    const int64_t length = count;
    struct ifd_buf node, tensor;
    begin(&node);
    begin(&tensor);
    (void)snprintf(name, sizeof(name), "%s_length", port->name);
    onnx_put_number(&tensor, 2, 7); /* int64 */
    onnx_put_field(&tensor, 9, &length, sizeof(length));
    const struct ifd_bytes message = {.data = tensor.data, .size = tensor.size};
    put_port(graph, G_OUTPUT, name, message);
    add_tensor(outputs, name, message);
    put_text(&node, 1, port->name);
    put_node(graph, &node, "SequenceLength", name);
    ifd_buf_finish(&tensor);
}

static void take_apart(const struct port *port, struct ifd_bytes sequence, struct ifd_buf *graph,
                       struct onnx_lists_side *outputs)
{
    struct ifd_wire wire = ifd_wire_open(sequence);
    struct ifd_wire_field field;
    uint32_t count = 0;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == 3 && field.type == IFD_WIRE_BYTES) {
            char name[ONNX_LISTS_NAME + 16], position[ONNX_LISTS_NAME + 16];
            struct ifd_buf node;
            (void)snprintf(name, sizeof(name), "%s_%u", port->name, count);
            (void)snprintf(position, sizeof(position), "%s_at_%u", port->name, count);
            put_position(graph, position, count++);
            begin(&node);
            put_text(&node, 1, port->name);
            put_text(&node, 1, position);
            put_node(graph, &node, "SequenceAt", name);
            put_port(graph, G_OUTPUT, name, field.bytes);
            add_tensor(outputs, name, field.bytes);
        }
    }
    put_length(port, count, graph, outputs);
}

static void rewrite_output(struct ifd_bytes info, struct ifd_bytes file, struct ifd_buf *graph,
                           struct onnx_lists_side *outputs)
{
    const struct port port = port_of(info);
    bool has = false;
    const struct ifd_bytes value = value_of(&port, file, &has);
    if (!has) {
        return;
    }
    if (port.is_list) {
        take_apart(&port, value, graph, outputs);
    } else {
        onnx_put_field(graph, G_OUTPUT, info.data, info.size);
        add_tensor(outputs, port.name, value);
    }
}

/* ---- the whole ---- */

/* Nodes that join come first, those that take apart come last; fields keep their order. */
static void rewrite_graph(struct ifd_bytes message, const struct ifd_bytes *input,
                          uint32_t input_count, const struct ifd_bytes *output,
                          uint32_t output_count, struct ifd_buf *ret,
                          struct onnx_lists_side *ret_inputs, struct onnx_lists_side *ret_outputs)
{
    struct ifd_buf rest, last;
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint32_t inputs = 0, outputs = 0;
    begin(&rest);
    begin(&last);
    while (ifd_wire_next(&wire, &field)) {
        if (field.type != IFD_WIRE_BYTES) {
            REQUIRE(field.type == IFD_WIRE_VARINT);
            onnx_put_number(&rest, field.number, field.value);
        } else if (field.number == G_INPUT && inputs < input_count) {
            rewrite_input(field.bytes, input[inputs++], ret, ret_inputs);
        } else if (field.number == G_OUTPUT && outputs < output_count) {
            rewrite_output(field.bytes, output[outputs++], &last, ret_outputs);
        } else {
            onnx_put_field(&rest, field.number, field.bytes.data, field.bytes.size);
        }
    }
    REQUIRE(!wire.is_damaged);
    ifd_buf_add(ret, rest.data, rest.size);
    ifd_buf_add(ret, last.data, last.size);
    ifd_buf_finish(&rest);
    ifd_buf_finish(&last);
}

void onnx_lists_rewrite(struct ifd_bytes model, const struct ifd_bytes *input, uint32_t input_count,
                        const struct ifd_bytes *output, uint32_t output_count,
                        struct ifd_buf *ret_model, struct onnx_lists_side *ret_inputs,
                        struct onnx_lists_side *ret_outputs)
{
    struct ifd_wire wire = ifd_wire_open(model);
    struct ifd_wire_field field;
    begin(ret_model);
    while (ifd_wire_next(&wire, &field)) {
        if (field.type != IFD_WIRE_BYTES) {
            REQUIRE(field.type == IFD_WIRE_VARINT);
            onnx_put_number(ret_model, field.number, field.value);
        } else if (field.number == 7) {
            struct ifd_buf graph;
            begin(&graph);
            rewrite_graph(field.bytes, input, input_count, output, output_count, &graph, ret_inputs,
                          ret_outputs);
            put_message(ret_model, 7, &graph);
        } else {
            onnx_put_field(ret_model, field.number, field.bytes.data, field.bytes.size);
        }
    }
    REQUIRE(!wire.is_damaged && ifd_buf_check(ret_model, NULL) == IFD_OK);
}

void onnx_lists_finish(struct onnx_lists_side *side)
{
    for (uint32_t i = 0; i < side->count; i++) {
        ifd_buf_finish(&side->tensor[i].message);
    }
    side->count = 0;
}
