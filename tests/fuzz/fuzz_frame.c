/* Any bytes as a frame without a header, whose sizes, stride, region and resizing are the first of
 * them: refused, or made into pixels that all lie in 0 … 255. */
#include <string.h>

#include "server/media/image.h"
#include "tests/fuzz/fuzz.h"

#define SIDE       9
#define HEAD_BYTES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float pixel[SIDE * SIDE * 3];
    static const struct ifd_image_limits limits = {.max_pixels = 1 << 12};
    struct ifd_image_target target = {.height = SIDE, .width = SIDE, .std = {1, 1, 1, 1}};
    uint16_t head[HEAD_BYTES / 2];
    if (size < HEAD_BYTES) {
        return 0;
    }
    memcpy(head, data, sizeof(head));
    struct ifd_picture_source source = {
        .bytes = {data + HEAD_BYTES, size - HEAD_BYTES},
        .format = (enum ifd_frame_format)(IFD_FRAME_NV12 + head[0] % (IFD_FRAME_COUNT - 1)),
        .width = head[1],
        .height = head[2],
        .stride = head[3],
        .has_region = head[0] & 256,
        .region = {.x = head[4], .y = head[5], .width = head[6], .height = head[7]}};
    target.channels = head[0] & 512 ? 1 : 3;
    target.channels_first = head[0] & 1024;
    target.resize = (enum ifd_image_resize)((head[0] >> 12) % IFD_RESIZE_COUNT);
    const size_t count = (size_t)SIDE * SIDE * target.channels;
    struct ifd_tensor tensor = {.data = pixel, .bytes = count * sizeof(float)};
    struct ifd_picture_view view;
    struct ifd_err err = {0};
    tensor.dtype = IFD_F32;
    enum ifd_code code =
        ifd_image_to_tensor(&source, &target, &limits, &tensor, ifd_alloc_system(), &view, &err);
    MUST(!code || err.text[0] != '\0');
    for (size_t i = 0; i < count && !code; i++) {
        MUST(pixel[i] >= -0.001f && pixel[i] <= 255.001f);
    }
    return 0;
}
