/* A graph as text, JSON and dot, in the order of its nodes. */
#include "engine/ir/dump.h"

#include <inttypes.h>

#include "engine/base/text.h"
#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"

struct writer {
    const struct ifd_graph *graph;
    struct ifd_writer out;
};

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
    ifd_write(&w->out, "%%%" PRIu32 " ", index);
    ifd_write_quoted(&w->out, v->name);
    ifd_write(&w->out, " %s%s", ifd_dtype_name(v->desc.dtype), ifd_shape_text(&v->desc.shape).s);
    const struct ifd_quant *q = &v->desc.quant;
    if (q->count == 1) {
        ifd_write(&w->out, " scale %.9g zero %" PRId32, (double)q->scale[0], q->zero_point[0]);
    } else if (q->count > 1) {
        ifd_write(&w->out, " scale %.9g (first of %" PRIu32 ") axis %" PRIu32, (double)q->scale[0],
                  q->count, q->axis);
    }
}

static void text_node(const struct writer *w, uint32_t index)
{
    const struct ifd_node *node = &w->graph->node[index];
    char attrs[IFD_WRITE_BYTES - 16];
    attrs_text(node, attrs, sizeof(attrs));
    ifd_write(&w->out, "node %" PRIu32 " %s(", index, ifd_op_def(node->op)->name);
    ifd_write(&w->out, "%s)", attrs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] == IFD_NONE) {
            ifd_write(&w->out, " -");
        } else {
            ifd_write(&w->out, " %%%" PRIu32, node->input[i]);
        }
    }
    ifd_write(&w->out, " =>");
    for (uint32_t i = 0; i < node->output_count; i++) {
        ifd_write(&w->out, i == 0 ? " " : ", ");
        text_value(w, node->output[i]);
    }
    ifd_write(&w->out, "\n");
}

static void dump_text(const struct writer *w)
{
    const struct ifd_graph *g = w->graph;
    for (uint32_t i = 0; i < g->input_count; i++) {
        ifd_write(&w->out, "input ");
        text_value(w, g->input[i]);
        ifd_write(&w->out, "\n");
    }
    for (uint32_t i = 0; i < g->value_count; i++) {
        if (g->value[i].is_constant) {
            ifd_write(&w->out, "const ");
            text_value(w, i);
            if (g->value[i].is_released) {
                ifd_write(&w->out, " released\n");
            } else {
                ifd_write(&w->out, " hash %08" PRIx32 "\n", hash(g->value[i].data));
            }
        }
    }
    for (uint32_t i = 0; i < g->node_count; i++) {
        text_node(w, i);
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        ifd_write(&w->out, "output %%%" PRIu32 "\n", g->output[i]);
    }
}

/* ---- JSON ---- */

static void json_indexes(const struct writer *w, const char *key, const uint32_t *index,
                         uint32_t count)
{
    ifd_write(&w->out, "\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        ifd_write(&w->out, i == 0 ? "" : ",");
        if (index[i] == IFD_NONE) {
            ifd_write(&w->out, "null");
        } else {
            ifd_write(&w->out, "%" PRIu32, index[i]);
        }
    }
    ifd_write(&w->out, "]");
}

static void json_quant(const struct writer *w, const struct ifd_quant *q)
{
    ifd_write(&w->out, ",\"axis\":%" PRIu32 ",\"scale\":[", q->axis);
    for (uint32_t i = 0; i < q->count; i++) {
        ifd_write(&w->out, "%s%.9g", i == 0 ? "" : ",", (double)q->scale[i]);
    }
    ifd_write(&w->out, "],\"zero_point\":[");
    for (uint32_t i = 0; i < q->count; i++) {
        ifd_write(&w->out, "%s%" PRId32, i == 0 ? "" : ",", q->zero_point[i]);
    }
    ifd_write(&w->out, "]");
}

