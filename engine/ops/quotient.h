/** Quotients of stored numbers in fixed point, as LiteRT's reference kernel of DIV has them.
 *  Thread: any. */
#ifndef INFERD_ENGINE_OPS_QUOTIENT_H
#define INFERD_ENGINE_OPS_QUOTIENT_H

#include "engine/ops/ref_util.h"

/** a / b * factor, rounded; |a| and |b| < 2^16. a / 0 is beyond every type, 0 / 0 is 0: LiteRT
 *  refuses to run then, but a table of a function has an entry for it. */
int32_t ifd_quotient(int32_t a, int32_t b, struct ifd_multiplier factor);

#endif
