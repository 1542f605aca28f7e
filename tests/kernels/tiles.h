/* AMX's tile registers in plain C, included before the kernels that use them: so they run on a
 * processor without AMX (no emulator that Debian has knows it), and sanitizers see their loads and
 * stores. What would be an illegal instruction ends the program. Thread: one. */
#ifndef INFERD_TESTS_KERNELS_TILES_H
#define INFERD_TESTS_KERNELS_TILES_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { AMX_TILES = 8, AMX_TILE_ROWS = 16, AMX_TILE_BYTES = 64 };

static struct {
    size_t rows[AMX_TILES], bytes[AMX_TILES]; /* 0: not configured */
    unsigned char data[AMX_TILES][AMX_TILE_ROWS][AMX_TILE_BYTES];
} amx_tiles;

static inline void amx_require(int holds)
{
    if (!holds) {
        __builtin_trap();
    }
}

/* The 64 bytes of LDTILECFG: palette, ..., bytes a row from 16 on, rows from 48 on. */
static inline void amx_configure(const void *config)
{
    const unsigned char *bytes = config;
    memset(&amx_tiles, 0, sizeof(amx_tiles));
    amx_require(bytes[0] == 1);
    for (size_t i = 0; i < AMX_TILES; i++) {
        uint16_t row = 0;
        memcpy(&row, bytes + 16 + 2 * i, sizeof(row));
        amx_tiles.bytes[i] = row;
        amx_tiles.rows[i] = bytes[48 + i];
        amx_require(row <= AMX_TILE_BYTES && amx_tiles.rows[i] <= AMX_TILE_ROWS);
    }
}

static inline void amx_zero(int tile)
{
    amx_require(amx_tiles.rows[tile] > 0);
    memset(amx_tiles.data[tile], 0, sizeof(amx_tiles.data[tile]));
}

static inline void amx_load(int tile, const void *base, size_t stride)
{
    amx_zero(tile);
    for (size_t r = 0; r < amx_tiles.rows[tile]; r++) {
        memcpy(amx_tiles.data[tile][r], (const unsigned char *)base + r * stride,
               amx_tiles.bytes[tile]);
    }
}

static inline void amx_store(int tile, void *base, size_t stride)
{
    amx_require(amx_tiles.rows[tile] > 0);
    for (size_t r = 0; r < amx_tiles.rows[tile]; r++) {
        memcpy((unsigned char *)base + r * stride, amx_tiles.data[tile][r], amx_tiles.bytes[tile]);
    }
}

/* Sums: rows of a, columns of b; groups of 4 bytes along a row of a meet rows of b. */
static inline void amx_check_product(int sums, int a, int b)
{
    amx_require(sums != a && sums != b && a != b && amx_tiles.rows[sums] == amx_tiles.rows[a] &&
                amx_tiles.bytes[sums] == amx_tiles.bytes[b] &&
                amx_tiles.bytes[a] == 4 * amx_tiles.rows[b]);
}

static inline void amx_dpbusd(int sums, int a, int b)
{
    amx_check_product(sums, a, b);
    for (size_t m = 0; m < amx_tiles.rows[sums]; m++) {
        for (size_t n = 0; n < amx_tiles.bytes[sums] / 4; n++) {
            int32_t sum = 0;
            memcpy(&sum, &amx_tiles.data[sums][m][4 * n], sizeof(sum));
            for (size_t k = 0; k < amx_tiles.bytes[a]; k++) {
                sum += amx_tiles.data[a][m][k] * (int8_t)amx_tiles.data[b][k / 4][4 * n + k % 4];
            }
            memcpy(&amx_tiles.data[sums][m][4 * n], &sum, sizeof(sum));
        }
    }
}

static inline float amx_bf16(const unsigned char *at)
{
    const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float value = 0;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline void amx_dpbf16ps(int sums, int a, int b)
{
    amx_check_product(sums, a, b);
    for (size_t m = 0; m < amx_tiles.rows[sums]; m++) {
        for (size_t n = 0; n < amx_tiles.bytes[sums] / 4; n++) {
            float sum = 0;
            memcpy(&sum, &amx_tiles.data[sums][m][4 * n], sizeof(sum));
            for (size_t k = 0; k < amx_tiles.bytes[a]; k += 2) {
                sum += amx_bf16(&amx_tiles.data[a][m][k]) *
                       amx_bf16(&amx_tiles.data[b][k / 4][4 * n + k % 4]);
            }
            memcpy(&amx_tiles.data[sums][m][4 * n], &sum, sizeof(sum));
        }
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#undef _tile_dpbf16ps
#define _tile_loadconfig(config)         amx_configure(config)
#define _tile_release()                  memset(&amx_tiles, 0, sizeof(amx_tiles))
#define _tile_zero(tile)                 amx_zero(tile)
#define _tile_loadd(tile, base, stride)  amx_load(tile, base, stride)
#define _tile_stored(tile, base, stride) amx_store(tile, base, stride)
#define _tile_dpbusd(sums, a, b)         amx_dpbusd(sums, a, b)
#define _tile_dpbf16ps(sums, a, b)       amx_dpbf16ps(sums, a, b)

#endif
