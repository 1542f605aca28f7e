/* The table of divisions of a convolution's work, and what they are estimated to take. */
#include "backends/gpuacc/ops/blocking.h"

#include "backends/gpuacc/cost.h"
#include "backends/gpuacc/ops/winograd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Direct: {pixels}. Slim: {pixels, rows, columns, slices, depth}. Tile: {pixels, channels, rows,
 * columns}; 16 factors at a time. Mma: the same, of warps; 32 factors. */
#define DIRECT_BY(pixels, patch, weights)                                                          \
    {                                                                                              \
        IFD_GPU_conv2d, pixels, 4, 0, 0, 0, 0, patch, weights                                      \
    }
#define SLIM_BY(pixels, rows, columns, slices, depth, weights)                                     \
    {                                                                                              \
        IFD_GPU_conv2d_slim, pixels, 4, rows, columns, slices, depth, 0, weights                   \
    }
#define TILE_BY(pixels, channels, rows, columns, patch, weights)                                   \
    {                                                                                              \
        IFD_GPU_conv2d_tile, pixels, channels, rows, columns, 1, 16, patch, weights                \
    }
#define MMA(pixels, channels, rows, columns)                                                       \
    {                                                                                              \
        IFD_GPU_conv2d_mma, pixels, channels, rows, columns, WARP, 32, 0, IFD_GPU_GLOBAL           \
    }
#define WARP 32

#define DIRECT(pixels) DIRECT_BY(pixels, 0, IFD_GPU_GLOBAL)
#define SLIM(pixels, rows, columns, slices, depth)                                                 \
    SLIM_BY(pixels, rows, columns, slices, depth, IFD_GPU_GLOBAL)
#define TILE(pixels, channels, rows, columns)                                                      \
    TILE_BY(pixels, channels, rows, columns, 0, IFD_GPU_GLOBAL)

/* Products of Winograd's algorithm. */
#define WINOGRAD_TILE(patch, pixels, channels, rows, columns)                                      \
    TILE_BY(pixels, channels, rows, columns, patch, IFD_GPU_GLOBAL)
#define WINOGRAD(patch)                                                                            \
    DIRECT_BY(4, patch, IFD_GPU_GLOBAL), DIRECT_BY(8, patch, IFD_GPU_GLOBAL),                      \
        WINOGRAD_TILE(patch, 4, 4, 8, 8), WINOGRAD_TILE(patch, 8, 4, 16, 8),                       \
        WINOGRAD_TILE(patch, 8, 8, 16, 8), WINOGRAD_TILE(patch, 8, 8, 16, 16)

const struct ifd_gpu_blocking *ifd_gpu_blockings(uint32_t *ret_count)
{
    static const struct ifd_gpu_blocking rows[] = {
        DIRECT(1),
        DIRECT(2),
        DIRECT(4),
        DIRECT(8),
        SLIM(1, 1, 4, 32, 4),
        SLIM(1, 1, 4, 64, 4),
        SLIM(1, 1, 8, 32, 4),
        SLIM(1, 2, 4, 16, 4),
        SLIM(1, 4, 4, 8, 4),
        SLIM(1, 4, 4, 16, 4),
        SLIM(2, 2, 4, 16, 4),
        SLIM(2, 4, 4, 8, 4),
        SLIM(2, 4, 4, 16, 4),
        SLIM(2, 4, 4, 16, 8),
        SLIM(2, 4, 8, 8, 8),
        SLIM(4, 2, 4, 16, 8),
        SLIM(4, 2, 4, 32, 8),
        SLIM(4, 4, 4, 8, 4),
        SLIM(4, 4, 4, 8, 8),
        SLIM(4, 4, 8, 4, 8),
        SLIM(4, 4, 8, 8, 8),
        SLIM(4, 4, 4, 16, 8),
        SLIM(4, 8, 4, 4, 8),
        SLIM(8, 2, 8, 8, 4),
        TILE(4, 4, 8, 8),
        TILE(4, 4, 16, 8),
        TILE(4, 4, 16, 16),
        TILE(4, 8, 16, 8),
        TILE(8, 4, 8, 8),
        TILE(8, 4, 16, 8),
        TILE(8, 4, 16, 16),
        TILE(8, 8, 8, 8),
        TILE(8, 8, 16, 8),
        TILE(8, 8, 16, 16),
        MMA(32, 16, 2, 2),
        MMA(32, 32, 2, 2),
        MMA(32, 32, 4, 2),
        MMA(64, 32, 2, 4),
        MMA(64, 64, 2, 2),
        WINOGRAD(2),
        WINOGRAD(4),
        DIRECT_BY(4, 0, IFD_GPU_CONSTANT),
        DIRECT_BY(8, 0, IFD_GPU_CONSTANT),
        DIRECT_BY(4, 0, IFD_GPU_IMAGE),
        DIRECT_BY(8, 0, IFD_GPU_IMAGE),
        SLIM_BY(2, 4, 4, 16, 4, IFD_GPU_IMAGE),
        SLIM_BY(4, 4, 4, 8, 4, IFD_GPU_IMAGE),
        TILE_BY(4, 4, 16, 8, 0, IFD_GPU_IMAGE),
        TILE_BY(8, 8, 16, 8, 0, IFD_GPU_IMAGE),
    };
    *ret_count = sizeof(rows) / sizeof(rows[0]);
    return rows;
}

