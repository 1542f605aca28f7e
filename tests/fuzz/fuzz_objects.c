/* Any config, outputs of any form and any numbers: the meaning is refused with a reason, or what is
 * found lies in the picture, is not too much, and can be drawn.
 *
 * The input's lines before an empty one are outputs, "o 4,6" is [1,4,6], or parameters "key=value";
 * the bytes behind it are the outputs' numbers, again and again. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/objects/draw.h"
#include "server/objects/objects.h"
#include "tests/fuzz/fuzz.h"

#define OUTPUTS    4
#define PARAMETERS 24
#define ELEMENTS   ((size_t)1 << 14)
#define WIDTH      40
#define HEIGHT     30

struct model {
    struct ifd_model_desc desc;
    struct ifd_tensor_info input, output[OUTPUTS];
    struct ifd_tensor tensor[OUTPUTS];
    struct ifd_parameter_info parameter[PARAMETERS];
    struct ifd_arena arena;
};

static const char *copy(struct model *model, struct ifd_str text)
{
    const char *made = ifd_arena_text(&model->arena, text.data, text.size);
    MUST(made);
    return made;
}

/* Adds an output of the dimensions in text, if it is not too large. */
static void add_output(struct model *model, struct ifd_str text, struct ifd_bytes numbers)
{
    static const char *const names[OUTPUTS] = {"a", "b", "c", "d"};
    const uint32_t at = model->desc.output_count;
    struct ifd_shape shape = {.rank = 1, .dim = {1}};
    size_t count = 1;
    for (struct ifd_str rest = text; rest.data && shape.rank < 6; shape.rank++) {
        uint64_t dim = 0;
        if (!ifd_str_u64(ifd_str_part(&rest, ','), &dim) || dim > ELEMENTS) {
            return;
        }
        shape.dim[shape.rank] = (int64_t)dim;
        count *= (size_t)dim;
        if (count > ELEMENTS) {
            return;
        }
    }
    if (at == OUTPUTS) {
        return;
    }
    float *data = ifd_arena_take_array(&model->arena, count + 1, sizeof(*data));
    MUST(data);
    uint8_t *byte = (uint8_t *)data;
    for (size_t i = 0; i < count * sizeof(*data) && numbers.size > 0; i++) {
        byte[i] = numbers.data[i % numbers.size];
    }
    model->output[at] = (struct ifd_tensor_info){
        .name = names[at], .dtype = IFD_F32, .shape = shape, .label_filename = ""};
    model->tensor[at] = (struct ifd_tensor){
        .dtype = IFD_F32, .shape = shape, .data = data, .bytes = count * sizeof(*data)};
    model->desc.output_count++;
}

static void read_lines(struct model *model, struct ifd_str head, struct ifd_bytes numbers)
{
    while (head.data) {
        struct ifd_str line = ifd_str_part(&head, '\n');
        if (ifd_str_starts(line, "o ")) {
            add_output(model, (struct ifd_str){line.data + 2, line.size - 2}, numbers);
        } else if (line.size > 0 && model->desc.parameter_count < PARAMETERS) {
            const struct ifd_str key = ifd_str_part(&line, '=');
            model->parameter[model->desc.parameter_count++] = (struct ifd_parameter_info){
                .key = copy(model, key), .value = line.data ? copy(model, line) : ""};
        }
    }
}

static void check(const struct ifd_objects *found, const struct ifd_object_options *options)
{
    MUST(found->object_count <= options->top_k);
    for (uint32_t i = 0; i < found->object_count; i++) {
        const struct ifd_object *object = &found->object[i];
        const float *box = object->box;
        MUST(isfinite(object->score) && object->score >= options->threshold);
        MUST(!object->has_box || (box[0] >= 0 && box[0] < box[2] && box[2] <= WIDTH &&
                                  box[1] >= 0 && box[1] < box[3] && box[3] <= HEIGHT));
        for (uint32_t k = 0; k < object->keypoint_count; k++) {
            MUST(isfinite(object->keypoint[k].x) && isfinite(object->keypoint[k].y));
        }
    }
    for (uint32_t i = 0; i < found->segment_count; i++) {
        MUST(found->segment[i].area > 0 && found->segment[i].area <= 1);
    }
}

static void find(struct model *model)
{
    static uint8_t pixels[WIDTH * HEIGHT * 3];
    const struct ifd_picture_view view = {.width = WIDTH,
                                          .height = HEIGHT,
                                          .offset_x = -2,
                                          .scale_x = WIDTH / 32.0,
                                          .scale_y = HEIGHT / 32.0};
    const struct ifd_sample sample = {.output = model->tensor, .count = 1, .view = &view};
    const struct ifd_canvas canvas = {.data = pixels, .width = WIDTH, .height = HEIGHT};
    struct ifd_object_options options = model->desc.meaning->options;
    struct ifd_objects found;
    struct ifd_err err = {0};
    options.mask = IFD_MASK_PNG;
    const enum ifd_code code =
        ifd_objects_find(&model->desc, &sample, &options, &model->arena, &found, &err);
    MUST(!code || err.text[0] != '\0');
    if (!code) {
        check(&found, &options);
        ifd_objects_draw(&canvas, model->desc.meaning, &found);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model model = {
        .input = {.name = "in",
                  .image = {.has_image = true, .width = 32, .height = 32, .channels = 3}}};
    struct ifd_err err = {0};
    size_t head = 0;
    while (head < size && (data[head] != '\n' || head == 0 || data[head - 1] != '\n')) {
        head++;
    }
    const size_t behind = head < size ? head + 1 : size;
    model.desc = (struct ifd_model_desc){.name = "fuzz",
                                         .backend = size % 2 ? "tflite" : "onnx",
                                         .input = &model.input,
                                         .input_count = 1,
                                         .output = model.output,
                                         .parameter = model.parameter};
    ifd_arena_init(&model.arena, ifd_alloc_system(), 0);
    read_lines(&model, (struct ifd_str){(const char *)data, head},
               (struct ifd_bytes){data + behind, size - behind});
    const enum ifd_code code =
        ifd_meaning_read(&model.desc, &model.arena, &model.desc.meaning, &err);
    MUST(!code || (err.text[0] != '\0' && !model.desc.meaning));
    if (!code && model.desc.meaning) {
        find(&model);
    }
    ifd_arena_finish(&model.arena);
    return 0;
}
