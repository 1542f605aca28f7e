/** What the parts of the ONNX parser share: one node of the file while it is translated. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_IMPL_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_IMPL_H

#include "engine/build/builder.h"
#include "engine/parse/onnx/onnx_reader.h"

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

/* ---- families of operators: functions for rows ---- */

/* control.c */
void ifd_onnx_if(struct ifd_onnx_call *call, int unused);
void ifd_onnx_loop(struct ifd_onnx_call *call, int unused);
void ifd_onnx_scan(struct ifd_onnx_call *call, int unused); /* scan.c */

/* numbers.c */
void ifd_onnx_unary(struct ifd_onnx_call *call, int op);
void ifd_onnx_binary(struct ifd_onnx_call *call, int op);
void ifd_onnx_compare(struct ifd_onnx_call *call, int op);
void ifd_onnx_fold_inputs(struct ifd_onnx_call *call, int op); /* max, min, sum of any number */
void ifd_onnx_bit_shift(struct ifd_onnx_call *call, int unused);
void ifd_onnx_bitwise(struct ifd_onnx_call *call, int op);
void ifd_onnx_bitwise_not(struct ifd_onnx_call *call, int unused);
void ifd_onnx_cast(struct ifd_onnx_call *call, int unused);
void ifd_onnx_cast_like(struct ifd_onnx_call *call, int unused);
void ifd_onnx_bit_cast(struct ifd_onnx_call *call, int unused);
void ifd_onnx_clip(struct ifd_onnx_call *call, int unused);
void ifd_onnx_cumsum(struct ifd_onnx_call *call, int unused);
void ifd_onnx_is_inf(struct ifd_onnx_call *call, int unused);
void ifd_onnx_is_nan(struct ifd_onnx_call *call, int unused);
void ifd_onnx_mean(struct ifd_onnx_call *call, int unused);
void ifd_onnx_modulo(struct ifd_onnx_call *call, int unused);
void ifd_onnx_power(struct ifd_onnx_call *call, int unused);
void ifd_onnx_prelu(struct ifd_onnx_call *call, int unused);
void ifd_onnx_where(struct ifd_onnx_call *call, int unused);
/** Whole numbers of types that arithmetic lacks in one that has it; others as they are. */
uint32_t ifd_onnx_widened(struct ifd_builder *b, uint32_t x);
/** Without sign: of f32, s32 or s64. */
uint32_t ifd_onnx_magnitude(struct ifd_builder *b, uint32_t x);
/** The bits of whole numbers inverted. */
uint32_t ifd_onnx_inverted(struct ifd_builder *b, uint32_t x);
uint32_t ifd_onnx_compared(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t y);
uint32_t ifd_onnx_selected(struct ifd_builder *b, uint32_t condition, uint32_t x, uint32_t y);

/* index.c */
void ifd_onnx_gather(struct ifd_onnx_call *call, int unused);
void ifd_onnx_gather_elements(struct ifd_onnx_call *call, int unused);
void ifd_onnx_gather_nd(struct ifd_onnx_call *call, int unused);
void ifd_onnx_hardmax(struct ifd_onnx_call *call, int unused);
void ifd_onnx_one_hot(struct ifd_onnx_call *call, int unused);
void ifd_onnx_reverse_sequence(struct ifd_onnx_call *call, int unused);
void ifd_onnx_scatter_elements(struct ifd_onnx_call *call, int unused);
void ifd_onnx_scatter_nd(struct ifd_onnx_call *call, int unused);
void ifd_onnx_top_k(struct ifd_onnx_call *call, int unused);

/** The node that makes a value, NULL if it is none of this operator. */
const struct ifd_node *ifd_onnx_made_by(const struct ifd_builder *b, uint32_t value,
                                        enum ifd_op op);
/** For each index along an axis the element of x there; the shape is that of the indices. */
uint32_t ifd_onnx_gathered(struct ifd_builder *b, uint32_t x, uint32_t indices, uint32_t axis);

