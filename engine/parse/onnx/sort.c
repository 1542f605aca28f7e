/* The order of a graph's nodes, and of its names. ONNX asks for each node behind those that make
 * its inputs; ONNX Runtime does not, and there are files (some converters to half precision append
 * their casts at the end) that nobody else noticed. Such a graph is sorted while it is read. */
#include <stdlib.h>
#include <string.h>

#include "engine/parse/onnx/onnx_build.h"
#include "engine/parse/onnx/reader_impl.h"

struct made {
    struct ifd_str name;
    uint32_t node;
    uint32_t mark; /* of the inner graph that has a value of this name */
};

struct sorter {
    const struct ifd_onnx_graph *g;
    struct made *made; /* sorted by name */
    size_t made_count;
    uint32_t *need; /* nodes, of all nodes in turn; NULL: they are only counted */
    size_t need_count;
    size_t *end;   /* per node: of its needs */
    uint32_t mark; /* of the present inner graph and those in it, from 1 on */
    bool is_late;  /* a node stands before one that it needs */
};

static int compare_made(const void *a, const void *b)
{
    return ifd_onnx_order(((const struct made *)a)->name, ((const struct made *)b)->name);
}

static struct made *find_made(const struct sorter *s, struct ifd_str name)
{
    const struct made wanted = {.name = name};
    return s->made_count == 0
               ? NULL
               : bsearch(&wanted, s->made, s->made_count, sizeof(*s->made), compare_made);
}

static void note_name(struct sorter *s, uint32_t node, struct ifd_str name, bool is_inner)
{
    const struct made *made = find_made(s, name);
    if (!made || made->node == node || (is_inner && made->mark == s->mark)) {
        return;
    }
    if (s->need) {
        s->need[s->need_count] = made->node;
    }
    s->need_count++;
    s->is_late |= made->node > node;
}

static void mark_name(const struct sorter *s, struct ifd_str name)
{
    struct made *made = find_made(s, name);
    if (made) {
        made->mark = s->mark;
    }
}

/* A value of an inner graph hides one outside. */
static void mark_own(const struct sorter *s, const struct ifd_onnx_graph *inner)
{
    for (uint32_t i = 0; i < inner->initializer_count; i++) {
        mark_name(s, inner->initializer[i].name);
    }
    for (uint32_t i = 0; i < inner->input_count; i++) {
        mark_name(s, inner->input[i].name);
    }
    for (uint32_t i = 0; i < inner->node_count; i++) {
        for (uint32_t k = 0; k < inner->node[i].output_count; k++) {
            mark_name(s, inner->node[i].output[k]);
        }
    }
}

/* Graphs in nodes are nested as deep as the reader allows. */
static void note_needs(struct sorter *s, uint32_t node, const struct ifd_onnx_node *part,
                       bool is_inner)
{
    for (uint32_t i = 0; i < part->input_count; i++) {
        note_name(s, node, part->input[i], is_inner);
    }
    for (uint32_t i = 0; i < part->attr_count; i++) {
        const struct ifd_onnx_graph *inner = part->attr[i].graph;
        if (!inner) {
            continue;
        }
        s->mark += is_inner ? 0 : 1;
        mark_own(s, inner);
        for (uint32_t k = 0; k < inner->node_count; k++) {
            note_needs(s, node, &inner->node[k], true);
        }
        for (uint32_t k = 0; k < inner->output_count; k++) {
            note_name(s, node, inner->output[k].name, true);
        }
    }
}

static void note_all(struct sorter *s)
{
    s->need_count = 0;
    for (uint32_t i = 0; i < s->g->node_count; i++) {
        note_needs(s, i, &s->g->node[i], false);
        if (s->need) {
            s->end[i] = s->need_count;
        }
    }
}

static bool collect_made(struct sorter *s, struct ifd_arena *scratch)
{
    const struct ifd_onnx_graph *g = s->g;
    size_t count = 0;
    for (uint32_t i = 0; i < g->node_count; i++) {
        count += g->node[i].output_count;
    }
    s->made = ifd_arena_take_array(scratch, count, sizeof(*s->made));
    if (!s->made) {
        return false;
    }
    for (uint32_t i = 0; i < g->node_count; i++) {
        for (uint32_t k = 0; k < g->node[i].output_count; k++) {
            if (g->node[i].output[k].size > 0) {
                s->made[s->made_count++] = (struct made){.name = g->node[i].output[k], .node = i};
            }
        }
    }
    if (s->made_count > 1) {
        qsort(s->made, s->made_count, sizeof(*s->made), compare_made);
    }
    return true;
}

