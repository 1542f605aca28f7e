/* gemm by AMX, the body of a table: 16 rows x 16 columns of 64 bytes of inputs an instruction,
 * whatever their type.
 *
 * k is cut into equal steps of up to 64 bytes, one tile register each. Two chunks of up to 16
 * rows meet two vectors of 16 columns in four registers of sums, which go through memory to be
 * finished. The rows of a tile lie at equal distances, so a chunk does not cross the lines of a
 * convolution. The last chunk of a line overlaps the one before it; rows that are finished
 * already are not finished again. Tables of row pointers and narrow lines are left to the
 * includer's run().
 *
 * The includer defines before
 *   AMX_PRODUCT(sums, inputs, weights)   the instruction
 *   AMX_INPUT_BYTES                      bytes of an input
 *   AMX_ROWS_MIN                         chunks of fewer rows are left to run()
 *   layout                               of the packed weights: k_tile of 64 bytes
 *   struct job, run(args)                a block of columns being finished; any call without AMX
 *   make_job(args, weights, tail, n0, columns)
 *   finish_chunk(job, m0, sums, rows, nv)   finishes rows from m0 on
 * and gets run_tiles(). The process must have asked the operating system for the tile registers
 * (engine/base/cpu.c does). */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_AMX_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_AMX_TMPL_H

enum {
    CHUNK = 16,
    FETCH_BYTES = 128, /* a line and its neighbour, which these cores fetch beside it */
    FETCH_AHEAD = 8192,
    DEPTH_MIN_BYTES = 28 /* shorter sums are faster without */
};

/* Sums 0-3: chunk 0 with vectors 0, 1, then chunk 1; inputs 4, 5; weights 6, 7. step in bytes. */
static void configure(size_t rows, size_t step)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } __attribute__((aligned(64))) config = {.palette = 1};
    for (size_t i = 0; i < 8; i++) {
        config.bytes[i] = (uint16_t)(i == 4 || i == 5 ? step : 64);
        config.rows[i] = (uint8_t)(i < 6 ? rows : step / 4);
    }
    _tile_loadconfig(&config);
}

/* Arguments of one pair of chunks, sizes in bytes. Sums of chunk p, row r, vector j:
 * sums[p][r][j]. */
struct chunks {
    const uint8_t *start[2];
    size_t taps, steps, step, a_stride, tap_stride;
    const uint8_t *weights;
    /* the next weights: every step fetches a line of each of `ahead` streams, stream bytes apart */
    const uint8_t *next;
    size_t ahead, stream, next_step;
    int32_t (*sums)[CHUNK][4][16];
};

/* Multiplies `count` chunks with `vectors` vectors of a block of nv, from vector j on. */
INLINE void multiply(struct chunks *p, const size_t count, const size_t j, const size_t vectors,
                     const size_t nv)
{
    const size_t row_bytes = 64 * nv;
    const uint8_t *w = p->weights + 64 * j;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t t = 0; t < p->taps; t++) {
        const uint8_t *a = p->start[0] + t * p->tap_stride, *b = p->start[1] + t * p->tap_stride;
        for (size_t s = 0; s < p->steps; s++) {
            _tile_loadd(4, a, p->a_stride);
            _tile_loadd(6, w, row_bytes);
            if (vectors == 2) {
                _tile_loadd(7, w + 64, row_bytes);
            }
            if (count == 2) {
                _tile_loadd(5, b, p->a_stride);
            }
            AMX_PRODUCT(0, 4, 6);
            if (vectors == 2) {
                AMX_PRODUCT(1, 4, 7);
            }
            if (count == 2) {
                AMX_PRODUCT(2, 5, 6);
                if (vectors == 2) {
                    AMX_PRODUCT(3, 5, 7);
                }
            }
            a += p->step;
            b += p->step;
            w += p->step / 4 * row_bytes;
            for (size_t i = 0; i < p->ahead; i++) {
                _mm_prefetch(p->next + i * p->stream, _MM_HINT_T1);
            }
            p->next += p->next_step;
        }
    }
    _tile_stored(0, p->sums[0][0][j], sizeof(p->sums[0][0]));
    if (vectors == 2) {
        _tile_stored(1, p->sums[0][0][j + 1], sizeof(p->sums[0][0]));
    }
    if (count == 2) {
        _tile_stored(2, p->sums[1][0][j], sizeof(p->sums[0][0]));
        if (vectors == 2) {
            _tile_stored(3, p->sums[1][0][j + 1], sizeof(p->sums[0][0]));
        }
    }
}

