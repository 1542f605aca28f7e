/* Three ways of writing a graph down. Nothing here decides anything; the order is the graph's own. */
#include "engine/ir/dump.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"

#define PIECE_BYTES 768 /* longest piece: an attribute list */

struct writer {
    const struct ifd_graph *graph;
    ifd_sink_fn sink;
    void *context;
};

static void put(const struct writer *w, const char *format, ...) IFD_PRINTF(2, 3);

static void put(const struct writer *w, const char *format, ...)
{
    char piece[PIECE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    if (length > 0) {
        size_t size = (size_t)length < sizeof(piece) ? (size_t)length : sizeof(piece) - 1;
        w->sink(w->context, piece, size);
    }
}

/* Text between double quotes. Bytes outside ASCII pass if the text is UTF-8 for its reader to judge; controls do not. */
static void put_quoted(const struct writer *w, const char *text)
{
    put(w, "\"");
    const char *plain = text;
    const char *p = text;
    for (; *p != '\0'; p++) {
        if ((unsigned char)*p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7f) {
            continue;
        }
        if (p > plain) {
            w->sink(w->context, plain, (size_t)(p - plain));
        }
        put(w, "\\u%04x", (unsigned)(unsigned char)*p);
        plain = p + 1;
    }
    if (p > plain) {
        w->sink(w->context, plain, (size_t)(p - plain));
    }
    put(w, "\"");
}

static uint32_t hash(struct ifd_bytes data)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < data.size; i++) {
        h = (h ^ data.data[i]) * 16777619u;
    }
    return h;
}

/* Attributes as text without line breaks; "" if the operator has none. */
static void attrs_text(const struct ifd_node *node, char *text, size_t size)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    text[0] = '\0';
    if (def->attr_count > 0) {
        ifd_attrs_text(def, node->attrs, text, size);
    }
}

/* ---- text ---- */

static void text_value(const struct writer *w, uint32_t index)
{
    const struct ifd_value *v = &w->graph->value[index];
    put(w, "%%%" PRIu32 " ", index);
    put_quoted(w, v->name);
    put(w, " %s%s", ifd_dtype_name(v->desc.dtype), ifd_shape_text(&v->desc.shape).s);
    const struct ifd_quant *q = &v->desc.quant;
    if (q->count == 1) {
        put(w, " scale %.9g zero %" PRId32, (double)q->scale[0], q->zero_point[0]);
    } else if (q->count > 1) {
        put(w, " scale %.9g (first of %" PRIu32 ") axis %" PRIu32, (double)q->scale[0], q->count,
            q->axis);
    }
}

static void text_node(const struct writer *w, uint32_t index)
{
    const struct ifd_node *node = &w->graph->node[index];
    char attrs[PIECE_BYTES - 16];
    attrs_text(node, attrs, sizeof(attrs));
    put(w, "node %" PRIu32 " %s(", index, ifd_op_def(node->op)->name);
    put(w, "%s)", attrs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] == IFD_NONE) {
            put(w, " -");
        } else {
            put(w, " %%%" PRIu32, node->input[i]);
        }
    }
    put(w, " =>");
    for (uint32_t i = 0; i < node->output_count; i++) {
        put(w, i == 0 ? " " : ", ");
        text_value(w, node->output[i]);
    }
    put(w, "\n");
}

static void dump_text(const struct writer *w)
{
    const struct ifd_graph *g = w->graph;
    for (uint32_t i = 0; i < g->input_count; i++) {
        put(w, "input ");
        text_value(w, g->input[i]);
        put(w, "\n");
    }
    for (uint32_t i = 0; i < g->value_count; i++) {
        if (g->value[i].is_constant) {
            put(w, "const ");
            text_value(w, i);
            put(w, " hash %08" PRIx32 "\n", hash(g->value[i].data));
        }
    }
    for (uint32_t i = 0; i < g->node_count; i++) {
        text_node(w, i);
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        put(w, "output %%%" PRIu32 "\n", g->output[i]);
    }
}

/* ---- JSON ---- */

static void json_indexes(const struct writer *w, const char *key, const uint32_t *index,
                         uint32_t count)
{
    put(w, "\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        put(w, i == 0 ? "" : ",");
        if (index[i] == IFD_NONE) {
            put(w, "null");
        } else {
            put(w, "%" PRIu32, index[i]);
        }
    }
    put(w, "]");
}

