/* Layout propagation: transpositions move behind operators that work in any order of dimensions,
 * until they meet their inverse and cancel. A graph in channels-first becomes channels-last.
 *
 * The graph is rebuilt. Where a value v is another value w, transposed by perm, operators compute
 * on w, and a transposition back to v follows them. A transposition of v reads w instead. Nodes
 * without readers are dropped. The result is taken only if it has fewer nodes, so the pass ends. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

#include <string.h>

/* What is known of a value v. */
struct fact {
    uint32_t same;        /* the value to read instead; itself if none */
    uint32_t other;       /* w, IFD_NONE if there is none */
    struct ifd_perm perm; /* dimension i of v is dimension axis[i] of w */
};

struct mover {
    const struct ifd_graph *from;
    struct ifd_graph to;
    struct fact *fact;
    uint32_t fact_count;
    bool *is_output;
    struct ifd_arena *scratch;
    struct ifd_err *err;
};

/* ---- permutations ---- */

static bool perm_equal(const struct ifd_perm *a, const struct ifd_perm *b)
{
    return a->rank == b->rank && memcmp(a->axis, b->axis, a->rank) == 0;
}

static bool perm_is_identity(const struct ifd_perm *perm)
{
    for (uint32_t i = 0; i < perm->rank; i++) {
        if (perm->axis[i] != i) {
            return false;
        }
    }
    return true;
}

static struct ifd_perm perm_inverse(const struct ifd_perm *perm)
{
    struct ifd_perm inverse = {.rank = perm->rank};
    for (uint8_t i = 0; i < perm->rank; i++) {
        inverse.axis[perm->axis[i]] = i;
    }
    return inverse;
}

/* First a, then b. */
static struct ifd_perm perm_chain(const struct ifd_perm *a, const struct ifd_perm *b)
{
    struct ifd_perm chain = {.rank = a->rank};
    for (uint32_t i = 0; i < a->rank; i++) {
        chain.axis[i] = a->axis[b->axis[i]];
    }
    return chain;
}

static bool perm_of(const struct ifd_node *node, struct ifd_perm *ret)
{
    const struct ifd_transpose_attrs *attrs = node->attrs;
    ret->rank = attrs->perm.count;
    for (uint32_t i = 0; i < ret->rank; i++) {
        const int64_t axis = attrs->perm.value[i];
        ret->axis[i] = (uint8_t)(axis < 0 ? axis + (int64_t)ret->rank : axis);
    }
    return node->input_count == 1 && ret->rank > 0;
}

/* ---- building ---- */

static uint32_t resolve(const struct mover *m, uint32_t value)
{
    return value == IFD_NONE ? value : m->fact[value].same;
}

static const struct fact *fact_of(const struct mover *m, uint32_t value)
{
    return &m->fact[m->fact[value].same];
}

/* A new value: the description of v with the dimensions of w. */
static enum ifd_code add_twin(struct mover *m, uint32_t v, const struct ifd_perm *perm,
                              uint32_t *ret)
{
    const struct ifd_value *value = &m->to.value[v];
    struct ifd_desc desc = value->desc;
    for (uint32_t i = 0; i < perm->rank; i++) {
        desc.shape.dim[perm->axis[i]] = value->desc.shape.dim[i];
    }
    const enum ifd_code code = ifd_graph_add_value(&m->to, value->name, &desc, ret, m->err);
    if (code == IFD_OK && *ret < m->fact_count) {
        m->fact[*ret] = (struct fact){.same = *ret, .other = IFD_NONE};
    }
    return code;
}

static enum ifd_code add_node(struct mover *m, const struct ifd_node *source, const void *attrs,
                              const uint32_t *input, const uint32_t *output)
{
    struct ifd_node *node = NULL;
    const enum ifd_code code = ifd_graph_add_node(&m->to, source->op, input, source->input_count,
                                                  output, source->output_count, &node, m->err);
    if (code == IFD_OK) {
        node->attrs = attrs;
        node->source_index = source->source_index;
        node->source_name = source->source_name;
    }
    return code;
}

static enum ifd_code add_transpose(struct mover *m, uint32_t input, const struct ifd_perm *perm,
                                   uint32_t output)
{
    struct ifd_node *node = NULL;
    const enum ifd_code code =
        ifd_graph_add_node(&m->to, IFD_OP_TRANSPOSE, &input, 1, &output, 1, &node, m->err);
    if (code == IFD_OK) {
        struct ifd_transpose_attrs *attrs = (struct ifd_transpose_attrs *)(uintptr_t)node->attrs;
        attrs->perm.count = perm->rank;
        for (uint32_t i = 0; i < perm->rank; i++) {
            attrs->perm.value[i] = perm->axis[i];
        }
    }
    return code;
}

