/** What a pass is, and the rewrites that passes share. */
#ifndef INFERD_ENGINE_OPT_PASS_IMPL_H
#define INFERD_ENGINE_OPT_PASS_IMPL_H

#include "engine/opt/opt.h"

/** Rewrites graph and counts the places that it changed. scratch is empty and belongs to this call;
 *  what the graph keeps is in graph->arena. The graph must verify before and after; on error it is
 *  unusable. */
typedef enum ifd_code (*ifd_pass_fn)(struct ifd_graph *graph, struct ifd_arena *scratch,
                                     uint32_t *ret_changes, struct ifd_err *err);

#define PASS(symbol, level)                                                                        \
    enum ifd_code ifd_pass_##symbol(struct ifd_graph *graph, struct ifd_arena *scratch,            \
                                    uint32_t *ret_changes, struct ifd_err *err);
#include "engine/opt/pass_list.inc"
#undef PASS

/** Removes the nodes whose drop[] is set. Values that they made have no producer any more. */
void ifd_rewrite_drop_nodes(struct ifd_graph *graph, const bool *drop);

/** Removes the values whose keep[] is not set, and renumbers. No node, input or output may refer to
 *  them. map has graph->value_count entries of scratch. */
void ifd_rewrite_keep_values(struct ifd_graph *graph, const bool *keep, uint32_t *map);

/** Replaces every use of value v as an input of a node by map[v], along chains, up to a value with
 *  map[v] == v. */
void ifd_rewrite_uses(struct ifd_graph *graph, const uint32_t *map);

/** How often every value is read, outputs of the graph included; ret_uses has graph->value_count
 *  zeros. */
void ifd_rewrite_count_uses(const struct ifd_graph *graph, uint32_t *ret_uses);

/** The node that makes a value, NULL for inputs and constants. */
struct ifd_node *ifd_rewrite_producer(const struct ifd_graph *graph, uint32_t value);

/** A constant of floats: its content and the number of its elements; NULL for any other value. */
const float *ifd_rewrite_floats(const struct ifd_graph *graph, uint32_t value, size_t *ret_count);

/** Adds a constant with the name of another value. *ret_data is to be filled by the caller; it
 *  belongs to the graph. Pointers to values are not valid any more. */
IFD_NODISCARD enum ifd_code ifd_rewrite_add_constant(struct ifd_graph *graph, uint32_t named_like,
                                                     const struct ifd_desc *desc, void **ret_data,
                                                     uint32_t *ret_value, struct ifd_err *err);

/** The same of floats. */
IFD_NODISCARD enum ifd_code ifd_rewrite_add_floats(struct ifd_graph *graph, uint32_t named_like,
                                                   const struct ifd_shape *shape, float **ret_data,
                                                   uint32_t *ret_value, struct ifd_err *err);

/** Is there room for copies of constants that a pass makes? They may take half of what a model may
 *  keep. */
bool ifd_rewrite_has_room(const struct ifd_graph *graph, size_t bytes);

/** Gives the node a writable copy of its attributes; NULL: no memory. */
void *ifd_rewrite_own_attrs(struct ifd_graph *graph, struct ifd_node *node);

/** Has what a node moves the same quantization before and behind it? Stored numbers stay as they
 *  are where it has not, and only the output says what they mean. */
bool ifd_rewrite_keeps_quant(const struct ifd_graph *graph, const struct ifd_node *node);

/** from makes the output of to; the caller drops to, the only reader of from. */
void ifd_rewrite_store_instead(struct ifd_graph *graph, struct ifd_node *from,
                               const struct ifd_node *to);

/** Makes a node with one input a reshape to the shape of its output. */
IFD_NODISCARD enum ifd_code ifd_rewrite_to_reshape(struct ifd_graph *graph, struct ifd_node *node,
                                                   struct ifd_err *err);

/** Offset, in the attributes, of the activation that an operator applies to its result (int32_t,
 *  enum ifd_activation); SIZE_MAX if it applies none. */
size_t ifd_rewrite_activation_offset(enum ifd_op op);
int32_t ifd_rewrite_activation(const struct ifd_node *node); /* IFD_ACT_NONE if it has none */

/** The interval to which a node clamps one operand, in real numbers. False if it does not (struct
 *  ifd_op_def, bounds). */
bool ifd_rewrite_clamps(const struct ifd_graph *graph, const struct ifd_node *node, float *ret_min,
                        float *ret_max);

/** The interval of a node's f32 result, by its activation or because it clamps. False if it has
 *  none. */
bool ifd_rewrite_bounds(const struct ifd_graph *graph, const struct ifd_node *node, float *ret_min,
                        float *ret_max);

/** Has the constant one number for each channel of the tensor (last dimension), or one for all?
 *  Then that of channel c is data[c % count]. */
bool ifd_rewrite_is_per_channel(const struct ifd_graph *graph, uint32_t constant,
                                const struct ifd_shape *tensor);

/** Marks the inputs and outputs of the graph: both have graph->value_count entries, all false
 *  before. */
void ifd_rewrite_mark_io(const struct ifd_graph *graph, bool *ret_is_input, bool *ret_is_output);

#endif
