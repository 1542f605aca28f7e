/** What builds a graph from a checked TFLite model: tflite.c, the whole; node.c, an operator;
 *  values.c, tensors; control.c, operators that name subgraphs; composite.c, operators that are
 *  several of ours; recurrent.c, those of them with a state; constants.c, content; variables.c,
 *  variables; states.c, what of them goes on; cut.c, shapes that data decides. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_TFLITE_BUILD_H
#define INFERD_ENGINE_PARSE_TFLITE_TFLITE_BUILD_H

#include "engine/build/builder.h"
#include "engine/parse/tflite/tflite_impl.h"

/** Nesting of subgraphs. */
#define IFD_TFLITE_DEPTH_MAX 8
/** A graph of our own costs as much as so many operators, and so many tensors as one. */
#define IFD_TFLITE_GRAPH_OPERATORS  16
#define IFD_TFLITE_OPERATOR_TENSORS 64

/** A result of a size that only a run finds: axis as in struct ifd_cut_value. */
#define IFD_TFLITE_ROOMS 2
struct ifd_tflite_room {
    uint32_t value, axis;
};

/** A buffer of 2-bit or 4-bit numbers as the graph holds them, and for what it was unpacked. */
struct ifd_tflite_wide {
    struct ifd_bytes content;
    int32_t type;
    const uint16_t *scale; /* of blocks of that size; NULL: none */
    size_t block;
};

struct ifd_tflite_build {
    const struct ifd_tflite_model *model;
    const struct ifd_tflite_subgraph *g;          /* that is being built */
    const struct ifd_tflite_signature *signature; /* of the model's subgraph; NULL */
    struct ifd_bytes file;
    const struct ifd_parse_options *options;
    struct ifd_graph *graph;    /* that operators are added to */
    struct ifd_graph *main;     /* of the model */
    struct ifd_shape *declared; /* per input: as the file has it */
    struct ifd_parsed *parsed;
    uint32_t *value_of; /* per tensor of g: value, IFD_NONE until an operator needs it */
    /** Per buffer: its content, aligned and padded. Tensors may share a buffer. */
    struct ifd_bytes *aligned;
    struct ifd_bytes *texts;      /* per buffer: as struct ifd_str, of tensors of texts */
    struct ifd_tflite_wide *wide; /* per buffer */
    /** Limit of all further copies: overlapping buffers must not multiply a file. */
    size_t copy_bytes_left;
    const int32_t *zeros; /* zero points that are all 0, shared by tensors */
    uint32_t zero_count;
    uint32_t depth, operators_left; /* of subgraphs */
    bool is_exhausted;              /* operators_left ran out */
    bool keeps_loops;               /* it did once: loops are not unrolled any more */
    struct ifd_arena *scratch;      /* for the time of the build */
    struct ifd_tflite_variable *variable;
    uint32_t variable_count;
    struct ifd_tflite_state *state; /* when the graph is built */
    bool is_initializing;           /* CALL_ONCE: everything is computed at once */
    bool *is_initialized;           /* per subgraph that CALL_ONCE names */
    /* Content that only a run finds (cut.c). */
    struct ifd_tflite_table *table; /* a list by next */
    bool fills_tables;              /* outside of CALL_ONCE, which is repeated behind a cut */
    uint32_t node;                  /* of the model's subgraph, that is being built */
    uint32_t wanted;                /* value whose content nobody knows yet, or IFD_NONE */
    uint32_t asked;                 /* questions of the node so far, in subgraphs */
    uint32_t question;              /* number of that for wanted; IFD_NONE: a tensor answers it */
    bool is_stuck;                  /* a graph that runs as a whole needs content of a run */
    uint32_t *resumed;              /* per value of options->resume */
    struct ifd_tflite_ints input;   /* tensors: inputs of the model, without constants */
    uint32_t *main_input;           /* values: inputs of the main graph, without states */
    uint32_t main_input_count;
    struct ifd_tflite_room room[IFD_TFLITE_ROOMS]; /* results of the wanted size */
    uint32_t room_count;
    struct ifd_err *err;
};