/* Copies a node; its inputs are resolved. */
static enum ifd_code keep(struct mover *m, const struct ifd_node *node)
{
    uint32_t *input = ifd_arena_take_array(m->scratch, node->input_count, sizeof(*input));
    if (!input) {
        return ifd_arena_fail(m->scratch, node->input_count * sizeof(*input), m->err);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        input[i] = resolve(m, node->input[i]);
    }
    return add_node(m, node, node->attrs, input, node->output);
}

/* Only of one quantization: numbers that are stored stay as they are where another one follows. */
static bool means_the_same(const struct mover *m, uint32_t v, uint32_t w)
{
    const struct ifd_quant *quant = &m->to.value[v].desc.quant;
    return quant->count <= 1 && ifd_quant_same(quant, &m->to.value[w].desc.quant);
}

/* Copies a transposition: of w instead of v; drops it if the result is w. */
static enum ifd_code transpose(struct mover *m, const struct ifd_node *node)
{
    const uint32_t out = node->output[0];
    uint32_t base = resolve(m, node->input[0]);
    struct ifd_perm perm;
    if (!perm_of(node, &perm)) {
        return keep(m, node);
    }
    const struct fact *fact = &m->fact[base];
    if (fact->other != IFD_NONE) {
        perm = perm_chain(&fact->perm, &perm);
        base = fact->other;
    }
    const bool is_same = means_the_same(m, base, out);
    if (is_same && perm_is_identity(&perm) && !m->is_output[out]) {
        m->fact[out].same = base;
        return IFD_OK;
    }
    if (is_same) {
        m->fact[out].other = base;
        m->fact[out].perm = perm;
    }
    return add_transpose(m, base, &perm, out);
}

/* ---- operators that work in any order ---- */

/* Rewrites the attributes for w. False: operator or attributes need the order of v. */
static bool permute_attrs(enum ifd_op op, void *attrs, const struct ifd_perm *perm)
{
    const struct ifd_op_def *def = ifd_op_def(op);
    return def->is_elementwise || (def->permute && def->permute(attrs, perm));
}

/* The list of a table, which has no place beside the tensor. */
static bool is_list(const struct ifd_node *node, uint32_t i)
{
    return node->op == IFD_OP_TABLE && i == 1;
}

static bool is_single(const struct mover *m, uint32_t value)
{
    size_t elements = 0;
    return ifd_shape_elements(&m->to.value[value].desc.shape, &elements) && elements == 1;
}

/* Of all dimensions: it has no order. */
static bool is_folded(const struct mover *m, uint32_t output, const struct ifd_perm *perm)
{
    return m->to.value[output].desc.shape.rank != perm->rank && is_single(m, output);
}

/* The permutation that all moved inputs of a node share. False if none is moved, if they differ, or
 * if another input of more than one number cannot follow: a computed one, or a constant of another
 * rank. */
static bool common_perm(const struct mover *m, const struct ifd_node *node, struct ifd_perm *ret)
{
    bool found = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct fact *fact = node->input[i] == IFD_NONE ? NULL : fact_of(m, node->input[i]);
        if (!fact || fact->other == IFD_NONE) {
            continue;
        }
        if (found && !perm_equal(ret, &fact->perm)) {
            return false;
        }
        *ret = fact->perm;
        found = true;
    }
    for (uint32_t i = 0; found && i < node->input_count; i++) {
        if (node->input[i] == IFD_NONE) {
            return false;
        }
        if (is_list(node, i)) {
            continue;
        }
        const uint32_t v = resolve(m, node->input[i]);
        const struct ifd_value *value = &m->to.value[v];
        const bool follows = value->is_constant && value->desc.shape.rank == ret->rank &&
                             value->desc.quant.count <= 1;
        found = fact_of(m, node->input[i])->other != IFD_NONE || is_single(m, v) || follows;
    }
    for (uint32_t i = 0; found && i < node->output_count; i++) {
        const struct ifd_desc *desc = &m->to.value[node->output[i]].desc;
        found = (desc->shape.rank == ret->rank || is_folded(m, node->output[i], ret)) &&
                desc->quant.count <= 1;
    }
    return found;
}

/* The input beside w: w itself, a single number, or a transposed constant (which folding
 * computes). */
static enum ifd_code moved_input(struct mover *m, uint32_t value, const struct ifd_perm *perm,
                                 uint32_t *ret)
{
    const uint32_t v = resolve(m, value);
    if (m->fact[v].other != IFD_NONE) {
        *ret = m->fact[v].other;
        return IFD_OK;
    }
    *ret = v;
    if (is_single(m, v)) {
        return IFD_OK;
    }
    const struct ifd_perm inverse = perm_inverse(perm);
    const enum ifd_code code = add_twin(m, v, perm, ret);
    return code == IFD_OK ? add_transpose(m, v, &inverse, *ret) : code;
}

