/* The NEON q8 matrix product but for the sums of a tile. The including file defines
 *   TALL          rows of the tallest tile, at most 8
 *   KR, WEIGHT    inputs a lane, and the packed type
 *   sum_tile(job, mr, nv, sum)   adds all products to sum[row][vector]; inlined, constants
 *   IFD_TABLE     the table to define
 * and includes this at its end, after job.h's struct job. */
#define PASTE_(a, b, c) a##b##x##c
#define PASTE(a, b, c)  PASTE_(a, b, c)
#define TILE(mr, nv)                                                                               \
    static void PASTE(tile_, mr, nv)(const struct job *job)                                        \
    {                                                                                              \
        int32x4_t sum[8][2];                                                                       \
        start_sums(job, mr, nv, sum);                                                              \
        sum_tile(job, mr, nv, sum);                                                                \
        finish_tile(job, mr, nv, sum);                                                             \
    }
TILE(TALL, 1)
TILE(2, 1)
TILE(1, 1)
TILE(TALL, 2)
TILE(2, 2)
TILE(1, 2)
#undef TILE

static const struct ifd_pack_layout layout = {.lanes = 4,
                                              .quad = 4,
                                              .kr = KR,
                                              .bytes = sizeof(WEIGHT),
                                              .max_nv = 2,
                                              .mr = {TALL, TALL, 0, 0}};

/* By width: the tiles from tallest to shortest. */
static const struct {
    size_t rows;
    void (*run)(const struct job *);
} tiles[2][3] = {
    {{TALL, PASTE(tile_, TALL, 1)}, {2, tile_2x1}, {1, tile_1x1}},
    {{TALL, PASTE(tile_, TALL, 2)}, {2, tile_2x2}, {1, tile_1x2}},
};

/* All rows of one block: the shortest tile that takes all that is left, or the tallest. */
static void run_block(struct job *job, size_t nv)
{
    struct ifd_row_cursor cursor = {0, 0};
    int8_t *out = job->out;
    for (job->m0 = 0; job->m0 < job->args->m; job->m0 += job->valid) {
        size_t left = job->args->m - job->m0;
        size_t pick = 2;
        while (pick > 0 && tiles[nv - 1][pick].rows < left) {
            pick--;
        }
        size_t rows = tiles[nv - 1][pick].rows;
        job->valid = left < rows ? left : rows;
        job->out = out + job->m0 * job->args->out_stride;
        if (!job->args->rows) {
            ifd_rows_next(job->args, 1, rows, job->valid, &cursor, job->start);
        }
        tiles[nv - 1][pick].run(job);
    }
}

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    const unsigned char *blocks = (const unsigned char *)args->packed + IFD_PACKED_HEADER;
    const size_t depth = (size_t)header->taps * ((header->k + KR - 1) / KR * KR);
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        size_t columns = header->n - n0 < header->nr ? header->n - n0 : header->nr;
        size_t nv = (columns + 3) / 4;
        const WEIGHT *weights =
            (const WEIGHT *)(const void *)(blocks + n0 / header->nr * header->block_bytes);
        struct job job = {.args = args,
                          .weights = weights,
                          .tail = (const int32_t *)(const void *)(weights + depth * nv * 4),
                          .columns = columns,
                          .out = (int8_t *)args->out + n0};
        run_block(&job, nv);
    }
}

static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    return ifd_pack_gemm_bytes(&layout, n, k, taps, IFD_TAIL_ROWS);
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    ifd_pack_gemm_q8(&layout, weights, requant, dst);
}

static void row_sum(const int8_t *a, size_t m, size_t k, size_t a_stride, int32_t factor,
                    int32_t *ret_sum)
{
    for (size_t i = 0; i < m; i++, a += a_stride) {
        int32x4_t sum = vdupq_n_s32(0);
        size_t j = 0;
        for (; j + 16 <= k; j += 16) {
            sum = vpadalq_s16(sum, vpaddlq_s8(vld1q_s8(a + j)));
        }
        int32_t total = vgetq_lane_s32(sum, 0) + vgetq_lane_s32(sum, 1) + vgetq_lane_s32(sum, 2) +
                        vgetq_lane_s32(sum, 3);
        for (; j < k; j++) {
            total += a[j];
        }
        ret_sum[i] = factor * total;
    }
}

const struct ifd_kern_gemm_q8 IFD_TABLE = {packed_bytes, pack, run, row_sum};
