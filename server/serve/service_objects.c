/* What outputs mean: found, encoded as masks, drawn on the request's picture. Sounds. */
#include "server/media/encode.h"
#include "server/media/sound.h"
#include "server/objects/draw.h"
#include "server/objects/objects.h"
#include "server/serve/service_impl.h"

enum ifd_code ifd_service_read_sound(struct ifd_service *service,
                                     const struct ifd_sound_source *source,
                                     const struct ifd_tensor_info *input, struct ifd_arena *arena,
                                     float **ret, size_t *ret_count, struct ifd_err *err)
{
    (void)service;
    return ifd_sound_read(source, input->sound.rate, arena, ret, ret_count, err);
}

enum ifd_code ifd_service_object_option(struct ifd_service *service,
                                        const struct ifd_model_desc *desc, struct ifd_str name,
                                        struct ifd_str value, struct ifd_arena *arena,
                                        struct ifd_object_options *ret, struct ifd_err *err)
{
    (void)service;
    return ifd_object_option(desc->meaning, name, value, arena, ret, err);
}

enum ifd_code ifd_service_find_objects(struct ifd_service *service,
                                       const struct ifd_model_desc *desc,
                                       const struct ifd_infer_request *request, size_t index,
                                       size_t count, const struct ifd_picture_view *view,
                                       const struct ifd_object_options *options,
                                       struct ifd_objects *ret, struct ifd_err *err)
{
    const struct ifd_sample sample = {
        .output = request->output, .index = index, .count = count, .view = view};
    (void)service;
    return ifd_objects_find(desc, &sample, options, request->arena, ret, err);
}

enum ifd_code ifd_service_encode_mask(struct ifd_service *service,
                                      const struct ifd_infer_request *request,
                                      const struct ifd_objects *found, struct ifd_bytes *ret,
                                      struct ifd_err *err)
{
    struct ifd_palette palette = {0};
    for (uint32_t i = 0; i < 255; i++) { /* 255 is no class, and black */
        ifd_class_color(i, palette.color[i]);
    }
    return ifd_png_encode_indexes(found->mask, found->mask_width, found->mask_height, &palette,
                                  service->options.alloc, request->arena, ret, err);
}

static bool is_abandoned(void *arg)
{
    const struct ifd_infer_request *request = arg;
    return atomic_load(&request->is_abandoned);
}

enum ifd_code ifd_service_draw_objects(struct ifd_service *service,
                                       const struct ifd_model_desc *desc,
                                       struct ifd_infer_request *request,
                                       const struct ifd_picture_source *source,
                                       const struct ifd_objects *found, size_t count,
                                       enum ifd_drawing drawing, struct ifd_bytes *ret,
                                       struct ifd_err *err)
{
    const struct ifd_alloc *alloc = service->options.alloc;
    const struct ifd_image_limits limits = {.max_pixels = service->options.config->image_max_pixels,
                                            .is_over = is_abandoned,
                                            .arg = request};
    struct ifd_pixels pixels = {0};
    enum ifd_code code = ifd_image_decode(source, &limits, alloc, &pixels, err);
    if (code) {
        return code;
    }
    const struct ifd_canvas canvas = {
        .data = pixels.data, .width = pixels.width, .height = pixels.height};
    for (size_t i = 0; i < count; i++) {
        ifd_objects_draw(&canvas, desc->meaning, &found[i]);
    }
    code = drawing == IFD_DRAWING_PNG ? ifd_png_encode(&pixels, alloc, request->arena, ret, err)
                                      : ifd_jpeg_encode(&pixels, alloc, request->arena, ret, err);
    ifd_pixels_free(&pixels, alloc);
    return code;
}
