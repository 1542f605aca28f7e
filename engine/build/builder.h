/** Writes a graph node by node: what a parser whose operators are not ours writes through.
 *
 *  Every call infers shapes at once and computes nodes whose inputs are constants, so shape
 *  arithmetic is gone when the graph is done. Calls return the value that they make. The first
 *  failure is kept: later calls do nothing and return IFD_NONE, so a sequence of calls needs one
 *  check at its end (builder->code).
 *
 *  Memory: values, nodes and constants live in the graph's arena. Thread: one at a time. */
#ifndef INFERD_ENGINE_BUILD_BUILDER_H
#define INFERD_ENGINE_BUILD_BUILDER_H

#include "engine/ir/graph.h"

#define IFD_BUILDER_TURNED 32

/** A constant and what a transpose made of it. */
struct ifd_turned {
    const uint8_t *source; /* its content; NULL: none */
    struct ifd_transpose_attrs attrs;
    struct ifd_desc desc;
    struct ifd_bytes content;
};

struct ifd_builder {
    struct ifd_graph *graph;
    size_t tensor_bytes; /* limit of one tensor */
    /** Of the nodes that are made next, for messages. */
    uint32_t source_index;
    const char *source_name;
    /** Name of the next values, "" for none. */
    const char *name;
    /** NHWC form of a value that was made by ifd_build_to_nchw; IFD_NONE if there is none. By
     *  value. */
    uint32_t *nhwc;
    uint32_t nhwc_count;
    /** The newest ones: the turns of a loop share the weights that each of them transposes. */
    struct ifd_turned turned[IFD_BUILDER_TURNED];
    uint32_t turned_next;
    enum ifd_code code;
    struct ifd_err *err;
    /** Asked for the content of a value that is no constant: a constant in its place, or IFD_NONE.
     *  NULL: nobody knows. */
    uint32_t (*ask)(void *context, uint32_t value);
    void *ask_context;
};

void ifd_builder_init(struct ifd_builder *b, struct ifd_graph *graph, size_t tensor_bytes,
                      struct ifd_err *err);

/** Keeps a failure that the caller found. Returns IFD_NONE. */
uint32_t ifd_build_fail(struct ifd_builder *b, enum ifd_code code, const char *format, ...)
    IFD_PRINTF(3, 4);

/* ---- questions ---- */

/** Description of a value; an empty f32 if the builder has failed. Valid until the next call that
 *  makes a value. */
const struct ifd_desc *ifd_build_desc(const struct ifd_builder *b, uint32_t value);
/** Content of a constant; {NULL, 0} if it is none. */
struct ifd_bytes ifd_build_content(const struct ifd_builder *b, uint32_t value);
/** The value, or a constant in place of one whose content somebody knows (ask). */
uint32_t ifd_build_known(struct ifd_builder *b, uint32_t value);
/** The numbers of a constant s32 or s64 tensor, at most IFD_MAX_RANK. Fails if it is something
 *  else. what: for messages. */
struct ifd_ints ifd_build_ints_of(struct ifd_builder *b, uint32_t value, const char *what);
/** The same for a single number that fits 32 bits. */
int32_t ifd_build_int_of(struct ifd_builder *b, uint32_t value, const char *what);
/** Element 0 of a constant of any number type. Fails if it is none. */
double ifd_build_number_of(struct ifd_builder *b, uint32_t value, const char *what);
/** An axis counted from the end made one from the front. Fails outside -rank … rank-1. */
uint32_t ifd_build_axis(struct ifd_builder *b, int64_t axis, uint32_t rank);

/* ---- constants ---- */

/** content is used in place if it is aligned and padded (readable_after), else copied. */
uint32_t ifd_build_constant(struct ifd_builder *b, const struct ifd_desc *desc,
                            struct ifd_bytes content, size_t readable_after);
