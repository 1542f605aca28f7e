/* What a file needs and we do not have: all operators without a row, in all graphs that a run may
 * reach. */
#include <stdio.h>
#include <string.h>

#include "engine/parse/onnx/onnx_build.h"

#define MISSING_MAX 16 /* operators that a refusal names */

enum { UNCALLED, CALLED, LOOKED_THROUGH };

struct missing {
    const struct ifd_onnx_model *model;
    uint8_t *state; /* per function: enum */
    struct {
        const struct ifd_onnx_node *node; /* the first */
        uint32_t index, count;
    } row[MISSING_MAX];
    uint32_t count;
};

static void note_missing(struct missing *m, const struct ifd_onnx_node *node, uint32_t index)
{
    uint32_t k = 0;
    while (k < m->count && (ifd_onnx_order(node->op, m->row[k].node->op) != 0 ||
                            ifd_onnx_order(node->domain, m->row[k].node->domain) != 0)) {
        k++;
    }
    if (k == m->count && k < MISSING_MAX) {
        m->row[k].node = node;
        m->row[k].index = index;
        m->row[k].count = 0;
        m->count++;
    }
    if (k < m->count) {
        m->row[k].count++;
    }
}

/* Graphs in nodes are nested as deep as the reader allows. */
static void find_missing(struct missing *m, const struct ifd_onnx_graph *g)
{
    for (uint32_t i = 0; i < g->node_count; i++) {
        const struct ifd_onnx_node *node = &g->node[i];
        const struct ifd_onnx_local *function = ifd_onnx_local_of(m->model, node);
        if (function && m->state[function - m->model->function] == UNCALLED) {
            m->state[function - m->model->function] = CALLED;
        } else if (!function && !ifd_onnx_rule(node)) {
            note_missing(m, node, i);
        }
        for (uint32_t k = 0; k < node->attr_count; k++) {
            if (node->attr[k].graph) {
                find_missing(m, node->attr[k].graph);
            }
        }
    }
}

/* Nodes may have the graphs among what its attributes are if the caller does not say. */
static void find_missing_of_function(struct missing *m, const struct ifd_onnx_local *function)
{
    find_missing(m, &function->graph);
    for (uint32_t k = 0; k < function->attr_count; k++) {
        if (function->attr[k].graph) {
            find_missing(m, function->attr[k].graph);
        }
    }
}

/* A function that nobody calls may have any operators. */
static void look_through_called(struct missing *m)
{
    bool has_more = true;
    while (has_more) {
        has_more = false;
        for (uint32_t i = 0; i < m->model->function_count; i++) {
            if (m->state[i] == CALLED) {
                m->state[i] = LOOKED_THROUGH;
                find_missing_of_function(m, &m->model->function[i]);
                has_more = true;
            }
        }
    }
}

/* What to do instead, of the first one that this is known of. */
static const char *advice(const struct missing *m)
{
    /* It lays weights out in blocks of the registers that it finds, and the file does not say how
     * wide these are. */
    static const char for_one_cpu[] =
        "; ONNX Runtime saved this file for one kind of CPU, save it with ORT_ENABLE_EXTENDED";
    static const char of_map[] =
        "; a request has tensors, no maps: convert what follows, and send its columns";
    static const char of_cache[] =
        "; its caches are inputs and outputs in one place, export with GroupQueryAttention";
    static const char of_search[] = "; export the decoder alone, and let the client search";
    static const struct {
        const char *domain, *op, *advice; /* op NULL: any */
    } known[] = {
        {"com.microsoft.nchwc", NULL, for_one_cpu},
        {"ai.onnx.ml", "CastMap", of_map},
        {"ai.onnx.ml", "DictVectorizer", of_map},
        {"com.microsoft", "BeamSearch", of_search},
        {"com.microsoft", "DecoderMaskedMultiHeadAttention", of_cache},
        {"com.microsoft", "GreedySearch", of_search},
        {"com.microsoft", "Sampling", of_search},
        {"com.microsoft", "SparseAttention", of_cache},
        {"com.microsoft", "WhisperBeamSearch", of_search},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        for (uint32_t k = 0; k < m->count; k++) {
            const struct ifd_onnx_node *node = m->row[k].node;
            if (ifd_str_is(node->domain, known[i].domain) &&
                (!known[i].op || ifd_str_is(node->op, known[i].op))) {
                return known[i].advice;
            }
        }
    }
    return "";
}

enum ifd_code ifd_onnx_check_operators(struct ifd_onnx_build *build)
{
    const uint32_t functions = build->model->function_count;
    struct missing m = {.model = build->model,
                        .state = ifd_arena_take_array(build->scratch, functions, 1)};
    if (!m.state) {
        return ifd_arena_fail(build->scratch, functions, build->err);
    }
    memset(m.state, UNCALLED, functions);
    find_missing(&m, build->scope->g);
    look_through_called(&m);
    if (m.count == 0) {
        return IFD_OK;
    }
    char list[IFD_ERR_TEXT_BYTES - 128] = "";
    int used = 0;
    for (uint32_t k = 0; k < m.count && used >= 0 && (size_t)used < sizeof(list); k++) {
        const struct ifd_onnx_node *node = m.row[k].node;
        used += snprintf(list + used, sizeof(list) - (size_t)used, "%s%s%s%s (%u, first node %u)",
                         k > 0 ? ", " : "", ifd_onnx_text(node->domain).s,
                         node->domain.size > 0 ? "." : "", ifd_onnx_text(node->op).s,
                         m.row[k].count, m.row[k].index);
    }
    return ifd_fail(build->err, IFD_UNSUPPORTED, "operators that are not supported: %s%s", list,
                    advice(&m));
}
