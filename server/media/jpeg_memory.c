/* libjpeg's memory manager over an ifd_alloc. Virtual arrays are in memory, never in files. */
#include "server/media/jpeg_memory.h"

#include <string.h>

#include <jerror.h>

/* SIMD code of the library reads and writes rows in whole vectors. */
#define ALIGN ((size_t)64)

struct ifd_jpeg_block {
    struct ifd_jpeg_block *next;
    size_t bytes; /* with this header, which takes ALIGN bytes */
};

/* Rows of coefficients. */
struct jvirt_barray_control {
    JBLOCKARRAY row;
    size_t row_bytes;
    JDIMENSION rows, zeroed_rows; /* rows from zeroed_rows on are zeroed at their first access */
};

static struct ifd_jpeg_memory *memory_of(j_common_ptr jpeg)
{
    return (struct ifd_jpeg_memory *)jpeg->mem; /* its first member */
}

/* Reports an error as the library does; does not return. */
static void leave(j_common_ptr jpeg, int message)
{
    jpeg->err->msg_code = message;
    jpeg->err->error_exit(jpeg);
}

static void *take(j_common_ptr jpeg, int pool, size_t size)
{
    struct ifd_jpeg_memory *memory = memory_of(jpeg);
    struct ifd_jpeg_block *block = NULL;
    size_t bytes = 0;
    if (ifd_size_add(size, ALIGN, &bytes)) {
        block = memory->alloc->acquire(memory->alloc->context, bytes, ALIGN);
    }
    if (!block) {
        leave(jpeg, JERR_OUT_OF_MEMORY);
    }
    *block = (struct ifd_jpeg_block){.next = memory->pool[pool], .bytes = bytes};
    memory->pool[pool] = block;
    return (uint8_t *)block + ALIGN;
}

/* One block: pointers to rows, then the rows, each padded to whole vectors. */
static void *take_rows(j_common_ptr jpeg, int pool, size_t row_bytes, size_t rows)
{
    size_t pointers = 0, bytes = 0;
    if (!ifd_size_align(row_bytes, ALIGN, &row_bytes) ||
        !ifd_size_mul(rows, sizeof(void *), &pointers) ||
        !ifd_size_align(pointers, ALIGN, &pointers) || !ifd_size_mul(rows, row_bytes, &bytes) ||
        !ifd_size_add(bytes, pointers, &bytes)) {
        leave(jpeg, JERR_OUT_OF_MEMORY);
    }
    uint8_t *block = take(jpeg, pool, bytes);
    void **row = (void **)(void *)block;
    for (size_t i = 0; i < rows; i++) {
        row[i] = block + pointers + i * row_bytes;
    }
    return block;
}

static JSAMPARRAY take_samples(j_common_ptr jpeg, int pool, JDIMENSION samples, JDIMENSION rows)
{
    return take_rows(jpeg, pool, samples * sizeof(JSAMPLE), rows);
}

static JBLOCKARRAY take_blocks(j_common_ptr jpeg, int pool, JDIMENSION blocks, JDIMENSION rows)
{
    return take_rows(jpeg, pool, blocks * sizeof(JBLOCK), rows);
}

static jvirt_barray_ptr request_blocks(j_common_ptr jpeg, int pool, boolean pre_zero,
                                       JDIMENSION blocks, JDIMENSION rows, JDIMENSION max_access)
{
    (void)max_access;
    jvirt_barray_ptr array = take(jpeg, pool, sizeof(*array));
    *array = (struct jvirt_barray_control){.row = take_blocks(jpeg, pool, blocks, rows),
                                           .row_bytes = blocks * sizeof(JBLOCK),
                                           .rows = rows,
                                           .zeroed_rows = pre_zero ? 0 : rows};
    return array;
}

static JBLOCKARRAY access_blocks(j_common_ptr jpeg, jvirt_barray_ptr array, JDIMENSION first,
                                 JDIMENSION count, boolean writable)
{
    (void)writable;
    if (first > array->rows || count > array->rows - first) {
        leave(jpeg, JERR_BAD_VIRTUAL_ACCESS);
    }
    for (; array->zeroed_rows < first + count; array->zeroed_rows++) {
        memset(array->row[array->zeroed_rows], 0, array->row_bytes);
    }
    return array->row + first;
}

/* The library needs virtual arrays of samples only for two-pass palettes, which are never used
 * here. */
static jvirt_sarray_ptr request_samples(j_common_ptr jpeg, int pool, boolean pre_zero,
                                        JDIMENSION samples, JDIMENSION rows, JDIMENSION max_access)
{
    (void)pool, (void)pre_zero, (void)samples, (void)rows, (void)max_access;
    leave(jpeg, JERR_NOTIMPL);
    return NULL;
}

static JSAMPARRAY access_samples(j_common_ptr jpeg, jvirt_sarray_ptr array, JDIMENSION first,
                                 JDIMENSION count, boolean writable)
{
    (void)array, (void)first, (void)count, (void)writable;
    leave(jpeg, JERR_NOTIMPL);
    return NULL;
}

/* request_blocks has allocated already. */
static void realize(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void release_pool(struct ifd_jpeg_memory *memory, int pool)
{
    for (struct ifd_jpeg_block *block = memory->pool[pool], *next = NULL; block; block = next) {
        next = block->next;
        ifd_release(memory->alloc, block, block->bytes);
    }
    memory->pool[pool] = NULL;
}

static void free_pool(j_common_ptr jpeg, int pool)
{
    release_pool(memory_of(jpeg), pool);
}

/* Never called: ifd_jpeg_memory_end replaces this manager before jpeg is destroyed. */
static void self_destruct(j_common_ptr jpeg)
{
    (void)jpeg;
}

void ifd_jpeg_memory_begin(struct ifd_jpeg_memory *memory, j_common_ptr jpeg,
                           const struct ifd_alloc *alloc)
{
    *memory = (struct ifd_jpeg_memory){.manager = {.alloc_small = take,
                                                   .alloc_large = take,
                                                   .alloc_sarray = take_samples,
                                                   .alloc_barray = take_blocks,
                                                   .request_virt_sarray = request_samples,
                                                   .request_virt_barray = request_blocks,
                                                   .realize_virt_arrays = realize,
                                                   .access_virt_sarray = access_samples,
                                                   .access_virt_barray = access_blocks,
                                                   .free_pool = free_pool,
                                                   .self_destruct = self_destruct,
                                                   .max_alloc_chunk = jpeg->mem->max_alloc_chunk},
                                       .replaced = jpeg->mem,
                                       .alloc = alloc};
    jpeg->mem = &memory->manager;
}

void ifd_jpeg_memory_end(struct ifd_jpeg_memory *memory, j_common_ptr jpeg)
{
    if (!memory->replaced) {
        return;
    }
    for (int pool = 0; pool < JPOOL_NUMPOOLS; pool++) {
        release_pool(memory, pool);
    }
    jpeg->mem = memory->replaced;
}
