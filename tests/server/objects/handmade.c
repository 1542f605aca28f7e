/* Models of a few numbers. */
#include "tests/server/objects/handmade.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

void handmade_init(struct handmade *model, uint32_t width, uint32_t height)
{
    *model = (struct handmade){
        .input = {.name = "in",
                  .dtype = IFD_U8,
                  .image = {.has_image = true, .width = width, .height = height, .channels = 3}},
        .view = {.width = width, .height = height, .scale_x = 1, .scale_y = 1}};
    model->desc = (struct ifd_model_desc){.name = "made",
                                          .backend = "",
                                          .input = &model->input,
                                          .input_count = 1,
                                          .output = model->output,
                                          .parameter = model->parameter};
    ifd_arena_init(&model->arena, ifd_alloc_system(), 0);
}

void handmade_finish(struct handmade *model)
{
    ifd_arena_finish(&model->arena);
}

void handmade_set(struct handmade *model, const char *key, const char *value)
{
    REQUIRE(model->desc.parameter_count < HANDMADE_PARAMETERS);
    model->parameter[model->desc.parameter_count++] =
        (struct ifd_parameter_info){.key = key, .value = value};
}

void handmade_output(struct handmade *model, const char *name, const int64_t *dim,
                     const float *values)
{
    REQUIRE(model->desc.output_count < HANDMADE_OUTPUTS);
    const uint32_t i = model->desc.output_count++;
    struct ifd_shape shape = {.rank = 1, .dim = {1}};
    size_t count = 1;
    while (*dim != 0) {
        count *= (size_t)*dim;
        shape.dim[shape.rank++] = *dim++;
    }
    float *data = ifd_arena_take_array(&model->arena, count, sizeof(*data));
    REQUIRE(data);
    for (size_t k = 0; values && k < count; k++) {
        data[k] = values[k];
    }
    model->output[i] = (struct ifd_tensor_info){
        .name = name, .dtype = IFD_F32, .shape = shape, .label_filename = ""};
    model->tensor[i] = (struct ifd_tensor){
        .dtype = IFD_F32, .shape = shape, .data = data, .bytes = count * sizeof(*data)};
}

enum ifd_code handmade_read(struct handmade *model)
{
    return ifd_meaning_read(&model->desc, &model->arena, &model->desc.meaning, &model->err);
}

void handmade_find(struct handmade *model, const char *option)
{
    const struct ifd_sample sample = {.output = model->tensor, .count = 1, .view = &model->view};
    REQUIRE(model->desc.meaning);
    struct ifd_object_options options = model->desc.meaning->options;
    if (option) {
        struct ifd_str value = ifd_str(option);
        const struct ifd_str name = ifd_str_part(&value, '=');
        REQUIRE_OK(ifd_object_option(model->desc.meaning, name, value, &model->arena, &options,
                                     &model->err),
                   &model->err);
    }
    REQUIRE_OK(ifd_objects_find(&model->desc, &sample, &options, &model->arena, &model->found,
                                &model->err),
               &model->err);
}
