/** What an operator is: name, attributes, shape rule, reference result, traits; each stated once.
 *
 *  An operator is one `const struct ifd_op_def` in engine/ops/<family>.c beside its reference
 *  kernel, and one row in op_list.inc. Parsers set its attributes by name, the optimizer and the
 *  planner ask its shape rule, CpuRef *is* its reference kernel, and every other backend is tested
 *  against that. Definitions are immutable and may be used from any thread.
 *
 *  Semantics are TFLite's for quantized types (bit for bit those of LiteRT's reference kernels) and
 *  the framework-neutral ones for floats; layouts are channels-last (NHWC) wherever an operator
 *  knows of channels. A parser of a format with other conventions translates. */
#ifndef INFERD_OP_H
#define INFERD_OP_H

#include "inferd/alloc.h"
#include "inferd/status.h"
#include "inferd/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Ids of operators. Part of the plugin ABI: op_list.inc is append-only. */
enum ifd_op {
#define OP(ID, symbol) IFD_OP_##ID,
#include "inferd/op_list.inc"
#undef OP
    IFD_OP_COUNT
};

/** Any number of inputs or outputs (concat, pack, split), up to the parser's limit. */
#define IFD_OP_VARIADIC UINT32_MAX

/** Kinds of attribute values and the C type of the field that holds one. */
enum ifd_attr_kind {
    IFD_ATTR_INT,  /* int32_t */
    IFD_ATTR_F32,  /* float */
    IFD_ATTR_BOOL, /* bool */
    IFD_ATTR_INTS, /* struct ifd_ints */
    IFD_ATTR_ENUM  /* int32_t, one of the values min … max */
};

/** Up to IFD_MAX_RANK signed numbers: axes, block sizes, begins, a target shape. */
struct ifd_ints {
    uint32_t count;
    int64_t value[IFD_MAX_RANK];
};

/** One attribute: its place in the operator's attribute struct, its default and its range (both
 *  ends included; for INTS the range of every element). ir/attrs.c applies them, so range checks
 *  exist once. */
struct ifd_attr_def {
    const char *name;
    enum ifd_attr_kind kind;
    size_t offset;
    double default_value;
    double min, max;
};

/** An operand as the shape rule and the backends see it. desc is NULL for an optional input that is
 *  absent. data is the content if it is constant, else {NULL, 0}. Constants are used where the file
 *  has them: padded, but aligned to their element's size only. */
struct ifd_operand {
    const struct ifd_desc *desc;
    struct ifd_bytes data;
};

/** Question to the shape rule: the operator of def with these attributes on these inputs. */
struct ifd_infer {
    const struct ifd_op_def *def;
    const void *attrs;
    const struct ifd_operand *input;
    uint32_t input_count;
    uint32_t output_count;
};

/** Memory of the texts that a run makes. It lasts until the next run of the same instance. */
struct ifd_texts {
    /** Errors: NOMEM; TOO_LARGE: the run has made as many as it may. */
    enum ifd_code (*take)(struct ifd_texts *texts, size_t bytes, char **ret_text,
                          struct ifd_err *err);
};

/** A call of the reference kernel.
 *
 *  input[i]:  content of input i, NULL if absent; output[i]: where output i goes. No output
 *             overlaps an input, except that output 0 may be input 0 itself where the definition
 *             says can_alias.
 *  in/out:    their descriptions, all dimensions known; in[i] is NULL if input i is absent (the
 *             content of an empty tensor may be NULL too).
 *  scratch:   scratch_bytes as the definition's scratch() asked for, aligned to IFD_TENSOR_ALIGN;
 *             content undefined.
 *  texts:     where texts go that the kernel makes; NULL: it cannot make any. */
struct ifd_ref_call {
    const void *attrs;
    const struct ifd_desc *const *in;
    const void *const *input;
    uint32_t input_count;
    const struct ifd_desc *const *out;
    void *const *output;
    uint32_t output_count;
    void *scratch;
    struct ifd_texts *texts;
};

/** How an operator treats dimension 0 when a model that was written for one batch size is planned
 *  for another (engine/ir/batch.c). "Sample" is an index along dimension 0 of the batched
 *  operands. */
enum ifd_batch_rule {
    IFD_BATCH_NEVER = 0,   /* mixes samples, or not analysed: the engine runs samples one by one */
    IFD_BATCH_SAMPLE,      /* input 0 is batched, the others are not; outputs are batched */
    IFD_BATCH_ELEMENTWISE, /* batched inputs share dimension 0; others broadcast into it */
    IFD_BATCH_AXIS,        /* as SAMPLE, if no axis attribute names dimension 0 (softmax, concat) */
    IFD_BATCH_RESHAPE,     /* if dimension 0 is the batch before and behind: the target scales */
    IFD_BATCH_SLICE,       /* if dimension 0 is taken whole: the window scales */
    IFD_BATCH_TRANSPOSE,   /* if dimension 0 stays first */
    IFD_BATCH_SIZED,       /* input 2 is batched; input 0, the output's shape, scales if constant */
    IFD_BATCH_SEQUENCE     /* as SAMPLE, if time is not first and no other input is of the batch */
};