/** A scalar of the number types; integers are rounded towards 0. */
uint32_t ifd_build_number(struct ifd_builder *b, enum ifd_dtype dtype, double number);
/** A list [count] of s64. */
uint32_t ifd_build_list(struct ifd_builder *b, const int64_t *number, uint32_t count);

/* ---- nodes ---- */

/** A node with one output. output: its type and quantization (the shape is inferred), NULL for
 *  those of input 0. attrs: struct of op_attrs.h, NULL for the defaults. */
uint32_t ifd_build_node(struct ifd_builder *b, enum ifd_op op, const uint32_t *input,
                        uint32_t input_count, const struct ifd_desc *output, const void *attrs);
/** The same for output_count outputs, whose values go to ret_output (IFD_NONE on failure). */
void ifd_build_nodes(struct ifd_builder *b, enum ifd_op op, const uint32_t *input,
                     uint32_t input_count, const struct ifd_desc *output, uint32_t output_count,
                     const void *attrs, uint32_t *ret_output);

uint32_t ifd_build_unary(struct ifd_builder *b, enum ifd_op op, uint32_t x);
uint32_t ifd_build_binary(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y);
/** With a scalar of x's type. */
uint32_t ifd_build_with(struct ifd_builder *b, enum ifd_op op, uint32_t x, double number);
uint32_t ifd_build_cast(struct ifd_builder *b, uint32_t x, enum ifd_dtype dtype);
uint32_t ifd_build_reshape(struct ifd_builder *b, uint32_t x, const int64_t *dim, uint32_t rank);
uint32_t ifd_build_reduce(struct ifd_builder *b, enum ifd_op op, uint32_t x,
                          const struct ifd_ints *axes, bool keep_dims);
uint32_t ifd_build_clamp(struct ifd_builder *b, uint32_t x, double min, double max);

/** Elements begin … begin+size-1 along one axis. */
uint32_t ifd_build_cut(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t begin,
                       int64_t size);

/* ---- transposes (transpose.c) ---- */

uint32_t ifd_build_transpose(struct ifd_builder *b, uint32_t x, const uint32_t *perm);
/** Two axes exchanged. */
uint32_t ifd_build_swap(struct ifd_builder *b, uint32_t x, uint32_t i, uint32_t k);

/** [n,c,h,w] to [n,h,w,c] and back. A value that came back remembers what it came from: there and
 *  back is no node. */
uint32_t ifd_build_to_nhwc(struct ifd_builder *b, uint32_t x);
uint32_t ifd_build_to_nchw(struct ifd_builder *b, uint32_t x);

/* ---- decompositions (decompose.c) ---- */

/** (x - mean) / sqrt(variance + epsilon) over these axes. ret_moments: the mean and the factor, two
 *  values; NULL if they are not wanted. */
uint32_t ifd_build_standardize(struct ifd_builder *b, uint32_t x, const struct ifd_ints *axes,
                               double epsilon, uint32_t *ret_moments);
/** x / sqrt(mean of squares + epsilon) over these axes. */
uint32_t ifd_build_rms(struct ifd_builder *b, uint32_t x, const struct ifd_ints *axes,
                       double epsilon);
uint32_t ifd_build_softplus(struct ifd_builder *b, uint32_t x);
/** Softmax or log softmax (op) along any axis. */
uint32_t ifd_build_softmax(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t axis);
/** values [n] for flags [..., n]: that of the first flag, the one of otherwise [1] without one. */
uint32_t ifd_build_first(struct ifd_builder *b, uint32_t flags, uint32_t values,
                         uint32_t otherwise);
/** A fully connected layer: x [..., k], weights [n, k], bias [n] or IFD_NONE. */
uint32_t ifd_build_layer(struct ifd_builder *b, uint32_t x, uint32_t weights, uint32_t bias);
/** Matrix product as NumPy's matmul has it; with constant y of rank 2 a fully connected layer. */
uint32_t ifd_build_matmul(struct ifd_builder *b, uint32_t x, uint32_t y);

#endif
