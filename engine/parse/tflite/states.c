/* Variables where building begins again, and where a graph ends: behind a cut they go on, and what
 * sequences keep are inputs and outputs. */
#include "engine/parse/cut.h"

#include "engine/ir/shape.h"
#include "engine/parse/tflite/variables.h"

/* ---- what can be taken back ---- */

enum ifd_code ifd_tflite_save_variables(const struct ifd_tflite_build *b, struct ifd_arena *scratch,
                                        const uint32_t **ret)
{
    uint32_t *now = ifd_arena_take_array(scratch, b->variable_count, sizeof(*now));
    if (!now) {
        return ifd_arena_fail(scratch, b->variable_count * sizeof(*now), b->err);
    }
    for (uint32_t i = 0; i < b->variable_count; i++) {
        now[i] = b->variable[i].now;
    }
    *ret = now;
    return IFD_OK;
}

/* Values from value_count on are gone. */
void ifd_tflite_restore_variables(struct ifd_tflite_build *b, const uint32_t *now, uint32_t count,
                                  uint32_t value_count)
{
    for (uint32_t i = 0; i < b->variable_count; i++) {
        struct ifd_tflite_variable *v = &b->variable[i];
        const bool is_given = v->given != IFD_NONE && v->given >= value_count;
        v->now = i < count ? now[i] : IFD_NONE;
        v->given = is_given ? IFD_NONE : v->given;
        v->is_state = v->is_state && !is_given;
        v->initial = v->initial != IFD_NONE && v->initial >= value_count ? IFD_NONE : v->initial;
    }
}

/* ---- cuts ---- */

/* Ids of values of a cut. */
#define VARIABLE ((uint64_t)1 << 62)

void ifd_tflite_note_variables(struct ifd_tflite_build *b)
{
    for (uint32_t i = 0; i < b->variable_count; i++) {
        b->variable[i].before = b->variable[i].now;
    }
}

/* Of a variable tensor of any subgraph. */
static enum ifd_code begin_elsewhere(struct ifd_tflite_build *b,
                                     struct ifd_tflite_variable *variable)
{
    const struct ifd_tflite_subgraph *outer = b->g;
    uint32_t *outer_value_of = b->value_of;
    uint32_t *value_of =
        ifd_arena_take_array(b->scratch, variable->subgraph->tensor_count, sizeof(*value_of));
    if (!value_of) {
        return ifd_arena_fail(b->scratch, sizeof(*value_of), b->err);
    }
    b->g = variable->subgraph;
    b->value_of = value_of;
    const enum ifd_code code = ifd_tflite_begin_tensor(b, variable);
    b->g = outer;
    b->value_of = outer_value_of;
    return code;
}

/* The operator in front of which the graph ends is built anew: what counts is what the variable was
 * in front of it. What sequences keep is an input of the first graph, also if only later ones read
 * it. */
static enum ifd_code settle(struct ifd_tflite_build *b, struct ifd_tflite_variable *v)
{
    const bool is_kept = b->options->keeps_state && !b->options->resume && v->is_assigned;
    v->now = v->before != IFD_NONE ? v->before : v->given;
    if (v->now != IFD_NONE) {
        return IFD_OK;
    }
    if (v->subgraph) {
        return is_kept ? begin_elsewhere(b, v) : IFD_OK;
    }
    v->now = v->initial;
    return is_kept && v->initial != IFD_NONE ? ifd_tflite_begin_named(b, v) : IFD_OK;
}

enum ifd_code ifd_tflite_settle_variables(struct ifd_tflite_build *b)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < b->variable_count; i++) {
        code = settle(b, &b->variable[i]);
    }
    return code;
}

void ifd_tflite_cut_variables(const struct ifd_tflite_build *b, struct ifd_cutter *cutter)
{
    for (uint32_t i = 0; i < b->variable_count; i++) {
        const struct ifd_tflite_variable *v = &b->variable[i];
        if (v->now != IFD_NONE) {
            (void)ifd_cut_add(cutter, VARIABLE | (uint64_t)i << 1 | v->is_state, v->now);
        }
    }
}

enum ifd_code ifd_tflite_resume_variable(struct ifd_tflite_build *b, uint64_t id, uint32_t value)
{
    const uint64_t index = (id & ~VARIABLE) >> 1;
    if ((id & VARIABLE) == 0 || index >= b->variable_count) {
        return IFD_OK; /* no variable */
    }
    struct ifd_tflite_variable *v = &b->variable[index];
    v->now = value;
    v->is_state = (id & 1) != 0;
    if (!v->is_state) {
        return IFD_OK;
    }
    if (v->subgraph) {
        return ifd_tflite_describe(b, &v->subgraph->tensor[v->tensor], &v->like);
    }
    if (v->initial == IFD_NONE) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "variable " NAME_FORMAT " is kept before anything is assigned to it",
                        v->name);
    }
    v->like = b->graph->value[v->initial].desc;
    return IFD_OK;
}

/* ---- inputs and outputs of the graph ---- */

uint32_t ifd_tflite_state_count(const struct ifd_tflite_build *b)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->variable_count; i++) {
        count += b->variable[i].is_state;
    }
    return count;
}

/* The value behind the last operator is like that before the first. */
static enum ifd_code check_state(const struct ifd_tflite_build *b,
                                 const struct ifd_tflite_variable *variable)
{
    const struct ifd_desc *before = &variable->like;
    const struct ifd_desc *behind = &b->graph->value[variable->now].desc;
    if (before->dtype != behind->dtype || !ifd_shape_equal(&before->shape, &behind->shape)) {
        return ifd_fail(
            b->err, IFD_UNSUPPORTED, "variable " NAME_FORMAT " is %s %s at first and %s %s later",
            variable->name, ifd_dtype_name(before->dtype), ifd_shape_text(&before->shape).s,
            ifd_dtype_name(behind->dtype), ifd_shape_text(&behind->shape).s);
    }
    return IFD_OK;
}

enum ifd_code ifd_tflite_take_states(struct ifd_tflite_build *b, bool is_end,
                                     struct ifd_tflite_state *ret)
{
    enum ifd_code code = IFD_OK;
    uint32_t count = 0;
    for (uint32_t i = 0; code == IFD_OK && i < b->variable_count; i++) {
        const struct ifd_tflite_variable *v = &b->variable[i];
        if (!v->is_state) {
            continue;
        }
        code = is_end ? check_state(b, v) : IFD_OK;
        ret[count++] = (struct ifd_tflite_state){.input = v->given,
                                                 .output = v->now,
                                                 .name = v->name,
                                                 .begin = v->begin,
                                                 .like = v->like};
    }
    return code;
}