/** A permutation of dimensions: dimension i of a tensor becomes dimension axis[i]. */
struct ifd_perm {
    uint32_t rank;
    uint8_t axis[IFD_MAX_RANK];
};

/** Weights and bias of an operator whose result is linear in them, channel by channel (last
 *  dimension of the output). */
struct ifd_op_weights {
    uint32_t input; /* index of the weights */
    uint32_t bias;  /* index of the bias: one number per channel; may be absent */
    uint32_t axis;  /* of the weights, along which the channels lie: the first or the last */
};

struct ifd_op_def {
    const char *name; /* "conv2d" */

    uint32_t min_inputs;
    uint32_t max_inputs; /* or IFD_OP_VARIADIC */
    uint32_t outputs;    /* exact number, or IFD_OP_VARIADIC (split, unpack) */

    const struct ifd_attr_def *attrs; /* attr_count rows, NULL if none */
    uint32_t attr_count;
    size_t attrs_bytes; /* size of the struct in op_attrs.h, 0 if none */

    /** Data types that input 0 may have: IFD_BIT()s. The rule for the others is infer's. */
    uint32_t dtypes;

    enum ifd_batch_rule batch;

    /** Output 0 may be computed in the memory of input 0 (same bytes, element by element). */
    bool can_alias;

    /** Every element of the output depends only on the elements at its place in the inputs, which
     *  broadcast: the order of dimensions does not matter. */
    bool is_elementwise;

    /** Bit i: the output shape depends on the content of input i, which must be constant when the
     *  graph is verified (reshape by tensor, slice by tensor …). */
    uint32_t shape_inputs;

    /** Shape rule. Checks ranks, types, quantization and attributes against each other and writes
     *  the *shape* of every output; output[i].dtype and .quant come in as the file declares them
     *  and are checked, not changed. After OK, ref and every backend may trust what was checked.
     *  Errors: INVALID names operand, got, wanted; UNSUPPORTED for what inferd does not compute;
     *  TOO_LARGE. */
    enum ifd_code (*infer)(const struct ifd_infer *in, struct ifd_desc *output,
                           struct ifd_err *err);

    /** Bytes of scratch that ref needs; NULL means none. Called with the shapes that infer
     *  accepted. */
    enum ifd_code (*scratch)(const struct ifd_infer *in, const struct ifd_desc *output,
                             size_t *ret_bytes, struct ifd_err *err);

    /** Reference kernel: clear, scalar, allocation-free, obviously right. Fails only for what
     *  cannot be known before the data is there (an index out of range): INVALID. NULL: the
     *  attributes are graphs, which the executor runs; no backend sees the node. */
    enum ifd_code (*ref)(const struct ifd_ref_call *call, struct ifd_err *err);

    /* ---- what the optimizer asks; zero where nothing is known ---- */

    /** Output 0 is input 0 unchanged if both have the same type, shape and quantization. */
    bool is_identity;

    /** The operator clamps one operand: its f32 result is min(max(x, min), max). number: the
     *  content of its other operand if that is a constant of one f32, else NULL. False: these
     *  attributes do not clamp. NULL: it never clamps. */
    bool (*bounds)(const void *attrs, const float *number, float *ret_min, float *ret_max);

    /** Rewrites attrs so that permuted inputs give the permuted result. False: it cannot; attrs are
     *  undefined then. NULL: the order of dimensions matters. Not asked if is_elementwise. */
    bool (*permute)(void *attrs, const struct ifd_perm *perm);

    /** Applies the activation of its attribute "activation" to its result. */
    bool applies_activation;

    /** NULL if it has none. */
    const struct ifd_op_weights *weights;

    /** Every element of the outputs is one of input 0 (of all inputs, if there may be any number),
     *  or a border of 0, and a nondecreasing function may be applied before instead of behind:
     *  stored numbers are moved as well as real ones. With the activation NONE. */
    bool moves;

    /** Reads the description of its inputs, never their content. */
    bool reads_shape_only;

    /** Writes bytes of texts that no input and no constant has: into ifd_ref_call.texts. */
    bool makes_texts;

    /** Its result is a decision (which boxes overlap): one step of rounding in its inputs can
     *  change it. A model with this operator is computed with exact kernels. */
    bool decides;

    /** The time of ref may grow with the product of the sizes of an input and of the results, not
     *  with their sum. Not said of those with weights. */
    bool multiplies;

    /** Of those: how many numbers of input 0 ref reads for an element of its result. NULL: up to
     *  all numbers of the largest input. */
    double (*terms)(const void *attrs, const struct ifd_shape *input);
};

/** Definition of an operator; NULL for a value outside the enum. Static. */
const struct ifd_op_def *ifd_op_def(enum ifd_op op);

#ifdef __cplusplus
}
#endif
#endif