/* The same for one chunk and up to four vectors: weights are read once, as they lie. */
INLINE void multiply_row(struct chunks *p, const size_t nv)
{
    const size_t row_bytes = 64 * nv;
    const uint8_t *w = p->weights;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t t = 0; t < p->taps; t++) {
        const uint8_t *a = p->start[0] + t * p->tap_stride;
        for (size_t s = 0; s < p->steps; s++) {
            _tile_loadd(4, a, p->a_stride);
            _tile_loadd(6, w, row_bytes);
            AMX_PRODUCT(0, 4, 6);
            if (nv > 1) {
                _tile_loadd(7, w + 64, row_bytes);
                AMX_PRODUCT(1, 4, 7);
            }
            if (nv > 2) {
                _tile_loadd(6, w + 128, row_bytes);
                AMX_PRODUCT(2, 4, 6);
            }
            if (nv > 3) {
                _tile_loadd(7, w + 192, row_bytes);
                AMX_PRODUCT(3, 4, 7);
            }
            a += p->step;
            w += p->step / 4 * row_bytes;
            for (size_t i = 0; i < p->ahead; i++) {
                _mm_prefetch(p->next + i * p->stream, _MM_HINT_T1);
            }
            p->next += p->next_step;
        }
    }
    _tile_stored(0, p->sums[0][0][0], sizeof(p->sums[0][0]));
    if (nv > 1) {
        _tile_stored(1, p->sums[0][0][1], sizeof(p->sums[0][0]));
    }
    if (nv > 2) {
        _tile_stored(2, p->sums[0][0][2], sizeof(p->sums[0][0]));
    }
    if (nv > 3) {
        _tile_stored(3, p->sums[0][0][3], sizeof(p->sums[0][0]));
    }
}

INLINE void multiply_all(struct chunks *p, const size_t count, const size_t nv)
{
    if (count == 1) {
        multiply_row(p, nv);
        return;
    }
    for (size_t j = 0; j + 2 <= nv; j += 2) {
        multiply(p, count, j, 2, nv);
    }
    if (nv % 2 != 0) {
        multiply(p, count, nv - 1, 1, nv);
    }
}

/* What to fetch while a block of `bytes` meets `count` chunks: the next block; where the call is
 * short, from several streams, since memory gives more that way. A single chunk reads weights once:
 * those a little ahead. */
INLINE void fetch_weights(struct chunks *p, size_t bytes, size_t count, const size_t nv)
{
    const size_t visits = ((count / 2) * ((nv + 1) / 2) + count % 2) * p->taps * p->steps;
    if (count == 1) {
        p->next = p->weights + FETCH_AHEAD;
        p->next_step = p->step / 4 * 64 * nv;
        p->ahead = (p->next_step + FETCH_BYTES - 1) / FETCH_BYTES;
        p->stream = FETCH_BYTES;
    } else if (visits > 0) {
        p->next = p->weights + bytes;
        p->ahead = (bytes / FETCH_BYTES + visits - 1) / visits;
        p->stream = bytes / p->ahead;
        p->next_step = (p->stream + visits - 1) / visits;
    }
}

/* A block of 16*nv columns and all rows of the call: lines of `len` rows, chunks of `rows`. */
INLINE void run_lines(const struct ifd_gemm_args *args, struct job *job, const uint8_t *weights,
                      size_t len, size_t rows, const size_t nv)
{
    const struct ifd_packed *header = args->packed;
    __attribute__((aligned(64))) int32_t sums[2][CHUNK][4][16];
    const size_t depth = (size_t)header->private_[IFD_PACKED_DEPTH] * AMX_INPUT_BYTES;
    struct chunks p = {.taps = header->taps,
                       .step = ifd_pack_step(&layout, header->k) * AMX_INPUT_BYTES,
                       .a_stride = args->a_stride * AMX_INPUT_BYTES,
                       .tap_stride = args->tap_stride * AMX_INPUT_BYTES,
                       .weights = weights,
                       .sums = sums};
    p.steps = depth / p.step;
    const size_t a_line = (len + CHUNK - 1) / CHUNK, count = args->m / len * a_line;
    size_t first[2] = {0, 0}, again[2] = {0, 0};
    fetch_weights(&p, header->unit_bytes, count, nv);
    for (size_t i = 0; i < count; i += 2) {
        const size_t chunks = i + 1 < count ? 2 : 1;
        for (size_t k = 0; k < chunks; k++) {
            const size_t y = (i + k) / a_line, want = (i + k) % a_line * rows;
            const size_t x = want + rows > len ? len - rows : want;
            first[k] = y * len + x;
            again[k] = want - x;
            p.start[k] = (const uint8_t *)args->a +
                         (y * args->row_stride + x * args->a_stride) * AMX_INPUT_BYTES;
        }
        p.start[1] = chunks == 2 ? p.start[1] : p.start[0];
        if (chunks == 2) {
            multiply_all(&p, 2, nv);
        } else {
            multiply_all(&p, 1, nv);
        }
        for (size_t k = 0; k < chunks; k++) {
            finish_chunk(job, first[k] + again[k], sums[k] + again[k], rows - again[k], nv);
        }
    }
}

