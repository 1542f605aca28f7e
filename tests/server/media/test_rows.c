/* The inner loops of resizing on every instruction set of this processor: against doubles, and the
 * same bits everywhere. */
#include "server/media/rows.h"

#include <math.h>
#include <string.h>

#include "tests/support/test.h"

#define MOST 77 /* longer than two vectors, and no multiple of one */
#define TAPS 5

static uint8_t pixel[TAPS * MOST];
static float value[4 * (MOST + TAPS) + IFD_ROW_PAD];

static size_t begin(const struct ifd_rows *ret[IFD_ROWS_TABLES])
{
    for (size_t i = 0; i < sizeof(pixel); i++) {
        pixel[i] = i % 7 == 0 ? 255 : i % 5 == 0 ? 0 : (uint8_t)(i * 91 + i / 3);
    }
    for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
        value[i] = (float)(i * 37 % 256) + 0.25f;
    }
    return ifd_rows_tables(ret);
}

static struct ifd_taps taps_of(uint32_t source, uint32_t target, uint32_t channels)
{
    struct ifd_taps taps;
    struct ifd_err err = {0};
    REQUIRE_OK(
        ifd_taps_make(0, source, 0, source, target, channels, ifd_alloc_system(), &taps, &err),
        &err);
    return taps;
}

static void rows_are_mixed(void)
{
    const struct ifd_rows *table[IFD_ROWS_TABLES];
    const size_t tables = begin(table);
    for (uint32_t rows = 1; rows <= TAPS; rows++) {
        struct ifd_taps taps = taps_of(rows, 1, 0);
        for (size_t count = 1; count <= MOST; count++) {
            float first[2][MOST] = {{0}};
            for (size_t t = 0; t < tables; t++) {
                float exact[MOST], fixed[MOST];
                uint16_t sum[MOST];
                table[t]->mix(pixel, MOST, taps.tap, count, exact);
                table[t]->mix_fixed(pixel, MOST, taps.tap, count, sum, fixed);
                for (size_t i = 0; i < count; i++) {
                    double wanted = 0, weights = 0;
                    for (uint32_t k = 0; k < rows; k++) {
                        const double weight = 1 - fabs(k + 0.5 - rows / 2.0) / rows;
                        wanted += pixel[k * MOST + i] * weight;
                        weights += weight;
                    }
                    EXPECT_CLOSE(exact[i], wanted / weights, 1e-4);
                    EXPECT_CLOSE(fixed[i], wanted / weights, 0.03);
                }
                if (t == 0) {
                    memcpy(first[0], exact, sizeof(exact[0]) * count);
                    memcpy(first[1], fixed, sizeof(fixed[0]) * count);
                }
                EXPECT_BYTES(exact, first[0], sizeof(exact[0]) * count);
                EXPECT_BYTES(fixed, first[1], sizeof(fixed[0]) * count);
            }
        }
        ifd_taps_free(&taps, ifd_alloc_system());
    }
}

static void pixels_of_a_row_are_mixed(void)
{
    const struct ifd_rows *table[IFD_ROWS_TABLES];
    const size_t tables = begin(table);
    static const uint32_t channels[] = {1, 2, 4};
    for (size_t c = 0; c < 3; c++) {
        for (uint32_t target = 1; target <= MOST; target += 4) {
            struct ifd_taps weights = taps_of(MOST, target, 0);
            struct ifd_taps taps = taps_of(MOST, target, channels[c]);
            float first[3][MOST];
            for (size_t t = 0; t < tables; t++) {
                float got[3][MOST] = {{0}};
                float *const line[3] = {got[0], got[1], got[2]};
                table[t]->dot(value, 0, taps.tap, target, channels[c], line);
                for (uint32_t x = 0; x < target; x++) {
                    const struct ifd_tap *tap = &weights.tap[x];
                    for (uint32_t k = 0; k < channels[c] && k < 3; k++) {
                        double wanted = 0;
                        for (uint32_t i = 0; i < tap->count; i++) {
                            const size_t at = (size_t)(tap->first + i) * channels[c] + k;
                            wanted += (double)tap->weight[i] * (double)value[at];
                        }
                        EXPECT_CLOSE(got[k][x], wanted, 1e-3);
                    }
                }
                memcpy(t == 0 ? first : got, got, sizeof(got));
                EXPECT_BYTES(got, first, sizeof(got));
            }
            ifd_taps_free(&taps, ifd_alloc_system());
            ifd_taps_free(&weights, ifd_alloc_system());
        }
    }
}

