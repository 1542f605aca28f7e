/** The graph: values, nodes, constants. Parsers build it, the optimizer rewrites it, the planner
 *  reads it.
 *
 *  It lives in the arena of one model. Indexes are stable, arrays are dense. A value is made by at
 *  most one node. Nodes are stored in an order in which they can run; builders and passes keep it,
 *  ir/verify.h checks it.
 *  Thread: one at a time while it is built, any afterwards. */
#ifndef INFERD_ENGINE_IR_GRAPH_H
#define INFERD_ENGINE_IR_GRAPH_H

#include "engine/base/arena.h"
#include "inferd/op.h"
#include "inferd/op_attrs.h"

#define IFD_NONE UINT32_MAX /* no value, no node */

struct ifd_value {
    const char *name; /* as in the file, "" if it has none */
    struct ifd_desc desc;
    /** Constant: its content, aligned to its elements and padded (a copy if the file's is not);
     *  else {NULL, 0}. */
    struct ifd_bytes data;
    uint32_t producer; /* node, IFD_NONE for inputs and constants */
    bool is_constant;  /* also true for a constant of zero elements */
    bool is_released;  /* a constant whose content is released: a backend has packed it */
};

struct ifd_node {
    enum ifd_op op;
    /** Struct of op_attrs.h in the arena. Clones share it: passes replace it and never change it in
     *  place. */
    const void *attrs;
    uint32_t *input; /* values, IFD_NONE for an absent optional one */
    uint32_t input_count;
    uint32_t *output;
    uint32_t output_count;
    uint32_t source_index;   /* position in the file, for messages; IFD_NONE: made by a pass */
    const char *source_name; /* operator's name in the format ("CONV_2D"); static or in the arena */
};

struct ifd_graph {
    struct ifd_arena *arena; /* of the model; not owned */

    struct ifd_value *value;
    uint32_t value_count, value_capacity;
    struct ifd_node *node;
    uint32_t node_count, node_capacity;

    uint32_t *input, *output; /* values */
    uint32_t input_count, output_count;

    /** The graphs that attributes of nodes name, and those that these name; a list by next. Same
     *  arena. */
    struct ifd_graph *next;
    struct ifd_graph *main; /* of these: the graph that has the list; NULL: this one has */

    /** Of the main graph: what has been computed in all of them so far, and how much may be; 0: any
     *  amount (ir/eval.h). */
    double work, work_limit;

    /** Of its building (ir/trace.h); NULL: nobody asks. */
    struct ifd_trace *trace;
};

void ifd_graph_init(struct ifd_graph *graph, struct ifd_arena *arena);

/** Appends a value; its name is copied. Errors: NOMEM, TOO_LARGE (arena cap). */
IFD_NODISCARD enum ifd_code ifd_graph_add_value(struct ifd_graph *graph, const char *name,
                                                const struct ifd_desc *desc, uint32_t *ret_index,
                                                struct ifd_err *err);

/** Makes a value constant. data must have exactly the bytes that desc says; of a bool any byte but
 *  0 is true and becomes 1. It is used in place if it is aligned to the element's size and
 *  readable_after ≥ IFD_TENSOR_PAD, and copied into the arena otherwise. */
IFD_NODISCARD enum ifd_code ifd_graph_set_constant(struct ifd_graph *graph, uint32_t value,
                                                   struct ifd_bytes data, size_t readable_after,
                                                   struct ifd_err *err);

/** Appends a node with its attributes at their defaults (ir/attrs.h sets them by name; or cast
 *  attrs while building). Inputs and outputs are copied. Every output gets this node as producer
 *  and must have had none. The pointer is valid until the next call. */
IFD_NODISCARD enum ifd_code ifd_graph_add_node(struct ifd_graph *graph, enum ifd_op op,
                                               const uint32_t *input, uint32_t input_count,
                                               const uint32_t *output, uint32_t output_count,
                                               struct ifd_node **ret_node, struct ifd_err *err);

IFD_NODISCARD enum ifd_code ifd_graph_set_io(struct ifd_graph *graph, const uint32_t *input,
                                             uint32_t input_count, const uint32_t *output,
                                             uint32_t output_count, struct ifd_err *err);

/** Runs the shape rule of one node on its present inputs and writes the shapes of its outputs. The
 *  error is prefixed with operator, node index and output name. */
IFD_NODISCARD enum ifd_code ifd_graph_infer_node(struct ifd_graph *graph, uint32_t node,
                                                 struct ifd_err *err);

/** Fills operands (capacity ≥ node->input_count) for shape rules and backends. */
void ifd_graph_operands(const struct ifd_graph *graph, const struct ifd_node *node,
                        struct ifd_operand *ret_operands);

/** A shallow copy for another plan: values and nodes are copied into arena, constants and
 *  attributes are shared. */
IFD_NODISCARD enum ifd_code ifd_graph_clone(const struct ifd_graph *graph, struct ifd_arena *arena,
                                            struct ifd_graph *ret_graph, struct ifd_err *err);

#endif
