/* inferctl infer: prints and writes the outputs of one request. */
#include "cli.h"
#include "npy.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_ELEMENTS = 16 };

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

/* What the server found: one line of JSON for each class, object, segment or window of sound. */
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
    struct ifd_cli_request *request = NULL;
    struct ifd_client_result *result = NULL;
    if (args->input_count == 0) {
        return ifd_cli_fail(err, "infer", IFD_CLI_NEEDS_INPUT);
    }
    enum ifd_client_code code = ifd_cli_request_create(client, args, &request, err);
    if (code == IFD_CLIENT_OK) {
        code = ifd_cli_request_send(client, request, &result, err);
    }
    if (code == IFD_CLIENT_OK) {
        code = ifd_client_result_text(result)[0] ? show_objects(result, err)
                                                 : show_result(args, result, err);
    }
    ifd_client_result_destroy(result);
    ifd_cli_request_destroy(request);
    return code;
}
