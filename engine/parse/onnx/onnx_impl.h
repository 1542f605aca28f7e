/** What the parts of the ONNX parser share: one node of the file while it is translated. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_IMPL_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_IMPL_H

#include "engine/build/builder.h"
#include "engine/parse/onnx/onnx_reader.h"
#include "engine/parse/onnx/onnx_rows.h"

struct ifd_onnx_build;

struct ifd_onnx_call {
    struct ifd_builder *b;
    struct ifd_onnx_build *build; /* for nodes that have graphs */
    const struct ifd_onnx_node *node;
    int64_t opset; /* of the node's domain */
    const uint32_t *input;
    uint32_t input_count; /* trailing absent ones are not counted */
    uint32_t *output;     /* output_count; written: the values that the node makes */
    uint32_t output_count;
};

/** A row: an operator of the format. */
struct ifd_onnx_rule {
    const char *domain, *op;
    uint32_t min_inputs, max_inputs, max_outputs;
    /** Fails by ifd_build_fail; argument is the row's. */
    void (*translate)(struct ifd_onnx_call *call, int argument);
    int argument;
};

/** The row of an operator, NULL if there is none. Static. */
const struct ifd_onnx_rule *ifd_onnx_rule(const struct ifd_onnx_node *node);
/** May its inputs be sequences, or optional values that are absent? */
bool ifd_onnx_takes_lists(const struct ifd_onnx_node *node);

bool ifd_str_is(struct ifd_str text, const char *other);

/** A text of the file for messages and names: one line of printable characters, the end of a long
 *  one cut. */
#define IFD_ONNX_TEXT_MAX 60
struct ifd_onnx_text {
    char s[IFD_ONNX_TEXT_MAX + 1];
};
struct ifd_onnx_text ifd_onnx_text(struct ifd_str text);

/* ---- attributes (attrs.c) ---- */

/** As it stands at the node; NULL if it is absent, here and below. */
const struct ifd_onnx_attr *ifd_onnx_attr_of(const struct ifd_onnx_node *node, const char *name);
/** Inside of a function also that of the function's call that it refers to. */
const struct ifd_onnx_attr *ifd_onnx_attr(const struct ifd_onnx_call *call, const char *name);
int64_t ifd_onnx_int(const struct ifd_onnx_call *call, const char *name, int64_t otherwise);
/** The same for a number that must fit 32 bits: fails otherwise. */
int32_t ifd_onnx_int32(const struct ifd_onnx_call *call, const char *name, int32_t otherwise);
double ifd_onnx_f32(const struct ifd_onnx_call *call, const char *name, double otherwise);
/** At most IFD_MAX_RANK numbers; false if the attribute is absent. Fails if it has more. */
bool ifd_onnx_ints(const struct ifd_onnx_call *call, const char *name, struct ifd_ints *ret);
/** Is the text attribute there, and this? absent: what to say if it is not there. */
bool ifd_onnx_text_is(const struct ifd_onnx_call *call, const char *name, const char *text,
                      bool absent);
/** Value of input i, IFD_NONE if it is absent. */
uint32_t ifd_onnx_input(const struct ifd_onnx_call *call, uint32_t i);
/** Axes: of attribute "axes", or of input i in newer opsets, from the front; false if there are
 *  none. */
bool ifd_onnx_axes(struct ifd_onnx_call *call, uint32_t i, uint32_t rank, struct ifd_ints *ret);

/** A tensor of the file as a constant: all floats become f32, whole numbers of fewer than 8 bits
 *  numbers of 8. */
uint32_t ifd_onnx_constant(struct ifd_builder *b, const struct ifd_onnx_tensor *tensor);
/** Texts, copied, as a constant of this shape. */
uint32_t ifd_onnx_texts(struct ifd_builder *b, const struct ifd_str *text,
                        const struct ifd_shape *shape);
/** The type that values of an element type have here: f32 for every type of floats. False if there
 *  is none. */
bool ifd_onnx_dtype(int64_t type, enum ifd_dtype *ret);
/** The type of the engine that is the element type; false if there is none. */
bool ifd_onnx_port_dtype(int64_t type, enum ifd_dtype *ret);
bool ifd_onnx_is_real(enum ifd_dtype dtype);

/* ---- floats of 8 and 4 bits, whole numbers of 4 and 2 bits (narrow.c) ---- */

bool ifd_onnx_is_narrow(int64_t type);
/** The type that inputs and outputs of the model have: that of ifd_onnx_port_dtype, of narrow types
 *  the byte that holds one. False if there is none. */
