/* JPEG by libjpeg-turbo. */
#include "server/media/codecs_impl.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "server/media/exif.h"
#include "server/media/jpeg_memory.h"

/* A progressive picture may have any number of scans; each costs a pass over the whole picture. */
#define SCANS_MAX 64
/* What a marker can hold. */
#define EXIF_BYTES_MAX 0xffff

struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct ifd_jpeg_memory memory;
    jmp_buf leave;
    struct ifd_codec_request *request;
    enum ifd_code code;
};

/* The library offers no way but a jump to return from an error. */
static void on_error(j_common_ptr common)
{
    struct decoder *d = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    d->code =
        common->err->msg_code == JERR_OUT_OF_MEMORY
            ? ifd_fail(d->request->err, IFD_NOMEM, "no memory to decode a JPEG picture of %u×%u",
                       d->jpeg.image_width, d->jpeg.image_height)
            : ifd_fail(d->request->err, IFD_CORRUPT, "JPEG picture is corrupt: %s", text);
    longjmp(d->leave, 1);
}

/* The library fills a picture that ends early with grey; an error is better than an answer about
 * grey. */
static void on_message(j_common_ptr common, int level)
{
    struct decoder *d = common->client_data;
    if (level < 0 && common->err->msg_code == JWRN_JPEG_EOF) {
        d->code = ifd_fail(d->request->err, IFD_CORRUPT, "JPEG picture ends too early");
        longjmp(d->leave, 1);
    }
}

/* Called between the rows of each scan. */
static void on_progress(j_common_ptr common)
{
    struct decoder *d = common->client_data;
    d->code = ifd_codec_check_wanted(d->request);
    if (d->code) {
        longjmp(d->leave, 1);
    }
    if (d->jpeg.input_scan_number > SCANS_MAX) {
        d->code = ifd_fail(d->request->err, IFD_TOO_LARGE, "JPEG picture has more than %d scans",
                           SCANS_MAX);
        longjmp(d->leave, 1);
    }
}

/* Only powers of two: libjpeg-turbo has vectors for these alone, and 4/8 takes less time than
 * 3/8. */
static void choose_scale(struct decoder *d)
{
    unsigned n = 1;
    while (n < 8 && n < 8 * d->request->least_scale) {
        n *= 2;
    }
    d->jpeg.scale_denom = 8;
    d->jpeg.scale_num = n;
    jpeg_calc_output_dimensions(&d->jpeg);
}

/* Smoothing of reduced colours looks at neighbours: so many pixels beside the shown part are
 * decoded, too, so that the shown ones are the same as in the whole picture. */
#define BESIDE 2

static void widen(uint32_t *from, uint32_t *to, uint32_t most)
{
    *from -= *from < BESIDE ? *from : BESIDE;
    *to = most - *to < BESIDE ? most : *to + BESIDE;
}

/* The rows and columns to decode, in decoded pixels. All of a picture of several scans: the library
 * decodes it as a whole, and its ways to leave parts out had defects with such pictures. */
static struct ifd_picture_region part_to_decode(const struct decoder *d)
{
    const struct jpeg_decompress_struct *jpeg = &d->jpeg;
    const struct ifd_picture_region from = ifd_codec_stored_part(d->request);
    const uint64_t n = jpeg->scale_num;
    uint32_t left = (uint32_t)(from.x * n / 8), top = (uint32_t)(from.y * n / 8);
    uint32_t right = (uint32_t)((((uint64_t)from.x + from.width) * n + 7) / 8);
    uint32_t bottom = (uint32_t)((((uint64_t)from.y + from.height) * n + 7) / 8);
    if (jpeg->progressive_mode || jpeg_has_multiple_scans((j_decompress_ptr)(uintptr_t)jpeg)) {
        return (struct ifd_picture_region){.width = jpeg->output_width,
                                           .height = jpeg->output_height};
    }
    widen(&left, &right, jpeg->output_width);
    widen(&top, &bottom, jpeg->output_height);
    return (struct ifd_picture_region){
        .x = left, .y = top, .width = right - left, .height = bottom - top};
}

