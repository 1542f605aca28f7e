/** The shape rule of lstm. The kernel is in lstm.c. Thread: any. */
#ifndef INFERD_ENGINE_OPS_LSTM_RULE_H
#define INFERD_ENGINE_OPS_LSTM_RULE_H

#include "engine/ops/infer_util.h"

struct ifd_lstm_sizes {
    int64_t batch, steps, input, cells, width; /* width: of the state */
};

/** Of a layer with these inputs: x [batch, steps, input], or time first, and weights of the state
 *  [cells, width]. */
struct ifd_lstm_sizes ifd_lstm_sizes_of(const struct ifd_lstm_attrs *attrs,
                                        const struct ifd_shape *x,
                                        const struct ifd_shape *recurrent);

enum ifd_code ifd_lstm_infer(const struct ifd_infer *in, struct ifd_desc *output,
                             struct ifd_err *err);
/** Room that the kernel needs: cell and gates in 16 bits, results of the cells in 8. */
enum ifd_code ifd_lstm_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                               size_t *ret_bytes, struct ifd_err *err);

#endif
