/* inferctl infer: sends files as tensors, or a picture unchanged; prints and writes the outputs. */
#include "cli.h"
#include "npy.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTPUTS_MAX = 64,
    SHOWN_ELEMENTS = 16,
};

/* What the infer command holds until its end. */
struct job {
    void *files[IFD_CLI_INPUTS_MAX];
    char *names[IFD_CLI_INPUTS_MAX];
    struct ifd_client_npy npys[IFD_CLI_INPUTS_MAX];
    struct ifd_client_tensor tensors[IFD_CLI_INPUTS_MAX];
    struct ifd_client_wanted wanted[OUTPUTS_MAX];
    json_t *metadata;
    struct ifd_client_result *result;
};

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

static const char *picture_type(const char *path)
{
    if (has_suffix(path, ".jpg") || has_suffix(path, ".jpeg")) {
        return "image/jpeg";
    }
    return has_suffix(path, ".png") ? "image/png" : NULL;
}

/* FILE of "NAME=FILE" or "FILE". */
static const char *input_path(const char *input)
{
    const char *equals = strchr(input, '=');
    return equals ? equals + 1 : input;
}

static const char *name_in(const json_t *list, size_t index)
{
    return json_string_value(json_object_get(json_array_get(list, index), "name"));
}

static enum ifd_client_code load_metadata(struct ifd_client *client,
                                          const struct ifd_cli_arguments *args, struct job *job,
                                          struct ifd_client_err *err)
{
    char *text = NULL;
    enum ifd_client_code code = ifd_client_metadata(client, args->model, args->version, &text, err);
    if (code == IFD_CLIENT_OK) {
        job->metadata = json_loads(text, 0, NULL);
        if (!job->metadata) {
            code = ifd_cli_fail(err, args->model, "its metadata is not JSON");
        }
    }
    ifd_client_text_free(text);
    return code;
}

