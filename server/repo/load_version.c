/* Loads a version: from its folder to one that runs. */
#include "server/repo/load_version.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/model/parameters.h"
#include "server/model/reshape.h"
#include "server/repo/complete.h"
#include "server/repo/digest.h"
#include "server/repo/externals.h"
#include "server/repo/labels.h"
#include "server/repo/layout.h"
#include "server/repo/text.h"

#define BACKENDS_MAX 8

struct warn_context {
    const struct ifd_repo_options *options;
    const char *name;
};

static void log_warning(void *context, const char *text)
{
    const struct warn_context *c = context;
    ifd_log_warn(c->options->log, "model config is partly ignored", "model=%s reason=%s", c->name,
                 text);
}

static enum ifd_code read_config(const struct ifd_repo_options *options, struct ifd_str text,
                                 const char *file_name, const char *name, struct ifd_arena *arena,
                                 uint64_t *digest, struct ifd_model_desc *ret, struct ifd_err *err)
{
    struct warn_context context = {.options = options, .name = name};
    const struct ifd_manifest_warnings warnings = {.warn = log_warning, .context = &context};
    if (digest) {
        *digest = ifd_digest_bytes(*digest, text.data, text.size);
    }
    return ifd_manifest_read(text, file_name, arena, digest ? NULL : &warnings, ret, err);
}

static enum ifd_code read_config_file(const struct ifd_repo_options *options,
                                      const struct ifd_source *source, const char *file_name,
                                      const char *name, struct ifd_arena *arena, uint64_t *digest,
                                      struct ifd_model_desc *ret, struct ifd_err *err)
{
    struct ifd_bytes file = {0};
    enum ifd_code code =
        ifd_source_read(source, file_name, IFD_TEXT_BYTES_MAX, options->alloc, &file, err);
    if (code) {
        return code;
    }
    const struct ifd_str text = {.data = (const char *)file.data, .size = file.size};
    code = read_config(options, text, file_name, name, arena, digest, ret, err);
    ifd_release_tensor(options->alloc, (void *)(uintptr_t)file.data, file.size);
    return code;
}

bool ifd_manifest_is_identity(const struct ifd_model_desc *manifest)
{
    return strcmp(manifest->backend, "identity") == 0;
}

/* Refuses Triton's other backends by name. */
static enum ifd_code check_backend(const struct ifd_model_desc *m, struct ifd_err *err)
{
    static const char *const known[] = {"",     "tflite",      "armnn_tflite", "tensorflow_lite",
                                        "onnx", "onnxruntime", "identity"};
    static const char *const platforms[] = {"", "tflite", "tflite_inferd", "onnx_inferd",
                                            "onnxruntime_onnx"};
    bool is_known = false, is_platform = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        is_known = is_known || strcmp(m->backend, known[i]) == 0;
    }
    for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
        is_platform = is_platform || strcmp(m->platform, platforms[i]) == 0;
    }
    if (!is_known) {
        return ifd_fail(
            err, IFD_UNSUPPORTED,
            "backend \"%.80s\" is not supported; \"tflite\", \"onnx\" and \"identity\" are",
            m->backend);
    }
    if (!is_platform && m->backend[0] == '\0') {
        return ifd_fail(err, IFD_UNSUPPORTED, "platform \"%.80s\" is not supported", m->platform);
    }
    return IFD_OK;
}

