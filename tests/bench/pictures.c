/* CPU time from a picture to a tensor, beside libjpeg-turbo's own decoding of it:
 *
 *     build/tests/pictures PICTURE.jpg [ROUNDS]
 *
 * Prints milliseconds of one thread, the least of all rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jpeglib.h>

#include "engine/base/file.h"
#include "server/media/image.h"

static double cpu_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* By the library alone, row by row into one row; eighths: its scale. */
static void decode(struct ifd_bytes jpeg, unsigned eighths, uint32_t *ret_width,
                   uint32_t *ret_height)
{
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    decoder.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&decoder);
    jpeg_mem_src(&decoder, jpeg.data, (unsigned long)jpeg.size);
    (void)jpeg_read_header(&decoder, TRUE);
    decoder.scale_num = eighths;
    decoder.scale_denom = 8;
    (void)jpeg_start_decompress(&decoder);
    JSAMPROW row = malloc((size_t)decoder.output_width * 4);
    while (decoder.output_scanline < decoder.output_height) {
        (void)jpeg_read_scanlines(&decoder, &row, 1);
    }
    free(row);
    *ret_width = decoder.image_width;
    *ret_height = decoder.image_height;
    (void)jpeg_finish_decompress(&decoder);
    jpeg_destroy_decompress(&decoder);
}

static void measure_decoding(struct ifd_bytes jpeg, int rounds, uint32_t *width, uint32_t *height)
{
    for (unsigned eighths = 1; eighths <= 8; eighths *= 2) {
        double least = 1e9;
        for (int i = 0; i < rounds; i++) {
            const double begin = cpu_ms();
            decode(jpeg, eighths, width, height);
            least = cpu_ms() - begin < least ? cpu_ms() - begin : least;
        }
        (void)printf("libjpeg %u/8: %.3f\n", eighths, least);
    }
}

static void measure(const char *name, const struct ifd_picture_source *source, uint32_t side,
                    enum ifd_dtype dtype, int rounds)
{
    static const struct ifd_image_limits limits = {.max_pixels = (uint64_t)1 << 26};
    const struct ifd_image_target target = {
        .height = side, .width = side, .channels = 3, .std = {1, 1, 1, 1}};
    struct ifd_tensor tensor = {.dtype = dtype};
    struct ifd_picture_view view;
    struct ifd_err err = {0};
    double least = 1e9;
    tensor.bytes = (size_t)side * side * 3 * ifd_dtype_bytes(dtype);
    tensor.data = malloc(tensor.bytes);
    for (int i = 0; i < rounds; i++) {
        const double begin = cpu_ms();
        if (ifd_image_to_tensor(source, &target, &limits, &tensor, ifd_alloc_system(), &view,
                                &err)) {
            (void)fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        least = cpu_ms() - begin < least ? cpu_ms() - begin : least;
    }
    (void)printf("%s to %u %s: %.3f\n", name, side, ifd_dtype_wire_name(dtype), least);
    free(tensor.data);
}

int main(int argc, char **argv)
{
    static const uint32_t sides[] = {224, 300, 640};
    const int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 200;
    struct ifd_picture_source jpeg = {.width = 0};
    struct ifd_err err = {0};
    uint32_t width = 0, height = 0;
    if (argc < 2 || ifd_file_read(argv[1], SIZE_MAX, ifd_alloc_system(), &jpeg.bytes, &err)) {
        (void)fprintf(stderr, "pictures PICTURE.jpg [ROUNDS]: %s\n", err.text);
        return 2;
    }
    measure_decoding(jpeg.bytes, rounds, &width, &height);
    const size_t bytes = (size_t)width * height * 3 / 2;
    const struct ifd_picture_source frame = {.bytes = {calloc(bytes, 1), bytes},
                                             .format = IFD_FRAME_NV12,
                                             .width = width,
                                             .height = height};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        measure("JPEG", &jpeg, sides[i], IFD_U8, rounds);
        measure("JPEG", &jpeg, sides[i], IFD_F32, rounds);
        measure("NV12", &frame, sides[i], IFD_U8, rounds);
    }
    return 0;
}
