/** Inside server/media: the inner loops of resizing. One source (rows_tmpl.c), compiled for several
 *  processors; all give the same bits. Thread: any. */
#ifndef INFERD_SERVER_MEDIA_ROWS_H
#define INFERD_SERVER_MEDIA_ROWS_H

#include "server/media/taps.h"

/** Floats that a row which dot() reads has behind its end. Their values do not count, but must be
 *  finite. */
#define IFD_ROW_PAD 8

struct ifd_rows {
    const char *name;
    /** ret[i] = sum of weight[k] * row[k * stride + i], of the tap's rows. */
    void (*mix)(const uint8_t *row, size_t stride, const struct ifd_tap *tap, size_t count,
                float *ret);
    /** The same with weights of 16 bits, to some thousandths: for targets of 8 bits. sum: room for
     *  count. */
    void (*mix_fixed)(const uint8_t *row, size_t stride, const struct ifd_tap *tap, size_t count,
                      uint16_t *sum, float *ret);
    /** For each of count taps: the weighted sums of pixels of channels (1, 2 or 4) floats, each
     *  channel in a row of its own; a fourth is dropped. pixel is the one that taps call low. */
    void (*dot)(const float *pixel, uint32_t low, const struct ifd_tap *tap, size_t count,
                uint32_t channels, float *const *ret);
    /** Turns rows of Y, U, V into red, green, blue: BT.601 with 16 … 235, cut to 0 … 255. */
    void (*yuv)(float *const *row, size_t count);
    /** first = light of the three rows. */
    void (*grey)(float *const *row, size_t count);
    /** row[i] * factor + addend. */
    void (*scale)(float *row, size_t count, float factor, float addend);
    /** The same rounded and cut to 0 … 255. flip: turns the highest bit, which makes signed
     *  numbers of what is 128 too large. room: for count. */
    void (*quantise)(const float *row, size_t count, float factor, float addend, uint8_t flip,
                     float *room, uint8_t *ret);
    /** Writes the bytes of three rows in turn. */
    void (*weave)(const uint8_t *const *row, size_t count, uint8_t *ret);
};

/** The tables of this processor, slowest first; the last is the fastest. */
#define IFD_ROWS_TABLES 3
size_t ifd_rows_tables(const struct ifd_rows *ret[IFD_ROWS_TABLES]);

const struct ifd_rows *ifd_rows_portable(void);
/** NULL: not of this processor. */
const struct ifd_rows *ifd_rows_avx2(void);
const struct ifd_rows *ifd_rows_avx512(void);

#endif