enum ifd_code ifd_version_read_config(const struct ifd_repo_options *options,
                                      const struct ifd_source *source, const char *name,
                                      struct ifd_arena *arena, uint64_t *digest,
                                      struct ifd_model_desc *ret, struct ifd_err *err)
{
    static const char *const file_names[] = {"config.pbtxt", "config.json"};
    struct ifd_model_desc manifest;
    ifd_manifest_init(&manifest);
    enum ifd_code code = IFD_NOT_FOUND;
    if (source->config.data) {
        code = read_config(options, source->config, "config", name, arena, digest, &manifest, err);
    }
    for (size_t i = 0; i < 2 && code == IFD_NOT_FOUND; i++) {
        code =
            read_config_file(options, source, file_names[i], name, arena, digest, &manifest, err);
    }
    if (code == IFD_NOT_FOUND) {
        code = IFD_OK; /* no config: the file has everything */
    }
    if (!code && manifest.name[0] != '\0' && strcmp(manifest.name, name) != 0) {
        code = ifd_fail(err, IFD_INVALID, "config says name \"%.80s\", the folder is \"%.80s\"",
                        manifest.name, name);
    }
    if (!code) {
        code = check_backend(&manifest, err);
    }
    if (!code) {
        manifest.name = name;
        *ret = manifest;
    }
    return code;
}

/* The config's parameter "backends" ("CpuAcc,CpuRef"), else the server's list. */
static enum ifd_code preference(const struct ifd_repo_options *options, struct ifd_version *version,
                                struct ifd_model_options *model, const char **list,
                                struct ifd_err *err)
{
    const char *text = ifd_desc_parameter(&version->desc, "backends");
    if (!text) {
        model->backends = options->backends;
        model->backend_count = options->backend_count;
        return IFD_OK;
    }
    struct ifd_str rest = ifd_str(text);
    while (rest.data) {
        struct ifd_str part = ifd_str_trim(ifd_str_part(&rest, ','));
        if (model->backend_count == BACKENDS_MAX) {
            return ifd_fail(err, IFD_TOO_LARGE, "parameter \"backends\" names more than %d",
                            BACKENDS_MAX);
        }
        const char *copy = ifd_arena_text(&version->arena, part.data, part.size);
        if (!copy) {
            return ifd_arena_fail(&version->arena, part.size, err);
        }
        list[model->backend_count++] = copy;
    }
    model->backends = list;
    return IFD_OK;
}

/* The config's parameter "precision", else the server's. */
static enum ifd_code choose_precision(const struct ifd_repo_options *options,
                                      const struct ifd_version *version,
                                      struct ifd_model_options *model, struct ifd_err *err)
{
    const char *text = ifd_desc_parameter(&version->desc, "precision");
    model->precision = options->precision;
    if (text && !ifd_precision_by_name(text, &model->precision)) {
        return ifd_fail(err, IFD_INVALID,
                        "parameter \"precision\": got \"%.40s\", expected f32, bf16 or fp16", text);
    }
    return IFD_OK;
}

/* Warns if the precision is not the requested one. */
static void warn_of_precision(const struct ifd_repo_options *options,
                              const struct ifd_version *version, enum ifd_precision asked)
{
    const struct ifd_model_info *info = ifd_model_info(version->engine);
    if (info->precision != asked) {
        ifd_log_warn(options->log, "precision is not available",
                     "model=%s asked=%s given=%s reason=%s", version->name,
                     ifd_precision_name(asked), ifd_precision_name(info->precision),
                     info->precision_why_not);
    }
}

static void warn_of_what_was_taken_back(const struct ifd_repo_options *options,
                                        const struct ifd_version *version)
{
    const char *what = ifd_model_info(version->engine)->taken_back;
    if (what[0] != '\0') {
        ifd_log_warn(options->log, "backend leaves operators to the next", "model=%s reason=%s",
                     version->name, what);
    }
}

static void warn_of_sizes(const struct ifd_repo_options *options, const struct ifd_version *version)
{
    const char *why = ifd_model_info(version->engine)->unsized;
    if (why[0] != '\0') {
        ifd_log_warn(options->log, "only a request knows the model's sizes", "model=%s tried=%s",
                     version->name, why);
    }
}

/* Nobody chose: the file's first subgraph may not be what is wanted. */
static void tell_signatures(const struct ifd_repo_options *options,
                            const struct ifd_version *version)
{
    const char *names = ifd_model_info(version->engine)->signatures;
    if (names[0] != '\0' && !ifd_desc_parameter(&version->desc, "signature")) {
        ifd_log_info(options->log, "the first of several signatures serves",
                     "model=%s signatures=%s", version->name, names);
    }
}