/* Depth first: each node behind its needs, else as in the file. Writes what stands where to order
 * and returns true; false if nodes need each other. */
static bool walk(const struct sorter *s, uint32_t *order, uint32_t *stack, size_t *next)
{
    const uint32_t count = s->g->node_count;
    uint32_t done = 0;
    for (uint32_t i = 0; i < count; i++) {
        next[i] = SIZE_MAX;
    }
    for (uint32_t first = 0; first < count; first++) {
        uint32_t depth = 0;
        if (next[first] == SIZE_MAX) {
            stack[depth++] = first;
            next[first] = first > 0 ? s->end[first - 1] : 0;
        }
        while (depth > 0) {
            const uint32_t node = stack[depth - 1];
            if (next[node] == s->end[node]) {
                order[done++] = node;
                next[node]++; /* beyond its end: done */
                depth--;
                continue;
            }
            const uint32_t need = s->need[next[node]++];
            if (next[need] == SIZE_MAX) {
                stack[depth++] = need;
                next[need] = need > 0 ? s->end[need - 1] : 0;
            } else if (next[need] <= s->end[need]) {
                return false;
            }
        }
    }
    return true;
}

static bool sort(struct sorter *s, struct ifd_onnx_node *node, struct ifd_arena *scratch)
{
    const uint32_t count = s->g->node_count;
    s->need = ifd_arena_take_array(scratch, s->need_count, sizeof(*s->need));
    s->end = ifd_arena_take_array(scratch, count, sizeof(*s->end));
    size_t *next = ifd_arena_take_array(scratch, count, sizeof(*next));
    uint32_t *order = ifd_arena_take_array(scratch, count, sizeof(*order));
    uint32_t *stack = ifd_arena_take_array(scratch, count, sizeof(*stack));
    struct ifd_onnx_node *copy = ifd_arena_take_array(scratch, count, sizeof(*copy));
    if (!s->need || !s->end || !next || !order || !stack || !copy) {
        return false;
    }
    note_all(s);
    if (walk(s, order, stack, next)) {
        memcpy(copy, node, count * sizeof(*copy));
        for (uint32_t i = 0; i < count; i++) {
            node[i] = copy[order[i]];
        }
    }
    return true;
}

enum ifd_code ifd_onnx_sort(struct ifd_onnx_reader *r, const struct ifd_onnx_graph *graph,
                            struct ifd_onnx_node *node)
{
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, r->arena->alloc, r->arena->cap_bytes);
    struct sorter s = {.g = graph};
    bool is_done = collect_made(&s, &scratch);
    if (is_done) {
        note_all(&s);
        is_done = !s.is_late || sort(&s, node, &scratch);
    }
    const enum ifd_code code =
        is_done ? IFD_OK : ifd_arena_fail(&scratch, s.made_count * sizeof(*s.made), r->err);
    ifd_arena_finish(&scratch);
    return code;
}

/* ---- names ---- */

static int compare_named(const void *a, const void *b)
{
    return ifd_onnx_order(((const struct ifd_onnx_named *)a)->text,
                          ((const struct ifd_onnx_named *)b)->text);
}

static void add_name(struct ifd_onnx_named *name, size_t *count, struct ifd_str text,
                     const struct ifd_onnx_node *maker)
{
    if (text.size > 0) {
        name[(*count)++] = (struct ifd_onnx_named){.text = text, .maker = maker};
    }
}

enum ifd_code ifd_onnx_sort_names(struct ifd_onnx_reader *r, struct ifd_onnx_graph *graph)
{
    const struct ifd_onnx_graph *g = graph;
    enum ifd_code code = IFD_OK;
    size_t count = (size_t)g->initializer_count + g->input_count;
    for (uint32_t i = 0; i < g->node_count; i++) {
        count += g->node[i].output_count;
    }
    struct ifd_onnx_named *name = ifd_onnx_reader_take(r, count, sizeof(*name), &code);
    if (!name) {
        return code;
    }
    count = 0;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        add_name(name, &count, g->initializer[i].name, NULL);
    }
    for (uint32_t i = 0; i < g->input_count; i++) {
        add_name(name, &count, g->input[i].name, NULL);
    }
    for (uint32_t i = 0; i < g->node_count; i++) {
        for (uint32_t k = 0; k < g->node[i].output_count; k++) {
            add_name(name, &count, g->node[i].output[k], &g->node[i]);
        }
    }
    if (count > 1) {
        qsort(name, count, sizeof(*name), compare_named);
    }
    graph->name = name;
    graph->name_count = count;
    return IFD_OK;
}
