/** Attributes of operators: one plain struct per family, filled by name through
 *  engine/ir/attrs.c.
 *
 *  The definition tables in engine/ops give every field's name, default and range. An int32_t
 *  with an enum named beside it holds a value of that enum. */
#ifndef INFERD_OP_ATTRS_H
#define INFERD_OP_ATTRS_H

#include "inferd/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Activation that an operator applies to its result before storing it. Quantized: a clamp of
 *  the stored value. */
enum ifd_activation {
    IFD_ACT_NONE,
    IFD_ACT_RELU,
    IFD_ACT_RELU_N1_TO_1,
    IFD_ACT_RELU6,
    IFD_ACT_TANH,
    IFD_ACT_SIGN_BIT
};

/** Padding of a window. SAME: output = ceil(input / stride), padding split evenly, an odd one at
 *  the end. VALID: none. EXPLICIT: the pad_* fields. */
enum ifd_padding { IFD_PAD_SAME, IFD_PAD_VALID, IFD_PAD_EXPLICIT };

/** rounds_even, of several operators: 8-bit results are not TFLite's but those of ONNX Runtime
 *  (MlasRequantizeOutput, MlasQLinearAdd, MlasQLinearMul): a float times a factor that is a float,
 *  rounded to the nearest step, halves to the even one. A layer of f32 data and 8-bit weights then
 *  quantizes its whole input at once, as ONNX's DynamicQuantizeLinear does, and takes the weights
 *  of ConvInteger and MatMulInteger: s8 or u8, with one zero point. */

/** add, sub, mul, div, minimum, maximum, squared_difference */
struct ifd_binary_attrs {
    int32_t activation;   /* enum ifd_activation */
    bool pot_scale_int16; /* s16 add and sub: scales are powers of two (TFLite's option) */
    bool rounds_even;     /* add and mul of 8 bits */
};

/** quantize */
struct ifd_quantize_attrs {
    bool rounds_even; /* from f32 */
};

/** clamp: min(max(x, min), max) */
struct ifd_clamp_attrs {
    float min, max;
};

/** leaky_relu: x < 0 ? alpha * x : x */
struct ifd_leaky_relu_attrs {
    float alpha;
};

/** A window over height and width, of convolutions and pools. Strides and dilations ≥ 1. Shape
 *  rules, reference kernels and backends all resolve SAME and VALID with ifd_window_resolve(). */
struct ifd_window {
    int32_t padding; /* enum ifd_padding */
    int32_t stride_h, stride_w;
    int32_t dilation_h, dilation_w;
    int32_t pad_top, pad_bottom, pad_left, pad_right; /* used with IFD_PAD_EXPLICIT only */
};

/** A window resolved against one input size. */
struct ifd_window_size {
    int64_t out_h, out_w;
    /** pad_bottom and pad_right: as far as the last window reaches. */
    int64_t pad_top, pad_bottom, pad_left, pad_right;
};

/** Output size and padding of a filter_h × filter_w window over in_h × in_w (TFLite's
 *  ComputeOutSize and ComputePaddingHeightWidth). False if the output is empty or a number
 *  overflows. In engine/tensor/window.c. */
bool ifd_window_resolve(const struct ifd_window *window, int64_t filter_h, int64_t filter_w,
                        int64_t in_h, int64_t in_w, struct ifd_window_size *ret) IFD_NODISCARD;

/** conv2d: input [n,h,w,ic], filter [oc,kh,kw,ic/groups], optional bias [oc] → [n,oh,ow,oc];
 *  groups = ic / filter's ic.
 *  depthwise_conv2d: filter [1,kh,kw,oc], oc = ic * multiplier; output channel c reads input
 *  channel c / multiplier. */
struct ifd_conv2d_attrs {
    struct ifd_window window;
    int32_t activation; /* enum ifd_activation */
    bool rounds_even;   /* of 8 bits: the filter is s8 or u8, whatever the input is */
};

/** transpose_conv2d: inputs output shape (s32 [4]; if it is not constant, the file's shape of
 *  the output counts), filter [oc,kh,kw,ic], input [n,h,w,ic], optional bias. */
struct ifd_transpose_conv2d_attrs {
    struct ifd_window window;
    int32_t activation;
};

/** fully_connected: input [..., k], weights [n,k], optional bias [n] → [rows,n], or [...,n] with
 *  keep_dims. */