/* Reserves memory before the file is read: packed weights take at most as much as the file. */
static enum ifd_code hold_file(const struct ifd_repo_options *options, struct ifd_version *version,
                               const char *path, struct ifd_err *err)
{
    uint64_t file_bytes = ifd_source_size(version->source, path);
    enum ifd_code code =
        file_bytes > options->max_model_bytes /* reading fails with an error */
            ? IFD_OK
            : ifd_budget_hold(options->budget, &version->held_bytes, 2 * file_bytes, err);
    if (code) {
        ifd_err_prefix(err, "file of %llu bytes, and its weights packed",
                       (unsigned long long)file_bytes);
    }
    return code;
}

/* Warns that the file lies in private memory. */
static void warn_of_refusal(const struct ifd_repo_options *options,
                            const struct ifd_version *version)
{
    if (version->sealed.refused != 0) {
        ifd_log_warn(options->log, "model file is not sealed", "model=%s version=%s reason=%s",
                     version->name, version->number_text, strerror(version->sealed.refused));
    }
}

static enum ifd_code read_file(const struct ifd_repo_options *options, struct ifd_version *version,
                               struct ifd_err *err)
{
    const char *path = NULL;
    enum ifd_code code =
        ifd_layout_file(version->source, version->number_text, version->desc.default_model_filename,
                        &version->arena, &path, err);
    if (!code) {
        code = hold_file(options, version, path, err);
    }
    if (!code) {
        ifd_sealed_init(&version->sealed, version->name, options->alloc, NULL);
        code = ifd_source_read(version->source, path, options->max_model_bytes,
                               &version->sealed.alloc, &version->file, err);
        warn_of_refusal(options, version);
    }
    if (!code) {
        version->desc.default_model_filename = strchr(path, '/') + 1;
        version->digest = ifd_digest_bytes(version->digest, version->file.data, version->file.size);
        code = ifd_externals_read(options, version, err);
    }
    return code;
}

/* Ignores label files that cannot be read: ifd_describe reports them. */
static void digest_labels(const struct ifd_repo_options *options, struct ifd_version *version)
{
    for (uint32_t i = 0; i < version->desc.output_count; i++) {
        const char *name = version->desc.output[i].label_filename;
        struct ifd_bytes file = {0};
        if (name[0] == '\0' || !ifd_path_is_inside(ifd_str(name)) ||
            ifd_source_read(version->source, name, IFD_LABELS_BYTES_MAX, options->alloc, &file,
                            NULL)) {
            continue;
        }
        version->digest = ifd_digest_bytes(version->digest, file.data, file.size);
        ifd_release_tensor(options->alloc, (void *)(uintptr_t)file.data, file.size);
    }
}

enum ifd_code ifd_version_read(const struct ifd_repo_options *options, struct ifd_version *version,
                               struct ifd_err *err)
{
    version->digest = IFD_DIGEST_START;
    enum ifd_code code =
        ifd_version_read_config(options, version->source, version->name, &version->arena,
                                &version->digest, &version->desc, err);
    if (!code && !ifd_manifest_is_identity(&version->desc)) {
        code = read_file(options, version, err);
    }
    if (!code) {
        digest_labels(options, version);
    }
    return code;
}

static void warn_of_parameters(const struct ifd_repo_options *options,
                               const struct ifd_version *version)
{
    for (uint32_t i = 0; i < version->desc.parameter_count; i++) {
        const char *key = version->desc.parameter[i].key;
        const char *nearest = ifd_parameter_nearest(key);
        if (nearest) {
            ifd_log_warn(options->log, "config parameter is unknown",
                         "model=%s parameter=%s nearest=%s", version->name, key, nearest);
        }
    }
}

static enum ifd_code hold_shapes(void *context, uint64_t *held, uint64_t bytes, struct ifd_err *err)
{
    return ifd_budget_hold(context, held, bytes, err);
}

/* What the config says of the shapes of inputs. The file decides what is left of it: see
 * ifd_manifest_complete. */
