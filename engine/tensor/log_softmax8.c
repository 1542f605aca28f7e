/* Tables and logarithms of log_softmax8.h. */
#include "engine/tensor/log_softmax8.h"

#include <math.h>

#define MOST       (1024 << 16) /* steps: all that is kept lies above */
#define LOG_DIGITS 24           /* behind the point, of logarithms of base 2 */

void ifd_log_softmax8_init(struct ifd_log_softmax8 *table, double scale, double step)
{
    for (int i = 0; i < 256; i++) {
        const double distance = i * scale;
        table->exponential[i] = (uint32_t)nearbyint(exp(-distance) * 0x1p30);
        table->steps[i] = (int32_t)nearbyint(fmin(distance / step * 0x1p16, MOST));
    }
    int exponent = 0;
    const double factor = log(2) / step * 0x1p-8; /* digits: 24 become 16 */
    const double fraction = isfinite(factor) ? frexp(factor, &exponent) : 0.5;
    table->shift = isfinite(factor) ? 31 - exponent : 0;
    table->fraction = table->shift > 63 ? 0 : (int32_t)fmin(fraction * 0x1p31, INT32_MAX);
    table->shift = table->shift > 63 || table->shift < 0 ? 0 : table->shift;
}

int32_t ifd_log_softmax8_log(const struct ifd_log_softmax8 *table, uint64_t sum)
{
    int exponent = 30;
    while (sum >> exponent > 1) {
        exponent++;
    }
    uint64_t rest = sum << (63 - exponent) >> 32; /* 1 to 2, 31 digits behind the point */
    uint64_t log2 = (uint64_t)(exponent - 30) << LOG_DIGITS;
    for (int bit = LOG_DIGITS - 1; bit >= 0; bit--) { /* the square's is twice the logarithm */
        const uint64_t square = rest * rest, is_large = square >> 63;
        log2 |= is_large << bit;
        rest = square >> (31 + is_large);
    }
    const uint64_t steps = log2 * (uint64_t)table->fraction >> table->shift;
    return steps < MOST ? (int32_t)steps : MOST;
}