struct ifd_fully_connected_attrs {
    int32_t activation;
    bool keep_dims;
    bool asymmetric_inputs; /* f32 by s8: rows are quantized with a zero point */
    bool rounds_even;       /* as of conv2d */
};

/** average_pool2d, max_pool2d: input [n,h,w,c]. The average's divisor excludes padding. */
struct ifd_pool2d_attrs {
    struct ifd_window window; /* dilations are 1 */
    int32_t filter_h, filter_w;
    int32_t activation;
};

/** softmax along the last dimension: exp(beta * (x - max)) / sum */
struct ifd_softmax_attrs {
    float beta;
};

/** reduce_*: axes (negative counts from the end); keep_dims leaves dimensions of 1. */
struct ifd_reduce_attrs {
    struct ifd_ints axes;
    bool keep_dims;
};

/** Parameters that a graph computes from shapes become constants only by folding. Operators take
 *  them as optional inputs (constant s32 or s64, listed in the definition's shape_inputs), which
 *  override the attributes:
 *
 *      reshape         1 = shape
 *      pad             1 = [rank,2] before and after
 *      slice           1 = begin, 2 = size
 *      strided_slice   1 = begin, 2 = end, 3 = strides
 *      space_to_batch  1 = block, 2 = [n,2] before and after; batch_to_space likewise
 *      tile            1 = repeats */

/** reshape: target shape, at most one -1 (the remaining elements). squeeze and expand_dims are
 *  reshapes, too. */
struct ifd_reshape_attrs {
    struct ifd_ints shape;
};

/** transpose: output dimension i is input dimension perm[i]. */
struct ifd_transpose_attrs {
    struct ifd_ints perm;
};

/** pad: before[i] and after[i] elements of value per dimension. Quantized tensors are padded
 *  with their zero point, or with value, a stored (quantized) number, if has_value. */
struct ifd_pad_attrs {
    struct ifd_ints before, after;
    bool has_value;
    float value;
};

/** tile: how often the tensor is repeated along each dimension. */
struct ifd_tile_attrs {
    struct ifd_ints repeats;
};

/** slice: begin and size per dimension; size -1 = up to the end. */
struct ifd_slice_attrs {
    struct ifd_ints begin, size;
};

/** strided_slice, as NumPy and TensorFlow have it; masks are bit sets over dimensions. */
struct ifd_strided_slice_attrs {
    struct ifd_ints begin, end, strides;
    int32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
    bool offset; /* end counts from begin */
};

/** concat, pack, unpack: one axis; activation of concat only. */
struct ifd_axis_attrs {
    int32_t axis;
    int32_t activation;
};

/** split: output i takes sizes.value[i] along axis (-1 at most once: the rest); equal sizes if
 *  sizes.count is 0. */
struct ifd_split_attrs {
    int32_t axis;
    struct ifd_ints sizes;
};

/** gather: input 0 data, input 1 indices (s32 or s64); both share batch_dims leading dimensions. */
struct ifd_gather_attrs {
    int32_t axis;
    int32_t batch_dims;
};

/** space_to_batch: block and paddings (crops for batch_to_space) per spatial dimension. */
struct ifd_space_batch_attrs {
    struct ifd_ints block, before, after;
};

/** resize_bilinear, resize_nearest: input [n,h,w,c] → [n,height,width,c]. */
struct ifd_resize_attrs {
    int32_t height, width;
    bool align_corners, half_pixel_centers;
};

/** rfft2d: real transform over the last two dimensions, padded or cut to fft_h × fft_w (powers
 *  of two). */
struct ifd_rfft2d_attrs {
    int32_t fft_h, fft_w;
};

/** TFLite_Detection_PostProcess: boxes [1,n,4], scores [1,n,classes(+1)], anchors [n,4] →
 *  boxes [1,k,4] (ymin xmin ymax xmax), classes [1,k], scores [1,k], count [1]. */
struct ifd_detection_attrs {
    int32_t max_detections, max_classes_per_detection, detections_per_class, num_classes;
    bool use_regular_nms;
    float nms_score_threshold, nms_iou_threshold;
    float y_scale, x_scale, h_scale, w_scale;
};

/** gelu: x times the normal distribution's share below x; approximate: by tanh. */
struct ifd_gelu_attrs {
    bool approximate;
};