/* EXIF lies in a marker that begins with its name and two zeros. */
static unsigned orientation_of(const struct jpeg_decompress_struct *jpeg)
{
    static const char name[6] = "Exif";
    for (const struct jpeg_marker_struct *m = jpeg->marker_list; m; m = m->next) {
        if (m->data_length > sizeof(name) && memcmp(m->data, name, sizeof(name)) == 0) {
            return ifd_exif_orientation(
                (struct ifd_bytes){m->data + sizeof(name), m->data_length - sizeof(name)});
        }
    }
    return 1;
}

static enum ifd_code read_part(struct decoder *d, struct ifd_picture_region part, uint32_t channels)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    if (part.width < jpeg->output_width) {
        JDIMENSION left = part.x, width = part.width; /* the library begins at a whole block */
        jpeg_crop_scanline(jpeg, &left, &width);
        part.x = left;
        part.width = width;
    }
    enum ifd_code code = ifd_decoded_take(d->request, part.width, part.height, channels);
    if (code) {
        return code;
    }
    struct ifd_plane *plane = &d->request->ret->plane[0];
    plane->scale_x = plane->scale_y = jpeg->scale_num / 8.0;
    plane->left = part.x;
    plane->top = part.y;
    if (part.y > 0) {
        (void)jpeg_skip_scanlines(jpeg, part.y);
    }
    for (uint32_t y = 0; y < part.height; y++) {
        JSAMPROW row = d->request->ret->memory + y * plane->stride;
        (void)jpeg_read_scanlines(jpeg, &row, 1);
    }
    if (jpeg->output_scanline == jpeg->output_height) {
        (void)jpeg_finish_decompress(jpeg);
    }
    return IFD_OK;
}

static enum ifd_code decode(struct decoder *d)
{
    struct ifd_codec_request *request = d->request;
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    const struct ifd_bytes bytes = request->picture->source.bytes;
    jpeg_mem_src(jpeg, bytes.data, (unsigned long)bytes.size);
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, EXIF_BYTES_MAX);
    (void)jpeg_read_header(jpeg, TRUE);
    enum ifd_code code =
        ifd_codec_begin(request, jpeg->image_width, jpeg->image_height, orientation_of(jpeg));
    if (code) {
        return code;
    }
    if (jpeg->num_components != 1 && jpeg->num_components != 3) {
        return ifd_fail(request->err, IFD_UNSUPPORTED,
                        "JPEG picture has %d components, 1 or 3 can be read", jpeg->num_components);
    }
    if (jpeg->data_precision != 8) {
        return ifd_fail(request->err, IFD_UNSUPPORTED,
                        "JPEG picture has %d bits per sample, 8 can be read", jpeg->data_precision);
    }
    bool is_grey =
        request->target && request->target->channels == 1 && jpeg->jpeg_color_space != JCS_RGB;
    jpeg->out_color_space = is_grey ? JCS_GRAYSCALE : JCS_EXT_RGBX;
    jpeg->dct_method = JDCT_ISLOW;
    choose_scale(d);
    (void)jpeg_start_decompress(jpeg);
    return read_part(d, part_to_decode(d), is_grey ? 1 : 4);
}

/* The decoder is in the caller's frame: locals of this function would be undefined after the
 * jump. */
static void decode_guarded(struct decoder *d)
{
    if (setjmp(d->leave) == 0) {
        jpeg_create_decompress(&d->jpeg);
        ifd_jpeg_memory_begin(&d->memory, (j_common_ptr)&d->jpeg, d->request->alloc);
        d->progress.progress_monitor = on_progress;
        d->jpeg.progress = &d->progress;
        d->code = decode(d);
    }
}

enum ifd_code ifd_jpeg_decode(struct ifd_codec_request *request)
{
    struct decoder d = {.request = request};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_message;
    d.jpeg.client_data = &d;
    decode_guarded(&d);
    ifd_jpeg_memory_end(&d.memory, (j_common_ptr)&d.jpeg);
    jpeg_destroy_decompress(&d.jpeg);
    if (d.code) {
        ifd_decoded_free(request->ret, request->alloc);
    }
    return d.code;
}
