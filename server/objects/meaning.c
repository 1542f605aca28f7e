/* Finds out what a model's outputs mean, and reads outputs by it. */
#include "engine/base/str.h"
#include "server/objects/decoder_impl.h"
#include "server/objects/names_impl.h"

static const struct ifd_decoder *const decoders[] = {
#define X(id) &ifd_decoder_##id,
#include "server/objects/decoder_list.inc"
#undef X
};
#define DECODER_COUNT ((uint32_t)(sizeof(decoders) / sizeof(decoders[0])))

/* ---- for prepare ---- */

struct ifd_shape ifd_setup_shape(const struct ifd_setup *setup, uint32_t output)
{
    const struct ifd_shape *whole = &setup->desc->output[output].shape;
    const bool has_lead = setup->desc->max_batch_size == 0 && whole->rank > 0 &&
                          (whole->dim[0] == 1 || whole->dim[0] == IFD_DIM_ANY);
    struct ifd_shape shape = *whole;
    if (has_lead) {
        shape = (struct ifd_shape){.rank = whole->rank - 1};
        for (uint32_t i = 0; i < shape.rank; i++) {
            shape.dim[i] = whole->dim[i + 1];
        }
    }
    return shape;
}

int64_t ifd_setup_count(const struct ifd_setup *setup, uint32_t output)
{
    const struct ifd_shape shape = ifd_setup_shape(setup, output);
    size_t count = 1;
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (shape.dim[i] < 0 || !ifd_size_mul(count, (size_t)shape.dim[i], &count)) {
            return IFD_DIM_ANY;
        }
    }
    const uint64_t wide = count; /* a size_t of 32 bits is always below INT64_MAX */
    return wide <= INT64_MAX ? (int64_t)wide : IFD_DIM_ANY;
}

const char *ifd_setup_name(const struct ifd_setup *setup, uint32_t role)
{
    return setup->desc->output[setup->role[role]].name;
}

enum ifd_code ifd_setup_plan(struct ifd_setup *setup, const void *made, size_t size,
                             struct ifd_plan **ret, struct ifd_err *err)
{
    struct ifd_plan *plan = ifd_arena_take(setup->arena, size);
    if (!plan) {
        return ifd_arena_fail(setup->arena, size, err);
    }
    memcpy(plan, made, size);
    plan->role_count = setup->role_count;
    for (uint32_t i = 0; i < setup->role_count; i++) {
        plan->role[i] = setup->role[i];
    }
    *ret = plan;
    return IFD_OK;
}

void ifd_setup_one_role(struct ifd_setup *setup)
{
    if (!setup->are_roles_named) {
        setup->role[0] = 0;
        setup->role_count = 1;
    }
}

enum ifd_code ifd_setup_activation(const struct ifd_setup *setup, const char *key, bool has_softmax,
                                   uint32_t *ret, struct ifd_err *err)
{
    static const char *const names[] = {
#define X(id, name) [IFD_ACTIVATION_##id] = (name),
        IFD_ACTIVATIONS(X)
#undef X
    };
    return ifd_parameter_word(setup->desc, key, names,
                              has_softmax ? IFD_ACTIVATION_COUNT : IFD_ACTIVATION_SOFTMAX, ret,
                              err);
}

/* ---- names ---- */