static void json_quant(const struct writer *w, const struct ifd_quant *q)
{
    put(w, ",\"axis\":%" PRIu32 ",\"scale\":[", q->axis);
    for (uint32_t i = 0; i < q->count; i++) {
        put(w, "%s%.9g", i == 0 ? "" : ",", (double)q->scale[i]);
    }
    put(w, "],\"zero_point\":[");
    for (uint32_t i = 0; i < q->count; i++) {
        put(w, "%s%" PRId32, i == 0 ? "" : ",", q->zero_point[i]);
    }
    put(w, "]");
}

static void json_value(const struct writer *w, const struct ifd_value *v)
{
    put(w, "{\"name\":");
    put_quoted(w, v->name);
    put(w, ",\"type\":\"%s\",\"shape\":%s", ifd_dtype_name(v->desc.dtype),
        ifd_shape_text(&v->desc.shape).s);
    if (v->desc.quant.count > 0) {
        json_quant(w, &v->desc.quant);
    }
    if (v->is_constant) {
        put(w, ",\"bytes\":%zu,\"hash\":\"%08" PRIx32 "\"", v->data.size, hash(v->data));
    }
    put(w, "}");
}

static void json_node(const struct writer *w, const struct ifd_node *node)
{
    char attrs[PIECE_BYTES - 16];
    attrs_text(node, attrs, sizeof(attrs));
    put(w, "{\"op\":\"%s\",\"attrs\":", ifd_op_def(node->op)->name);
    put_quoted(w, attrs);
    put(w, ",");
    json_indexes(w, "inputs", node->input, node->input_count);
    put(w, ",");
    json_indexes(w, "outputs", node->output, node->output_count);
    put(w, "}");
}

static void dump_json(const struct writer *w)
{
    const struct ifd_graph *g = w->graph;
    put(w, "{\"values\":[");
    for (uint32_t i = 0; i < g->value_count; i++) {
        put(w, i == 0 ? "\n" : ",\n");
        json_value(w, &g->value[i]);
    }
    put(w, "],\n\"nodes\":[");
    for (uint32_t i = 0; i < g->node_count; i++) {
        put(w, i == 0 ? "\n" : ",\n");
        json_node(w, &g->node[i]);
    }
    put(w, "],\n");
    json_indexes(w, "inputs", g->input, g->input_count);
    put(w, ",\n");
    json_indexes(w, "outputs", g->output, g->output_count);
    put(w, "}\n");
}

/* ---- dot ---- */

/* An arrow from whatever makes a value; constants are left out of the picture. */
static void dot_edge(const struct writer *w, uint32_t value, const char *to, uint32_t to_index)
{
    const struct ifd_value *v = &w->graph->value[value];
    if (v->is_constant) {
        return;
    }
    if (v->producer == IFD_NONE) {
        put(w, "i%" PRIu32, value);
    } else {
        put(w, "n%" PRIu32, v->producer);
    }
    put(w, " -> %s%" PRIu32 " [label=\"%s %s\"]\n", to, to_index, ifd_dtype_name(v->desc.dtype),
        ifd_shape_text(&v->desc.shape).s);
}

static void dump_dot(const struct writer *w)
{
    const struct ifd_graph *g = w->graph;
    put(w, "digraph model {\nnode [shape=box]\n");
    for (uint32_t i = 0; i < g->input_count; i++) {
        put(w, "i%" PRIu32 " [shape=ellipse,label=", g->input[i]);
        put_quoted(w, g->value[g->input[i]].name);
        put(w, "]\n");
    }
    for (uint32_t i = 0; i < g->node_count; i++) {
        put(w, "n%" PRIu32 " [label=\"%s\"]\n", i, ifd_op_def(g->node[i].op)->name);
        for (uint32_t k = 0; k < g->node[i].input_count; k++) {
            if (g->node[i].input[k] != IFD_NONE) {
                dot_edge(w, g->node[i].input[k], "n", i);
            }
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        put(w, "o%" PRIu32 " [shape=ellipse,label=", i);
        put_quoted(w, g->value[g->output[i]].name);
        put(w, "]\n");
        dot_edge(w, g->output[i], "o", i);
    }
    put(w, "}\n");
}

void ifd_graph_dump(const struct ifd_graph *graph, enum ifd_dump_format format, ifd_sink_fn sink,
                    void *context)
{
    const struct writer w = {.graph = graph, .sink = sink, .context = context};
    switch (format) {
    case IFD_DUMP_TEXT:
        dump_text(&w);
        break;
    case IFD_DUMP_JSON:
        dump_json(&w);
        break;
    case IFD_DUMP_DOT:
        dump_dot(&w);
        break;
    }
}
