/* What the command line says to send: files as tensors, or a picture or sound unchanged. */
#include "cli.h"
#include "npy.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { OUTPUTS_MAX = 64 };

struct ifd_cli_request {
    struct ifd_client_request request;
    const char *media_type; /* NULL: tensors are sent */
    size_t media_bytes;     /* of files[0] */
    void *files[IFD_CLI_INPUTS_MAX];
    char *names[IFD_CLI_INPUTS_MAX];
    struct ifd_client_npy npys[IFD_CLI_INPUTS_MAX];
    struct ifd_client_tensor tensors[IFD_CLI_INPUTS_MAX];
    struct ifd_client_wanted wanted[OUTPUTS_MAX];
    json_t *metadata;
};

/* The content type of a file that the server decodes, by its name; NULL of others. */
static const char *media_type(const char *path)
{
    static const struct {
        const char *suffix, *type;
    } types[] = {
        {".jpg", "image/jpeg"},  {".jpeg", "image/jpeg"}, {".png", "image/png"},
        {".webp", "image/webp"}, {".bmp", "image/bmp"},   {".wav", "audio/wav"},
    };
    const char *suffix = strrchr(path, '.');
    for (size_t i = 0; suffix && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcasecmp(suffix, types[i].suffix) == 0) {
            return types[i].type;
        }
    }
    return NULL;
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
                                          const struct ifd_cli_arguments *args,
                                          struct ifd_cli_request *r, struct ifd_client_err *err)
{
    char *text = NULL;
    enum ifd_client_code code = ifd_client_metadata(client, args->model, args->version, &text, err);
    if (code == IFD_CLIENT_OK) {
        r->metadata = json_loads(text, 0, NULL);
        if (!r->metadata) {
            code = ifd_cli_fail(err, args->model, "its metadata is not JSON");
        }
    }
    ifd_client_text_free(text);
    return code;
}