/* Names with commas between them, or the name of one of our lists. */
static enum ifd_code read_names(struct ifd_arena *arena, struct ifd_str text,
                                const char *const **ret, uint32_t *ret_count, struct ifd_err *err)
{
    uint32_t count = 1;
    if (ifd_names_builtin(text, ret, ret_count)) {
        return IFD_OK;
    }
    for (size_t i = 0; i < text.size; i++) {
        count += text.data[i] == ',';
    }
    const char **name = ifd_arena_take_array(arena, count, sizeof(*name));
    if (!name) {
        return ifd_arena_fail(arena, count * sizeof(*name), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_str part = ifd_str_trim(ifd_str_part(&text, ','));
        name[i] = ifd_arena_text(arena, part.data, part.size);
        if (!name[i]) {
            return ifd_arena_fail(arena, part.size, err);
        }
    }
    *ret = name;
    *ret_count = count;
    return IFD_OK;
}

enum ifd_code ifd_setup_classes(struct ifd_setup *setup, int64_t class_count, struct ifd_err *err)
{
    struct ifd_meaning *meaning = setup->meaning;
    if (class_count < 0 || class_count == meaning->label_count) {
        return IFD_OK;
    }
    if (setup->are_labels_listed) {
        return ifd_fail(err, IFD_INVALID, "parameter \"labels\": %u names for %lld classes",
                        meaning->label_count, (long long)class_count);
    }
    meaning->label_count = setup->are_labels_ours ? 0 : meaning->label_count;
    return IFD_OK;
}

enum ifd_code ifd_setup_keypoints(struct ifd_setup *setup, uint32_t count, struct ifd_err *err)
{
    struct ifd_meaning *meaning = setup->meaning;
    const struct ifd_str text = ifd_parameter(setup->desc, "keypoint_names");
    if (!text.data) {
        return IFD_OK;
    }
    enum ifd_code code =
        read_names(setup->arena, text, &meaning->keypoint_name, &meaning->keypoint_name_count, err);
    if (!code && meaning->keypoint_name_count != count) {
        code = ifd_fail(err, IFD_INVALID, "parameter \"keypoint_names\": %u names for %u keypoints",
                        meaning->keypoint_name_count, count);
    }
    (void)ifd_bones_builtin(text, &meaning->bone, &meaning->bone_count); /* or there are none */
    return code;
}

enum ifd_code ifd_setup_layout(const struct ifd_setup *setup, bool *ret_channels_first,
                               struct ifd_err *err)
{
    static const char *const layouts[] = {"hwc", "chw"};
    const struct ifd_model_desc *desc = setup->desc;
    const bool is_picture_nchw = desc->input_count > 0 && desc->input[0].format == IFD_FORMAT_NCHW;
    uint32_t layout = is_picture_nchw ? 1 : 0;
    enum ifd_code code = ifd_parameter_word(desc, "output_layout", layouts, 2, &layout, err);
    *ret_channels_first = layout == 1;
    return code;
}

enum ifd_code ifd_setup_unit(const struct ifd_setup *setup, float *ret_x, float *ret_y,
                             struct ifd_err *err)
{
    static const char *const units[] = {"pixels", "input"};
    const bool is_tflite = strcmp(setup->desc->backend, "tflite") == 0;
    uint32_t unit = is_tflite ? 1 : 0;
    enum ifd_code code = ifd_parameter_word(setup->desc, "box_unit", units, 2, &unit, err);
    *ret_x = unit == 1 ? setup->meaning->input_width : 1;
    *ret_y = unit == 1 ? setup->meaning->input_height : 1;
    return code;
}

/* From the outputs (config or file), else the parameter or preset. */
static enum ifd_code find_labels(struct ifd_setup *setup, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = setup->desc;
    for (uint32_t i = 0; i < desc->output_count; i++) {
        if (desc->output[i].label_count > 0) {
            setup->meaning->label = desc->output[i].labels;
            setup->meaning->label_count = desc->output[i].label_count;
            return IFD_OK;
        }
    }
    const struct ifd_str text = ifd_parameter(setup->desc, "labels");
    if (!text.data) {
        return IFD_OK;
    }
    enum ifd_code code =
        read_names(setup->arena, text, &setup->meaning->label, &setup->meaning->label_count, err);
    setup->are_labels_ours =
        ifd_names_builtin(text, &setup->meaning->label, &setup->meaning->label_count);
    setup->are_labels_listed = !setup->are_labels_ours;
    return code;
}

/* ---- what an output means if nobody says it ---- */

/* Whether an output has one score for each label; one more or less for the background. */
static bool is_scores(const struct ifd_setup *setup, uint32_t output)
{
    const int64_t count = ifd_setup_count(setup, output);
    const int64_t labels = setup->desc->output[output].label_count;
    return labels > 0 && count + 1 >= labels && count <= labels + 1;
}

/* Whether an output has a score of each label for each pixel. */
static bool is_pixels(const struct ifd_setup *setup, uint32_t output)
{
    const struct ifd_shape shape = ifd_setup_shape(setup, output);
    const int64_t labels = setup->desc->output[output].label_count;
    return labels > 1 && shape.rank == 3 && shape.dim[2] == labels && shape.dim[0] > 1 &&
           shape.dim[1] > 1;
}

/* The decoder that the outputs' names, forms and labels speak for; NULL if none. */
static const struct ifd_decoder *guess(struct ifd_setup *setup)
{
    const struct ifd_model_desc *desc = setup->desc;
    const char sign[] = "TFLite_Detection_PostProcess";
    if (desc->output_count == 4 && ifd_str_starts(ifd_str(desc->output[0].name), sign)) {
        return &ifd_decoder_ssd_postprocessed;
    }
    for (uint32_t i = 0; i < desc->output_count; i++) {
        if (is_scores(setup, i) || is_pixels(setup, i)) {
            setup->role[0] = i;
            setup->role_count = 1;
            setup->are_roles_named = true;
            return is_scores(setup, i) ? &ifd_decoder_classes : &ifd_decoder_argmax;
        }
    }
    return NULL;
}

/* ---- what config or preset say ---- */

/* The parameter `outputs_used`: names of outputs in the decoder's order. */
static enum ifd_code read_roles(struct ifd_setup *setup, struct ifd_err *err)
{
    struct ifd_str rest = ifd_parameter(setup->desc, "outputs_used");
    setup->are_roles_named = setup->are_roles_named || rest.data;
    while (rest.data) {
        const struct ifd_str name = ifd_str_trim(ifd_str_part(&rest, ','));
        uint32_t i = 0;
        while (i < setup->desc->output_count && !ifd_str_equal(name, setup->desc->output[i].name)) {
            i++;
        }
        if (i == setup->desc->output_count || setup->role_count == IFD_ROLES_MAX) {
            return ifd_fail(err, IFD_INVALID,
                            "parameter \"outputs_used\": the model has no output \"%.*s\"",
                            name.size < 60 ? (int)name.size : 60, name.data);
        }
        setup->role[setup->role_count++] = i;
    }
    return IFD_OK;
}

static const struct ifd_decoder *decoder_of_task(enum ifd_model_task task)
{
    const struct ifd_decoder *found =
        task == IFD_TASK_AUDIO_CLASSIFICATION ? &ifd_decoder_classes : NULL;
    for (uint32_t i = 0; i < DECODER_COUNT && !found; i++) {
        found = decoders[i]->task == task ? decoders[i] : NULL;
    }
    return found;
}

static enum ifd_code choose_decoder(struct ifd_setup *setup, const struct ifd_decoder **ret,
                                    struct ifd_err *err)
{
#define X(id, name) name,
    static const char *const tasks[] = {IFD_TASKS(X)};
#undef X
    const char *names[DECODER_COUNT];
    uint32_t number = DECODER_COUNT, task = IFD_TASK_COUNT;
    for (uint32_t i = 0; i < DECODER_COUNT; i++) {
        names[i] = decoders[i]->name;
    }
    enum ifd_code code =
        ifd_parameter_word(setup->desc, "decoder", names, DECODER_COUNT, &number, err);
    if (!code) {
        code = ifd_parameter_word(setup->desc, "task", tasks, IFD_TASK_COUNT, &task, err);
    }
    if (code) {
        return code;
    }
    if (number < DECODER_COUNT) {
        *ret = decoders[number];
    } else {
        *ret = task < IFD_TASK_COUNT ? decoder_of_task((enum ifd_model_task)task) : guess(setup);
    }
    if (*ret) {
        setup->meaning->task = task < IFD_TASK_COUNT ? (enum ifd_model_task)task : (*ret)->task;
    }
    return IFD_OK;
}

/* The config's defaults for what a client may choose. */
static enum ifd_code read_options(struct ifd_setup *setup, struct ifd_err *err)
{
    static const char *const names[] = {"threshold", "iou", "top_k", "classes", "mask"};
    struct ifd_meaning *meaning = setup->meaning;
    const bool is_classes =
        meaning->task == IFD_TASK_CLASSIFICATION || meaning->task == IFD_TASK_AUDIO_CLASSIFICATION;
    meaning->options = (struct ifd_object_options){
        .threshold = is_classes || meaning->task == IFD_TASK_TEXT ? 0 : 0.5f,
        .iou = 0.5f,
        .top_k = is_classes ? 5 : 100};
    enum ifd_code code = IFD_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !code; i++) {
        const struct ifd_str text = ifd_parameter(setup->desc, names[i]);
        if (text.data) {
            code = ifd_object_option(meaning, ifd_str(names[i]), text, setup->arena,
                                     &meaning->options, err);
        }
    }
    return code;
}