static void bytes_are_woven(void)
{
    const struct ifd_rows *table[IFD_ROWS_TABLES];
    const size_t tables = begin(table);
    const uint8_t *const row[3] = {pixel, pixel + MOST, pixel + 2 * MOST};
    for (size_t t = 0; t < tables; t++) {
        for (size_t count = 0; count <= MOST; count++) {
            uint8_t got[3 * MOST + 1];
            memset(got, 0xa5, sizeof(got));
            table[t]->weave(row, count, got);
            for (size_t i = 0; i < 3 * count; i++) {
                EXPECT_INT(got[i], row[i % 3][i / 3]);
            }
            EXPECT_INT(got[3 * count], 0xa5);
        }
    }
}

static void colours_are_made(void)
{
    const struct ifd_rows *table[IFD_ROWS_TABLES];
    const size_t tables = begin(table);
    for (size_t t = 0; t < tables; t++) {
        for (size_t count = 1; count <= MOST; count++) {
            float y[MOST], u[MOST], v[MOST];
            float *const line[3] = {y, u, v};
            memcpy(y, value, sizeof(y));
            memcpy(u, value + 3, sizeof(u));
            memcpy(v, value + 11, sizeof(v));
            table[t]->yuv(line, count);
            for (size_t i = 0; i < count; i++) {
                /* BT.601: Kr = 0.299, Kb = 0.114; 219 steps of light, 224 of colour. */
                const double light = ((double)value[i] - 16) * 255 / 219;
                const double blue = ((double)value[i + 3] - 128) * 255 / 224;
                const double red = ((double)value[i + 11] - 128) * 255 / 224;
                EXPECT_CLOSE(y[i], fmin(fmax(light + 1.402 * red, 0), 255), 1e-3);
                EXPECT_CLOSE(u[i], fmin(fmax(light - 0.344136 * blue - 0.714136 * red, 0), 255),
                             1e-3);
                EXPECT_CLOSE(v[i], fmin(fmax(light + 1.772 * blue, 0), 255), 1e-3);
            }
            memcpy(y, value + 5, sizeof(y));
            table[t]->grey(line, count);
            for (size_t i = 0; i < count; i++) {
                const double green = (double)u[i], blue = (double)v[i];
                EXPECT_CLOSE(y[i], 0.299 * (double)value[i + 5] + 0.587 * green + 0.114 * blue,
                             1e-3);
            }
        }
    }
}

static void numbers_are_rounded_and_cut(void)
{
    static const float in[] = {-1e9f, -1, 0.49f, 0.51f, 100.4f, 254.6f, 300, 1e9f};
    static const uint8_t want[] = {0, 0, 0, 1, 100, 255, 255, 255};
    const struct ifd_rows *table[IFD_ROWS_TABLES];
    const size_t tables = begin(table);
    for (size_t t = 0; t < tables; t++) {
        float row[MOST], scaled[MOST], room[MOST];
        uint8_t got[MOST];
        for (size_t i = 0; i < MOST; i++) {
            row[i] = scaled[i] = in[i % 8] / 2;
        }
        for (size_t count = 1; count <= MOST; count++) {
            table[t]->quantise(row, count, 2, 0, 0x80, room, got);
            for (size_t i = 0; i < count; i++) {
                EXPECT_INT(got[i], want[i % 8] ^ 0x80);
            }
        }
        table[t]->scale(scaled, MOST, 2, 1);
        for (size_t i = 0; i < MOST; i++) {
            EXPECT_CLOSE(scaled[i], in[i % 8] + 1, 1e-3);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(rows_are_mixed),   T(pixels_of_a_row_are_mixed),   T(bytes_are_woven),
        T(colours_are_made), T(numbers_are_rounded_and_cut),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
