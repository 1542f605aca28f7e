/** What builds a graph from the messages of an ONNX file: onnx.c, node by node; names.c, what names
 *  mean; control.c, nodes that have graphs. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_BUILD_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_BUILD_H

#include "engine/parse/onnx/onnx_impl.h"
#include "engine/parse/parse.h"

/** A graph of our own costs as much as so many nodes, and so many names as one. */
#define IFD_ONNX_GRAPH_NODES 16
#define IFD_ONNX_NODE_NAMES  16

/** A result of a size that only a run finds: axis as in struct ifd_cut_value. */
#define IFD_ONNX_ROOMS 4
struct ifd_onnx_room {
    uint32_t value, axis;
};

/** A sequence: its elements, values of the graph that is being built. It has a number in place of a
 *  value, with this bit set. An optional value that is there is like any other. */
#define IFD_ONNX_LIST ((uint32_t)1 << 31)
struct ifd_onnx_list {
    const uint32_t *value;
    uint32_t count;
    bool is_absent; /* an optional value that is not there */
};

static inline bool ifd_onnx_is_list(uint32_t value)
{
    return value != IFD_NONE && (value & IFD_ONNX_LIST) != 0;
}

/** A name of the file and the value that it has so far. */
struct ifd_onnx_name {
    struct ifd_str text;
    uint32_t value;                            /* of level->graph */
    const struct ifd_onnx_node *maker;         /* the node that it is an output of; NULL: none */
    bool is_given;                             /* the caller knows it as an input */
    bool is_open_input;                        /* it is one, even if the file has a value for it */
    bool is_fixed;                             /* the file has a value for it, and it is none */
    const struct ifd_onnx_tensor *initializer; /* that value */
};

/** A graph of ours that is being built. Values of an outer one come in as inputs. */
struct ifd_onnx_level {
    const struct ifd_onnx_level *outer; /* NULL: the model's */
    struct ifd_graph *graph;
    /* Values of outer's graph, in ascending order, and what they are in this one. */
    const uint32_t *captured, *input;
    uint32_t captured_count;
};

/** An initializer as a constant of a graph that stays. */
struct ifd_onnx_constant {
    bool is_constant; /* false: nodes make it */
    struct ifd_desc desc;
    struct ifd_bytes data;
};

/** The names of a graph of the file; a graph in a node also sees those outside. */
struct ifd_onnx_scope {
    const struct ifd_onnx_scope *outer; /* NULL: the model's graph */
    /* Of a function, which sees no names outside; NULL: of another graph. */
    const struct ifd_onnx_local *function;
    const struct ifd_onnx_node *caller; /* of the function */
    const struct ifd_onnx_graph *g;
    const struct ifd_onnx_level *level;
    struct ifd_onnx_name *name; /* sorted */
    size_t name_count;
};

/** A turn of a loop that ends here: the next one is another graph (turns.c). */
struct ifd_onnx_turn {
    bool ends;
    uint32_t loop;           /* its number in the node of the model's graph */
    uint32_t asked;          /* questions of the node in front of the loop */
    const uint32_t *value;   /* whether the loop goes on, number of the next turn, limit, values */
    const bool *is_variable; /* per value */
    uint32_t value_count;
    const uint32_t *result; /* of this turn, for lists */
    uint32_t result_count;
    bool is_first;
};

/** What later readings of a file need not read again: ifd_parse_kept.read. */
struct ifd_onnx_kept {
    struct ifd_onnx_model model;
    struct ifd_onnx_constant *constant; /* per initializer of the model's graph; NULL: not yet */
};

