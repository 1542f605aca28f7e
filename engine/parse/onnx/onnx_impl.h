/** What the parts of the ONNX parser share: one node of the file while it is translated. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_IMPL_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_IMPL_H

#include "engine/build/builder.h"
#include "engine/parse/onnx/onnx_reader.h"

struct ifd_onnx_call {
    struct ifd_builder *b;
    const struct ifd_onnx_node *node;
    struct ifd_bytes file;
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

/** A tensor of the file as a constant: f16, bf16 and f64 become f32. */
uint32_t ifd_onnx_constant(struct ifd_builder *b, const struct ifd_onnx_tensor *tensor,
                           struct ifd_bytes file);
/** The type that values of an element type have here; false if there is none. */
bool ifd_onnx_dtype(int64_t type, enum ifd_dtype *ret);

/* ---- families of operators: functions for rows ---- */

void ifd_onnx_unary(struct ifd_onnx_call *call, int op);
void ifd_onnx_binary(struct ifd_onnx_call *call, int op);
void ifd_onnx_compare(struct ifd_onnx_call *call, int op);
void ifd_onnx_fold_inputs(struct ifd_onnx_call *call, int op); /* max, min, sum of any number */
void ifd_onnx_function(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_function */
void ifd_onnx_reduce(struct ifd_onnx_call *call, int which);   /* enum ifd_onnx_reduction */
void ifd_onnx_arg(struct ifd_onnx_call *call, int op);
void ifd_onnx_soft(struct ifd_onnx_call *call, int op);
void ifd_onnx_move(struct ifd_onnx_call *call, int which);      /* enum ifd_onnx_movement */
void ifd_onnx_layer(struct ifd_onnx_call *call, int which);     /* enum ifd_onnx_layer */
void ifd_onnx_quantized(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_quantized */
void ifd_onnx_recurrent(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_recurrent */

enum ifd_onnx_function {
    IFD_ONNX_CLIP,
    IFD_ONNX_ELU,
    IFD_ONNX_SELU,
    IFD_ONNX_CELU,
    IFD_ONNX_LEAKY_RELU,
    IFD_ONNX_THRESHOLDED_RELU,
    IFD_ONNX_HARD_SIGMOID,
    IFD_ONNX_SOFTPLUS,
    IFD_ONNX_SOFTSIGN,
    IFD_ONNX_MISH,
    IFD_ONNX_GELU,
    IFD_ONNX_FAST_GELU,
    IFD_ONNX_QUICK_GELU,
    IFD_ONNX_RECIPROCAL,
    IFD_ONNX_IS_NAN,
    IFD_ONNX_TAN,
    IFD_ONNX_POW,
    IFD_ONNX_MOD,
    IFD_ONNX_XOR,
    IFD_ONNX_MEAN,
    IFD_ONNX_WHERE,
    IFD_ONNX_CAST,
    IFD_ONNX_IDENTITY,
    IFD_ONNX_CUMSUM
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
    IFD_ONNX_GATHER,
    IFD_ONNX_GATHER_ND,
    IFD_ONNX_EXPAND,
    IFD_ONNX_TILE,
    IFD_ONNX_PAD,
    IFD_ONNX_DEPTH_TO_SPACE,
    IFD_ONNX_SPACE_TO_DEPTH,
    IFD_ONNX_RANGE,
    IFD_ONNX_TRILU,
    IFD_ONNX_ONE_HOT,
    IFD_ONNX_TOP_K
};

enum ifd_onnx_layer {
    IFD_ONNX_CONV,
    IFD_ONNX_CONV_TRANSPOSE,
    IFD_ONNX_MAX_POOL,
    IFD_ONNX_AVERAGE_POOL,
    IFD_ONNX_GLOBAL_AVERAGE_POOL,
    IFD_ONNX_GLOBAL_MAX_POOL,
    IFD_ONNX_GEMM,
    IFD_ONNX_MATMUL,
    IFD_ONNX_BATCH_NORMALIZATION,
    IFD_ONNX_INSTANCE_NORMALIZATION,
    IFD_ONNX_LAYER_NORMALIZATION,
    IFD_ONNX_RESIZE,
    IFD_ONNX_UPSAMPLE
};

enum ifd_onnx_quantized {
    IFD_ONNX_QUANTIZE,
    IFD_ONNX_DEQUANTIZE,
    IFD_ONNX_DYNAMIC_QUANTIZE,
    IFD_ONNX_CONV_INTEGER,
    IFD_ONNX_MATMUL_INTEGER,
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
    IFD_ONNX_Q_LEAKY_RELU
};

enum ifd_onnx_recurrent { IFD_ONNX_LSTM, IFD_ONNX_GRU, IFD_ONNX_RNN };

/* ---- shared by layers and their quantized forms (layers.c) ---- */

/** Convolution of x by filter as the node's attributes say; bias may be IFD_NONE. All f32. */
uint32_t ifd_onnx_convolve(struct ifd_onnx_call *call, uint32_t x, uint32_t filter, uint32_t bias);
uint32_t ifd_onnx_average(struct ifd_onnx_call *call, uint32_t x);
uint32_t ifd_onnx_global(struct ifd_onnx_call *call, enum ifd_op op, uint32_t x);

#endif