static void json_value(const struct writer *w, const struct ifd_value *v)
{
    ifd_write(&w->out, "{\"name\":");
    ifd_write_quoted(&w->out, v->name);
    ifd_write(&w->out, ",\"type\":\"%s\",\"shape\":%s", ifd_dtype_name(v->desc.dtype),
              ifd_shape_text(&v->desc.shape).s);
    if (v->desc.quant.count > 0) {
        json_quant(w, &v->desc.quant);
    }
    if (v->is_constant) {
        ifd_write(&w->out, ",\"bytes\":%zu", v->data.size);
    }
    if (v->is_constant && !v->is_released) {
        ifd_write(&w->out, ",\"hash\":\"%08" PRIx32 "\"", hash(v->data));
    }
    ifd_write(&w->out, "}");
}

static void json_node(const struct writer *w, const struct ifd_node *node)
{
    char attrs[IFD_WRITE_BYTES - 16];
    attrs_text(node, attrs, sizeof(attrs));
    ifd_write(&w->out, "{\"op\":\"%s\",\"attrs\":", ifd_op_def(node->op)->name);
    ifd_write_quoted(&w->out, attrs);
    ifd_write(&w->out, ",");
    json_indexes(w, "inputs", node->input, node->input_count);
    ifd_write(&w->out, ",");
    json_indexes(w, "outputs", node->output, node->output_count);
    ifd_write(&w->out, "}");
}

static void dump_json(const struct writer *w)
{
    const struct ifd_graph *g = w->graph;
    ifd_write(&w->out, "{\"values\":[");
    for (uint32_t i = 0; i < g->value_count; i++) {
        ifd_write(&w->out, i == 0 ? "\n" : ",\n");
        json_value(w, &g->value[i]);
    }
    ifd_write(&w->out, "],\n\"nodes\":[");
    for (uint32_t i = 0; i < g->node_count; i++) {
        ifd_write(&w->out, i == 0 ? "\n" : ",\n");
        json_node(w, &g->node[i]);
    }
    ifd_write(&w->out, "],\n");
    json_indexes(w, "inputs", g->input, g->input_count);
    ifd_write(&w->out, ",\n");
    json_indexes(w, "outputs", g->output, g->output_count);
    ifd_write(&w->out, "}\n");
}

/* ---- dot ---- */

/* An arrow from what makes a value; constants are left out. */
static void dot_edge(const struct writer *w, uint32_t value, const char *to, uint32_t to_index)
{
    const struct ifd_value *v = &w->graph->value[value];
    if (v->is_constant) {
        return;
    }
    if (v->producer == IFD_NONE) {
        ifd_write(&w->out, "i%" PRIu32, value);
    } else {
        ifd_write(&w->out, "n%" PRIu32, v->producer);
    }
    ifd_write(&w->out, " -> %s%" PRIu32 " [label=\"%s %s\"]\n", to, to_index,
              ifd_dtype_name(v->desc.dtype), ifd_shape_text(&v->desc.shape).s);
}

static void dump_dot(const struct writer *w)
{
    const struct ifd_graph *g = w->graph;
    ifd_write(&w->out, "digraph model {\nnode [shape=box]\n");
    for (uint32_t i = 0; i < g->input_count; i++) {
        ifd_write(&w->out, "i%" PRIu32 " [shape=ellipse,label=", g->input[i]);
        ifd_write_quoted(&w->out, g->value[g->input[i]].name);
        ifd_write(&w->out, "]\n");
    }
    for (uint32_t i = 0; i < g->node_count; i++) {
        ifd_write(&w->out, "n%" PRIu32 " [label=\"%s\"]\n", i, ifd_op_def(g->node[i].op)->name);
        for (uint32_t k = 0; k < g->node[i].input_count; k++) {
            if (g->node[i].input[k] != IFD_NONE) {
                dot_edge(w, g->node[i].input[k], "n", i);
            }
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        ifd_write(&w->out, "o%" PRIu32 " [shape=ellipse,label=", i);
        ifd_write_quoted(&w->out, g->value[g->output[i]].name);
        ifd_write(&w->out, "]\n");
        dot_edge(w, g->output[i], "o", i);
    }
    ifd_write(&w->out, "}\n");
}

void ifd_graph_dump(const struct ifd_graph *graph, enum ifd_dump_format format, ifd_sink_fn sink,
                    void *context)
{
    const struct writer w = {.graph = graph, .out = {.sink = sink, .context = context}};
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
    case IFD_DUMP_PASSES: /* a model's, not a graph's */
        break;
    }
}
