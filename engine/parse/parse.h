/** Model files: recognizes the format by its content and turns untrusted bytes into a verified
 *  graph or a precise error. One row per format in parse.c. Thread: any. */
#ifndef INFERD_ENGINE_PARSE_PARSE_H
#define INFERD_ENGINE_PARSE_PARSE_H

#include "engine/ir/graph.h"
#include "inferd/engine.h"

enum ifd_cut_source { IFD_CUT_CONSTANT, IFD_CUT_INPUT, IFD_CUT_OUTPUT };

/** A value may be an element of a list that the turns of a loop make. The run keeps lists by id
 *  until the wanted value, a bool, is false. Then the list is a value, with a first dimension of
 *  its length. */
enum ifd_cut_list { IFD_CUT_NO_LIST, IFD_CUT_LIST_BEGINS, IFD_CUT_LIST_GROWS };

/** A value that nodes behind a cut need. */
struct ifd_cut_value {
    uint64_t id, alias; /* the parser's own */
    enum ifd_cut_source source;
    uint32_t index;        /* among the graph's inputs or outputs */
    struct ifd_desc desc;  /* of a constant */
    struct ifd_bytes data; /* of a constant; in the file or in the graph's arena */
    /** The first number of the wanted value is the size along this dimension: the tensor has room
     *  for more, and its content is dense. IFD_NONE: the shape is as described. */
    uint32_t axis;
    bool is_wanted;   /* behind the cut its content is a constant */
    bool is_variable; /* a constant that is none behind the cut: the next turn has another */
    enum ifd_cut_list list;
};

/** Where reading stopped, because a node needs content that only a run computes: the size of its
 *  result depends on it. The graph holds what comes before. Its output 0 is the wanted value. */
struct ifd_cut {
    bool is_cut;
    bool is_turn;  /* it ends a turn of a loop */
    uint32_t node; /* of the file: reading goes on with it */
    struct ifd_cut_value *value;
    uint32_t value_count;
};

/** Most bytes of a wanted value. */
#define IFD_CUT_BYTES 4096

/** A value of a cut, with what a run found: a constant, or an input of the graph that is read next.
 *  data and the arrays of the quantization are copied. */
struct ifd_resume_value {
    uint64_t id, alias;
    struct ifd_desc desc;
    struct ifd_bytes data;
    bool is_constant;
};

struct ifd_resume {
    uint32_t node;
    const struct ifd_resume_value *value;
    uint32_t value_count;
};

/** What later readings of a file need not read again. The first one fills it; then it is immutable,
 *  and any thread may read with it. Init: the arena, zeros for the rest. Finish: the arena. */
struct ifd_parse_kept {
    struct ifd_arena arena;
    const void *read; /* the format's own, in the arena; NULL: the file is read again */
    /** Of the first reading's graph: constants in it stay where they are. NULL: there was none. */
    const struct ifd_arena *content;
};

/** Is this constant among what is kept? Smaller ones are copied: that is faster than to look for
 *  them. *ret_readable: bytes from data on. */
bool ifd_parse_is_kept(const struct ifd_parse_kept *kept, struct ifd_bytes data,
                       size_t *ret_readable);

/** A file's content besides the graph, all in the arena. Ports are in the order of the graph's
 *  inputs and outputs; the engine completes their desc and fills batched and example. */
struct ifd_parsed {
    const char *format;
    uint32_t format_version;
    const char *description, *signatures; /* as in struct ifd_model_info; NULL: "" */
    struct ifd_port *input, *output;
    uint32_t state_count; /* as in struct ifd_model_info */
    /** Nothing fixes the first dimension of an input, or one behind it. Also written on
     *  failure. */
    bool opens_first, opens_others;
    /** The first dimensions of several inputs are open, and not under one name: requests may bring
     *  different sizes of them. */
    bool opens_apart;
    /** The caller bound a dimension that the file leaves open: what the file says of outputs is too
     *  wide. */
    bool is_bound;
    /** The graph ends before the file does: its ports have no names. result: those of the model. */
    struct ifd_cut cut;
    struct ifd_port *result;
    uint32_t result_count;
    /** Of these: nothing says its type and how many dimensions it has. NULL: all are known. */
    const bool *is_unknown;
};

/** Size of an open dimension behind the first, where the file has no example. */
#define IFD_PARSE_OPEN_DIM 32

struct ifd_parse_options {
    const struct ifd_limits *limits; /* every field set */
    /** Shapes of inputs, as ifd_model_options.input_shape. are_final: they are complete and hold
     *  whatever the file says. */
    const struct ifd_input_shape *shape;
    uint32_t shape_count;
    bool are_final;
    /** Sizes that the graph gets in open dimensions: in the first of an input, in the others. 0:
     *  the file's example; without one 1 and IFD_PARSE_OPEN_DIM. */
    int64_t open_first, open_other;
    /** No node is read: the graph is cut in front of the first, and what the file says of its ports
     *  holds. Formats whose files have examples do not know it. */
    bool ports_only;
    /** NULL: nothing is kept. */
    struct ifd_parse_kept *kept;
    /** Go on behind a cut; NULL: from the beginning. */
    const struct ifd_resume *resume;
    /** As in struct ifd_model_options. */
    const struct ifd_external_file *external;
    uint32_t external_count;
    bool keeps_state;
    const char *signature;
};

/** What inner graphs and functions may become that are built in place: so many nodes. */
#define IFD_PARSE_INLINED_MAX 16384
static inline uint32_t ifd_parse_inlined_max(const struct ifd_parse_options *options)
{
    const uint32_t nodes = options->limits->nodes;
    return nodes < IFD_PARSE_INLINED_MAX ? nodes : IFD_PARSE_INLINED_MAX;
}

/** file must outlive the graph: constants are used in place. graph: initialized by the caller.
 *  After OK the graph verifies, every operator is known, every shape is inferred; the shapes of
 *  ret's ports are those of the file, IFD_DIM_ANY where it leaves them open. */
IFD_NODISCARD enum ifd_code ifd_parse(struct ifd_bytes file,
                                      const struct ifd_parse_options *options,
                                      struct ifd_graph *graph, struct ifd_parsed *ret,
                                      struct ifd_err *err);

/** The files beside this one that its constants lie in, in arena. */
IFD_NODISCARD enum ifd_code ifd_parse_externals(struct ifd_bytes file,
                                                const struct ifd_limits *limits,
                                                struct ifd_arena *arena,
                                                struct ifd_external_names *ret,
                                                struct ifd_err *err);

/** Decides an input's shape.
 *
 *  file:          IFD_DIM_ANY where the file leaves a dimension open.
 *  example:       numbers that the file has for open dimensions; NULL: none.
 *  ret_declared:  as the port shows it.   ret_shape: as the graph has it. */
void ifd_parse_input_shape(const struct ifd_parse_options *options, const char *name,
                           const struct ifd_shape *file, const struct ifd_shape *example,
                           struct ifd_shape *ret_declared, struct ifd_shape *ret_shape);
/** Notes in ret what is open and what is bound in the declared shape of an input. */
void ifd_parse_note_open(const struct ifd_shape *file, const struct ifd_shape *declared,
                         struct ifd_parsed *ret);

#endif