/** Value of a tensor of the subgraph; a constant becomes one when it is first asked for. IFD_NONE
 *  for tensor -1. (values.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_value_of(struct ifd_tflite_build *b, int32_t tensor,
                                                uint32_t *ret);
/** Takes so many from operators_left, and notes if there are not as many. Errors: TOO_LARGE.
 *  (node.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_spend(struct ifd_tflite_build *b, uint32_t operators);
/** Builds the operators of a subgraph on these inputs, in place. (tflite.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_inline(struct ifd_tflite_build *b, uint32_t subgraph,
                                              const uint32_t *input, uint32_t input_count,
                                              uint32_t *ret_output, uint32_t output_count);

/** Type, shape and quantization of a tensor. (values.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_describe(struct ifd_tflite_build *b,
                                                const struct ifd_tflite_tensor *t,
                                                struct ifd_desc *ret);
/** Quantization alone, for a type that has one. (values.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_read_quantization(struct ifd_tflite_build *b,
                                                         const struct ifd_tflite_tensor *t,
                                                         struct ifd_desc *desc);
/** Errors: TOO_LARGE (limits.tensor_bytes). (values.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_check_bytes(const struct ifd_tflite_build *b,
                                                   uint32_t value);
/** Writes the names of the file's signatures: `"a", "b"`, cut at size. (ports.c) */
void ifd_tflite_list_signatures(const struct ifd_tflite_model *model, char *text, size_t size);
/** What the signature calls port index of the model, one of these tensors; NULL. (ports.c) */
const char *ifd_tflite_signature_name(const struct ifd_tflite_build *b,
                                      const struct ifd_tflite_ints *tensors, bool is_output,
                                      uint32_t index);
/** Builds operator index of the subgraph. (node.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_build_operator(struct ifd_tflite_build *b, uint32_t index,
                                                      struct ifd_arena *scratch);
/** Adds a value like a tensor of the subgraph, which becomes the tensor's. (values.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_add_value(struct ifd_tflite_build *b, uint32_t tensor,
                                                 uint32_t *ret);
/** Has the file content of a tensor of the subgraph? (constants.c) */
bool ifd_tflite_has_content(const struct ifd_tflite_build *b, uint32_t tensor,
                            struct ifd_bytes *ret);
/** Content of a buffer, aligned to its elements and padded: in the file where possible, else copied
 *  once per buffer. (constants.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_align_content(struct ifd_tflite_build *b, uint32_t buffer,
                                                     size_t element, struct ifd_bytes content,
                                                     struct ifd_bytes *ret);
/** CORRUPT: copy_bytes_left is used up. (constants.c) */
enum ifd_code ifd_tflite_fail_overlap(const struct ifd_tflite_build *b);
/** Unpacks content of numbers of 2 or 4 bits; desc: as the graph holds them, f32 where blocks have
 *  scales. Tensors that share a buffer share the result. (narrow.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_widen(struct ifd_tflite_build *b,
                                             const struct ifd_tflite_tensor *t,
                                             const struct ifd_desc *desc,
                                             struct ifd_bytes *content);
/** A constant of s8 becomes another with the same content whose zero points are 0. (hybrid.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_without_zero_points(struct ifd_tflite_build *b,
                                                           uint32_t *value);
/** As ifd_tflite_add_value for a tensor with content. (constants.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_add_constant(struct ifd_tflite_build *b, uint32_t tensor,
                                                    uint32_t *ret);

/** Finds the variables that handles name, and which of them change. (variables.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_find_variables(struct ifd_tflite_build *b);
/** Is operator index of the subgraph one on variables? (variables.c) */
bool ifd_tflite_is_variable(const struct ifd_tflite_build *b, uint32_t index);
/** Builds it. (variables.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_build_variable(struct ifd_tflite_build *b, uint32_t index);
/** Value of a variable tensor at this point; of another tensor its value. (variables.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_read_state(struct ifd_tflite_build *b, int32_t tensor,
                                                  uint32_t *ret);
/** Changes it; nothing happens to a tensor that is no variable. (variables.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_write_state(struct ifd_tflite_build *b, int32_t tensor,
                                                   uint32_t value);

/** A variable that sequences keep: values of the main graph before the first operator (IFD_NONE
 *  behind a cut) and behind the last. */
