/* Makes picture rules from descriptions of inputs. */
#include "server/serve/picture.h"

#include <math.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/model/parameters.h"
#include "server/repo/manifest.h"

#define SIDE_MIN 8

/* Reads numbers of a config parameter into ret[0 … channels-1]; a single number counts for all. */
static enum ifd_code read_numbers(const struct ifd_model_desc *manifest, const char *key,
                                  uint32_t channels, float *ret, bool *ret_found,
                                  struct ifd_err *err)
{
    const char *text = ifd_meaning_parameter(manifest, key);
    uint32_t count = 0;
    double number = 0;
    if (!text) {
        return IFD_OK;
    }
    for (struct ifd_str rest = ifd_str(text); rest.data; count++) {
        struct ifd_str part = ifd_str_trim(ifd_str_part(&rest, ','));
        if (count == channels || !ifd_str_f64(part, &number) || !isfinite((float)number)) {
            return ifd_fail(err, IFD_INVALID, "parameter \"%s\": \"%.60s\" is not 1 or %u numbers",
                            key, text, channels);
        }
        ret[count] = (float)number;
    }
    if (count != 1 && count != channels) {
        return ifd_fail(err, IFD_INVALID, "parameter \"%s\": \"%.60s\" is not 1 or %u numbers", key,
                        text, channels);
    }
    for (uint32_t c = count; c < channels; c++) {
        ret[c] = ret[0];
    }
    *ret_found = true;
    return IFD_OK;
}

static bool is_channels(int64_t dim)
{
    return dim == 1 || dim == 3;
}

/* Without a word of the config, the shape tells: networks made for PyTorch have channels first. */
static bool is_channels_first(enum ifd_tensor_format format, const int64_t *dim)
{
    return format == IFD_FORMAT_NCHW ||
           (format == IFD_FORMAT_NONE && is_channels(dim[0]) && !is_channels(dim[2]));
}

/* Finds height, width and channels if tensor has the shape and type of a picture. */
static bool has_form(const struct ifd_tensor_info *tensor, bool has_batch,
                     struct ifd_image_rule *rule)
{
    const struct ifd_shape *dims = &tensor->shape;
    uint32_t lead = has_batch ? 0 : 1;
    bool is_small_rank = !has_batch && dims->rank == 3; /* a model without a batch dimension */
    lead = is_small_rank ? 0 : lead;
    if (dims->rank != 3 + lead || (lead == 1 && dims->dim[0] != 1 && dims->dim[0] != IFD_DIM_ANY)) {
        return false;
    }
    const int64_t *dim = dims->dim + lead;
    rule->channels_first = is_channels_first(tensor->format, dim);
    int64_t height = dim[rule->channels_first ? 1 : 0], width = dim[rule->channels_first ? 2 : 1];
    int64_t channels = dim[rule->channels_first ? 0 : 2];
    bool is_type = tensor->dtype == IFD_F32 || tensor->dtype == IFD_U8 || tensor->dtype == IFD_S8 ||
                   tensor->dtype == IFD_S32;
    if (!is_type || !is_channels(channels) || height < SIDE_MIN || width < SIDE_MIN ||
        height > UINT16_MAX || width > UINT16_MAX) {
        return false;
    }
    rule->height = (uint32_t)height;
    rule->width = (uint32_t)width;
    rule->channels = (uint32_t)channels;
    return true;
}

/* The stored value is the pixel (minus 128 for signed types), whatever the quantization is. */
static void take_pixels(const struct ifd_port *port, struct ifd_image_rule *rule)
{
    bool is_quantized = port && port->desc.quant.count == 1;
    bool has_scale = is_quantized && isnormal(port->desc.quant.scale[0]);
    float scale = has_scale ? port->desc.quant.scale[0] : 1;
    float zero = is_quantized ? (float)port->desc.quant.zero_point[0] : 0;
    float low = port && port->desc.dtype == IFD_S8 ? 128 : 0;
    for (uint32_t c = 0; c < rule->channels; c++) {
        rule->mean[c] = low + zero;
        rule->std[c] = 1 / scale;
    }
}

/* ---- words ---- */

#define X(id, name) name,
static const char *const color_names[] = {IFD_IMAGE_COLORS(X)};
#undef X

static enum ifd_code fail_word(const char *key, const char *text, const char *wanted,
                               struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID, "parameter \"%s\": \"%.40s\" is not %s", key, text, wanted);
}

static enum ifd_code read_color(const struct ifd_model_desc *manifest, struct ifd_image_rule *rule,
                                struct ifd_err *err)
{
    static const char key[] = "image_color";
    const char *text = ifd_meaning_parameter(manifest, key);
    int color = rule->channels == 1 ? IFD_COLOR_GRAY : IFD_COLOR_RGB;
    if (text) {
        color = 0;
        while (color < IFD_COLOR_COUNT &&
               !ifd_str_equal_nocase(ifd_str(text), color_names[color])) {
            color++;
        }
    }
    if (color == IFD_COLOR_COUNT) {
        return fail_word(key, text, "RGB, BGR or GRAY", err);
    }
    if ((color == IFD_COLOR_GRAY) != (rule->channels == 1)) {
        return ifd_fail(err, IFD_INVALID, "parameter \"%s\": %s has %d channels, the input has %u",
                        key, color_names[color], color == IFD_COLOR_GRAY ? 1 : 3, rule->channels);
    }
    rule->color = (enum ifd_image_color)color;
    return IFD_OK;
}