struct ifd_onnx_build {
    const struct ifd_onnx_model *model;
    struct ifd_onnx_kept *filling;    /* the reading that is kept */
    const struct ifd_onnx_kept *kept; /* of an earlier reading */
    const struct ifd_parse_options *options;
    struct ifd_bytes file;
    struct ifd_builder b;
    struct ifd_arena *scratch;
    struct ifd_onnx_scope *scope;
    const struct ifd_onnx_level *level;
    struct ifd_graph *main;
    uint32_t nodes_left;    /* of graphs of nodes (ifd_onnx_spend) */
    uint32_t depth;         /* of functions in functions */
    uint32_t levels;        /* of graphs and functions in each other */
    bool is_exhausted;      /* nodes_left ran out */
    bool keeps_loops;       /* it did once: loops are not unrolled any more */
    struct ifd_port *input; /* per input of the graph: its shape in the file */
    uint32_t *graph_input;  /* values */
    uint32_t graph_input_count;
    uint32_t rank_count; /* of inputs whose rank was looked for among the nodes (ranks.c) */
    struct ifd_onnx_list *list;
    uint32_t list_count, list_capacity;
    /* Content that only a run finds (cut.c). */
    uint32_t node;      /* of the model's graph, that is being built */
    uint32_t asked;     /* questions of this node so far */
    uint32_t loops;     /* of this node so far, that go turn by turn */
    uint32_t unrolling; /* loops that are being tried: nothing is asked */
    struct ifd_onnx_turn turn;
    bool is_stuck;     /* a graph that runs as a whole has asked */
    uint32_t wanted;   /* value whose content nobody knows yet, or IFD_NONE */
    uint32_t *resumed; /* per value of options->resume */
    struct ifd_onnx_room room[IFD_ONNX_ROOMS]; /* results of the wanted size */
    uint32_t room_count;
    struct ifd_parsed *parsed;
    struct ifd_err *err;
};

/* ---- names.c ---- */

int ifd_onnx_order(struct ifd_str x, struct ifd_str y);
/** Of no name, nothing is the same. */
static inline bool ifd_onnx_is_same(struct ifd_str x, struct ifd_str y)
{
    return x.size > 0 && ifd_onnx_order(x, y) == 0;
}
/** Fills scope with the names of its graph, none of which has a value yet. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_onnx_collect_names(struct ifd_onnx_build *build,
                                                   struct ifd_onnx_scope *scope,
                                                   struct ifd_arena *arena);
/** A name gets its value once. Errors: CORRUPT. */
IFD_NODISCARD enum ifd_code ifd_onnx_define(struct ifd_onnx_build *build, struct ifd_str text,
                                            uint32_t value);
/** The value of a name in the graph that is being built, IFD_NONE if it has none (yet). */
uint32_t ifd_onnx_lookup(struct ifd_onnx_build *build, struct ifd_str text);

/** The node that makes a name of the graph that is being translated, NULL if none does, or one in
 *  front of a cut: its inputs are gone. */
const struct ifd_onnx_node *ifd_onnx_maker(const struct ifd_onnx_build *build, struct ifd_str text);
/** The entry of a name in a scope, NULL if it has none. */
struct ifd_onnx_name *ifd_onnx_find(const struct ifd_onnx_scope *scope, struct ifd_str text);

/* ---- functions.c ---- */

/** The function of the model that a node calls; NULL: none. */
const struct ifd_onnx_local *ifd_onnx_local_of(const struct ifd_onnx_model *model,
                                               const struct ifd_onnx_node *node);
/** Builds a function in place of the node that calls it. */
void ifd_onnx_call_local(struct ifd_onnx_call *call, const struct ifd_onnx_local *function);
/** The version that the operators of a domain have in the graph that is being built; 0: none. */
int64_t ifd_onnx_opset_of(const struct ifd_onnx_build *build, struct ifd_str domain);
/** What an attribute of a function's node refers to in the function's caller; NULL: the caller, and
 *  the function, leave it out. */
const struct ifd_onnx_attr *ifd_onnx_referred(const struct ifd_onnx_build *build,
                                              const struct ifd_onnx_attr *attr);
/** Is the name an input that the function's caller left out? */
bool ifd_onnx_is_left_out(const struct ifd_onnx_build *build, struct ifd_str text);

/* ---- lists.c ---- */