static size_t items_of(const struct ifd_gpu_blocking *b)
{
    return (size_t)b->rows * b->columns * b->slices;
}

static size_t local_bytes(const struct ifd_gpu_blocking *b)
{
    const size_t pixels = (size_t)b->rows * b->pixels, width = (size_t)b->columns * b->channels;
    switch ((unsigned)b->kernel) {
    case IFD_GPU_conv2d_slim:
        return items_of(b) * b->pixels * 4 * sizeof(float);
    case IFD_GPU_conv2d_tile:
        return b->depth * (pixels + 4 + width) * sizeof(float);
    case IFD_GPU_conv2d_mma:
        return (pixels * (b->depth + 8) + b->depth * (width + 8)) * sizeof(uint16_t);
    default:
        return 0;
    }
}

static size_t parts(size_t whole, size_t part)
{
    return (whole + part - 1) / part;
}

struct ifd_gpu_conv_size ifd_gpu_blocking_product(const struct ifd_gpu_blocking *b,
                                                  const struct ifd_gpu_conv_size *size)
{
    return (struct ifd_gpu_conv_size){
        .pixels = ifd_gpu_winograd_patches(b->patch, size->images, size->out_h, size->out_w),
        .out_c = parts(size->out_c, 4) * 4,
        .groups = 1,
        .group_in = parts(size->group_in, 4) * 4,
        .taps = 1};
}

/* Numbers of transformed inputs and sums. */
static double winograd_numbers(const struct ifd_gpu_blocking *b,
                               const struct ifd_gpu_conv_size *size)
{
    const struct ifd_gpu_conv_size product = ifd_gpu_blocking_product(b, size);
    return (double)ifd_gpu_winograd_points(b->patch) * (double)product.pixels *
           (double)(product.group_in + product.out_c);
}

/* Can the device hold the weights there? */
static bool weights_fit(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size,
                        const struct ifd_gpu_info *info)
{
    const size_t height = size->group_in * size->taps, width = parts(size->out_c, 4);
    const size_t texel = 4 * (size->has_f16_weights ? sizeof(uint16_t) : sizeof(float));
    switch (b->weights) {
    case IFD_GPU_CONSTANT:
        return height * width * texel <= info->constant_bytes;
    case IFD_GPU_IMAGE:
        return width <= info->image_width && height <= info->image_height;
    case IFD_GPU_GLOBAL:
    default:
        return true;
    }
}

/* Numbers of transformed filters. */
static double filter_numbers(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size)
{
    const struct ifd_gpu_conv_size product = ifd_gpu_blocking_product(b, size);
    return (double)ifd_gpu_winograd_points(b->patch) * (double)product.group_in *
           (double)product.out_c;
}

/* A group of a few channels gains nothing; and the memory must be there. */
static bool winograd_fits(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size,
                          const struct ifd_gpu_info *info)
{
    const double device = fmin((double)info->memory_bytes / 16, (double)info->max_buffer / 4);
    const double most = fmin(device, (double)((size_t)1 << 30)) / sizeof(float);
    return size->takes_winograd && size->groups == 1 && size->group_in >= 8 && size->out_c >= 8 &&
           winograd_numbers(b, size) <= most && filter_numbers(b, size) <= most;
}

bool ifd_gpu_blocking_fits(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size,
                           const struct ifd_gpu_info *info)
{
    if (items_of(b) > info->max_group || local_bytes(b) > info->local_bytes ||
        !weights_fit(b, size, info) || (b->patch > 0 && !winograd_fits(b, size, info))) {
        return false;
    }
    switch ((unsigned)b->kernel) {
    case IFD_GPU_conv2d_slim:
        return size->group_in % b->depth == 0;
    case IFD_GPU_conv2d_tile:
        return size->phases == 0 && size->groups == 1;
    case IFD_GPU_conv2d_mma:
        return info->has_mma && size->has_f16_weights && size->phases == 0 && size->groups == 1;
    default:
        return true;
    }
}