static enum ifd_client_code load_input(const struct ifd_cli_arguments *args, size_t i,
                                       struct job *job, struct ifd_client_err *err)
{
    const char *input = args->inputs[i];
    const char *path = input_path(input);
    size_t bytes = 0;
    enum ifd_client_code code = ifd_cli_read_file(path, &job->files[i], &bytes, err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    code = ifd_client_npy_parse(path, job->files[i], bytes, &job->npys[i], err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    job->tensors[i] = job->npys[i].tensor;
    if (path == input) {
        const json_t *inputs = json_object_get(job->metadata, "inputs");
        job->tensors[i].name = json_array_size(inputs) == 1 ? name_in(inputs, 0) : NULL;
        if (!job->tensors[i].name) {
            return ifd_cli_fail(err, input, "the model has several inputs: --input NAME=FILE");
        }
        return IFD_CLIENT_OK;
    }
    job->names[i] = strndup(input, (size_t)(path - input) - 1);
    job->tensors[i].name = job->names[i];
    return job->names[i] ? IFD_CLIENT_OK : ifd_cli_fail(err, input, "out of memory");
}

/* The picture is the whole body of the request; the server decodes it. */
static enum ifd_client_code infer_picture(struct ifd_client *client,
                                          const struct ifd_cli_arguments *args, struct job *job,
                                          struct ifd_client_err *err)
{
    const char *path = input_path(args->inputs[0]);
    size_t bytes = 0;
    enum ifd_client_code code = ifd_cli_read_file(path, &job->files[0], &bytes, err);
    if (code == IFD_CLIENT_OK) {
        code = ifd_client_infer_image(client, args->model, args->version, picture_type(path),
                                      job->files[0], bytes, &job->result, err);
    }
    return code;
}

static enum ifd_client_code infer_tensors(struct ifd_client *client,
                                          const struct ifd_cli_arguments *args, struct job *job,
                                          struct ifd_client_err *err)
{
    enum ifd_client_code code = load_metadata(client, args, job, err);
    for (size_t i = 0; code == IFD_CLIENT_OK && i < args->input_count; i++) {
        code = load_input(args, i, job, err);
    }
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    struct ifd_client_request request = {
        .model = args->model,
        .version = args->version,
        .encoding = args->is_json ? IFD_CLIENT_JSON : IFD_CLIENT_BINARY,
        .inputs = job->tensors,
        .input_count = args->input_count,
    };
    if (args->top_count != 0) {
        const json_t *outputs = json_object_get(job->metadata, "outputs");
        size_t count = json_array_size(outputs);
        for (size_t i = 0; i < count && i < OUTPUTS_MAX; i++) {
            job->wanted[i].name = name_in(outputs, i);
            job->wanted[i].top_count = args->top_count;
            if (!job->wanted[i].name) {
                return ifd_cli_fail(err, args->model, "its metadata has an output without a name");
            }
            request.output_count = i + 1;
        }
        request.outputs = job->wanted;
    }
    return ifd_client_infer(client, &request, &job->result, err);
}

static void print_number(const struct ifd_client_tensor *tensor, size_t at)
{
    const char *p = (const char *)tensor->data + at;
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } value = {.u64 = 0};
    size_t bytes = ifd_client_datatype_bytes(tensor->datatype);
    memcpy(&value, p, bytes);
    if (strcmp(tensor->datatype, "FP32") == 0) {
        printf(" %.9g", (double)value.f32);
    } else if (strcmp(tensor->datatype, "FP64") == 0) {
        printf(" %.17g", value.f64);
    } else if (strncmp(tensor->datatype, "INT", 3) == 0) {
        printf(" %" PRId64, bytes == 1   ? value.i8
                            : bytes == 2 ? value.i16
                            : bytes == 4 ? value.i32
                                         : value.i64);
    } else {
        printf(" %" PRIu64, value.u64);
    }
}

static void print_output(const struct ifd_client_tensor *tensor)
{
    printf("%s %s [", tensor->name, tensor->datatype);
    for (size_t i = 0; i < tensor->rank; i++) {
        printf("%s%" PRId64, i == 0 ? "" : ",", tensor->shape[i]);
    }
    printf("]\n");
    size_t each = ifd_client_datatype_bytes(tensor->datatype), offset = 0, text_bytes = 0;
    const char *text = NULL;
    if (each == 0) {
        while (ifd_client_bytes_next(tensor, &offset, &text, &text_bytes)) {
            printf("  %.*s\n", (int)text_bytes, text);
        }
        return;
    }
    size_t count = tensor->data_bytes / each;
    printf(" ");
    for (size_t i = 0; i < count && i < SHOWN_ELEMENTS; i++) {
        print_number(tensor, i * each);
    }
    printf("%s\n", count > SHOWN_ELEMENTS ? " …" : "");
}

/* What the server saw in a picture: one line of JSON for each class, object or segment. */
static enum ifd_client_code show_objects(const struct ifd_client_result *result,
                                         struct ifd_client_err *err)
{
    json_t *root = json_loads(ifd_client_result_text(result), 0, NULL), *list = NULL, *item = NULL;
    const char *key = NULL;
    size_t at = 0;
    if (!root) {
        return ifd_cli_fail(err, "infer", "out of memory");
    }
    json_object_foreach(root, key, list)
    {
        json_array_foreach(list, at, item)
        {
            char *line = json_is_object(item) ? json_dumps(item, JSON_REAL_PRECISION(7)) : NULL;
            if (line) {
                printf("%s\n", line);
            }
            free(line);
        }
    }
    json_decref(root);
    return IFD_CLIENT_OK;
}

static enum ifd_client_code show_result(const struct ifd_cli_arguments *args,
                                        const struct ifd_client_result *result,
                                        struct ifd_client_err *err)
{
    for (size_t i = 0; i < ifd_client_result_output_count(result); i++) {
        const struct ifd_client_tensor *output = ifd_client_result_output(result, i);
        print_output(output);
        if (args->output_dir) {
            char path[4096];
            int n = snprintf(path, sizeof(path), "%s/out%zu.npy", args->output_dir, i);
            if (n < 0 || (size_t)n >= sizeof(path)) {
                return ifd_cli_fail(err, args->output_dir, "the path is too long");
            }
            enum ifd_client_code code = ifd_client_npy_write(path, output, err);
            if (code != IFD_CLIENT_OK) {
                return code;
            }
        }
    }
    return IFD_CLIENT_OK;
}

enum ifd_client_code ifd_cli_infer(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                   struct ifd_client_err *err)
{
    bool is_picture = false;
    for (size_t i = 0; i < args->input_count; i++) {
        is_picture = is_picture || picture_type(input_path(args->inputs[i])) != NULL;
    }
    if (args->input_count == 0 || (is_picture && args->input_count != 1)) {
        return ifd_cli_fail(err, "infer", "needs --input: .npy files, or one picture");
    }
    if (is_picture && args->top_count != 0) {
        return ifd_cli_fail(err, "infer",
                            "--top is for .npy files; for a picture the server chooses");
    }
    struct job *job = calloc(1, sizeof(*job));
    if (!job) {
        return ifd_cli_fail(err, "infer", "out of memory");
    }
    enum ifd_client_code code =
        is_picture ? infer_picture(client, args, job, err) : infer_tensors(client, args, job, err);
    if (code == IFD_CLIENT_OK) {
        code = ifd_client_result_text(job->result)[0] ? show_objects(job->result, err)
                                                      : show_result(args, job->result, err);
    }
    ifd_client_result_destroy(job->result);
    json_decref(job->metadata);
    for (size_t i = 0; i < args->input_count; i++) {
        free(job->files[i]);
        free(job->names[i]);
    }
    free(job);
    return code;
}
