/* JPEG by libjpeg-turbo, written. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "server/media/encode.h"
#include "server/media/jpeg_memory.h"

#define QUALITY     85
#define FIRST_BYTES ((size_t)64 << 10)

struct encoder {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    struct ifd_jpeg_memory memory;
    jmp_buf leave;
    struct ifd_arena *arena;
    uint8_t *data; /* in the arena; when it is full, a copy has twice the size */
    size_t capacity;
    struct ifd_err *err;
    enum ifd_code code;
};

/* The library offers no way but a jump to return from an error. */
static void on_error(j_common_ptr common)
{
    struct encoder *e = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    if (!e->code) {
        e->code = ifd_fail(e->err,
                           common->err->msg_code == JERR_OUT_OF_MEMORY ? IFD_NOMEM : IFD_TOO_LARGE,
                           "JPEG picture cannot be written: %s", text);
    }
    longjmp(e->leave, 1);
}

static void on_message(j_common_ptr common, int level)
{
    (void)common, (void)level;
}

static void set_room(struct encoder *e, size_t used)
{
    e->destination.next_output_byte = e->data + used;
    e->destination.free_in_buffer = e->capacity - used;
}

static void grow(struct encoder *e, size_t capacity)
{
    uint8_t *data = ifd_arena_take_room(e->arena, capacity);
    if (!data) {
        e->code = ifd_arena_fail(e->arena, capacity, e->err);
        longjmp(e->leave, 1);
    }
    if (e->capacity > 0) {
        memcpy(data, e->data, e->capacity);
    }
    e->data = data;
    e->capacity = capacity;
}

static void begin(j_compress_ptr jpeg)
{
    struct encoder *e = jpeg->client_data;
    grow(e, FIRST_BYTES);
    set_room(e, 0);
}

static boolean more(j_compress_ptr jpeg)
{
    struct encoder *e = jpeg->client_data;
    const size_t used = e->capacity;
    grow(e, 2 * e->capacity);
    set_room(e, used);
    return TRUE;
}

static void end(j_compress_ptr jpeg)
{
    (void)jpeg;
}

static void encode(struct encoder *e, const struct ifd_pixels *pixels)
{
    struct jpeg_compress_struct *jpeg = &e->jpeg;
    jpeg->image_width = pixels->width;
    jpeg->image_height = pixels->height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, QUALITY, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = pixels->data + (size_t)jpeg->next_scanline * pixels->width * 3;
        (void)jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
}

/* The encoder is in the caller's frame: locals of this function would be undefined after the
 * jump. */
static void encode_guarded(struct encoder *e, const struct ifd_pixels *pixels,
                           const struct ifd_alloc *alloc)
{
    if (setjmp(e->leave) == 0) {
        jpeg_create_compress(&e->jpeg);
        e->jpeg.dest = &e->destination;
        ifd_jpeg_memory_begin(&e->memory, (j_common_ptr)&e->jpeg, alloc);
        encode(e, pixels);
    }
}

enum ifd_code ifd_jpeg_encode(const struct ifd_pixels *pixels, const struct ifd_alloc *alloc,
                              struct ifd_arena *arena, struct ifd_bytes *ret, struct ifd_err *err)
{
    struct encoder e = {.arena = arena, .err = err};
    e.jpeg.err = jpeg_std_error(&e.errors);
    e.errors.error_exit = on_error;
    e.errors.emit_message = on_message;
    e.destination = (struct jpeg_destination_mgr){
        .init_destination = begin, .empty_output_buffer = more, .term_destination = end};
    e.jpeg.client_data = &e;
    encode_guarded(&e, pixels, alloc);
    ifd_jpeg_memory_end(&e.memory, (j_common_ptr)&e.jpeg);
    jpeg_destroy_compress(&e.jpeg);
    if (e.code) {
        return e.code;
    }
    *ret = (struct ifd_bytes){.data = e.data, .size = e.capacity - e.destination.free_in_buffer};
    return IFD_OK;
}