static enum ifd_code give_shapes(struct ifd_version *version, struct ifd_model_options *model,
                                 struct ifd_err *err)
{
    const struct ifd_model_desc *desc = &version->desc;
    const uint32_t lead = desc->max_batch_size > 0 ? 1 : 0;
    struct ifd_input_shape *given =
        ifd_arena_take_array(&version->arena, desc->input_count, sizeof(*given));
    if (!given) {
        return ifd_arena_fail(&version->arena, desc->input_count * sizeof(*given), err);
    }
    model->input_shape = given;
    for (uint32_t i = 0; i < desc->input_count; i++) {
        const struct ifd_shape *dims = ifd_file_shape(&desc->input[i]);
        if (!desc->input[i].has_shape || dims->rank + lead > IFD_MAX_RANK) {
            continue;
        }
        struct ifd_input_shape *next = &given[model->input_shape_count++];
        next->name = desc->input[i].name;
        next->shape = (struct ifd_shape){.rank = dims->rank + lead, .dim = {IFD_DIM_ANY}};
        for (uint32_t d = 0; d < dims->rank; d++) {
            next->shape.dim[d + lead] = dims->dim[d];
        }
    }
    return IFD_OK;
}

static enum ifd_code load_engine(const struct ifd_repo_options *options,
                                 struct ifd_version *version, struct ifd_err *err)
{
    const char *list[BACKENDS_MAX];
    struct ifd_model_options model = {.max_threads = options->max_threads,
                                      .external = version->external,
                                      .external_count = version->external_count,
                                      .releases_weights = true,
                                      .keeps_state = version->desc.has_sequences,
                                      .signature = ifd_desc_parameter(&version->desc, "signature"),
                                      .shape_bytes = options->shape_bytes,
                                      .hold_shapes = hold_shapes,
                                      .hold_context = options->budget};
    enum ifd_code code = preference(options, version, &model, list, err);
    if (!code) {
        code = choose_precision(options, version, &model, err);
    }
    if (!code) {
        code = give_shapes(version, &model, err);
    }
    if (!code) {
        code = ifd_model_load(options->engine, version->file, &model, &version->engine, err);
    }
    if (!code) {
        code = ifd_manifest_complete(&version->desc, ifd_model_info(version->engine),
                                     &version->arena, err);
    }
    if (!code) {
        version->desc.backend = ifd_model_info(version->engine)->format;
        warn_of_precision(options, version, model.precision);
        warn_of_what_was_taken_back(options, version);
        warn_of_sizes(options, version);
        tell_signatures(options, version);
    }
    return code;
}

enum ifd_code ifd_version_start(const struct ifd_repo_options *options, struct ifd_version *version,
                                struct ifd_err *err)
{
    enum ifd_code code = ifd_manifest_is_identity(&version->desc)
                             ? ifd_manifest_complete_identity(&version->desc, err)
                             : load_engine(options, version, err);
    if (!code) {
        warn_of_parameters(options, version);
        code = options->host.start(options->host.context, version, err);
    }
    if (!code && version->file.data) {
        code = ifd_sealed_finish(&version->sealed, err);
    }
    return code ? code : ifd_externals_seal(version, err);
}

void ifd_version_stop(const struct ifd_repo_options *options, struct ifd_version *version)
{
    if (version->served) {
        options->host.stop(options->host.context, version);
        version->served = NULL;
    }
    ifd_model_destroy(version->engine);
    version->engine = NULL;
    ifd_release_tensor(&version->sealed.alloc, (void *)(uintptr_t)version->file.data,
                       version->file.size);
    version->file = (struct ifd_bytes){0};
    ifd_externals_release(version);
    ifd_budget_give_back(options->budget, &version->held_bytes);
}

void ifd_version_destroy(const struct ifd_repo_options *options, struct ifd_version *version)
{
    ifd_version_stop(options, version);
    ifd_arena_finish(&version->arena);
    ifd_release(options->alloc, version, sizeof(*version));
}