struct ifd_tflite_state {
    uint32_t input, output;
    const char *name;
    struct ifd_bytes begin; /* of a sequence */
    struct ifd_desc like;
};
uint32_t ifd_tflite_state_count(const struct ifd_tflite_build *b);
/** Writes all. is_end: the graph ends as the model does. Errors: UNSUPPORTED (a variable that
 *  changes its shape). (states.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_take_states(struct ifd_tflite_build *b, bool is_end,
                                                   struct ifd_tflite_state *ret);

/** What variables are, for building again from here. Errors: NOMEM. (states.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_save_variables(const struct ifd_tflite_build *b,
                                                      struct ifd_arena *scratch,
                                                      const uint32_t **ret);
/** As they were, count of them; values from value_count on are gone. (states.c) */
void ifd_tflite_restore_variables(struct ifd_tflite_build *b, const uint32_t *now, uint32_t count,
                                  uint32_t value_count);
/** In front of an operator of the model's subgraph. (states.c) */
void ifd_tflite_note_variables(struct ifd_tflite_build *b);
/** Variables become what they were there, where a cut is made. (states.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_settle_variables(struct ifd_tflite_build *b);
/** Adds them to the values of a cut. (states.c) */
struct ifd_cutter;
void ifd_tflite_cut_variables(const struct ifd_tflite_build *b, struct ifd_cutter *cutter);
/** Takes a value behind it if it is that of a variable. (states.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_resume_variable(struct ifd_tflite_build *b, uint64_t id,
                                                       uint32_t value);

/** Fills ret's description, states and ports from tensor names and the metadata. Inputs, outputs
 *  and states of the graph are set. (ports.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_ports(struct ifd_tflite_build *b, struct ifd_parsed *ret);

/** Does operator index of the subgraph name other subgraphs? (control.c) */
bool ifd_tflite_is_control(const struct ifd_tflite_build *b, uint32_t index);
/** Builds it. (control.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_build_control(struct ifd_tflite_build *b, uint32_t index,
                                                     struct ifd_arena *scratch);

/** Is operator index of the subgraph several of ours? (composite.c) */
bool ifd_tflite_is_composite(const struct ifd_tflite_build *b, uint32_t index);
/** Builds it. (composite.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_build_composite(struct ifd_tflite_build *b, uint32_t index,
                                                       struct ifd_arena *scratch);

/** Can the graph end in front of the operator that is being built? (cut.c) */
bool ifd_tflite_can_cut(const struct ifd_tflite_build *b);
/** ifd_builder.ask: the constant that a run has found for a value, or IFD_NONE; a cut can be made
 *  then if the operator fails. context is the build. (cut.c) */
uint32_t ifd_tflite_ask(void *context, uint32_t value);
/** The results of the operator that is being built, after a run has found their size. False: they
 *  are not known yet; the operator makes them, with room for more, and calls ifd_tflite_cut.
 *  (cut.c) */
bool ifd_tflite_is_found(struct ifd_tflite_build *b, uint32_t *ret, uint32_t count);
/** size: value of one s64. Values behind it get this size along their axis (IFD_NONE: they keep
 *  theirs): at once if it is constant; else the builder fails, and a cut can be made. (cut.c) */
void ifd_tflite_cut(struct ifd_tflite_build *b, struct ifd_builder *builder, uint32_t size,
                    struct ifd_tflite_room *room, uint32_t count);
/** The main graph ends in front of the operator that is being built, if a run can go on behind it;
 *  takes back the failure then. code: the failure. Returns it, or OK. (cut.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_make_cut(struct ifd_tflite_build *b, enum ifd_code code,
                                                struct ifd_cut *ret);
/** Takes the values of options->resume: tensors get theirs. (cut.c) */
IFD_NODISCARD enum ifd_code ifd_tflite_take_resumed(struct ifd_tflite_build *b);

#endif