static void run_lines_1(const struct ifd_gemm_args *args, struct job *job, const uint8_t *weights,
                        size_t len, size_t rows)
{
    run_lines(args, job, weights, len, rows, 1);
}

static void run_lines_2(const struct ifd_gemm_args *args, struct job *job, const uint8_t *weights,
                        size_t len, size_t rows)
{
    run_lines(args, job, weights, len, rows, 2);
}

static void run_lines_3(const struct ifd_gemm_args *args, struct job *job, const uint8_t *weights,
                        size_t len, size_t rows)
{
    run_lines(args, job, weights, len, rows, 3);
}

static void run_lines_4(const struct ifd_gemm_args *args, struct job *job, const uint8_t *weights,
                        size_t len, size_t rows)
{
    run_lines(args, job, weights, len, rows, 4);
}

/* The rows of an incomplete last line, as a call without AMX. out_bytes: bytes of an output. */
static void run_rest(const struct ifd_gemm_args *args, size_t rows, size_t out_bytes)
{
    struct ifd_gemm_args rest = *args;
    const size_t done = args->m - rows;
    rest.m = rows;
    rest.row_len = 0;
    rest.a = (const uint8_t *)args->a + done / args->row_len * args->row_stride * AMX_INPUT_BYTES;
    rest.out = (uint8_t *)args->out + done * args->out_stride * out_bytes;
    rest.row_add = args->row_add ? args->row_add + done : NULL;
    rest.add = args->add ? args->add + done * args->add_stride : NULL;
    run(&rest);
}

/* always: run() cannot do it. */
INLINE void run_tiles(const struct ifd_gemm_args *args, size_t out_bytes, int always)
{
    static void (*const lines[4])(const struct ifd_gemm_args *, struct job *, const uint8_t *,
                                  size_t,
                                  size_t) = {run_lines_1, run_lines_2, run_lines_3, run_lines_4};
    const struct ifd_packed *header = args->packed;
    const size_t len = args->row_len != 0 && args->row_len < args->m ? args->row_len : args->m;
    /* chunks of equal length; rows that overlap are computed twice */
    const size_t a_line = (len + CHUNK - 1) / CHUNK, rows = (len + a_line - 1) / a_line;
    const size_t depth =
        (size_t)header->taps * (size_t)header->private_[IFD_PACKED_DEPTH] * AMX_INPUT_BYTES;
    if (!always && (args->rows || rows < AMX_ROWS_MIN || depth < DEPTH_MIN_BYTES)) {
        run(args);
        return;
    }
    struct ifd_gemm_args whole = *args;
    whole.m = args->m / len * len;
    configure(rows, ifd_pack_step(&layout, header->k) * AMX_INPUT_BYTES);
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        size_t columns = header->n - n0 < header->nr ? header->n - n0 : header->nr;
        size_t nv = (columns + 15) / 16;
        const uint8_t *weights = (const uint8_t *)args->packed + IFD_PACKED_HEADER +
                                 n0 / header->nr * header->unit_bytes;
        struct job job = make_job(&whole, weights, weights + depth * nv * 16, n0, columns);
        lines[nv - 1](&whole, &job, weights, len, rows);
    }
    _tile_release();
    if (whole.m < args->m) {
        run_rest(args, args->m - whole.m, out_bytes);
    }
}

#endif