bool ifd_onnx_outer_dtype(int64_t type, enum ifd_dtype *ret);
/** Values of a narrow type between their bytes outside and what they are inside. */
uint32_t ifd_onnx_from_outer(struct ifd_builder *b, uint32_t x, int64_t type);
uint32_t ifd_onnx_to_outer(struct ifd_builder *b, uint32_t x, int64_t type);
/** x cast to a narrow type as the node's attribute "saturate" says; whole numbers wrap. */
uint32_t ifd_onnx_narrowed(struct ifd_onnx_call *call, uint32_t x, int64_t type);
/** Of a narrow type of whole numbers. */
void ifd_onnx_narrow_range(int64_t type, double *ret_min, double *ret_max);
/** Is it of floats? */
bool ifd_onnx_is_narrow_real(int64_t type);
/** The type of the node's input i if it is known to be a narrow one, else 0. */
int64_t ifd_onnx_narrow_type(const struct ifd_onnx_call *call, uint32_t i);
uint32_t ifd_onnx_narrow_constant(struct ifd_builder *b, const struct ifd_onnx_tensor *tensor);

/* ---- sequences and optional values (lists.c) ---- */

enum ifd_onnx_lists {
    IFD_ONNX_SEQUENCE_CONSTRUCT,
    IFD_ONNX_SEQUENCE_AT,
    IFD_ONNX_SEQUENCE_INSERT,
    IFD_ONNX_SEQUENCE_ERASE,
    IFD_ONNX_SEQUENCE_LENGTH,
    IFD_ONNX_SEQUENCE_MAP,
    IFD_ONNX_SPLIT_TO_SEQUENCE,
    IFD_ONNX_CONCAT_FROM_SEQUENCE,
    IFD_ONNX_OPTIONAL,
    IFD_ONNX_OPTIONAL_HAS,
    IFD_ONNX_OPTIONAL_GET
};
void ifd_onnx_lists(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_lists */

/* ---- results whose size the data decides (cut.c) ---- */

/** Were the results of this question found by a run? Then they are in ret, in their sizes.
 *  Otherwise the caller computes them in tensors that have room, and calls ifd_onnx_cut. */
bool ifd_onnx_is_found(struct ifd_onnx_call *call, uint32_t *ret, uint32_t count);
/** size: a list whose first number is the size of value[i] along dimension axis[i] (IFD_NONE: it is
 *  complete); what there is lies dense at the front. Replaces value[] by results in their sizes if
 *  the size is constant, else fails: a run finds it. */
void ifd_onnx_cut(struct ifd_onnx_call *call, uint32_t size, uint32_t *value, const uint32_t *axis,
                  uint32_t count);

/* ---- what families of operators share ---- */

/* numbers.c */
/** Whole numbers of types that arithmetic lacks in one that has it; others as they are. */
uint32_t ifd_onnx_widened(struct ifd_builder *b, uint32_t x);
/** Without sign: of f32, s32 or s64. */
uint32_t ifd_onnx_magnitude(struct ifd_builder *b, uint32_t x);
/** The bits of whole numbers inverted. */
uint32_t ifd_onnx_inverted(struct ifd_builder *b, uint32_t x);
uint32_t ifd_onnx_compared(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y);
uint32_t ifd_onnx_selected(struct ifd_builder *b, uint32_t condition, uint32_t x, uint32_t y);

/** The node that makes a value, NULL if it is none of this operator. */
const struct ifd_node *ifd_onnx_made_by(const struct ifd_builder *b, uint32_t value,
                                        enum ifd_op op);
/** For each index along an axis the element of x there; the shape is that of the indices. */
uint32_t ifd_onnx_gathered(struct ifd_builder *b, uint32_t x, uint32_t indices, uint32_t axis);

/** x with zeros where dimensions i < k have different indices (move.c). */
uint32_t ifd_onnx_on_diagonal(struct ifd_builder *b, uint32_t x, uint32_t i, uint32_t k);

/* strings.c */
/** A text as a number, or a number as a text: x or to is STR. */
uint32_t ifd_onnx_text_cast(struct ifd_builder *b, uint32_t x, enum ifd_dtype to);

/* found.c */
/** [rank, count]: a column of coordinates for each element of x that is not 0. */
uint32_t ifd_onnx_found_elements(struct ifd_onnx_call *call, uint32_t x);

/** Each head of keys or values [n, heads, s, size] as often as heads of queries it serves. */
uint32_t ifd_onnx_repeated_heads(struct ifd_builder *b, uint32_t x, int64_t heads);

/* newest.c */
/** A cache [n, …] with an update in it, along an axis from each sample's place in places [n] on
 *  (IFD_NONE: 0). */
uint32_t ifd_onnx_written(struct ifd_builder *b, uint32_t cache, uint32_t update, uint32_t places,
                          uint32_t axis, bool is_circular);

/* blocks.c */
/** Weights of layer 1 or 2 of QMoE's experts, input i, as floats [experts, n, k]; input i + 1 are
 *  their scales, input zero their zero points. */
uint32_t ifd_onnx_unpacked_experts(struct ifd_onnx_call *call, uint32_t i, uint32_t zero,
                                   uint32_t layer);

/* rotary.c */
/** x [n, t, heads, size]: pairs of numbers, turned by angles [n or 1, t, 1, size / 2]. Pairs are
 *  neighbours (interleaved) or lie half a size apart. */
uint32_t ifd_onnx_turned(struct ifd_builder *b, uint32_t x, uint32_t cosine, uint32_t sine,
                         bool is_interleaved);

/* signal.c */
/** Windows of this size along an axis of x, the first at 0, each a step (1 or more) behind the one
 *  before: [..., windows, size, ...]. At least one fits; x has a dimension fewer than it may. */
uint32_t ifd_onnx_windows(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t size,
                          int64_t step);

/** From opset 13 on along one axis; before, along all dimensions from the axis on. */
uint32_t ifd_onnx_softmax(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x, int64_t opset);

/* slice.c; x: input 0 */
uint32_t ifd_onnx_slice(struct ifd_onnx_call *call, uint32_t x);
uint32_t ifd_onnx_range(struct ifd_onnx_call *call, uint32_t x);

/** How many ids the mask keeps in each of so many samples; 0 without a mask (microsoft.c). */
uint32_t ifd_onnx_kept(struct ifd_onnx_call *call, uint32_t mask, int64_t samples);

/* ---- activations by name (math.c) ---- */

/** A function of floats that recurrent layers and fused operators name. */
struct ifd_onnx_activation {
    const char *name;
    uint32_t numbers; /* alpha and beta that it has */
    bool has_usual;   /* what they are where nobody says: */
    double usual[2];
    uint32_t (*apply)(struct ifd_builder *b, uint32_t x, double alpha, double beta);
};
/** NULL if there is none of this name. Static. */
const struct ifd_onnx_activation *ifd_onnx_activation(struct ifd_str name);

/* ---- shared with the quantized forms (layers.c, pool.c) ---- */

/** A convolution of 8 bits, rounded as ONNX Runtime does it. */
struct ifd_onnx_stored {
    struct ifd_desc filter; /* type and quantization, without the axis */
    struct ifd_desc output; /* type and quantization */
    int32_t activation;     /* enum ifd_activation */
};

/** Convolution of x by filter as the node's attributes say; bias may be IFD_NONE. All f32 where
 *  stored is NULL; else of up to two directions. */
uint32_t ifd_onnx_convolve(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias,
                           const struct ifd_onnx_stored *stored);
/** x in the steps of its range, as DynamicQuantizeLinear makes them, in floats (quantized.c). */
uint32_t ifd_onnx_in_steps(struct ifd_builder *b, uint32_t x);
/** What attribute "post_transform" makes of scores [n, …] (ml.c). */
uint32_t ifd_onnx_transformed(struct ifd_onnx_call *call, uint32_t x);
/** The same by name. */
uint32_t ifd_onnx_transformed_as(struct ifd_builder *b, uint32_t x, struct ifd_str name);
/** A list of numbers as a constant. */
uint32_t ifd_onnx_floats(struct ifd_builder *b, const float *data, const int64_t *dim,
                         uint32_t rank);
/** Input 0 as a matrix of floats, one row a sample. */
uint32_t ifd_onnx_rows(struct ifd_onnx_call *call);
/** The labels of classes: the attribute of this name, or "classlabels_strings"; IFD_NONE: none
 *  (labels.c). */
uint32_t ifd_onnx_class_labels(struct ifd_onnx_call *call, const char *ints);
/** The label of the largest score in each row. */
uint32_t ifd_onnx_label_of(struct ifd_builder *b, uint32_t labels, uint32_t scores);
/** alpha * A' B' + beta * C of the node's inputs and attributes. */
uint32_t ifd_onnx_product(struct ifd_onnx_call *call);
uint32_t ifd_onnx_average(struct ifd_onnx_call *call, uint32_t x);
uint32_t ifd_onnx_global(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x);

#endif
