/* The commands of inferctl that ask one question: all but infer. */
#include "cli.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- tables: scripts get tabs between columns, terminals aligned columns ---- */

enum { COLUMNS_MAX = 8 };

/* Characters of UTF-8. */
static int width_of(const char *text, size_t size)
{
    int width = 0;
    for (size_t i = 0; i < size; i++) {
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return width;
}

/* Measures the columns, or prints them; the last one of a line is as wide as it is. */
static void align(const char *text, int *most, bool prints)
{
    size_t column = 0;
    while (text[0] != '\0') {
        const size_t size = strcspn(text, "\t\n");
        const bool is_last = text[size] != '\t';
        const int width = width_of(text, size);
        if (prints) {
            printf("%.*s%*s", (int)size, text, is_last ? 0 : most[column] - width + 2,
                   is_last ? "\n" : "");
        } else if (!is_last && width > most[column]) {
            most[column] = width;
        }
        column = is_last ? 0 : column + (column + 1 < COLUMNS_MAX);
        text += size + (text[size] != '\0');
    }
}

/* A line for each element of a JSON array. */
static enum ifd_client_code print_table(const char *header, const json_t *rows,
                                        void (*write_row)(const json_t *row, FILE *out),
                                        struct ifd_client_err *err)
{
    int most[COLUMNS_MAX] = {0};
    char *text = NULL;
    size_t size = 0, i = 0;
    FILE *out = open_memstream(&text, &size);
    const json_t *row = NULL;
    if (!out) {
        return ifd_cli_fail(err, "table", "out of memory");
    }
    fprintf(out, "%s\n", header);
    json_array_foreach(rows, i, row)
    {
        write_row(row, out);
    }
    const bool is_whole = fclose(out) == 0;
    if (is_whole && isatty(STDOUT_FILENO) == 1) {
        align(text, most, false);
        align(text, most, true);
    } else if (is_whole) {
        printf("%s", text);
    }
    free(text);
    return is_whole ? IFD_CLIENT_OK : ifd_cli_fail(err, "table", "out of memory");
}

/* Prints JSON with indentation; text that is not JSON unchanged. */
static void print_json(char *text)
{
    json_t *root = json_loads(text, 0, NULL);
    char *pretty = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    printf("%s\n", pretty ? pretty : text);
    free(pretty);
    json_decref(root);
    ifd_client_text_free(text);
}

/* The columns of the header that the row has, up to the last one. */
static void write_index_row(const json_t *model, FILE *out)
{
    static const char *const fields[] = {"name",   "version",  "state",     "pending",
                                         "reason", "attempts", "next_retry"};
    size_t skipped = 0;
    for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
        const char *value = json_string_value(json_object_get(model, fields[f]));
        if (!value || value[0] == '\0') {
            skipped++;
            continue;
        }
        for (; skipped > 0; skipped--) {
            fputc('\t', out);
        }
        fprintf(out, "%s", value);
        skipped = 1;
    }
    fputc('\n', out);
}

