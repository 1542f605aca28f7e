/* A triangle of weights around the centre of each target pixel. */
#include "server/media/taps.h"

#include <math.h>

#define FIXED_ONE 65536

static uint32_t clamp(double at, uint32_t low, uint32_t high)
{
    return at <= low ? low : at >= high ? high : (uint32_t)at;
}

/* The largest weight takes what rounding left over, so that the sum is exact. */
static void make_fixed(const float *weight, uint32_t count, uint16_t *fixed)
{
    uint32_t sum = 0, largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t part = (uint32_t)(weight[i] * FIXED_ONE);
        fixed[i] = (uint16_t)(part < FIXED_ONE ? part : FIXED_ONE - 1);
        sum += fixed[i];
        largest = weight[i] > weight[largest] ? i : largest;
    }
    const uint32_t whole = sum < FIXED_ONE ? fixed[largest] + (FIXED_ONE - sum) : fixed[largest];
    fixed[largest] = (uint16_t)(whole < FIXED_ONE ? whole : FIXED_ONE - 1);
}

static double weight_at(uint32_t pixel, double centre, double support)
{
    const double distance = fabs(pixel + 0.5 - centre) / support;
    return distance < 1 ? 1 - distance : 0;
}

/* Pixels at the ends of the triangle have no weight. */
static void make_tap(double centre, double support, uint32_t low, uint32_t high, float *weight,
                     struct ifd_tap *ret)
{
    uint32_t first = clamp(centre - support + 0.5, low, high - 1);
    uint32_t end = clamp(centre + support + 0.5, first + 1, high);
    double sum = 0;
    while (end - first > 1 && weight_at(first, centre, support) <= 0) {
        first++;
    }
    while (end - first > 1 && weight_at(end - 1, centre, support) <= 0) {
        end--;
    }
    for (uint32_t i = first; i < end; i++) {
        sum += weight_at(i, centre, support);
    }
    for (uint32_t i = first; i < end; i++) {
        weight[i - first] = sum > 0 ? (float)(weight_at(i, centre, support) / sum) : 1;
    }
    *ret = (struct ifd_tap){.first = first, .count = end - first, .weight = weight};
}

/* Repeats each weight for the channels of its pixel, in place. Returns the floats used. */
static size_t spread(float *weight, uint32_t channels, struct ifd_tap *tap)
{
    const size_t count = (size_t)tap->count * channels, all = (count + 7) / 8 * 8;
    for (size_t i = count; i < all; i++) {
        weight[i] = 0;
    }
    for (size_t i = count; i-- > 0;) {
        weight[i] = weight[i / channels];
    }
    tap->octets = (uint32_t)(all / 8);
    return all;
}

static void make_all(double begin, double ratio, uint32_t low, uint32_t high, uint32_t channels,
                     float *weight, uint16_t *fixed, struct ifd_taps *taps)
{
    const double support = ratio > 1 ? ratio : 1;
    for (uint32_t i = 0; i < taps->count; i++) {
        struct ifd_tap *tap = &taps->tap[i];
        make_tap(begin + (i + 0.5) * ratio, support, low, high, weight, tap);
        if (channels > 0) {
            weight += spread(weight, channels, tap);
        } else {
            make_fixed(weight, tap->count, fixed);
            tap->fixed = fixed;
            weight += tap->count;
            fixed += tap->count;
        }
    }
}

enum ifd_code ifd_taps_make(double begin, double length, uint32_t low, uint32_t high,
                            uint32_t count, uint32_t channels, const struct ifd_alloc *alloc,
                            struct ifd_taps *ret, struct ifd_err *err)
{
    const double ratio = length / count;
    const size_t most = 2 * (size_t)(ratio > 1 ? ratio + 1 : 1) + 2; /* pixels of a tap */
    size_t weights = 0, bytes = 0, tap_bytes = 0;
    struct ifd_taps taps = {.count = count};
    if (ifd_size_mul(most, channels > 0 ? channels : 1, &weights) &&
        ifd_size_mul(weights + 7, count, &weights) &&
        ifd_size_mul(weights, sizeof(float) + sizeof(uint16_t), &bytes) &&
        ifd_size_mul(count, sizeof(struct ifd_tap), &tap_bytes) &&
        ifd_size_add(bytes, tap_bytes, &taps.memory_bytes)) {
        taps.memory = ifd_acquire(alloc, taps.memory_bytes);
    }
    if (!taps.memory) {
        return ifd_fail(err, IFD_NOMEM, "no memory to resize a picture");
    }
    taps.tap = taps.memory;
    float *weight = (float *)(void *)(taps.tap + count);
    make_all(begin, ratio, low, high, channels, weight, (uint16_t *)(void *)(weight + weights),
             &taps);
    *ret = taps;
    return IFD_OK;
}

void ifd_taps_free(struct ifd_taps *taps, const struct ifd_alloc *alloc)
{
    ifd_release(alloc, taps->memory, taps->memory_bytes);
    *taps = (struct ifd_taps){0};
}
