/** Graphs that a node brings with it: built in place, or as graphs of ours that a node names. The
 *  values that they see outside become inputs. Errors are the builder's. Thread: one at a time per
 *  build. */
#ifndef INFERD_ENGINE_PARSE_ONNX_INNER_H
#define INFERD_ENGINE_PARSE_ONNX_INNER_H

#include "engine/parse/onnx/onnx_build.h"

/* ---- values ---- */

/** Room for values in the graph's arena; NULL without memory. */
uint32_t *ifd_onnx_take(struct ifd_onnx_call *call, size_t count);
/** One element without dimensions. */
uint32_t ifd_onnx_scalar(struct ifd_builder *b, uint32_t value);
/** Is the content known? *ret_is_true: its first byte is not 0. */
bool ifd_onnx_is_known(const struct ifd_builder *b, uint32_t value, bool *ret_is_true);
/** A value as the condition that it must be, one bool: CORRUPT. */
uint32_t ifd_onnx_condition(struct ifd_builder *b, uint32_t value);

/* ---- graphs ---- */

/** The graph that an attribute of the node is; NULL: CORRUPT. */
const struct ifd_onnx_graph *ifd_onnx_graph_of(struct ifd_onnx_call *call, const char *name);
/** Builds a graph in place. */
void ifd_onnx_build_inline(struct ifd_onnx_call *call, const struct ifd_onnx_graph *g,
                           const uint32_t *input, uint32_t input_count, uint32_t *ret_output);

/** Values outside that graphs of a node see and that are no constants, each once, in ascending
 *  order. */
struct ifd_onnx_captures {
    struct ifd_onnx_call *call;
    uint32_t *value;
    uint32_t count, capacity;
};
/** Adds those of g, and of the graphs within: they see through. */
void ifd_onnx_capture(struct ifd_onnx_captures *c, const struct ifd_onnx_graph *g);

/** A graph that is being built beside the outer one. */
struct ifd_onnx_inner {
    struct ifd_onnx_level level;
    /* The builder's, as they were. The builder itself is large, and graphs nest deep. */
    struct ifd_graph *outer;
    uint32_t *nhwc;
    uint32_t nhwc_count;
    const struct ifd_onnx_level *outer_level;
    uint32_t *input;
    uint32_t input_count;
};
/** Its inputs are like these values of the outer graph; the last are the captured ones. */
void ifd_onnx_begin_graph(struct ifd_onnx_call *call, const uint32_t *like, uint32_t count,
                          const struct ifd_onnx_captures *captures, struct ifd_onnx_inner *inner);
/** The graph is complete, or the builder has failed. */
const struct ifd_graph *ifd_onnx_end_graph(struct ifd_onnx_call *call, struct ifd_onnx_inner *inner,
                                           const uint32_t *output, uint32_t count);
/** A node whose outputs are like those of a graph. */
void ifd_onnx_add_node(struct ifd_onnx_call *call, enum ifd_op op, const void *attrs,
                       const uint32_t *input, uint32_t input_count, const struct ifd_graph *like,
                       uint32_t *output);

/** The results of turns along a new axis. */
uint32_t ifd_onnx_stack(struct ifd_onnx_call *call, const uint32_t *value, uint32_t count,
                        uint32_t axis);

/** A Loop whose turns are graphs of their own, one behind the other (turns.c). */
struct ifd_onnx_turns {
    struct ifd_onnx_call *call;
    const struct ifd_onnx_graph *body;
    uint32_t limit; /* s64 scalar; IFD_NONE: none */
    uint32_t carried, list_count;
};
/** Has a run made turns of the next loop? */
bool ifd_onnx_has_turns(const struct ifd_onnx_build *build);
/** Builds the next turn, and ends the graph behind it; or gives the results if the loop is over. */
void ifd_onnx_next_turn(const struct ifd_onnx_turns *turns);
/** The lists of a loop without turns become outputs of the node. carried: values. */
void ifd_onnx_no_results(const struct ifd_onnx_turns *turns, const uint32_t *carried);

/* ---- another way ---- */

/** Where building can go back to. */
struct ifd_onnx_mark {
    struct ifd_graph *next; /* of the main graph */
    uint32_t node_count, value_count, asked, loops;
};
struct ifd_onnx_mark ifd_onnx_mark_of(const struct ifd_onnx_call *call);
/** Forgets what was built behind a mark, and why it failed. */
void ifd_onnx_go_back(struct ifd_onnx_call *call, const struct ifd_onnx_mark *mark);
/** Did the graphs of the node fail by shapes, which they do not if they are built in place? */
bool ifd_onnx_may_build_in_place(const struct ifd_onnx_call *call);

#endif
