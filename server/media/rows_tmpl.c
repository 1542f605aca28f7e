/* The loops of rows.h, for the compiler to turn into vectors. Included by rows.c and rows_*.c. */
#include "server/media/rows.h"

typedef float quad __attribute__((vector_size(16)));
typedef float octet __attribute__((vector_size(32), aligned(4)));

static void mix(const uint8_t *row, size_t stride, const struct ifd_tap *tap, size_t count,
                float *restrict ret)
{
    const float first = tap->weight[0];
    for (size_t i = 0; i < count; i++) {
        ret[i] = first * (float)row[i];
    }
    for (uint32_t k = 1; k < tap->count; k++) {
        const uint8_t *next = row + k * stride;
        const float weight = tap->weight[k];
        for (size_t i = 0; i < count; i++) {
            ret[i] += weight * (float)next[i];
        }
    }
}

/* In units of 1 / 256. Each product is cut by half a unit in the mean, which sum begins with. */
static void mix_fixed(const uint8_t *row, size_t stride, const struct ifd_tap *tap, size_t count,
                      uint16_t *restrict sum, float *restrict ret)
{
    const uint16_t half = (uint16_t)(tap->count < 510 ? tap->count / 2 : 255);
    const uint16_t first = tap->fixed[0];
    for (size_t i = 0; i < count; i++) {
        sum[i] = (uint16_t)(half + ((uint32_t)(row[i] << 8) * first >> 16));
    }
    uint32_t k = 1;
    for (; k + 1 < tap->count; k += 2) { /* two rows for each time that sum is read and written */
        const uint8_t *restrict next = row + k * stride, *restrict last = next + stride;
        const uint16_t weight = tap->fixed[k], other = tap->fixed[k + 1];
        for (size_t i = 0; i < count; i++) {
            sum[i] = (uint16_t)(sum[i] + ((uint32_t)(next[i] << 8) * weight >> 16) +
                                ((uint32_t)(last[i] << 8) * other >> 16));
        }
    }
    for (; k < tap->count; k++) {
        const uint8_t *next = row + k * stride;
        const uint16_t weight = tap->fixed[k];
        for (size_t i = 0; i < count; i++) {
            sum[i] = (uint16_t)(sum[i] + ((uint32_t)(next[i] << 8) * weight >> 16));
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = (float)sum[i] * (1.0f / 256);
    }
}

/* Sums of each of four floats in turn. */
static inline quad sum_of(const float *pixel, const struct ifd_tap *tap)
{
    const octet *from = (const octet *)(const void *)pixel;
    const octet *weight = (const octet *)(const void *)tap->weight;
    octet sum = from[0] * weight[0];
    for (uint32_t k = 1; k < tap->octets; k++) {
        sum += from[k] * weight[k];
    }
    return __builtin_shufflevector(sum, sum, 0, 1, 2, 3) +
           __builtin_shufflevector(sum, sum, 4, 5, 6, 7);
}

static void dot(const float *pixel, uint32_t low, const struct ifd_tap *tap, size_t count,
                uint32_t channels, float *const *ret)
{
    float *restrict first = ret[0], *restrict second = ret[1], *restrict third = ret[2];
    if (channels == 4) {
        for (size_t x = 0; x < count; x++) {
            const quad sum = sum_of(pixel + (size_t)(tap[x].first - low) * 4, &tap[x]);
            first[x] = sum[0];
            second[x] = sum[1];
            third[x] = sum[2];
        }
    } else if (channels == 2) {
        for (size_t x = 0; x < count; x++) {
            const quad sum = sum_of(pixel + (size_t)(tap[x].first - low) * 2, &tap[x]);
            first[x] = sum[0] + sum[2];
            second[x] = sum[1] + sum[3];
        }
    } else {
        for (size_t x = 0; x < count; x++) {
            const quad sum = sum_of(pixel + (tap[x].first - low), &tap[x]);
            first[x] = sum[0] + sum[1] + (sum[2] + sum[3]);
        }
    }
}

static inline float cut(float value)
{
    const float low = value < 0 ? 0 : value;
    return low > 255 ? 255 : low;
}

static void yuv(float *const *row, size_t count)
{
    float *restrict y = row[0], *restrict u = row[1], *restrict v = row[2];
    for (size_t i = 0; i < count; i++) {
        const float light = 1.164383f * (y[i] - 16), blue = u[i] - 128, red = v[i] - 128;
        y[i] = cut(light + 1.596027f * red);
        u[i] = cut(light - 0.391762f * blue - 0.812968f * red);
        v[i] = cut(light + 2.017232f * blue);
    }
}

static void grey(float *const *row, size_t count)
{
    float *restrict red = row[0];
    const float *restrict green = row[1], *restrict blue = row[2];
    for (size_t i = 0; i < count; i++) {
        red[i] = 0.299f * red[i] + 0.587f * green[i] + 0.114f * blue[i];
    }
}

static void scale(float *row, size_t count, float factor, float addend)
{
    for (size_t i = 0; i < count; i++) {
        row[i] = row[i] * factor + addend;
    }
}

/* Two loops, because the compiler makes no vectors of both steps in one. */
static void quantise(const float *restrict row, size_t count, float factor, float addend,
                     uint8_t flip, float *restrict room, uint8_t *restrict ret)
{
    for (size_t i = 0; i < count; i++) {
        room[i] = cut(row[i] * factor + addend);
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = (uint8_t)((int32_t)(room[i] + 0.5f) ^ flip);
    }
}

static void weave(const uint8_t *const *row, size_t count, uint8_t *restrict ret)
{
    const uint8_t *first = row[0], *second = row[1], *third = row[2];
    for (size_t i = 0; i < count; i++) {
        ret[3 * i] = first[i];
        ret[3 * i + 1] = second[i];
        ret[3 * i + 2] = third[i];
    }
}
