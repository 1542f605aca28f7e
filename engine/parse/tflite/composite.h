/** Operators of the file that are several of ours. composite.c lists them and fetches operands;
 *  recurrent.c builds those with a state, mediapipe.c and landmarks.c MediaPipe's, stablehlo.c
 *  and stablehlo_index.c those of StableHLO, hashtable.c tables that resources hold, numbers.c
 *  those of types that ours lack, compose.c the others. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_COMPOSITE_H
#define INFERD_ENGINE_PARSE_TFLITE_COMPOSITE_H

#include "engine/build/builder.h"
#include "engine/ir/shape.h"
#include "engine/parse/tflite/tflite_build.h"

/** An operator that is being built. */
struct ifd_composite {
    struct ifd_tflite_build *build;
    struct ifd_builder *b;
    const struct ifd_tflite_operator *op;
    const struct ifd_tflite_options *options;
    const uint32_t *input; /* values; IFD_NONE if absent */
    uint32_t input_count;
    uint32_t *output; /* values, written by the function */
    uint32_t output_count;
};

/** Value of input i, IFD_NONE if the operator has none. */
static inline uint32_t ifd_composite_input(const struct ifd_composite *c, uint32_t i)
{
    return i < c->input_count ? c->input[i] : IFD_NONE;
}

/** Are the first count inputs there? Fails if not. */
bool ifd_composite_has_inputs(const struct ifd_composite *c, uint32_t count);
/** Description of output i in the file. */
struct ifd_desc ifd_composite_output(const struct ifd_composite *c, uint32_t i);
/** x as f32: numbers that are stored otherwise are dequantized. */
uint32_t ifd_composite_real(struct ifd_builder *b, uint32_t x);
/** x with the format's activation applied. */
uint32_t ifd_composite_activate(struct ifd_builder *b, uint32_t x, int32_t activation);
/** A tensor of this shape, all elements number. */
uint32_t ifd_composite_fill(struct ifd_builder *b, enum ifd_dtype dtype, double number,
                            const int64_t *dim, uint32_t rank);

/* ---- recurrent.c: the state of a layer is one of its inputs ---- */

void ifd_composite_lstm(struct ifd_composite *c);
void ifd_composite_sequence_lstm(struct ifd_composite *c);
void ifd_composite_bidirectional_lstm(struct ifd_composite *c);
void ifd_composite_rnn(struct ifd_composite *c);
void ifd_composite_sequence_rnn(struct ifd_composite *c);
void ifd_composite_bidirectional_rnn(struct ifd_composite *c);
void ifd_composite_svdf(struct ifd_composite *c);
/** What a state that is input i has become, in the shape that it has as an input. */
void ifd_composite_keep_state(const struct ifd_composite *c, uint32_t i, uint32_t value);

/* ---- recurrent_basic.c ---- */

void ifd_composite_basic_lstm(struct ifd_composite *c);

/* ---- compose.c ---- */

void ifd_composite_densify(struct ifd_composite *c);
void ifd_composite_add_n(struct ifd_composite *c);
void ifd_composite_l2_pool(struct ifd_composite *c);
void ifd_composite_fake_quant(struct ifd_composite *c);
void ifd_composite_bucketize(struct ifd_composite *c);
void ifd_composite_sparse_to_dense(struct ifd_composite *c);
void ifd_composite_unsorted_segment(struct ifd_composite *c);
void ifd_composite_hashtable_lookup(struct ifd_composite *c);
void ifd_composite_embedding_sparse(struct ifd_composite *c);
void ifd_composite_complex_part(struct ifd_composite *c);
void ifd_composite_broadcast_args(struct ifd_composite *c);
void ifd_composite_conv3d_transpose(struct ifd_composite *c);

/* ---- hybrid.c ---- */

/** Is the operator a product of f32 and s8 matrices? */
bool ifd_composite_is_hybrid(const struct ifd_tflite_build *b, const struct ifd_tflite_operator *op,
                             int32_t builtin);
void ifd_composite_hybrid_matmul(struct ifd_composite *c);

/* ---- hashtable.c ---- */

void ifd_composite_hashtable(struct ifd_composite *c);
void ifd_composite_hashtable_import(struct ifd_composite *c);
void ifd_composite_hashtable_find(struct ifd_composite *c);
void ifd_composite_hashtable_size(struct ifd_composite *c);

/* ---- stablehlo.c ---- */

void ifd_composite_hlo_binary(struct ifd_composite *c);
void ifd_composite_hlo_clamp(struct ifd_composite *c);
void ifd_composite_hlo_and(struct ifd_composite *c);
void ifd_composite_hlo_shift_left(struct ifd_composite *c);
void ifd_composite_pad(struct ifd_composite *c);
void ifd_composite_hlo_pad(struct ifd_composite *c);
void ifd_composite_hlo_reduce_window(struct ifd_composite *c);
void ifd_composite_dilate(struct ifd_composite *c);
void ifd_composite_reduce_window(struct ifd_composite *c);

/* ---- stablehlo_index.c ---- */

void ifd_composite_hlo_gather(struct ifd_composite *c);
void ifd_composite_hlo_scatter(struct ifd_composite *c);

/* ---- numbers.c: types that our operators lack ---- */

bool ifd_composite_has_numbers(const struct ifd_tflite_build *b,
                               const struct ifd_tflite_operator *op);
void ifd_composite_numbers(struct ifd_composite *c);

/* ---- cut.c: the data decides their sizes ---- */

void ifd_composite_where(struct ifd_composite *c);
void ifd_composite_unique(struct ifd_composite *c);

/* ---- mediapipe.c ---- */

void ifd_composite_transposed(struct ifd_composite *c);
void ifd_composite_max_pool_places(struct ifd_composite *c);
void ifd_composite_max_unpool(struct ifd_composite *c);
void ifd_composite_transform(struct ifd_composite *c);
void ifd_composite_resampler(struct ifd_composite *c);

/* ---- landmarks.c ---- */

void ifd_composite_landmarks_matrix(struct ifd_composite *c);
void ifd_composite_transform_landmarks(struct ifd_composite *c);

#endif