enum ifd_client_code ifd_cli_index(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                   struct ifd_client_err *err)
{
    (void)args;
    char *text = NULL;
    enum ifd_client_code code = ifd_client_index(client, false, &text, err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    json_t *root = json_loads(text, 0, NULL);
    code = print_table("MODEL\tVERSION\tSTATE\tPENDING\tREASON\tATTEMPTS\tNEXT_RETRY", root,
                       write_index_row, err);
    json_decref(root);
    ifd_client_text_free(text);
    return code;
}

enum ifd_client_code ifd_cli_live(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                  struct ifd_client_err *err)
{
    (void)args;
    enum ifd_client_code code = ifd_client_live(client, err);
    if (code == IFD_CLIENT_OK) {
        printf("live\n");
    }
    return code;
}

enum ifd_client_code ifd_cli_ready(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                   struct ifd_client_err *err)
{
    enum ifd_client_code code = ifd_client_ready(client, args->model, args->version, err);
    if (code == IFD_CLIENT_OK) {
        printf("ready\n");
    }
    return code;
}

enum ifd_client_code ifd_cli_metadata(struct ifd_client *client,
                                      const struct ifd_cli_arguments *args,
                                      struct ifd_client_err *err)
{
    char *text = NULL;
    enum ifd_client_code code = ifd_client_metadata(client, args->model, args->version, &text, err);
    if (code == IFD_CLIENT_OK) {
        print_json(text);
    }
    return code;
}

enum ifd_client_code ifd_cli_config(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                    struct ifd_client_err *err)
{
    char *text = NULL;
    enum ifd_client_code code = ifd_client_config(client, args->model, args->version, &text, err);
    if (code == IFD_CLIENT_OK) {
        print_json(text);
    }
    return code;
}

/* Says which versions of the model serve now. A client that may load but not see the index only
 * learns that it is loaded. */
static void tell_loaded(struct ifd_client *client, const char *name)
{
    char *text = NULL;
    json_t *root = NULL, *model = NULL;
    size_t i = 0, told = 0;
    if (ifd_client_index(client, true, &text, NULL) == IFD_CLIENT_OK) {
        root = json_loads(text, 0, NULL);
    }
    json_array_foreach(root, i, model)
    {
        const char *other = json_string_value(json_object_get(model, "name"));
        const char *version = json_string_value(json_object_get(model, "version"));
        if (other && version && strcmp(other, name) == 0) {
            printf("loaded %s version %s\n", name, version);
            told++;
        }
    }
    if (told == 0) {
        printf("loaded %s\n", name);
    }
    json_decref(root);
    ifd_client_text_free(text);
}

enum ifd_client_code ifd_cli_load(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                  struct ifd_client_err *err)
{
    void *config = NULL;
    size_t bytes = 0;
    enum ifd_client_code code = IFD_CLIENT_OK;
    if (args->config) {
        code = ifd_cli_read_file(args->config, &config, &bytes, err);
    }
    if (config) {
        ((char *)config)[bytes] = '\0'; /* ifd_cli_read_file leaves room for it */
    }
    if (code == IFD_CLIENT_OK) {
        code = ifd_client_load(client, args->model, config, err);
    }
    if (code == IFD_CLIENT_OK) {
        tell_loaded(client, args->model);
    }
    free(config);
    return code;
}

enum ifd_client_code ifd_cli_unload(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                    struct ifd_client_err *err)
{
    enum ifd_client_code code = ifd_client_unload(client, args->model, err);
    if (code == IFD_CLIENT_OK) {
        printf("unloaded\n");
    }
    return code;
}

static double mean_us(const json_t *stats, const char *stage)
{
    const json_t *duration = json_object_get(json_object_get(stats, "inference_stats"), stage);
    json_int_t count = json_integer_value(json_object_get(duration, "count"));
    json_int_t ns = json_integer_value(json_object_get(duration, "ns"));
    return count > 0 ? (double)ns / (double)count / 1000 : 0;
}

static void write_stats_row(const json_t *model, FILE *out)
{
    const json_t *fail = json_object_get(json_object_get(model, "inference_stats"), "fail");
    const char *name = json_string_value(json_object_get(model, "name"));
    const char *version = json_string_value(json_object_get(model, "version"));
    fprintf(out,
            "%s\t%s\t%" JSON_INTEGER_FORMAT "\t%" JSON_INTEGER_FORMAT "\t%" JSON_INTEGER_FORMAT
            "\t%.1f\t%.1f\t%.1f\n",
            name ? name : "", version ? version : "",
            json_integer_value(json_object_get(model, "inference_count")),
            json_integer_value(json_object_get(model, "execution_count")),
            json_integer_value(json_object_get(fail, "count")), mean_us(model, "success"),
            mean_us(model, "queue"), mean_us(model, "compute_infer"));
}

enum ifd_client_code ifd_cli_stats(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                   struct ifd_client_err *err)
{
    char *text = NULL;
    enum ifd_client_code code = ifd_client_stats(client, args->model, args->version, &text, err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    json_t *root = json_loads(text, 0, NULL);
    code = print_table("MODEL\tVERSION\tINFERENCES\tRUNS\tFAILED\tREQUEST_US\tQUEUE_US\t"
                       "COMPUTE_US",
                       json_object_get(root, "model_stats"), write_stats_row, err);
    json_decref(root);
    ifd_client_text_free(text);
    return code;
}

/* NAME=VALUE as a JSON object; VALUE is a string unless it is JSON. NULL: it is not NAME=VALUE, or
 * no memory. */
static char *setting_as_json(const char *setting)
{
    const char *equals = strchr(setting, '=');
    char *name = equals ? strndup(setting, (size_t)(equals - setting)) : NULL;
    json_t *value = equals ? json_loads(equals + 1, JSON_DECODE_ANY, NULL) : NULL;
    json_t *object = json_object();
    if (equals && !value) {
        value = json_string(equals + 1);
    }
    char *text = name && value && object && json_object_set(object, name, value) == 0
                     ? json_dumps(object, JSON_COMPACT)
                     : NULL;
    json_decref(value);
    json_decref(object);
    free(name);
    return text;
}

enum ifd_client_code ifd_cli_log(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                 struct ifd_client_err *err)
{
    char *settings = args->model ? setting_as_json(args->model) : NULL, *text = NULL;
    if (args->model && !settings) {
        return ifd_cli_fail(err, args->model,
                            "a setting is NAME=VALUE, for example log_verbose_level=1");
    }
    enum ifd_client_code code = ifd_client_log(client, settings, &text, err);
    free(settings);
    if (code == IFD_CLIENT_OK) {
        print_json(text);
    }
    return code;
}