static enum ifd_code read_usual_answer(struct ifd_setup *setup, struct ifd_err *err)
{
#define X(id, name) name,
    static const char *const kinds[] = {IFD_ANSWER_KINDS(X)};
#undef X
    uint32_t kind = IFD_ANSWER_COUNT;
    enum ifd_code code =
        ifd_parameter_word(setup->desc, "outputs", kinds, IFD_ANSWER_COUNT - 1, &kind, err);
    if (kind < IFD_ANSWER_COUNT) {
        setup->meaning->usual_answer = (enum ifd_answer_kind)(kind + 1); /* behind OPEN */
    }
    return code;
}

static void find_picture_input(struct ifd_setup *setup)
{
    const struct ifd_model_desc *desc = setup->desc;
    for (uint32_t i = 0; i < desc->input_count && setup->meaning->input_width == 0; i++) {
        if (desc->input[i].image.has_image) {
            setup->meaning->input_width = (float)desc->input[i].image.width;
            setup->meaning->input_height = (float)desc->input[i].image.height;
        }
    }
}

enum ifd_code ifd_meaning_read(const struct ifd_model_desc *desc, struct ifd_arena *arena,
                               const struct ifd_meaning **ret, struct ifd_err *err)
{
    struct ifd_setup setup = {.desc = desc, .arena = arena};
    const struct ifd_decoder *decoder = NULL;
    struct ifd_plan *plan = NULL;
    *ret = NULL;
    if (desc->output_count == 0) {
        return IFD_OK;
    }
    setup.meaning = ifd_arena_take(arena, sizeof(*setup.meaning));
    if (!setup.meaning) {
        return ifd_arena_fail(arena, sizeof(*setup.meaning), err);
    }
    find_picture_input(&setup);
    enum ifd_code code = read_usual_answer(&setup, err);
    if (!code) {
        code = choose_decoder(&setup, &decoder, err);
    }
    if (!code && !decoder && setup.meaning->usual_answer == IFD_ANSWER_OBJECTS) {
        code = ifd_fail(err, IFD_INVALID,
                        "parameter \"outputs\": nobody says what the outputs mean; parameters "
                        "preset, or task and decoder, do");
    }
    if (code || !decoder) {
        return code;
    }
    code = read_roles(&setup, err);
    if (!code) {
        code = find_labels(&setup, err);
    }
    if (!code) {
        code = decoder->prepare(&setup, &plan, err);
    }
    if (!code) {
        code = read_options(&setup, err);
    }
    if (code) {
        ifd_err_prefix(err, "decoder %s", decoder->name);
        return code;
    }
    setup.meaning->decoder = decoder;
    setup.meaning->plan = plan;
    *ret = setup.meaning;
    return IFD_OK;
}