/** x with zeros where dimensions i < k have different indices (move.c). */
uint32_t ifd_onnx_on_diagonal(struct ifd_builder *b, uint32_t x, uint32_t i, uint32_t k);

/* found.c */
void ifd_onnx_compress(struct ifd_onnx_call *call, int unused);
void ifd_onnx_non_max_suppression(struct ifd_onnx_call *call, int unused);
void ifd_onnx_non_zero(struct ifd_onnx_call *call, int unused);
void ifd_onnx_unique(struct ifd_onnx_call *call, int is_microsoft);

/* text.c */
void ifd_onnx_tf_idf(struct ifd_onnx_call *call, int unused);

/* strings.c */
void ifd_onnx_regex_full_match(struct ifd_onnx_call *call, int unused);
void ifd_onnx_string_concat(struct ifd_onnx_call *call, int unused);
void ifd_onnx_string_normalizer(struct ifd_onnx_call *call, int unused);
void ifd_onnx_string_split(struct ifd_onnx_call *call, int unused);
void ifd_onnx_tokenizer(struct ifd_onnx_call *call, int unused);
/** A text as a number, or a number as a text: x or to is STR. */
uint32_t ifd_onnx_text_cast(struct ifd_builder *b, uint32_t x, enum ifd_dtype to);
/* found.c */
/** [rank, count]: a column of coordinates for each element of x that is not 0. */
uint32_t ifd_onnx_found_elements(struct ifd_onnx_call *call, uint32_t x);

