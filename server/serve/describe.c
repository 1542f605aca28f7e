/* Completes the description of a version: labels and meaning of outputs, picture rules of inputs,
 * names of instance groups. */
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/model/parameters.h"
#include "server/objects/objects.h"
#include "server/repo/labels.h"
#include "server/serve/picture.h"
#include "server/serve/served.h"

static enum ifd_code load_labels(struct ifd_version *version, const struct ifd_port *port,
                                 struct ifd_tensor_info *output, struct ifd_err *err)
{
    if (output->label_filename[0] == '\0') {
        output->labels = port ? port->labels : NULL;
        output->label_count = port ? port->label_count : 0;
        return IFD_OK;
    }
    if (!ifd_path_is_inside(ifd_str(output->label_filename))) {
        return ifd_fail(err, IFD_INVALID, "label_filename \"%.100s\" leaves the model's folder",
                        output->label_filename);
    }
    return ifd_labels_read(version->source, output->label_filename, &version->arena,
                           &output->labels, &output->label_count, err);
}

/* A sound's input: floats, and the parameter audio_rate. Windows fill it; they begin audio_hop
 * seconds apart, half of their length if nobody says it. */
static enum ifd_code make_sound_rule(const struct ifd_model_desc *desc,
                                     const struct ifd_tensor_info *input,
                                     struct ifd_sound_rule *ret, struct ifd_err *err)
{
    const char *rate = ifd_meaning_parameter(desc, "audio_rate");
    const char *hop = ifd_meaning_parameter(desc, "audio_hop");
    uint64_t rate_hz = 0, window = 1;
    double hop_secs = 0;
    if (!rate || input->dtype != IFD_F32) {
        return IFD_OK;
    }
    for (uint32_t i = 0; i < input->shape.rank; i++) {
        const int64_t dim = input->shape.dim[i];
        const bool is_lead = i == 0 && input->shape.rank > 1 && dim == IFD_DIM_ANY;
        window = is_lead ? window : dim < 1 || dim > UINT32_MAX ? 0 : window * (uint64_t)dim;
        window = window > UINT32_MAX ? 0 : window;
    }
    if (!ifd_str_u64(ifd_str(rate), &rate_hz) || rate_hz < 1000 || rate_hz > 384000) {
        return ifd_fail(err, IFD_INVALID,
                        "parameter \"audio_rate\": \"%.40s\" is not a count "
                        "1000 … 384000",
                        rate);
    }
    if (window == 0) {
        return ifd_fail(err, IFD_INVALID, "input \"%s\" has no fixed number of samples",
                        input->name);
    }
    const double most = (double)window / (double)rate_hz;
    if (hop && (!ifd_str_f64(ifd_str(hop), &hop_secs) ||
                !(hop_secs * (double)rate_hz >= 1 && hop_secs <= most))) {
        return ifd_fail(err, IFD_INVALID,
                        "parameter \"audio_hop\": \"%.40s\" is not a number of seconds up to %g, "
                        "the length of a window",
                        hop, most);
    }
    *ret = (struct ifd_sound_rule){.has_sound = true,
                                   .rate = (uint32_t)rate_hz,
                                   .window = (uint32_t)window,
                                   .hop = hop ? (uint32_t)(hop_secs * (double)rate_hz + 0.5)
                                              : (uint32_t)(window + 1) / 2};
    return IFD_OK;
}

/* Most regions of a picture that run one after the other. */
#define PICTURE_BATCH_MAX 64

static uint32_t picture_batch(const struct ifd_model_desc *desc, const struct ifd_model_info *file)
{
    bool are_batched =
        file && !file->has_open_dims && desc->max_batch_size == 0 && !desc->has_reshapes;
    for (uint32_t i = 0; are_batched && i < file->input_count; i++) {
        are_batched = file->input[i].batched;
    }
    for (uint32_t i = 0; are_batched && i < file->output_count; i++) {
        are_batched = file->output[i].batched;
    }
    return are_batched ? PICTURE_BATCH_MAX : 0;
}

static enum ifd_code describe_tensors(struct ifd_version *version, struct ifd_err *err)
{
    struct ifd_model_desc *desc = &version->desc;
    const struct ifd_model_info *file = version->engine ? ifd_model_info(version->engine) : NULL;
    struct ifd_arena *arena = &version->arena;
    struct ifd_tensor_info *input = ifd_arena_take_array(arena, desc->input_count, sizeof(*input));
    struct ifd_tensor_info *output =
        ifd_arena_take_array(arena, desc->output_count, sizeof(*output));
    if (!input || !output) {
        return ifd_arena_fail(arena, desc->input_count * sizeof(*input), err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < desc->input_count && !code; i++) {
        input[i] = desc->input[i];
        code = ifd_picture_rule(desc, &input[i], file ? &file->input[i] : NULL,
                                desc->max_batch_size > 0, &input[i].image, err);
        if (!code && desc->input_count == 1) {
            code = make_sound_rule(desc, &input[i], &input[i].sound, err);
        }
        if (input[i].image.has_image && input[i].format == IFD_FORMAT_NONE) {
            input[i].format = input[i].image.channels_first ? IFD_FORMAT_NCHW : IFD_FORMAT_NHWC;
        }
    }
    for (uint32_t i = 0; i < desc->output_count && !code; i++) {
        output[i] = desc->output[i];
        code = load_labels(version, file ? &file->output[i] : NULL, &output[i], err);
    }
    for (uint32_t i = 0; i < desc->input_count; i++) {
        desc->has_reshapes |= input[i].has_reshape;
    }
    for (uint32_t i = 0; i < desc->output_count; i++) {
        desc->has_reshapes |= output[i].has_reshape;
    }
    desc->picture_batch = picture_batch(desc, file);
    desc->input = input;
    desc->output = output;
    return code ? code : ifd_meaning_read(desc, arena, &desc->meaning, err);
}

/* Makes one group where the config has none; names each group. */
static enum ifd_code describe_groups(struct ifd_version *version, struct ifd_err *err)
{
    struct ifd_model_desc *desc = &version->desc;
    const uint32_t count = desc->instance_group_count > 0 ? desc->instance_group_count : 1;
    const size_t name_size = strlen(version->name) + 12;
    struct ifd_instance_group_info *group =
        ifd_arena_take_array(&version->arena, count, sizeof(*group));
    if (!group) {
        return ifd_arena_fail(&version->arena, count * sizeof(*group), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        group[i] = i < desc->instance_group_count
                       ? desc->instance_group[i]
                       : (struct ifd_instance_group_info){.name = "", .count = 1};
        char *name = ifd_arena_take(&version->arena, name_size);
        if (!name) {
            return ifd_arena_fail(&version->arena, name_size, err);
        }
        (void)snprintf(name, name_size, "%s_%u", version->name, i);
        group[i].name = group[i].name[0] ? group[i].name : name;
    }
    desc->instance_group = group;
    desc->instance_group_count = count;
    return IFD_OK;
}

static const char *platform_of(const struct ifd_version *version)
{
    if (!version->engine) {
        return "identity";
    }
    return strcmp(ifd_model_info(version->engine)->format, "onnx") == 0 ? "onnx_inferd"
                                                                        : "tflite_inferd";
}

enum ifd_code ifd_describe(struct ifd_version *version, struct ifd_err *err)
{
    version->desc.version = version->number;
    version->desc.version_text = version->number_text;
    version->desc.platform = platform_of(version);
    enum ifd_code code = describe_tensors(version, err);
    return code ? code : describe_groups(version, err);
}
