/* Looks parameters up in the config and in its preset. */
#include "server/model/parameters.h"

#include <string.h>

#include "engine/base/str.h"

/* Columns of preset_list.inc, in its order. */
static const char *const preset_parameters[] = {"image_mean", "image_std", "image_color",
                                                "image_resize", "image_fill"};
#define PRESET_PARAMETERS (sizeof(preset_parameters) / sizeof(preset_parameters[0]))

struct preset {
    const char *name;
    const char *value[PRESET_PARAMETERS]; /* "": says nothing */
    const char *outputs;                  /* texts "parameter=value", the last one empty */
};

#define X(name, mean, std, color, resize, fill, outputs)                                           \
    {name, {mean, std, color, resize, fill}, outputs},
static const struct preset presets[] = {
#include "server/model/preset_list.inc"
};
#undef X

#define X(name) name,
static const char *const parameters[] = {
#include "server/model/parameter_list.inc"
};
#undef X

static const struct preset *find_preset(const char *name)
{
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (strcmp(presets[i].name, name) == 0) {
            return &presets[i];
        }
    }
    return NULL;
}

const char *ifd_desc_parameter(const struct ifd_model_desc *desc, const char *key)
{
    for (uint32_t i = 0; i < desc->parameter_count; i++) {
        if (strcmp(desc->parameter[i].key, key) == 0) {
            return desc->parameter[i].value;
        }
    }
    return NULL;
}

/* Value of key in texts of "key=value" that begin with prefix; NULL if none has it. */
static const char *find_value(const char *texts, const char *prefix, const char *key)
{
    const size_t lead = strlen(prefix), size = strlen(key);
    const char *at = texts;
    while (*at != '\0' && (strncmp(at, prefix, lead) != 0 || strncmp(at + lead, key, size) != 0 ||
                           at[lead + size] != '=')) {
        at += strlen(at) + 1;
    }
    return *at != '\0' ? at + lead + size + 1 : NULL;
}

/* What holds for TFLite files alone goes before what holds for all. */
static const char *find_output_value(const struct ifd_model_desc *desc, const char *texts,
                                     const char *key)
{
    const bool is_tflite = desc->backend && strcmp(desc->backend, "tflite") == 0;
    const char *value = is_tflite ? find_value(texts, "tflite:", key) : NULL;
    return value ? value : find_value(texts, "", key);
}

const char *ifd_meaning_parameter(const struct ifd_model_desc *desc, const char *key)
{
    const char *own = ifd_desc_parameter(desc, key);
    const char *name = ifd_desc_parameter(desc, "preset");
    const struct preset *preset = own || !name ? NULL : find_preset(name);
    for (size_t i = 0; preset && i < PRESET_PARAMETERS; i++) {
        if (strcmp(preset_parameters[i], key) == 0 && preset->value[i][0] != '\0') {
            return preset->value[i];
        }
    }
    return preset ? find_output_value(desc, preset->outputs, key) : own;
}

const char *ifd_preset_name(size_t index)
{
    return index < sizeof(presets) / sizeof(presets[0]) ? presets[index].name : NULL;
}

enum ifd_code ifd_preset_check(const struct ifd_model_desc *desc, struct ifd_err *err)
{
    const char *name = ifd_desc_parameter(desc, "preset");
    if (!name || find_preset(name)) {
        return IFD_OK;
    }
    const char *nearest = presets[0].name;
    for (size_t i = 1; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (ifd_str_distance(ifd_str(name), presets[i].name) <
            ifd_str_distance(ifd_str(name), nearest)) {
            nearest = presets[i].name;
        }
    }
    return ifd_fail(err, IFD_INVALID,
                    "parameter \"preset\": there is no \"%.40s\"; the nearest name is \"%s\"", name,
                    nearest);
}

const char *ifd_parameter_nearest(const char *key)
{
    const char *nearest = parameters[0];
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        if (strcmp(parameters[i], key) == 0) {
            return NULL;
        }
        if (ifd_str_distance(ifd_str(key), parameters[i]) <
            ifd_str_distance(ifd_str(key), nearest)) {
            nearest = parameters[i];
        }
    }
    return nearest;
}