static enum ifd_code move(struct mover *m, const struct ifd_node *node, const struct ifd_perm *perm,
                          const void *attrs)
{
    uint32_t *input = ifd_arena_take_array(m->scratch, node->input_count, sizeof(*input));
    uint32_t *output = ifd_arena_take_array(m->scratch, node->output_count, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(m->scratch, node->input_count * sizeof(*input), m->err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < node->input_count; i++) {
        if (is_list(node, i)) {
            input[i] = resolve(m, node->input[i]);
        } else {
            code = moved_input(m, node->input[i], perm, &input[i]);
        }
    }
    for (uint32_t i = 0; code == IFD_OK && i < node->output_count; i++) {
        output[i] = node->output[i];
        code =
            is_folded(m, output[i], perm) ? IFD_OK : add_twin(m, node->output[i], perm, &output[i]);
    }
    if (code == IFD_OK) {
        code = add_node(m, node, attrs, input, output);
    }
    for (uint32_t i = 0; code == IFD_OK && i < node->output_count; i++) {
        if (output[i] == node->output[i]) {
            continue;
        }
        m->fact[node->output[i]].other = output[i];
        m->fact[node->output[i]].perm = *perm;
        code = add_transpose(m, output[i], perm, node->output[i]);
    }
    return code;
}

static enum ifd_code rebuild_node(struct mover *m, const struct ifd_node *node)
{
    struct ifd_perm perm = {0};
    if (node->op == IFD_OP_TRANSPOSE) {
        return transpose(m, node);
    }
    if (!common_perm(m, node, &perm)) {
        return keep(m, node);
    }
    const size_t bytes = ifd_op_def(node->op)->attrs_bytes;
    void *attrs = ifd_arena_take(m->to.arena, bytes);
    if (!attrs) {
        return ifd_arena_fail(m->to.arena, bytes, m->err);
    }
    if (bytes) {
        memcpy(attrs, node->attrs, bytes);
    }
    return permute_attrs(node->op, attrs, &perm) ? move(m, node, &perm, attrs) : keep(m, node);
}

/* ---- the pass ---- */

static bool has_transpose(const struct ifd_graph *graph)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (graph->node[n].op == IFD_OP_TRANSPOSE) {
            return true;
        }
    }
    return false;
}

static enum ifd_code begin(struct mover *m)
{
    enum ifd_code code = ifd_graph_clone(m->from, m->from->arena, &m->to, m->err);
    if (code != IFD_OK) {
        return code;
    }
    /* Each node adds at most a twin for each output and for each constant input. */
    m->fact_count = m->from->value_count;
    for (uint32_t n = 0; n < m->from->node_count; n++) {
        m->fact_count += m->from->node[n].output_count + m->from->node[n].input_count;
    }
    m->fact = ifd_arena_take_array(m->scratch, m->fact_count, sizeof(*m->fact));
    m->is_output = ifd_arena_take_array(m->scratch, m->from->value_count, sizeof(*m->is_output));
    if (!m->fact || !m->is_output) {
        return ifd_arena_fail(m->scratch, m->fact_count * sizeof(*m->fact), m->err);
    }
    m->to.node_count = 0;
    for (uint32_t v = 0; v < m->from->value_count; v++) {
        m->fact[v] = (struct fact){.same = v, .other = IFD_NONE};
        m->to.value[v].producer = IFD_NONE;
    }
    for (uint32_t i = 0; i < m->from->output_count; i++) {
        m->is_output[m->from->output[i]] = true;
    }
    return IFD_OK;
}

enum ifd_code ifd_pass_move_transposes(struct ifd_graph *graph, struct ifd_arena *scratch,
                                       uint32_t *ret_changes, struct ifd_err *err)
{
    struct mover m = {.from = graph, .scratch = scratch, .err = err};
    *ret_changes = 0;
    if (!has_transpose(graph)) {
        return IFD_OK;
    }
    enum ifd_code code = begin(&m);
    for (uint32_t n = 0; code == IFD_OK && n < graph->node_count; n++) {
        code = rebuild_node(&m, &graph->node[n]);
    }
    uint32_t unused = 0;
    if (code == IFD_OK) {
        code = ifd_pass_fold_constants(&m.to, scratch, &unused, err);
    }
    if (code == IFD_OK) {
        code = ifd_pass_drop_dead(&m.to, scratch, &unused, err);
    }
    if (code == IFD_OK && m.to.node_count < graph->node_count) {
        *ret_changes = graph->node_count - m.to.node_count;
        *graph = m.to;
    }
    return code;
}
