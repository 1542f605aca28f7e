/** What the operators of texts share. Thread: any. */
#ifndef INFERD_ENGINE_OPS_TEXT_H
#define INFERD_ENGINE_OPS_TEXT_H

#include "engine/base/regex.h"
#include "engine/ops/infer_util.h"

/** Input i must be a list of min texts or more. */
IFD_NODISCARD enum ifd_code ifd_text_infer_list(const struct ifd_op_def *def,
                                                const struct ifd_infer *in, uint32_t i, int64_t min,
                                                struct ifd_err *err);
/** Errors: TOO_LARGE: the matches so far took too many steps. */
IFD_NODISCARD enum ifd_code ifd_text_check_work(const struct ifd_regex *regex, struct ifd_err *err);

/** By their bytes: negative, 0 or positive. */
int ifd_text_order(struct ifd_str a, struct ifd_str b);

#endif
