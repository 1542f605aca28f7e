/** What the shape rule of a contraction and its arithmetic agree on. Thread: any. */
#ifndef INFERD_ENGINE_OPS_CONTRACT_RULE_H
#define INFERD_ENGINE_OPS_CONTRACT_RULE_H

#include "engine/ops/contract.h"

/** The scale from a sum to the stored number of channel c. In u8 layers the product of the scales
 *  is a float, as in LiteRT; all of it is one in ONNX Runtime. */
double ifd_contract_real_scale(const struct ifd_desc *input, const struct ifd_desc *filter,
                               const struct ifd_desc *output, enum ifd_contract_rounding rounding,
                               int64_t c);

/** 64-bit sums; bias may be NULL. */
bool ifd_contract_has_wide_sums(const struct ifd_desc *input, const struct ifd_desc *filter,
                                const struct ifd_desc *bias);

/** f32 with an s8 filter. */
bool ifd_contract_is_dynamic(const struct ifd_desc *input, const struct ifd_desc *filter);

#endif
