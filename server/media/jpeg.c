/* JPEG by libjpeg-turbo. */
#include "server/media/codecs_impl.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "server/media/jpeg_memory.h"

/* A progressive picture may have any number of scans; each costs a pass over the whole picture. */
#define SCANS_MAX 64

struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct ifd_jpeg_memory memory;
    jmp_buf leave;
    const struct ifd_codec_request *request;
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

/* The smallest n/8 at which the picture still covers the target. */
static void choose_scale(struct decoder *d)
{
    const struct ifd_image_target *target = d->request->target;
    d->jpeg.scale_denom = 8;
    for (unsigned n = 1; n <= 8; n++) {
        d->jpeg.scale_num = n;
        jpeg_calc_output_dimensions(&d->jpeg);
        if (d->jpeg.output_width >= target->width && d->jpeg.output_height >= target->height) {
            return;
        }
    }
    d->jpeg.scale_num = 8;
    jpeg_calc_output_dimensions(&d->jpeg);
}

static enum ifd_code decode(struct decoder *d)
{
    const struct ifd_codec_request *request = d->request;
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    jpeg_mem_src(jpeg, request->picture.data, (unsigned long)request->picture.size);
    (void)jpeg_read_header(jpeg, TRUE);
    enum ifd_code code = ifd_pixels_check(request, jpeg->image_width, jpeg->image_height);
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
    bool is_grey = request->target->channels == 1 && jpeg->jpeg_color_space != JCS_RGB;
    jpeg->out_color_space = is_grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    choose_scale(d);
    code = ifd_pixels_take(request, jpeg->output_width, jpeg->output_height, is_grey ? 1 : 3);
    if (code) {
        return code;
    }
    request->ret->picture_width = jpeg->image_width;
    request->ret->picture_height = jpeg->image_height;
    (void)jpeg_start_decompress(jpeg);
    size_t row_bytes = (size_t)jpeg->output_width * (is_grey ? 1 : 3);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = request->ret->data + jpeg->output_scanline * row_bytes;
        (void)jpeg_read_scanlines(jpeg, &row, 1);
    }
    (void)jpeg_finish_decompress(jpeg);
    return IFD_OK;
}

/* The decoder is in the caller's frame: locals of this function would be undefined after the
 * jump. */
static void decode_guarded(struct decoder *d)
{
    if (setjmp(d->leave) == 0) {
        jpeg_create_decompress(&d->jpeg);
        ifd_jpeg_memory_begin(&d->memory, &d->jpeg, d->request->alloc);
        d->progress.progress_monitor = on_progress;
        d->jpeg.progress = &d->progress;
        d->code = decode(d);
    }
}

enum ifd_code ifd_jpeg_decode(const struct ifd_codec_request *request)
{
    struct decoder d = {.request = request};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_message;
    d.jpeg.client_data = &d;
    decode_guarded(&d);
    ifd_jpeg_memory_end(&d.memory, &d.jpeg);
    jpeg_destroy_decompress(&d.jpeg);
    if (d.code) {
        ifd_pixels_free(request->ret, request->alloc);
    }
    return d.code;
}
