/* Loads a model for a command and fills its inputs. */
#include "engine/tools/session.h"

#include "engine/base/cpu.h"
#include "engine/base/file.h"
#include "engine/base/str.h"
#include "engine/tools/npy.h"
#include "engine/tools/progress.h"

#include <stdio.h>
#include <string.h>

#define BACKENDS_MAX    16
#define INPUT_BYTES_MAX ((size_t)1024 * 1024 * 1024)

static enum ifd_code parse_mask(const char *text, struct ifd_engine_options *options,
                                struct ifd_err *err)
{
    struct ifd_str rest = ifd_str(text);
    if (ifd_str_equal(rest, "none")) {
        options->no_cpu_features = true;
        return IFD_OK;
    }
    while (rest.data) {
        struct ifd_str name = ifd_str_part(&rest, ',');
        uint32_t flag = ifd_cpu_flag_by_name(name.data, name.size);
        if (flag == 0) {
            return ifd_fail(err, IFD_INVALID, "--cpu: unknown feature \"%.*s\"", (int)name.size,
                            name.data);
        }
        options->cpu_mask |= flag;
    }
    return IFD_OK;
}

void ifd_session_print(void *context, const char *text, size_t size)
{
    (void)context;
    (void)fwrite(text, 1, size, stdout);
}

