/* Any bytes as a picture: refused, or decoded into pixels that all lie in 0 … 255. No memory is
 * kept. */
#include "server/media/image.h"
#include "tests/fuzz/fuzz.h"

#define SIDE 16

/* A region that depends on every byte; small enough to lie in most pictures of the corpus. */
static struct ifd_picture_region region_of(const uint8_t *data, size_t size)
{
    uint32_t sum = 1;
    for (size_t i = 0; i < size; i++) {
        sum = sum * 16777619u + data[i];
    }
    return (struct ifd_picture_region){.x = sum % 32,
                                       .y = sum / 32 % 32,
                                       .width = 1 + sum / 1024 % 32,
                                       .height = 1 + sum / 32768 % 32};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float pixel[SIDE * SIDE * 3];
    const struct ifd_image_limits limits = {.max_pixels = 1 << 16};
    struct ifd_image_target target = {.height = SIDE, .width = SIDE, .std = {1, 1, 1, 1}};
    const struct ifd_picture_source source = {.bytes = {.data = data, .size = size},
                                              .has_region = size % 5 < 3,
                                              .region = region_of(data, size)};
    struct ifd_picture_view view;
    struct ifd_err err = {0};
    target.channels = size % 2 == 0 ? 1 : 3;
    target.channels_first = size % 3 == 0;
    size_t count = (size_t)SIDE * SIDE * target.channels;
    struct ifd_tensor tensor = {.data = pixel, .bytes = count * sizeof(float)};
    tensor.dtype = IFD_F32;
    enum ifd_code code =
        ifd_image_to_tensor(&source, &target, &limits, &tensor, ifd_alloc_system(), &view, &err);
    MUST(!code || err.text[0] != '\0');
    for (size_t i = 0; i < count && !code; i++) {
        MUST(pixel[i] >= 0 && pixel[i] <= 255.001f);
    }
    return 0;
}