static enum ifd_client_code load_input(const struct ifd_cli_arguments *args, size_t i,
                                       struct ifd_cli_request *r, struct ifd_client_err *err)
{
    const char *input = args->inputs[i];
    const char *path = input_path(input);
    size_t bytes = 0;
    enum ifd_client_code code = ifd_cli_read_file(path, &r->files[i], &bytes, err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    code = ifd_client_npy_parse(path, r->files[i], bytes, &r->npys[i], err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    r->tensors[i] = r->npys[i].tensor;
    if (path == input) {
        const json_t *inputs = json_object_get(r->metadata, "inputs");
        r->tensors[i].name = json_array_size(inputs) == 1 ? name_in(inputs, 0) : NULL;
        if (!r->tensors[i].name) {
            return ifd_cli_fail(err, input, "the model has several inputs: --input NAME=FILE");
        }
        return IFD_CLIENT_OK;
    }
    r->names[i] = strndup(input, (size_t)(path - input) - 1);
    r->tensors[i].name = r->names[i];
    return r->names[i] ? IFD_CLIENT_OK : ifd_cli_fail(err, input, "out of memory");
}

/* Bytes of the tensor of a shape; dimensions that are open are 1. False: too many. */
static bool measure(const json_t *shape, size_t each, struct ifd_client_npy *ret)
{
    size_t bytes = each;
    ret->tensor.rank = json_array_size(shape);
    if (ret->tensor.rank > IFD_CLIENT_NPY_MAX_RANK) {
        return false;
    }
    for (size_t i = 0; i < ret->tensor.rank; i++) {
        const json_int_t dim = json_integer_value(json_array_get(shape, i));
        ret->dims[i] = dim < 0 ? 1 : dim;
        if (dim == 0 || ret->dims[i] > IFD_CLI_FILE_BYTES_MAX / (int64_t)bytes) {
            return false;
        }
        bytes *= (size_t)ret->dims[i];
    }
    ret->tensor.shape = ret->dims;
    ret->tensor.data_bytes = bytes;
    return true;
}

/* Zeros for input i of the metadata; empty texts for BYTES. */
static enum ifd_client_code make_zeros(const json_t *inputs, size_t i, struct ifd_cli_request *r,
                                       struct ifd_client_err *err)
{
    const json_t *input = json_array_get(inputs, i);
    const char *name = name_in(inputs, i);
    const char *datatype = json_string_value(json_object_get(input, "datatype"));
    if (!name || !datatype) {
        return ifd_cli_fail(err, r->request.model, "its metadata has an input without a name");
    }
    const size_t each = ifd_client_datatype_bytes(datatype);
    if ((each == 0 && strcmp(datatype, "BYTES") != 0) ||
        !measure(json_object_get(input, "shape"), each > 0 ? each : 4, &r->npys[i])) {
        return ifd_cli_fail(err, name, "no zeros can be made for this input: give it by --input");
    }
    r->files[i] = calloc(1, r->npys[i].tensor.data_bytes);
    if (!r->files[i]) {
        return ifd_cli_fail(err, name, "out of memory");
    }
    r->tensors[i] = r->npys[i].tensor;
    r->tensors[i].name = name;
    r->tensors[i].datatype = datatype;
    r->tensors[i].data = r->files[i];
    return IFD_CLIENT_OK;
}

static enum ifd_client_code want_top(struct ifd_cli_request *r, unsigned top_count,
                                     struct ifd_client_err *err)
{
    const json_t *outputs = json_object_get(r->metadata, "outputs");
    const size_t count = json_array_size(outputs);
    for (size_t i = 0; i < count && i < OUTPUTS_MAX; i++) {
        r->wanted[i].name = name_in(outputs, i);
        r->wanted[i].top_count = top_count;
        if (!r->wanted[i].name) {
            return ifd_cli_fail(err, r->request.model, "its metadata has an output without a name");
        }
        r->request.output_count = i + 1;
    }
    r->request.outputs = r->wanted;
    return IFD_CLIENT_OK;
}

static enum ifd_client_code load_tensors(struct ifd_client *client,
                                         const struct ifd_cli_arguments *args,
                                         struct ifd_cli_request *r, struct ifd_client_err *err)
{
    enum ifd_client_code code = load_metadata(client, args, r, err);
    r->request.input_count = args->input_count;
    for (size_t i = 0; code == IFD_CLIENT_OK && i < args->input_count; i++) {
        code = load_input(args, i, r, err);
    }
    const json_t *inputs = json_object_get(r->metadata, "inputs");
    if (code == IFD_CLIENT_OK && args->input_count == 0) {
        r->request.input_count = json_array_size(inputs);
        if (r->request.input_count > IFD_CLI_INPUTS_MAX) {
            return ifd_cli_fail(err, args->model, "it has too many inputs to make zeros for");
        }
        for (size_t i = 0; code == IFD_CLIENT_OK && i < r->request.input_count; i++) {
            code = make_zeros(inputs, i, r, err);
        }
    }
    if (code == IFD_CLIENT_OK && args->top_count != 0) {
        code = want_top(r, args->top_count, err);
    }
    return code;
}

static const char *kind_of_media(const struct ifd_cli_arguments *args)
{
    const char *type = NULL;
    for (size_t i = 0; i < args->input_count && !type; i++) {
        type = media_type(input_path(args->inputs[i]));
    }
    return type;
}

enum ifd_client_code ifd_cli_request_create(struct ifd_client *client,
                                            const struct ifd_cli_arguments *args,
                                            struct ifd_cli_request **ret_request,
                                            struct ifd_client_err *err)
{
    const char *type = kind_of_media(args);
    if (type && args->input_count != 1) {
        return ifd_cli_fail(err, args->command, IFD_CLI_NEEDS_INPUT);
    }
    if (type && args->top_count != 0) {
        return ifd_cli_fail(err, args->command,
                            "--top is for .npy files; of a picture or sound the server chooses");
    }
    struct ifd_cli_request *r = calloc(1, sizeof(*r));
    if (!r) {
        return ifd_cli_fail(err, args->command, "out of memory");
    }
    r->media_type = type;
    r->request.model = args->model;
    r->request.version = args->version;
    r->request.encoding = args->is_json ? IFD_CLIENT_JSON : IFD_CLIENT_BINARY;
    r->request.inputs = r->tensors;
    enum ifd_client_code code =
        type ? ifd_cli_read_file(input_path(args->inputs[0]), &r->files[0], &r->media_bytes, err)
             : load_tensors(client, args, r, err);
    if (code != IFD_CLIENT_OK) {
        ifd_cli_request_destroy(r);
        return code;
    }
    *ret_request = r;
    return IFD_CLIENT_OK;
}

enum ifd_client_code ifd_cli_request_send(struct ifd_client *client,
                                          const struct ifd_cli_request *r,
                                          struct ifd_client_result **ret_result,
                                          struct ifd_client_err *err)
{
    if (r->media_type) { /* the whole body of the request; the server decodes it */
        return ifd_client_infer_image(client, r->request.model, r->request.version, r->media_type,
                                      r->files[0], r->media_bytes, ret_result, err);
    }
    return ifd_client_infer(client, &r->request, ret_result, err);
}

void ifd_cli_request_destroy(struct ifd_cli_request *r)
{
    if (!r) {
        return;
    }
    json_decref(r->metadata);
    for (size_t i = 0; i < IFD_CLI_INPUTS_MAX; i++) {
        free(r->files[i]);
        free(r->names[i]);
    }
    free(r);
}