/* training.c */
enum ifd_onnx_training { IFD_ONNX_ADAGRAD, IFD_ONNX_ADAM, IFD_ONNX_MOMENTUM };
void ifd_onnx_train(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_training */

void ifd_onnx_attend(struct ifd_onnx_call *call, int unused); /* attend.c */
/** Each head of keys or values [n, heads, s, size] as often as heads of queries it serves. */
uint32_t ifd_onnx_repeated_heads(struct ifd_builder *b, uint32_t x, int64_t heads);

/* newest.c */
void ifd_onnx_causal_conv(struct ifd_onnx_call *call, int unused);
void ifd_onnx_cumprod(struct ifd_onnx_call *call, int unused);
void ifd_onnx_flex_attention(struct ifd_onnx_call *call, int unused);
void ifd_onnx_linear_attention(struct ifd_onnx_call *call, int unused);
void ifd_onnx_swiglu(struct ifd_onnx_call *call, int unused);
void ifd_onnx_tensor_scatter(struct ifd_onnx_call *call, int unused);
/** A cache [n, …] with an update in it, along an axis from each sample's place in places [n] on
 *  (IFD_NONE: 0). */
uint32_t ifd_onnx_written(struct ifd_builder *b, uint32_t cache, uint32_t update, uint32_t places,
                          uint32_t axis, bool is_circular);

/* blocks.c */
void ifd_onnx_gather_blocks(struct ifd_onnx_call *call, int unused);
void ifd_onnx_matmul_blocks(struct ifd_onnx_call *call, int unused);
void ifd_onnx_matmul_bnb4(struct ifd_onnx_call *call, int unused);
/** Weights of layer 1 or 2 of QMoE's experts, input i, as floats [experts, n, k]; input i + 1 are
 *  their scales, input zero their zero points. */
uint32_t ifd_onnx_unpacked_experts(struct ifd_onnx_call *call, uint32_t i, uint32_t zero,
                                   uint32_t layer);
void ifd_onnx_experts(struct ifd_onnx_call *call, int is_quantized); /* experts.c */

void ifd_onnx_deform_conv(struct ifd_onnx_call *call, int unused);           /* deform.c */
void ifd_onnx_group_query_attention(struct ifd_onnx_call *call, int unused); /* group_query.c */

/* fold.c */
void ifd_onnx_col2im(struct ifd_onnx_call *call, int unused);

/* rotary.c */
void ifd_onnx_center_crop_pad(struct ifd_onnx_call *call, int unused);
void ifd_onnx_rotary_embedding(struct ifd_onnx_call *call, int is_microsoft);
/** x [n, t, heads, size]: pairs of numbers, turned by angles [n or 1, t, 1, size / 2]. Pairs are
 *  neighbours (interleaved) or lie half a size apart. */
uint32_t ifd_onnx_turned(struct ifd_builder *b, uint32_t x, uint32_t cosine, uint32_t sine,
                         bool is_interleaved);

/* random.c */
enum ifd_onnx_random { IFD_ONNX_RANDOM_NORMAL, IFD_ONNX_RANDOM_UNIFORM, IFD_ONNX_BERNOULLI };
void ifd_onnx_random(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_random */

/* sample.c */
void ifd_onnx_affine_grid(struct ifd_onnx_call *call, int unused);
void ifd_onnx_grid_sample(struct ifd_onnx_call *call, int unused);
void ifd_onnx_max_roi_pool(struct ifd_onnx_call *call, int unused);
void ifd_onnx_roi_align(struct ifd_onnx_call *call, int unused);

/* signal.c */
enum ifd_onnx_window_function { IFD_ONNX_HANN, IFD_ONNX_HAMMING, IFD_ONNX_BLACKMAN };
void ifd_onnx_window_function(struct ifd_onnx_call *call, int which);
void ifd_onnx_dft(struct ifd_onnx_call *call, int unused);
void ifd_onnx_stft(struct ifd_onnx_call *call, int unused);
void ifd_onnx_mel_weights(struct ifd_onnx_call *call, int unused);
/** Windows of this size along an axis of x, the first at 0, each a step (1 or more) behind the one
 *  before: [..., windows, size, ...]. At least one fits; x has a dimension fewer than it may. */
uint32_t ifd_onnx_windows(struct ifd_builder *b, uint32_t x, uint32_t axis, int64_t size,
                          int64_t step);

/* losses.c */
void ifd_onnx_negative_log_likelihood(struct ifd_onnx_call *call, int unused);
void ifd_onnx_softmax_cross_entropy(struct ifd_onnx_call *call, int unused);

void ifd_onnx_function(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_function */
void ifd_onnx_reduce(struct ifd_onnx_call *call, int which);   /* enum ifd_onnx_reduction */
void ifd_onnx_arg(struct ifd_onnx_call *call, int op);
/** From opset 13 on along one axis; before, along all dimensions from the axis on. */
uint32_t ifd_onnx_softmax(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x, int64_t opset);
void ifd_onnx_soft(struct ifd_onnx_call *call, int op);
void ifd_onnx_move(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_movement */
/* slice.c; x: input 0 */
uint32_t ifd_onnx_slice(struct ifd_onnx_call *call, uint32_t x);
uint32_t ifd_onnx_range(struct ifd_onnx_call *call, uint32_t x);
void ifd_onnx_layer(struct ifd_onnx_call *call, int which);     /* enum ifd_onnx_layer */
void ifd_onnx_pool(struct ifd_onnx_call *call, int which);      /* enum ifd_onnx_pool */
void ifd_onnx_normalize(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_normalization */
void ifd_onnx_resize(struct ifd_onnx_call *call, int is_upsample);
void ifd_onnx_einsum(struct ifd_onnx_call *call, int unused);
void ifd_onnx_pad(struct ifd_onnx_call *call, int unused);
void ifd_onnx_quantized(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_quantized */
void ifd_onnx_recurrent(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_recurrent */
void ifd_onnx_microsoft(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_microsoft */
void ifd_onnx_contrib(struct ifd_onnx_call *call, int which);   /* enum ifd_onnx_contrib */
void ifd_onnx_converted(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_converted */
void ifd_onnx_former(struct ifd_onnx_call *call, int which);    /* enum ifd_onnx_former */
/** How many ids the mask keeps in each of so many samples; 0 without a mask (microsoft.c). */
uint32_t ifd_onnx_kept(struct ifd_onnx_call *call, uint32_t mask, int64_t samples);
void ifd_onnx_ml(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_ml */
/* labels.c */
void ifd_onnx_label_encoder(struct ifd_onnx_call *call, int unused);
void ifd_onnx_category_mapper(struct ifd_onnx_call *call, int unused);
void ifd_onnx_one_hot_encoder(struct ifd_onnx_call *call, int unused);
void ifd_onnx_svm(struct ifd_onnx_call *call, int is_classifier); /* svm.c */
void ifd_onnx_tree_ensemble(struct ifd_onnx_call *call, int unused);
void ifd_onnx_tree_classifier(struct ifd_onnx_call *call, int unused);
void ifd_onnx_tree_regressor(struct ifd_onnx_call *call, int unused);
void ifd_onnx_attention(struct ifd_onnx_call *call, int is_quantized);
void ifd_onnx_multi_head_attention(struct ifd_onnx_call *call, int unused);

enum ifd_onnx_function {
    IFD_ONNX_ACTIVATION, /* that the operator's name says */
    IFD_ONNX_SELU,
    IFD_ONNX_CELU,
    IFD_ONNX_MISH,
    IFD_ONNX_GELU,
    IFD_ONNX_FAST_GELU,
    IFD_ONNX_QUICK_GELU,
    IFD_ONNX_RECIPROCAL,
    IFD_ONNX_TAN,
    IFD_ONNX_ACOS,
    IFD_ONNX_ACOSH,
    IFD_ONNX_ASIN,
    IFD_ONNX_ASINH,
    IFD_ONNX_ATAN,
    IFD_ONNX_ATANH,
    IFD_ONNX_COSH,
    IFD_ONNX_SINH,
    IFD_ONNX_SHRINK,
    IFD_ONNX_SWISH
};

enum ifd_onnx_reduction {
    IFD_ONNX_REDUCE_MEAN,
    IFD_ONNX_REDUCE_SUM,
    IFD_ONNX_REDUCE_MAX,
    IFD_ONNX_REDUCE_MIN,
    IFD_ONNX_REDUCE_PROD,
    IFD_ONNX_REDUCE_L1,
    IFD_ONNX_REDUCE_L2,
    IFD_ONNX_REDUCE_LOG_SUM,
    IFD_ONNX_REDUCE_LOG_SUM_EXP,
    IFD_ONNX_REDUCE_SUM_SQUARE
};

enum ifd_onnx_movement {
    IFD_ONNX_CONSTANT,
    IFD_ONNX_CONSTANT_OF_SHAPE,
    IFD_ONNX_SHAPE,
    IFD_ONNX_SIZE,
    IFD_ONNX_RESHAPE,
    IFD_ONNX_FLATTEN,
    IFD_ONNX_SQUEEZE,
    IFD_ONNX_UNSQUEEZE,
    IFD_ONNX_TRANSPOSE,
    IFD_ONNX_CONCAT,
    IFD_ONNX_SPLIT,
    IFD_ONNX_SLICE,
    IFD_ONNX_EXPAND,
    IFD_ONNX_TILE,
    IFD_ONNX_DEPTH_TO_SPACE,
    IFD_ONNX_SPACE_TO_DEPTH,
    IFD_ONNX_RANGE,
    IFD_ONNX_TRILU,
    IFD_ONNX_EYE_LIKE,
    IFD_ONNX_DROPOUT,
    IFD_ONNX_IDENTITY
};

enum ifd_onnx_layer { IFD_ONNX_CONV, IFD_ONNX_CONV_TRANSPOSE, IFD_ONNX_GEMM, IFD_ONNX_MATMUL };

enum ifd_onnx_pool {
    IFD_ONNX_AVERAGE_POOL,
    IFD_ONNX_GLOBAL_AVERAGE_POOL,
    IFD_ONNX_GLOBAL_LP_POOL,
    IFD_ONNX_GLOBAL_MAX_POOL,
    IFD_ONNX_LP_POOL,
    IFD_ONNX_MAX_POOL,
    IFD_ONNX_NHWC_MAX_POOL,
    IFD_ONNX_MAX_UNPOOL
};

enum ifd_onnx_normalization {
    IFD_ONNX_BATCH_NORMALIZATION,
    IFD_ONNX_GROUP_NORMALIZATION,
    IFD_ONNX_INSTANCE_NORMALIZATION,
    IFD_ONNX_LAYER_NORMALIZATION,
    IFD_ONNX_LOCAL_RESPONSE,
    IFD_ONNX_LP_NORMALIZATION,
    IFD_ONNX_MEAN_VARIANCE,
    IFD_ONNX_RMS_NORMALIZATION
};

enum ifd_onnx_quantized {
    IFD_ONNX_QUANTIZE,
    IFD_ONNX_DEQUANTIZE,
    IFD_ONNX_DYNAMIC_QUANTIZE,
    IFD_ONNX_DYNAMIC_QUANTIZE_MATMUL,
    IFD_ONNX_CONV_INTEGER,
    IFD_ONNX_MATMUL_INTEGER,
    IFD_ONNX_MATMUL_INTEGER_TO_FLOAT,
    IFD_ONNX_Q_CONV,
    IFD_ONNX_Q_MATMUL,
    IFD_ONNX_Q_GEMM,
    IFD_ONNX_Q_ADD,
    IFD_ONNX_Q_MUL,
    IFD_ONNX_Q_CONCAT,
    IFD_ONNX_Q_SIGMOID,
    IFD_ONNX_Q_SOFTMAX,
    IFD_ONNX_Q_AVERAGE_POOL,
    IFD_ONNX_Q_GLOBAL_AVERAGE_POOL,
    IFD_ONNX_Q_LEAKY_RELU,
    IFD_ONNX_Q_REDUCE_MEAN,
    IFD_ONNX_Q_WHERE
};

enum ifd_onnx_microsoft {
    IFD_ONNX_BIAS_GELU,
    IFD_ONNX_CDIST,
    IFD_ONNX_EMBED_LAYER_NORMALIZATION,
    IFD_ONNX_EXPAND_DIMS,
    IFD_ONNX_FUSED_CONV,
    IFD_ONNX_FUSED_GEMM,
    IFD_ONNX_FUSED_MATMUL,
    IFD_ONNX_SKIP_LAYER_NORMALIZATION,
    IFD_ONNX_SKIP_RMS_NORMALIZATION
};

enum ifd_onnx_contrib {
    IFD_ONNX_BIAS_ADD,
    IFD_ONNX_BIAS_SOFTMAX,
    IFD_ONNX_BIAS_SPLIT_GELU,
    IFD_ONNX_GATED_POSITION_BIAS,
    IFD_ONNX_GEMM_FAST_GELU,
    IFD_ONNX_GROUP_NORM,
    IFD_ONNX_NHWC_CONV,
    IFD_ONNX_Q_EMBED_LAYER_NORMALIZATION,
    IFD_ONNX_RELATIVE_POSITION_BIAS,
    IFD_ONNX_SKIP_GROUP_NORM
};

enum ifd_onnx_converted {
    IFD_ONNX_CROP_AND_RESIZE,
    IFD_ONNX_INVERSE,
    IFD_ONNX_MATMUL_16,
    IFD_ONNX_MURMUR_HASH,
    IFD_ONNX_UNFOLD
};

enum ifd_onnx_former {
    IFD_ONNX_CROP,
    IFD_ONNX_IMAGE_SCALER,
    IFD_ONNX_PARAMETRIC_SOFTPLUS,
    IFD_ONNX_SCALE
};

enum ifd_onnx_ml {
    IFD_ONNX_ARRAY_FEATURE_EXTRACTOR,
    IFD_ONNX_BINARIZER,
    IFD_ONNX_FEATURE_VECTORIZER,
    IFD_ONNX_IMPUTER,
    IFD_ONNX_LINEAR_CLASSIFIER,
    IFD_ONNX_LINEAR_REGRESSOR,
    IFD_ONNX_NORMALIZER,
    IFD_ONNX_SCALER,
    IFD_ONNX_ZIP_MAP
};

enum ifd_onnx_recurrent { IFD_ONNX_LSTM, IFD_ONNX_GRU, IFD_ONNX_RNN, IFD_ONNX_DYNAMIC_LSTM };

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