/** arg_max, arg_min: index along an axis. Its dimension is removed, or becomes 1 with keep_dims. */
struct ifd_arg_attrs {
    int32_t axis;
    bool keep_dims;
};

/** top_k: the k largest elements of the last dimension, largest first, and their indices. */
struct ifd_top_k_attrs {
    int32_t k; /* input 1 overrides it */
};

/** scatter_nd: inputs indices, updates; shape of the output, which input 2 overrides. */
struct ifd_scatter_nd_attrs {
    struct ifd_ints shape;
};

/** scatter_rows: inputs data, indices [n], rows [n,...]; what happens to the rows of the data. */
enum ifd_scatter_mode {
    IFD_SCATTER_REPLACE,
    IFD_SCATTER_ADD,
    IFD_SCATTER_MUL,
    IFD_SCATTER_MIN,
    IFD_SCATTER_MAX
};

struct ifd_scatter_rows_attrs {
    int32_t mode; /* enum ifd_scatter_mode */
};

/** one_hot: inputs indices, value at the index, value elsewhere; the output's axis has depth
 *  elements. */
struct ifd_one_hot_attrs {
    int32_t axis, depth;
};

/** reverse: the dimensions whose order is reversed. */
struct ifd_reverse_attrs {
    struct ifd_ints axes;
};

/** reverse_sequence: for each index along batch_dim, input 1 holds the length of the prefix that
 *  is reversed along seq_dim. */
struct ifd_reverse_sequence_attrs {
    int32_t seq_dim, batch_dim;
};

/** select: input 0 is the condition (bool). leading: a condition of rank 1 lies along dimension
 *  0 of the others. */
struct ifd_select_attrs {
    bool leading;
};

/** cumsum: exclusive excludes the element itself; reverse begins at the end. */
struct ifd_cumsum_attrs {
    int32_t axis;
    bool exclusive, reverse;
};

/** space_to_depth, depth_to_space: side of a block in pixels. */
struct ifd_space_depth_attrs {
    int32_t block;
};

/** mirror_pad: amounts before and after each dimension; symmetric repeats the outermost element. */
struct ifd_mirror_pad_attrs {
    struct ifd_ints before, after;
    bool symmetric;
};

/** local_response_normalization: x * (bias + alpha * sum of squares of channels c-radius …
 *  c+radius-1) ^ -beta */
struct ifd_local_response_attrs {
    int32_t radius;
    float bias, alpha, beta;
};

/** broadcast_to: shape of the output, which input 1 overrides. */
struct ifd_broadcast_to_attrs {
    struct ifd_ints shape;
};

/** batch_matmul: [..., m, k] times [..., k, n]; adj_x, adj_y: the operand is transposed. */
struct ifd_batch_matmul_attrs {
    bool adj_x, adj_y;
};

/** conv3d: input [n,d,h,w,c], filter [kd,kh,kw,c,oc], optional bias [oc] → [n,od,oh,ow,oc]. */
struct ifd_conv3d_attrs {
    struct ifd_window window; /* over height and width; its padding also applies to depth */
    int32_t stride_d, dilation_d;
    int32_t activation;
};

struct ifd_graph; /* engine/ir/graph.h: the engine's own */

/** cond: input 0 chooses a graph, branch[0] if it is true; the other inputs are the graph's, its
 *  outputs the node's. The executor runs it. */
struct ifd_cond_attrs {
    const struct ifd_graph *branch[2];
};

/** loop: while condition is true of the inputs, body replaces the first of them by its outputs;
 *  the node's outputs are these in the end. The other inputs stay. The executor runs it. */
struct ifd_loop_attrs {
    const struct ifd_graph *condition, *body;
};

/** lstm: inputs sequence [n,t,i] (time_major: [t,n,i]), weights of the gates input, forget, cell,
 *  output [c,i], weights of the state [c,w], biases [c]; the input gate may be absent: it is 1 -
 *  forget then. Optional:
 *  state (s8) [n,w] and cell (s16) [n,c] before the first step; weights of the cell in the gates
 *  input, forget, output and weights of the four gates' normalizations, s16 [c]; weights [w,c] and
 *  bias [w] that project the cells' results to the state, else w is c → [n,t,w]; state and cell
 *  behind the last step if there are three outputs. s8, scale of the cell 2^cell_exponent, of a
 *  gate's sums gate_scale; hidden: quantization of the cells' results, scale -1: that of the
 *  output. Clips of 0: none. */
