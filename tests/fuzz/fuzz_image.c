/* Any bytes as a picture: refused, or one or two regions of it decoded into pixels that all lie in
 * 0 … 255. No memory is kept. */
#include "server/media/image.h"
#include "tests/fuzz/fuzz.h"

#define SIDE 16

/* A region that depends on every byte; small enough to lie in most pictures of the corpus. */
static struct ifd_picture_region region_of(const uint8_t *data, size_t size, uint32_t seed)
{
    uint32_t sum = seed;
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
    static float pixel[2][SIDE * SIDE * 3];
    const struct ifd_image_limits limits = {.max_pixels = 1 << 16};
    struct ifd_image_target target = {.height = SIDE, .width = SIDE, .std = {1, 1, 1, 1}};
    const size_t regions = 1 + size % 7 % 2;
    struct ifd_picture picture[2];
    struct ifd_err err = {0};
    target.channels = size % 2 == 0 ? 1 : 3;
    target.channels_first = size % 3 == 0;
    size_t count = (size_t)SIDE * SIDE * target.channels;
    for (uint32_t i = 0; i < regions; i++) {
        picture[i] = (struct ifd_picture){
            .source = {.bytes = {.data = data, .size = size},
                       .has_region = size % 5 < 3,
                       .region = region_of(data, size, 1 + i)},
            .sample = {.dtype = IFD_F32, .data = pixel[i], .bytes = count * sizeof(float)}};
    }
    enum ifd_code code =
        ifd_image_to_tensors(picture, regions, &target, &limits, ifd_alloc_system(), &err);
    MUST(!code || err.text[0] != '\0');
    for (size_t i = 0; i < regions * count && !code; i++) {
        const float value = pixel[i / count][i % count];
        MUST(value >= 0 && value <= 255.001f);
    }
    return 0;
}