static bool has_backend(const struct ifd_tool_host *host, const char *name)
{
    for (uint32_t i = 0; i < host->backend_count; i++) {
        if (strcmp(host->backends[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Splits "A,B" into names; text gets a copy with NULs for commas. */
static enum ifd_code split_backends(const char *list, char *text, size_t size,
                                    const char *ret_names[BACKENDS_MAX], uint32_t *ret_count,
                                    struct ifd_err *err)
{
    if (!ifd_str_format(text, size, "%s", list)) {
        return ifd_fail(err, IFD_INVALID, "list of backends: %zu bytes, limit %zu", strlen(list),
                        size - 1);
    }
    uint32_t count = 0;
    for (char *at = text; at; count++) {
        if (count == BACKENDS_MAX) {
            return ifd_fail(err, IFD_INVALID, "list of backends: more than %d names", BACKENDS_MAX);
        }
        ret_names[count] = at;
        at = strchr(at, ',');
        if (at) {
            *at++ = '\0';
        }
    }
    *ret_count = count;
    return IFD_OK;
}

/* The engine's options. They are made, and wrong ones are found, before anything is opened. */
struct setup {
    struct ifd_engine_options engine;
    struct ifd_model_options model;
    const char *names[BACKENDS_MAX];
    char text[256];
};

/* Whoever measures or compares a device must know that it was not the device. */
static void backend_changed(void *context, const char *backend, const struct ifd_err *reason)
{
    (void)context;
    (void)fprintf(stderr, "inferd: %s: %s\n", backend,
                  reason ? reason->text : "the device works again");
}

static enum ifd_code set_up(struct setup *ret, const struct ifd_tool_host *host,
                            const struct ifd_session_options *options, struct ifd_err *err)
{
    ret->engine =
        (struct ifd_engine_options){.alloc = ifd_alloc_system(),
                                    .backends = host->backends,
                                    .backend_count = host->backend_count,
                                    .plugin_folders = options->backend_paths.item,
                                    .plugin_folder_count = options->backend_paths.count,
                                    .finds_plugins = true,
                                    .backend_options = options->backend_options.item,
                                    .backend_option_count = options->backend_options.count,
                                    .exact = options->exact,
                                    .fast = options->fast,
                                    .cache_folder = options->cache_folder,
                                    .cache_bytes = (uint64_t)options->cache_mb << 20,
                                    .backend_changed = backend_changed};
    ret->model = (struct ifd_model_options){.max_threads = options->threads,
                                            .no_optimize = options->no_optimize,
                                            .releases_weights = !options->keeps_weights};
    enum ifd_code code = IFD_OK;
    if (options->cpu_mask) {
        code = parse_mask(options->cpu_mask, &ret->engine, err);
    }
    if (code == IFD_OK && options->precision &&
        !ifd_precision_by_name(options->precision, &ret->model.precision)) {
        code = ifd_fail(err, IFD_INVALID, "--precision: got \"%s\", expected f32, bf16 or fp16",
                        options->precision);
    }
    if (code == IFD_OK && options->exact && options->fast) {
        code = ifd_fail(err, IFD_INVALID, "--exact and --fast exclude each other");
    }
    if (code == IFD_OK && options->exact && ret->model.precision != IFD_PRECISION_F32) {
        code = ifd_fail(err, IFD_INVALID, "--exact and --precision %s exclude each other",
                        options->precision);
    }
    if (code == IFD_OK && options->backends) {
        code = split_backends(options->backends, ret->text, sizeof(ret->text), ret->names,
                              &ret->model.backend_count, err);
        ret->model.backends = ret->names;
    }
    return code;
}

/* Opens what is not built in, to say what is wrong with it before the model is read. */
static enum ifd_code check_plugins(const struct setup *setup, struct ifd_err *err)
{
    struct ifd_engine *engine = NULL;
    enum ifd_code code = ifd_engine_create(&setup->engine, &engine, err);
    for (uint32_t i = 0; code == IFD_OK && i < setup->model.backend_count; i++) {
        code = ifd_engine_check_backend(engine, setup->names[i], err);
    }
    ifd_engine_destroy(engine);
    return code;
}

enum ifd_code ifd_session_check(const struct ifd_tool_host *host,
                                const struct ifd_session_options *options, struct ifd_err *err)
{
    struct setup setup;
    enum ifd_code code = set_up(&setup, host, options, err);
    bool needs_plugins = options->backend_paths.count > 0 || options->backend_options.count > 0;
    for (uint32_t i = 0; i < setup.model.backend_count; i++) {
        needs_plugins |= !has_backend(host, setup.names[i]);
    }
    return code == IFD_OK && needs_plugins ? check_plugins(&setup, err) : code;
}

static enum ifd_code load(struct ifd_session *session, const struct ifd_tool_host *host,
                          const struct ifd_session_options *options, struct ifd_err *err)
{
    struct setup setup;
    enum ifd_code code = set_up(&setup, host, options, err);
    if (code == IFD_OK) {
        code = ifd_engine_create(&setup.engine, &session->engine, err);
    }
    if (code == IFD_OK) {
        code = ifd_externals_open(options->path, session->file.content, SIZE_MAX, session->alloc,
                                  &session->externals, err);
    }
    if (code == IFD_OK) {
        setup.model.external = session->externals.file;
        setup.model.external_count = session->externals.count;
        code = ifd_model_load(session->engine, session->file.content, &setup.model, &session->model,
                              err);
    }
    if (code == IFD_OK) {
        session->info = ifd_model_info(session->model);
    }
    return code;
}

/* An input's file. */
struct given {
    const char *path; /* NULL: no file was given */
    bool is_picture;
    struct ifd_bytes file;     /* owned */
    struct ifd_tensor content; /* dtype, data and bytes, unless it is a picture */
};

/* Type, shape and size of a port at this batch. Open dimensions are those of given, or else of the
 * port's example. */
static enum ifd_code size_tensor(const struct ifd_port *port, uint32_t batch,
                                 const struct ifd_shape *given, struct ifd_tensor *ret,
                                 struct ifd_err *err)
{
    const bool is_given = given && given->rank == port->desc.shape.rank;
    *ret = (struct ifd_tensor){.dtype = port->desc.dtype,
                               .shape = port->desc.shape,
                               .bytes = ifd_dtype_bytes(port->desc.dtype)};
    if (port->batched && ret->shape.rank > 0) {
        ret->shape.dim[0] = batch;
    }
    for (uint32_t i = 0; i < ret->shape.rank; i++) {
        if (ret->shape.dim[i] == IFD_DIM_ANY) {
            ret->shape.dim[i] = is_given ? given->dim[i] : port->example.dim[i];
        }
        const uint64_t dim = (uint64_t)ret->shape.dim[i];
        if (dim > SIZE_MAX || !ifd_size_mul(ret->bytes, (size_t)dim, &ret->bytes)) {
            return ifd_fail(err, IFD_TOO_LARGE, "tensor \"%s\": size overflows", port->name);
        }
    }
    return IFD_OK;
}

static enum ifd_code make_tensors(struct ifd_session *session, const struct given *given,
                                  struct ifd_err *err)
{
    const struct ifd_model_info *info = session->info;
    session->input =
        ifd_acquire_zeroed(session->alloc, info->input_count + 1, sizeof(*session->input));
    session->output =
        ifd_acquire_zeroed(session->alloc, info->output_count + 1, sizeof(*session->output));
    if (!session->input || !session->output) {
        return ifd_fail(err, IFD_NOMEM, "no memory to describe %u inputs and %u outputs",
                        info->input_count, info->output_count);
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        struct ifd_tensor *tensor = &session->input[i];
        enum ifd_code code =
            size_tensor(&info->input[i], session->batch, &given[i].content.shape, tensor, err);
        if (code != IFD_OK) {
            return code;
        }
        tensor->data = ifd_acquire_tensor(session->alloc, tensor->bytes);
        if (!tensor->data) {
            return ifd_fail(err, IFD_NOMEM, "no memory for the %zu bytes of input \"%s\"",
                            tensor->bytes, info->input[i].name);
        }
        memset(tensor->data, 0, tensor->bytes);
        tensor->capacity = tensor->bytes + IFD_TENSOR_PAD;
    }
    return IFD_OK;
}

/* ---- inputs from files ---- */

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail &&
           ifd_str_equal_nocase((struct ifd_str){text + length - tail, tail}, ending);
}

static enum ifd_code read_file(const struct ifd_session *session, uint32_t index, const char *path,
                               struct given *ret, struct ifd_err *err)
{
    const struct ifd_port *port = &session->info->input[index];
    if (ret->path) {
        return ifd_fail(err, IFD_INVALID, "input \"%s\" is given twice: %s and %s", port->name,
                        ret->path, path);
    }
    enum ifd_code code = ifd_file_read(path, INPUT_BYTES_MAX, session->alloc, &ret->file, err);
    if (code != IFD_OK) {
        return code;
    }
    ret->path = path;
    ret->content = (struct ifd_tensor){
        .dtype = port->desc.dtype, .data = (void *)ret->file.data, .bytes = ret->file.size};
    ret->is_picture =
        ends_with(path, ".jpg") || ends_with(path, ".jpeg") || ends_with(path, ".png");
    if (ends_with(path, ".npy")) {
        code = ifd_npy_parse(ret->file, &ret->content, err);
    }
    if (code != IFD_OK) {
        ifd_err_prefix(err, "input \"%s\" from %s", port->name, path);
    }
    return code;
}

/* Which input a "name=file" or "file" argument means; *ret_path is the file. */
static void find_input(const struct ifd_session *session, const char *argument, uint32_t position,
                       uint32_t *ret_index, const char **ret_path)
{
    const struct ifd_model_info *info = session->info;
    *ret_index = position;
    *ret_path = argument;
    for (uint32_t i = 0; i < info->input_count; i++) {
        size_t length = strlen(info->input[i].name);
        if (strncmp(argument, info->input[i].name, length) == 0 && argument[length] == '=') {
            *ret_index = i;
            *ret_path = argument + length + 1;
        }
    }
}

static enum ifd_code read_files(const struct ifd_session *session,
                                const struct ifd_session_options *options, struct given *given,
                                struct ifd_err *err)
{
    const struct ifd_arg_list *files = &options->inputs;
    if (files->count == 0 && !options->needs_inputs) {
        return IFD_OK;
    }
    if (files->count != session->info->input_count) {
        return ifd_fail(err, IFD_INVALID, "%u inputs given (--input), the model has %u",
                        files->count, session->info->input_count);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        uint32_t index = 0;
        const char *path = NULL;
        find_input(session, files->item[i], i, &index, &path);
        const enum ifd_code code = read_file(session, index, path, &given[index], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

/* Number of samples in an input's file; 0 if it is not a whole number. */
static size_t samples_in(const struct ifd_port *port, const struct given *given)
{
    struct ifd_tensor sample;
    if (given->is_picture) {
        return 1;
    }
    if (size_tensor(port, 1, NULL, &sample, NULL) != IFD_OK || sample.bytes == 0 ||
        given->content.bytes % sample.bytes != 0) {
        return 0;
    }
    return given->content.bytes / sample.bytes;
}

/* The batch: --batch, else the number of samples in the first file of a batched input, else the
 * model file's. */
static enum ifd_code choose_batch(struct ifd_session *session,
                                  const struct ifd_session_options *options,
                                  const struct given *given, struct ifd_err *err)
{
    size_t batch = options->batch;
    for (uint32_t i = 0; batch == 0 && i < session->info->input_count; i++) {
        const struct ifd_port *port = &session->info->input[i];
        if (port->batched && given[i].path) {
            batch = samples_in(port, &given[i]);
        }
        if (batch > IFD_MAX_BATCH) {
            return ifd_fail(err, IFD_TOO_LARGE, "input \"%s\" from %s: %zu samples, limit %d",
                            port->name, given[i].path, batch, IFD_MAX_BATCH);
        }
    }
    for (uint32_t i = 0; batch == 0 && i < session->info->input_count; i++) {
        const struct ifd_port *port = &session->info->input[i];
        const int64_t dim = port->batched ? port->desc.shape.dim[0] : 0;
        batch = dim > 0 && dim <= IFD_MAX_BATCH ? (size_t)dim : 0;
    }
    session->batch = batch > 0 ? (uint32_t)batch : 1;
    return IFD_OK;
}

static enum ifd_code fill_input(struct ifd_session *session, const struct ifd_tool_host *host,
                                uint32_t index, const struct given *given, struct ifd_err *err)
{
    const struct ifd_port *port = &session->info->input[index];
    struct ifd_tensor *tensor = &session->input[index];
    const struct ifd_tensor *content = &given->content;
    enum ifd_code code = IFD_OK;
    if (given->is_picture && !host->decode_image) {
        code = ifd_fail(err, IFD_UNSUPPORTED, "pictures are not supported in this build");
    } else if (given->is_picture) {
        code = host->decode_image(given->file, port, tensor->data, tensor->bytes, err);
    } else if (content->dtype != tensor->dtype || content->bytes != tensor->bytes) {
        code = ifd_fail(err, IFD_INVALID, "%zu bytes of %s, expected %zu of %s (batch %u)",
                        content->bytes, ifd_dtype_name(content->dtype), tensor->bytes,
                        ifd_dtype_name(tensor->dtype), session->batch);
    } else if (tensor->bytes > 0) {
        memcpy(tensor->data, content->data, tensor->bytes);
    }
    if (code != IFD_OK) {
        ifd_err_prefix(err, "input \"%s\" from %s", port->name, given->path);
    }
    return code;
}

/* ---- life ---- */

/* Makes the loaded model ready to run. Reads the inputs before it allocates: they may give the
 * batch. */
static enum ifd_code prepare(struct ifd_session *session, const struct ifd_tool_host *host,
                             const struct ifd_session_options *options, struct ifd_err *err)
{
    const uint32_t count = session->info->input_count;
    struct given *given = ifd_acquire_zeroed(session->alloc, count + 1, sizeof(*given));
    if (!given) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u inputs", count);
    }
    enum ifd_code code = read_files(session, options, given, err);
    if (code == IFD_OK) {
        code = choose_batch(session, options, given, err);
    }
    if (code == IFD_OK) {
        code = make_tensors(session, given, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < count; i++) {
        code = given[i].path ? fill_input(session, host, i, &given[i], err) : IFD_OK;
    }
    if (code == IFD_OK) {
        const struct ifd_instance_options instance = {.threads = options->threads,
                                                      .max_batch = session->batch};
        code = ifd_instance_create(session->model, &instance, &session->instance, err);
    }
    for (uint32_t i = 0; i < count; i++) {
        ifd_release_tensor(session->alloc, (void *)given[i].file.data, given[i].file.size);
    }
    ifd_release(session->alloc, given, (count + 1) * sizeof(*given));
    return code;
}

enum ifd_code ifd_session_open(const struct ifd_tool_host *host,
                               const struct ifd_session_options *options, struct ifd_session *ret,
                               struct ifd_err *err)
{
    struct ifd_session session = {.alloc = ifd_alloc_system()};
    enum ifd_code code = ifd_file_open(options->path, SIZE_MAX, session.alloc, &session.file, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_waiting waiting;
    ifd_waiting_begin(&waiting, "loading", session.alloc); /* with tuning, where it was asked for */
    code = load(&session, host, options, err);
    ifd_waiting_end(&waiting);
    if (code == IFD_OK) {
        code = prepare(&session, host, options, err);
    }
    if (code != IFD_OK) {
        ifd_err_prefix(err, "%s", options->path);
        ifd_session_close(&session);
        return code;
    }
    *ret = session;
    return IFD_OK;
}

void ifd_session_close(struct ifd_session *session)
{
    const struct ifd_alloc *alloc = session->alloc;
    if (session->info && session->input) {
        for (uint32_t i = 0; i < session->info->input_count; i++) {
            ifd_release_tensor(alloc, session->input[i].data, session->input[i].bytes);
        }
    }
    if (session->info) {
        ifd_release(alloc, session->input,
                    (session->info->input_count + 1) * sizeof(*session->input));
        ifd_release(alloc, session->output,
                    (session->info->output_count + 1) * sizeof(*session->output));
    }
    ifd_instance_destroy(session->instance);
    ifd_model_destroy(session->model);
    ifd_engine_destroy(session->engine);
    ifd_externals_close(&session->externals);
    ifd_file_close(&session->file);
    *session = (struct ifd_session){0};
}

static uint64_t next_random(uint64_t *state)
{
    /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void ifd_session_random_inputs(struct ifd_session *session, uint64_t seed)
{
    for (uint32_t i = 0; i < session->info->input_count; i++) {
        struct ifd_tensor *tensor = &session->input[i];
        if (tensor->dtype == IFD_F32) {
            float *value = tensor->data;
            for (size_t k = 0; k < tensor->bytes / sizeof(float); k++) {
                value[k] = (float)((double)(next_random(&seed) >> 11) / 4503599627370496.0 - 1.0);
            }
        } else if (tensor->dtype == IFD_U8 || tensor->dtype == IFD_S8 || tensor->dtype == IFD_S16) {
            uint8_t *value = tensor->data;
            for (size_t k = 0; k < tensor->bytes; k++) {
                value[k] = (uint8_t)next_random(&seed);
            }
        }
    }
}

enum ifd_code ifd_session_run(struct ifd_session *session, struct ifd_err *err)
{
    for (uint32_t i = 0; i < session->info->output_count; i++) {
        session->output[i].data = NULL;
    }
    const struct ifd_io io = {
        .input = session->input, .output = session->output, .batch = session->batch};
    return ifd_instance_run(session->instance, &io, 1, err);
}