struct ifd_lstm_attrs {
    bool time_major;
    float cell_clip;
    int32_t cell_exponent;
    float gate_scale[4];
    float hidden_scale;
    int32_t hidden_zero;
    float proj_clip;
};

/** Its gates, and where its inputs are. The gate of the cell has no peephole. */
enum ifd_lstm_gate {
    IFD_LSTM_INPUT_GATE,
    IFD_LSTM_FORGET_GATE,
    IFD_LSTM_CELL_GATE,
    IFD_LSTM_OUTPUT_GATE,
    IFD_LSTM_GATES
};
#define IFD_LSTM_WEIGHTS(gate)   (1u + (gate))
#define IFD_LSTM_RECURRENT(gate) (5u + (gate))
#define IFD_LSTM_BIAS(gate)      (9u + (gate))
#define IFD_LSTM_STATE           13u
#define IFD_LSTM_CELL            14u
#define IFD_LSTM_PEEPHOLE(gate)  (15u + ((gate) == IFD_LSTM_OUTPUT_GATE ? 2u : (gate)))
#define IFD_LSTM_NORM(gate)      (18u + (gate))
#define IFD_LSTM_PROJECTION      22u
#define IFD_LSTM_PROJECTION_BIAS 23u
#define IFD_LSTM_INPUTS          24

/** basic_lstm has no attributes: one step of an LSTM layer. Inputs: x [n,i], state [n,c] (both u8,
 *  1/128 around 128), weights u8 [4c,i+c] (rows of the gates input, cell, forget, output), bias s32
 *  [4c], cell s16 [n,c] of scale 2^-11 → state and cell behind x; x beside the state u8 [n,i+c],
 *  sums of the gates s16 [n,4c] of scale 2^-12. */

/** grid_sample: x [n,h,w,c], grid [n,oh,ow,2] of places (x, y) between -1 and 1 → [n,oh,ow,c]. -1
 *  and 1 are the centers of the outermost pixels (align_corners), else their outer edges. */
enum ifd_sample_mode { IFD_SAMPLE_LINEAR, IFD_SAMPLE_NEAREST, IFD_SAMPLE_CUBIC };
/** What lies outside: 0, the nearest pixel, or the image mirrored at its border. */
enum ifd_sample_padding { IFD_SAMPLE_ZEROS, IFD_SAMPLE_BORDER, IFD_SAMPLE_REFLECTION };

struct ifd_grid_sample_attrs {
    int32_t mode;    /* enum ifd_sample_mode */
    int32_t padding; /* enum ifd_sample_padding */
    bool align_corners;
};

/** roi_align: x [n,h,w,c], regions [r,4] (x0, y0, x1, y1, times spatial_scale), s64 [r]: the image
 *  of each → [r,height,width,c]: the mean or maximum of sampling × sampling bilinear samples of
 *  each bin (0: as many as it has pixels, at most 2 more than the image). half_pixel: pixels are
 *  centered at 0.5. is_whole: corners are rounded to pixels, which belong to the region, and the
 *  result is the maximum of a bin's pixels, 0 where it has none; nothing is sampled. */
struct ifd_roi_align_attrs {
    int32_t height, width, sampling;
    float spatial_scale;
    bool is_max, half_pixel, is_whole;
};

/* Results whose size the data decides lie dense at the front of a tensor that has room for the
 * largest; the rest of it is 0. The last output holds the size. */

/** non_zero: input of n elements → coordinates of the elements that are not 0, in order, as s64
 *  [rank,count] in [rank,n], by_element: [count,rank] in [n,rank]; count [1]. A scalar has rank
 *  1. */
struct ifd_non_zero_attrs {
    bool by_element;
};

/** unique: the different slices along an axis, without one the different elements; in ascending
 *  order, else in that of their first ones. NaN is the largest number. Outputs: slices; s64 [n]:
 *  the first index of each; for every index the number of its slice; how often each occurs; count
 *  [1]. All but the third are of count in n. */
struct ifd_unique_attrs {
    int32_t axis;
    bool has_axis, is_sorted;
};

