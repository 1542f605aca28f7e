/** What the rows of ops.c name: functions that translate a node, and their arguments. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_ROWS_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_ROWS_H

#include <stdint.h>

struct ifd_onnx_call;

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

enum ifd_onnx_pool {
    IFD_ONNX_AVERAGE_POOL,
    IFD_ONNX_GLOBAL_AVERAGE_POOL,
    IFD_ONNX_GLOBAL_LP_POOL,
    IFD_ONNX_GLOBAL_MAX_POOL,
    IFD_ONNX_LP_POOL,
    IFD_ONNX_MAX_POOL,
    IFD_ONNX_NHWC_MAX_POOL
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

enum ifd_onnx_gates {
    IFD_ONNX_BRANCHWISE_RMS_NORM,
    IFD_ONNX_ENGRAM_GATE,
    IFD_ONNX_GATED_ADD,
    IFD_ONNX_GATED_RMS_NORM,
    IFD_ONNX_GROUP_ROUTER,
    IFD_ONNX_LINEAR_ATTENTION_GATE,
    IFD_ONNX_NGRAM_REPEAT_BLOCK,
    IFD_ONNX_POST_MIX,
    IFD_ONNX_PRE_MIX,
    IFD_ONNX_SCALED_SILU
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

enum ifd_onnx_layer {
    IFD_ONNX_CONV,
    IFD_ONNX_CONV_TRANSPOSE,
    IFD_ONNX_CONV_TRANSPOSE_WITH_PADS,
    IFD_ONNX_GEMM,
    IFD_ONNX_MATMUL
};

enum ifd_onnx_recurrent { IFD_ONNX_LSTM, IFD_ONNX_GRU, IFD_ONNX_RNN, IFD_ONNX_DYNAMIC_LSTM };

/* ---- functions ---- */

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

/* training.c */
enum ifd_onnx_training { IFD_ONNX_ADAGRAD, IFD_ONNX_ADAM, IFD_ONNX_MOMENTUM };
void ifd_onnx_train(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_training */

void ifd_onnx_attend(struct ifd_onnx_call *call, int unused); /* attend.c */

/* newest.c */
void ifd_onnx_causal_conv(struct ifd_onnx_call *call, int unused);
void ifd_onnx_cumprod(struct ifd_onnx_call *call, int unused);
void ifd_onnx_flex_attention(struct ifd_onnx_call *call, int unused);
void ifd_onnx_gated_delta_net(struct ifd_onnx_call *call, int unused);
void ifd_onnx_linear_attention(struct ifd_onnx_call *call, int unused);
void ifd_onnx_swiglu(struct ifd_onnx_call *call, int unused);
void ifd_onnx_tensor_scatter(struct ifd_onnx_call *call, int unused);

/* blocks.c */
void ifd_onnx_gather_blocks(struct ifd_onnx_call *call, int unused);
void ifd_onnx_matmul_blocks(struct ifd_onnx_call *call, int unused);
void ifd_onnx_matmul_bnb4(struct ifd_onnx_call *call, int unused);

void ifd_onnx_experts(struct ifd_onnx_call *call, int is_quantized);         /* experts.c */
void ifd_onnx_deform_conv(struct ifd_onnx_call *call, int unused);           /* deform.c */
void ifd_onnx_group_query_attention(struct ifd_onnx_call *call, int unused); /* group_query.c */

/* fold.c */
void ifd_onnx_col2im(struct ifd_onnx_call *call, int unused);
void ifd_onnx_max_unpool(struct ifd_onnx_call *call, int unused);

/* rotary.c */
void ifd_onnx_center_crop_pad(struct ifd_onnx_call *call, int unused);
enum ifd_onnx_rotary { IFD_ONNX_ROTARY, IFD_ONNX_MS_ROTARY, IFD_ONNX_MIXED_ROTARY };
void ifd_onnx_rotary_embedding(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_rotary */

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

/* losses.c */
void ifd_onnx_negative_log_likelihood(struct ifd_onnx_call *call, int unused);
void ifd_onnx_softmax_cross_entropy(struct ifd_onnx_call *call, int unused);

void ifd_onnx_function(struct ifd_onnx_call *call, int which); /* enum ifd_onnx_function */
void ifd_onnx_reduce(struct ifd_onnx_call *call, int which);   /* enum ifd_onnx_reduction */
void ifd_onnx_arg(struct ifd_onnx_call *call, int op);
void ifd_onnx_soft(struct ifd_onnx_call *call, int op);
void ifd_onnx_move(struct ifd_onnx_call *call, int which);      /* enum ifd_onnx_movement */
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
void ifd_onnx_gates(struct ifd_onnx_call *call, int which);     /* enum ifd_onnx_gates */
void ifd_onnx_former(struct ifd_onnx_call *call, int which);    /* enum ifd_onnx_former */
void ifd_onnx_ml(struct ifd_onnx_call *call, int which);        /* enum ifd_onnx_ml */

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

#endif