/* ---- decoding ---- */

/* The part of an output that belongs to a sample. */
static enum ifd_code cut_sample(const struct ifd_tensor_info *info, const struct ifd_sample *sample,
                                const struct ifd_tensor *tensor, bool has_batch,
                                struct ifd_values *ret, struct ifd_err *err)
{
    const size_t element = ifd_dtype_bytes(tensor->dtype);
    const size_t all = tensor->bytes / element, count = all / sample->count;
    const struct ifd_shape *shape = &tensor->shape;
    const uint32_t lead =
        shape->rank > 0 && (has_batch || shape->dim[0] == (int64_t)sample->count) ? 1 : 0;
    if (all % sample->count != 0 || (lead == 0 && sample->count > 1)) {
        return ifd_fail(err, IFD_INVALID, "output '%s' has %zu elements for %zu samples",
                        info->name, all, sample->count);
    }
    *ret =
        (struct ifd_values){.data = (const uint8_t *)tensor->data + sample->index * count * element,
                            .dtype = tensor->dtype,
                            .scale = info->scale,
                            .zero_point = info->zero_point,
                            .shape = {.rank = shape->rank - lead},
                            .count = count};
    for (uint32_t i = lead; i < shape->rank; i++) {
        ret->shape.dim[i - lead] = shape->dim[i];
    }
    return IFD_OK;
}

enum ifd_code ifd_objects_find(const struct ifd_model_desc *desc, const struct ifd_sample *sample,
                               const struct ifd_object_options *options, struct ifd_arena *arena,
                               struct ifd_objects *ret, struct ifd_err *err)
{
    const struct ifd_plan *plan = desc->meaning->plan;
    struct ifd_decoding decoding = {.meaning = desc->meaning,
                                    .plan = plan,
                                    .options = options,
                                    .view = sample->view,
                                    .arena = arena,
                                    .ret = ret};
    *ret = (struct ifd_objects){0};
    for (uint32_t i = 0; i < plan->role_count; i++) {
        const uint32_t output = plan->role[i];
        enum ifd_code code = cut_sample(&desc->output[output], sample, &sample->output[output],
                                        desc->max_batch_size > 0, &decoding.value[i], err);
        if (code) {
            return code;
        }
    }
    return desc->meaning->decoder->decode(&decoding, err);
}