/* ---- estimates ---- */

/* Parts of the peak rate that an item's registers allow: an item of 8 x 8 elements reads 16 factors
 * for 64 products. */
static double efficiency(const struct ifd_gpu_blocking *b)
{
    const double products = b->pixels * b->channels, reads = b->pixels + b->channels;
    if (b->kernel == IFD_GPU_conv2d_mma) { /* of multipliers for vectors; it has others */
        return 17.6 * products / (products + 12.2 * reads);
    }
    const double local = b->kernel == IFD_GPU_conv2d_tile ? 1.0 : 0.45;
    return local * products / (products + 0.53 * reads);
}

/* Cycles of a GPU's compute units, which do LANES products a cycle and hold ITEMS items. The
 * numbers are fitted to what every blocking took on an H200 in 466 layers of five networks at batch
 * 1 to 32, and in 812 in half precision: what ranks first takes 1.07 times as long as the fastest
 * there, in the mean. */
static double gpu_cost(const struct ifd_gpu_blocking *b, double groups, double factors,
                       double units)
{
    enum { LANES = 128, ITEMS = 768 };
    const bool is_direct = b->kernel == IFD_GPU_conv2d, is_mma = b->kernel == IFD_GPU_conv2d_mma;
    const double items = is_direct ? 32 : (double)items_of(b);
    const double slices = is_direct ? 1 : b->slices;
    const double turns = ceil((is_direct ? groups / items : groups) / units);
    const double at_once = fmax(floor(ITEMS / items), 1);
    const double shares = is_mma ? 1 : slices;
    const double steps = factors / (shares * (is_direct ? 4 : b->depth));
    const double wait = is_mma                             ? 200
                        : b->kernel == IFD_GPU_conv2d_slim ? 380
                        : is_direct                        ? 620
                                                           : 940;
    const double start = is_mma ? 640 : 1340;
    const double products = items / slices * b->pixels * b->channels * factors;
    const double busy = turns * products / (LANES * efficiency(b));
    const double waiting = ceil(turns / at_once) * (steps * wait + start);
    return fmax(busy, waiting) + 1.2 * fmin(busy, waiting);
}

/* Of one product, or of as many as a patch has points or a transposed convolution phases. */
static double product_cost(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size,
                           size_t products, const struct ifd_gpu_info *info)
{
    const size_t phases = size->phases > 0 ? size->phases : 1;
    const double factors = (double)(size->group_in * size->taps) / (double)phases;
    const bool is_direct = b->kernel == IFD_GPU_conv2d;
    const size_t rows = is_direct ? 1 : b->rows, columns = is_direct ? 1 : b->columns;
    const double groups = (double)(products * phases * parts(size->pixels, rows * b->pixels) *
                                   parts(size->out_c, columns * b->channels));
    if (info->is_gpu) {
        return gpu_cost(b, groups, factors, info->compute_units);
    }
    /* A CPU has no local memory: vectors that an item loads. */
    const double idle = fmax(info->compute_units / groups, 1);
    return (is_direct ? 1 : 1e6) * groups * factors * (1.0 + b->pixels) * idle;
}

/* Which memory is best is for the tuner to find: a guess would cost those who do not tune. A CPU
 * has no texture units. */
static double weights_cost(const struct ifd_gpu_blocking *b, const struct ifd_gpu_info *info)
{
    return b->weights == IFD_GPU_GLOBAL                   ? 1
           : b->weights == IFD_GPU_IMAGE && !info->is_gpu ? 10
                                                          : 1.1;
}

/* Both transforms, in the units of product_cost: their memory traffic. What one call writes the
 * next one reads, and the image is read and written. A CPU does several operations for a vector
 * of 4 that it loads or stores. */
static double transform_cost(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size,
                             const struct ifd_gpu_info *info)
{
    enum { BYTES = 14, SHARED_BYTES = 4 }; /* in a cycle of a unit */
    const double image = (double)size->pixels * (double)(size->group_in + size->out_c);
    const double numbers = 2 * winograd_numbers(b, size) + image;
    if (!info->is_gpu) {
        return numbers;
    }
    const double rate = info->shares_memory ? SHARED_BYTES : BYTES;
    return numbers * sizeof(float) / (rate * info->compute_units) +
           2 * IFD_GPU_LAUNCH_NS * 1e-3 * info->clock_mhz;
}