/** soft_suppress has no attributes. Inputs: boxes [n,4] (two corners y,x in any order), scores
 *  [n], s32: most boxes m, thresholds of overlap and score, sigma (absent: 0) → indices of boxes
 *  s32 [m], best first; with three outputs their scores [m]; how many they are, s32. An overlap of
 *  iou lowers a score by exp(-iou^2 / (2 sigma)), from the threshold on to nothing. */

/** non_max_suppression: boxes [b,n,4] (two corners y,x in any order; is_centered: x, y of the
 *  center, width, height), scores [b,c,n] → s64 [count,3] in [b * c * min(n, max_boxes),3]: batch,
 *  class and box, for each class best first, without those that overlap a better one by more than
 *  iou_threshold; count [1]. has_score: only scores above score_threshold. */
struct ifd_non_max_suppression_attrs {
    int32_t max_boxes; /* of one class */
    float iou_threshold, score_threshold;
    bool has_score, is_centered;
};

/** svdf: x [n,i], weights of features [f,i] (s8), of time [f,m] (s16), bias [f/rank] (s32), state
 *  [n,f*m] (s16) → [n,f/rank] (s8), the state behind x. rank: filters of a unit. */
struct ifd_svdf_attrs {
    int32_t rank;
};

/* Texts are UTF-8. A pattern is a regular expression (engine/base/regex.h), a constant. */

/** text_case: every letter of a text in one case. */
struct ifd_text_case_attrs {
    bool is_upper;
};

/** text_join has no attributes: a text of input 0 and one of input 1, one behind the other; they
 *  broadcast. text_cast has none either: numbers (f32, s64) as texts, texts as numbers. text_match
 *  has none: does pattern [1] match each text as a whole? */

/** What parts a text: TOKENS: what pattern [1] matches; SEPARATORS: patterns [n], one after the
 *  other; CHARACTERS: nothing, each is a part; WORDS: blanks; DELIMITER: the text [1]. */
enum ifd_text_parts {
    IFD_TEXT_TOKENS,
    IFD_TEXT_SEPARATORS,
    IFD_TEXT_CHARACTERS,
    IFD_TEXT_WORDS,
    IFD_TEXT_DELIMITER
};

/** text_count: texts, patterns (absent where parts needs none) → how many parts each has, s64.
 *  text_split: texts [...], patterns, a text [1] → the parts [..., room]; behind the last one the
 *  text [1]. marks: U+0002 in front, U+0003 at the end are two more. */
struct ifd_text_split_attrs {
    int32_t parts;  /* enum ifd_text_parts */
    int32_t least;  /* characters of a part; shorter ones go */
    int32_t splits; /* WORDS, DELIMITER: at most; the rest is the last part. -1: any */
    int32_t room;   /* of text_split */
    bool marks;
};

/** ngrams: elements [rows, size] (texts or s64), grams of one length after the other [n] (their
 *  elements, in ascending order within a length), where each length begins s64 [lengths], column
 *  of each gram s64, its weight f32 → [rows, width] f32: how often each gram occurs, times its
 *  weight. Elements of a gram are up to skips + 1 apart, all at the same distance. */
struct ifd_ngrams_attrs {
    int32_t width, min_length, max_length, skips;
    bool is_flag; /* 1 for any number of times */
};

/** What of the leaves' weights is the result. */
enum ifd_trees_of { IFD_TREES_SUM, IFD_TREES_LEAST, IFD_TREES_MOST };

/** In the column of a node of trees: NaN is not more than its float. */
#define IFD_TREES_MISSING 0x40000000

/** trees: x [rows, columns] f32, nodes [n,4] s32, the node where each tree begins s32 [trees],
 *  weights [leaves, results] f32 → [rows, results] f32. A node is a column, the bits of a float,
 *  and the nodes that follow, of higher numbers: where the row has more than this float there (or
 *  NaN), and where it has not. One that leads to itself twice is a leaf: its number in place of the
 *  float. */
struct ifd_trees_attrs {
    int32_t of;    /* enum ifd_trees_of */
    int32_t depth; /* steps to a leaf, at most */
};

/** hash: MurmurHash3 of 32 bits (x86) of each text's bytes, or of each number of 32 bits. inverse
 *  has no attributes: of square matrices; that of a singular one is not finite. */
struct ifd_hash_attrs {
    int32_t seed; /* its bits */
};

#ifdef __cplusplus
}
#endif
#endif