/** The number of a new sequence; IFD_NONE if the builder has failed. */
uint32_t ifd_onnx_add_list(struct ifd_onnx_build *build, const uint32_t *value, uint32_t count,
                           bool is_absent);
/** The sequence of this number; an absent one for what is none. Valid until the next one is
 *  added. */
const struct ifd_onnx_list *ifd_onnx_list(const struct ifd_onnx_build *build, uint32_t value);

/* ---- cut.c ---- */

/** May content be asked for? Graphs of nodes that are not built in place run as a whole: nobody
 *  stops in the middle. */
bool ifd_onnx_can_ask(const struct ifd_onnx_build *build);
/** A value of a loop that goes turn by turn, as in struct ifd_onnx_turn, followed by the lists of
 *  one that is over; IFD_NONE if no run has made a turn. */
uint32_t ifd_onnx_turn_value(const struct ifd_onnx_build *build, uint32_t loop, uint32_t index);
/** ifd_builder.ask: context is the build. A question that nobody can answer yet fails, and a cut
 *  can be made. */
uint32_t ifd_onnx_ask(void *context, uint32_t value);
/** Makes the graph end before the node that asked. Takes back the failure. */
IFD_NODISCARD enum ifd_code ifd_onnx_make_cut(struct ifd_onnx_build *build, struct ifd_cut *ret);
/** Takes the values of options->resume. */
IFD_NODISCARD enum ifd_code ifd_onnx_take_resumed(struct ifd_onnx_build *build);
/** The node that asked is built: names whose content it asked for are constants from here on. */
void ifd_onnx_learn(struct ifd_onnx_build *build);

/* ---- missing.c ---- */

/** All operators that have no row, each once with its count and first node: what a user wants to
 *  know first. Functions that nothing calls do not count. Errors: UNSUPPORTED. */
IFD_NODISCARD enum ifd_code ifd_onnx_check_operators(struct ifd_onnx_build *build);

/* ---- ranks.c ---- */

/** The shape of an input of which the file says none: the caller knows it, or a node that reads it.
 *  Its rank may exceed IFD_MAX_RANK. text, name: of the input. False: nobody knows. */
bool ifd_onnx_find_shape(struct ifd_onnx_build *build, struct ifd_str text, const char *name,
                         struct ifd_shape *ret);

/* ---- ports.c ---- */

/** Finds the inputs that the caller names: a value that the file has for one is no constant. */
void ifd_onnx_mark_open_inputs(const struct ifd_onnx_build *build);
/** Other inputs with an initializer are constants, as files before IR version 4 list them. */
IFD_NODISCARD enum ifd_code ifd_onnx_add_inputs(struct ifd_onnx_build *build);
/** Of a sequence, each element is an output. */
IFD_NODISCARD enum ifd_code ifd_onnx_count_outputs(struct ifd_onnx_build *build,
                                                   uint32_t *ret_count);
/** output: room for so many. */
IFD_NODISCARD enum ifd_code ifd_onnx_take_outputs(struct ifd_onnx_build *build, uint32_t *output);
/** Names and shapes of build->parsed. */
IFD_NODISCARD enum ifd_code ifd_onnx_describe_ports(struct ifd_onnx_build *build);

/* ---- onnx.c ---- */

/** Takes so many from nodes_left, and notes if there are not as many. Errors: TOO_LARGE. */
IFD_NODISCARD enum ifd_code ifd_onnx_spend(struct ifd_onnx_build *build, uint32_t nodes);

/** Builds the nodes of a graph on these inputs, in the graph that is being built. function, caller:
 *  as in struct ifd_onnx_scope. ret_output: room for g->output_count. */
IFD_NODISCARD enum ifd_code ifd_onnx_inline(struct ifd_onnx_build *build,
                                            const struct ifd_onnx_graph *g,
                                            const struct ifd_onnx_local *function,
                                            const struct ifd_onnx_node *caller,
                                            const uint32_t *input, uint32_t input_count,
                                            uint32_t *ret_output);

#endif