double ifd_gpu_blocking_cost(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size,
                             const struct ifd_gpu_info *info)
{
    if (b->patch == 0) {
        return product_cost(b, size, 1, info) * weights_cost(b, info);
    }
    const struct ifd_gpu_conv_size product = ifd_gpu_blocking_product(b, size);
    return product_cost(b, &product, ifd_gpu_winograd_points(b->patch), info) +
           transform_cost(b, size, info);
}

uint32_t ifd_gpu_rank_blockings(const struct ifd_gpu_conv_size *size,
                                const struct ifd_gpu_info *info, uint32_t count,
                                const struct ifd_gpu_blocking **ret)
{
    uint32_t all = 0, have = 0;
    const struct ifd_gpu_blocking *row = ifd_gpu_blockings(&all);
    for (uint32_t i = 0; i < all; i++) {
        if (!ifd_gpu_blocking_fits(&row[i], size, info)) {
            continue;
        }
        const double cost = ifd_gpu_blocking_cost(&row[i], size, info);
        uint32_t at = have;
        while (at > 0 && ifd_gpu_blocking_cost(ret[at - 1], size, info) > cost) {
            at--;
        }
        if (at == count) {
            continue;
        }
        have += have < count ? 1 : 0;
        memmove(&ret[at + 1], &ret[at], (have - 1 - at) * sizeof(ret[0]));
        ret[at] = &row[i];
    }
    return have;
}

/* ---- texts ---- */

void ifd_gpu_blocking_text(const struct ifd_gpu_blocking *b, char ret[IFD_GPU_BLOCKING_TEXT])
{
    static const char *const weights[] = {
        [IFD_GPU_GLOBAL] = "", [IFD_GPU_CONSTANT] = " constant", [IFD_GPU_IMAGE] = " image"};
    char winograd[24] = "";
    if (b->patch > 0) {
        (void)snprintf(winograd, sizeof(winograd), "winograd%u ", b->patch);
    }
    (void)snprintf(ret, IFD_GPU_BLOCKING_TEXT, "%s%s %ux%u %ux%ux%u %u%s", winograd,
                   ifd_gpu_kernel_name(b->kernel), b->pixels, b->channels, b->rows, b->columns,
                   b->slices, b->depth, weights[b->weights]);
}

const struct ifd_gpu_blocking *ifd_gpu_blocking_named(const char *text)
{
    uint32_t count = 0;
    const struct ifd_gpu_blocking *row = ifd_gpu_blockings(&count);
    for (uint32_t i = 0; i < count; i++) {
        char name[IFD_GPU_BLOCKING_TEXT];
        ifd_gpu_blocking_text(&row[i], name);
        if (strcmp(name, text) == 0) {
            return &row[i];
        }
    }
    return NULL;
}

/* ---- calls ---- */

void ifd_gpu_blocking_begin(const struct ifd_gpu_blocking *b, struct ifd_gpu_call *call)
{
    *call = ifd_gpu_call(b->kernel);
    ifd_gpu_define(call, "#define PIXELS %u\n", b->pixels);
    if (b->kernel != IFD_GPU_conv2d) {
        ifd_gpu_define(call,
                       "#define CHANNELS %u\n#define ROWS %u\n#define COLUMNS %u\n"
                       "#define SLICES %u\n#define DEPTH %u\n",
                       b->channels, b->rows, b->columns, b->slices, b->depth);
    }
    static const char *const weights[] = {[IFD_GPU_GLOBAL] = "",
                                          [IFD_GPU_CONSTANT] = "#define W_CONSTANT\n",
                                          [IFD_GPU_IMAGE] = "#define W_IMAGE\n"};
    ifd_gpu_define(call, "%s%s", b->patch > 0 ? "#define MATRICES\n" : "", weights[b->weights]);
}

void ifd_gpu_blocking_items(const struct ifd_gpu_blocking *b, const struct ifd_gpu_conv_size *size,
                            struct ifd_gpu_call *call)
{
    const struct ifd_gpu_conv_size one = b->patch > 0 ? ifd_gpu_blocking_product(b, size) : *size;
    const size_t products = b->patch > 0       ? ifd_gpu_winograd_points(b->patch)
                            : size->phases > 0 ? size->phases
                                               : 1;
    if (b->kernel == IFD_GPU_conv2d) {
        ifd_gpu_items(call, parts(one.out_c, 4), parts(one.pixels, b->pixels), products);
        return;
    }
    const size_t items = items_of(b);
    ifd_gpu_items(call, parts(one.out_c, (size_t)b->columns * b->channels) * items,
                  parts(one.pixels, (size_t)b->rows * b->pixels), products);
    ifd_gpu_group(call, items, 1, 1);
}