/* What a request may say, too, has the same name there. */
static enum ifd_code read_geometry(const struct ifd_model_desc *manifest,
                                   struct ifd_image_rule *rule, struct ifd_err *err)
{
    static const char *const keys[] = {"image_resize", "resize"}; /* the latter wins */
    for (size_t i = 0; i < 2; i++) {
        const char *text = i == 0 ? ifd_meaning_parameter(manifest, keys[i])
                                  : ifd_desc_parameter(manifest, keys[i]);
        if (text && !ifd_image_resize_read(ifd_str(text), &rule->resize)) {
            return fail_word(keys[i], text, "stretch, letterbox or crop", err);
        }
    }
    const char *region = ifd_desc_parameter(manifest, "region");
    if (region && !ifd_picture_region_read(ifd_str(region), &rule->region)) {
        return fail_word("region", region, "x,y,width,height", err);
    }
    rule->has_region = region;
    return IFD_OK;
}

/* ---- the rule ---- */

/* Reads what config and preset say. */
static enum ifd_code read_parameters(const struct ifd_model_desc *manifest,
                                     struct ifd_image_rule *rule, bool *ret_has_normalization,
                                     struct ifd_err *err)
{
    bool has_mean = false, has_std = false, has_fill = false;
    enum ifd_code code =
        read_numbers(manifest, "image_mean", rule->channels, rule->mean, &has_mean, err);
    if (!code) {
        code = read_numbers(manifest, "image_std", rule->channels, rule->std, &has_std, err);
    }
    for (uint32_t c = 0; c < rule->channels && !code; c++) {
        if (!(rule->std[c] > 0)) {
            code = ifd_fail(err, IFD_INVALID, "parameter \"image_std\": %g is not above 0",
                            (double)rule->std[c]);
        }
    }
    if (!code) {
        code = read_numbers(manifest, "image_fill", rule->channels, rule->fill, &has_fill, err);
    }
    for (uint32_t c = 0; c < rule->channels && !code; c++) {
        if (!(rule->fill[c] >= 0 && rule->fill[c] <= 255)) {
            code = ifd_fail(err, IFD_INVALID, "parameter \"image_fill\": %g is not in 0 … 255",
                            (double)rule->fill[c]);
        }
    }
    if (!code) {
        code = read_geometry(manifest, rule, err);
    }
    *ret_has_normalization = has_mean || has_std;
    return code ? code : read_color(manifest, rule, err);
}

enum ifd_code ifd_picture_rule(const struct ifd_model_desc *manifest,
                               const struct ifd_tensor_info *tensor, const struct ifd_port *port,
                               bool has_batch, struct ifd_image_rule *ret, struct ifd_err *err)
{
    struct ifd_image_rule rule = {0};
    bool has_config = false;
    *ret = rule;
    enum ifd_code code = ifd_preset_check(manifest, err);
    if (code || !has_form(tensor, has_batch, &rule)) {
        return code;
    }
    for (uint32_t c = 0; c < rule.channels; c++) {
        rule.std[c] = 1;
    }
    code = read_parameters(manifest, &rule, &has_config, err);
    if (code) {
        return code;
    }
    if (!has_config && port && port->has_normalization) {
        for (uint32_t c = 0; c < rule.channels; c++) {
            uint32_t from = c < port->normalization_count ? c : 0;
            rule.mean[c] = port->mean[from];
            rule.std[c] = port->std[from] > 0 ? port->std[from] : 1;
        }
    } else if (!has_config && tensor->dtype != IFD_F32) {
        take_pixels(port, &rule);
    } else if (!has_config) {
        return IFD_OK;
    }
    rule.has_image = true;
    *ret = rule;
    return IFD_OK;
}

struct ifd_image_target ifd_picture_target(const struct ifd_image_rule *rule, float scale,
                                           int32_t zero_point)
{
    struct ifd_image_target target = {.height = rule->height,
                                      .width = rule->width,
                                      .channels = rule->channels,
                                      .channels_first = rule->channels_first,
                                      .is_bgr = rule->color == IFD_COLOR_BGR,
                                      .resize = rule->resize,
                                      .has_region = rule->has_region,
                                      .region = rule->region,
                                      .scale = isnormal(scale) ? scale : 0,
                                      .zero_point = zero_point};
    memcpy(target.fill, rule->fill, sizeof(target.fill));
    memcpy(target.mean, rule->mean, sizeof(target.mean));
    memcpy(target.std, rule->std, sizeof(target.std));
    return target;
}

enum ifd_code ifd_picture_for_port(struct ifd_bytes picture, const struct ifd_port *port,
                                   void *data, size_t bytes, struct ifd_err *err)
{
    static const struct ifd_image_limits limits = {.max_pixels = (uint64_t)1 << 26};
    struct ifd_model_desc none;
    struct ifd_image_rule rule = {0};
    const struct ifd_tensor_info tensor = {
        .name = port->name, .dtype = port->desc.dtype, .shape = port->desc.shape};
    bool has_scale = port->desc.quant.count == 1;
    ifd_manifest_init(&none);
    enum ifd_code code = ifd_picture_rule(&none, &tensor, port, false, &rule, err);
    if (!code && !rule.has_image) {
        code = ifd_fail(err, IFD_UNSUPPORTED,
                        "input \"%s\" cannot be a picture: it has no image shape, or is FP32 and "
                        "the file does not say how to normalise",
                        port->name);
    }
    if (code) {
        return code;
    }
    struct ifd_image_target target =
        ifd_picture_target(&rule, has_scale ? port->desc.quant.scale[0] : 0,
                           has_scale ? port->desc.quant.zero_point[0] : 0);
    const struct ifd_picture_source source = {.bytes = picture};
    struct ifd_tensor sample = {.dtype = port->desc.dtype, .data = data, .bytes = bytes};
    struct ifd_picture_view view;
    return ifd_image_to_tensor(&source, &target, &limits, &sample, ifd_alloc_system(), &view, err);
}
