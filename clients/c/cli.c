/* inferctl: the command line of the C client. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_REFUSED = 1,     /* the server refused, or is not ready */
    EXIT_USAGE = 2,       /* wrong arguments or files */
    EXIT_UNREACHABLE = 3, /* no answer */
    TOKEN_BYTES = 1024,
    FILE_BYTES_MAX = 2147483647, /* the largest --http-max-input-size of a server */
};

static const char usage[] =
    "usage: inferctl [--url URL | --admin-socket PATH] [--token-file FILE] [--timeout SECONDS]\n"
    "                COMMAND\n"
    "\n"
    "  live                       whether the server runs\n"
    "  ready [MODEL]              whether the server, or a model, is ready\n"
    "  index                      models in the server's repository\n"
    "  metadata [MODEL]           metadata of the server, or of a model\n"
    "  config MODEL               configuration of a model\n"
    "  stats [MODEL]              inferences, runs, failures and mean times of models\n"
    "  infer MODEL --input [NAME=]FILE …\n"
    "                             run a model on .npy files, or on one .jpg or .png picture\n"
    "  load MODEL [--config FILE] load a model, or reload it if its files changed\n"
    "  unload MODEL               stop serving a model\n"
    "  log [NAME=VALUE]           show the log's settings, or change one: log_verbose_level=1\n"
    "\n"
    "options\n"
    "  --url URL                  http://HOST:PORT or unix:/path (default http://127.0.0.1:8000)\n"
    "  --admin-socket PATH        the server's admin socket, which takes load, unload and log\n"
    "  --token-file FILE          file with the token for the server; only you may read it\n"
    "  --config FILE              JSON that replaces the model's config file\n"
    "  --timeout SECONDS          time limit for each request (default: none)\n"
    "  --version V                version of the model (default: the server's choice)\n"
    "  --input [NAME=]FILE        input, at most 2 GiB; a model with one input needs no NAME\n"
    "  --top K                    the K largest values of every output, with their labels; not "
    "for\n"
    "                             a picture: there the server chooses\n"
    "  --output-dir DIR           write the outputs as DIR/out0.npy, out1.npy, …\n"
    "  --json                     send and receive tensors as JSON instead of binary\n"
    "  --help                     this text\n"
    "\n"
    "exit status: 0 done, 1 the server refused, 2 wrong usage or files, 3 no answer\n";

static int exit_status(enum ifd_client_code code)
{
    switch (code) {
    case IFD_CLIENT_OK:
        return EXIT_SUCCESS;
    case IFD_CLIENT_INVALID:
    case IFD_CLIENT_NOMEM:
        return EXIT_USAGE;
    case IFD_CLIENT_REFUSED:
    case IFD_CLIENT_PROTOCOL:
        return EXIT_REFUSED;
    case IFD_CLIENT_TRANSPORT:
        break;
    }
    return EXIT_UNREACHABLE;
}

enum ifd_client_code ifd_cli_fail(struct ifd_client_err *err, const char *subject, const char *why)
{
    err->code = IFD_CLIENT_INVALID;
    err->http_status = 0;
    snprintf(err->text, sizeof(err->text), "%s: %s", subject, why);
    return IFD_CLIENT_INVALID;
}

/* Opens a regular file of at most FILE_BYTES_MAX; a negative descriptor after err is filled. */
static int open_file(const char *path, size_t *ret_bytes, struct ifd_client_err *err)
{
    struct stat info;
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO without a writer does not wait */
    if (fd < 0 || fstat(fd, &info) != 0) {
        ifd_cli_fail(err, path, strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        ifd_cli_fail(err, path, "is a directory, expected a file");
    } else if (!S_ISREG(info.st_mode)) {
        ifd_cli_fail(err, path, "is no regular file");
    } else if (info.st_size > FILE_BYTES_MAX) {
        char why[80];
        snprintf(why, sizeof(why), "has %lld bytes, at most %d can be sent",
                 (long long)info.st_size, FILE_BYTES_MAX);
        ifd_cli_fail(err, path, why);
    } else {
        *ret_bytes = (size_t)info.st_size;
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

enum ifd_client_code ifd_cli_read_file(const char *path, void **ret_data, size_t *ret_bytes,
                                       struct ifd_client_err *err)
{
    size_t bytes = 0;
    int fd = open_file(path, &bytes, err);
    if (fd < 0) {
        return IFD_CLIENT_INVALID;
    }
    FILE *file = fdopen(fd, "rb");
    void *data = file ? malloc(bytes + 1) : NULL;
    bool is_whole = data && fread(data, 1, bytes, file) == bytes;
    if (file) {
        fclose(file);
    } else {
        close(fd);
    }
    if (!is_whole) {
        enum ifd_client_code code =
            ifd_cli_fail(err, path, data ? "cannot be read" : "out of memory");
        free(data);
        return code;
    }
    *ret_data = data;
    *ret_bytes = bytes;
    return IFD_CLIENT_OK;
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

static enum ifd_client_code command_index(struct ifd_client *client,
                                          const struct ifd_cli_arguments *args,
                                          struct ifd_client_err *err)
{
    (void)args;
    char *text = NULL;
    enum ifd_client_code code = ifd_client_index(client, false, &text, err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    json_t *root = json_loads(text, 0, NULL), *model = NULL;
    size_t i = 0;
    json_array_foreach(root, i, model)
    {
        const char *fields[] = {"name", "version", "state", "reason", "attempts", "next_retry"};
        for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
            const char *value = json_string_value(json_object_get(model, fields[f]));
            if (f < 4 || value) { /* only models whose load failed have the last two */
                printf("%s%s", f == 0 ? "" : "\t", value ? value : "");
            }
        }
        printf("\n");
    }
    json_decref(root);
    ifd_client_text_free(text);
    return IFD_CLIENT_OK;
}

static enum ifd_client_code command_live(struct ifd_client *client,
                                         const struct ifd_cli_arguments *args,
                                         struct ifd_client_err *err)
{
    (void)args;
    enum ifd_client_code code = ifd_client_live(client, err);
    if (code == IFD_CLIENT_OK) {
        printf("live\n");
    }
    return code;
}

static enum ifd_client_code command_ready(struct ifd_client *client,
                                          const struct ifd_cli_arguments *args,
                                          struct ifd_client_err *err)
{
    enum ifd_client_code code = ifd_client_ready(client, args->model, args->version, err);
    if (code == IFD_CLIENT_OK) {
        printf("ready\n");
    }
    return code;
}

static enum ifd_client_code command_metadata(struct ifd_client *client,
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

static enum ifd_client_code command_config(struct ifd_client *client,
                                           const struct ifd_cli_arguments *args,
                                           struct ifd_client_err *err)
{
    char *text = NULL;
    enum ifd_client_code code = ifd_client_config(client, args->model, args->version, &text, err);
    if (code == IFD_CLIENT_OK) {
        print_json(text);
    }
    return code;
}

static enum ifd_client_code command_load(struct ifd_client *client,
                                         const struct ifd_cli_arguments *args,
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
        printf("loaded\n");
    }
    free(config);
    return code;
}

static enum ifd_client_code command_unload(struct ifd_client *client,
                                           const struct ifd_cli_arguments *args,
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

static enum ifd_client_code command_stats(struct ifd_client *client,
                                          const struct ifd_cli_arguments *args,
                                          struct ifd_client_err *err)
{
    char *text = NULL;
    enum ifd_client_code code = ifd_client_stats(client, args->model, args->version, &text, err);
    if (code != IFD_CLIENT_OK) {
        return code;
    }
    json_t *root = json_loads(text, 0, NULL), *model = NULL;
    size_t i = 0;
    printf("MODEL\tVERSION\tINFERENCES\tRUNS\tFAILED\tREQUEST_US\tQUEUE_US\tCOMPUTE_US\n");
    json_array_foreach(json_object_get(root, "model_stats"), i, model)
    {
        const json_t *fail = json_object_get(json_object_get(model, "inference_stats"), "fail");
        const char *name = json_string_value(json_object_get(model, "name"));
        const char *version = json_string_value(json_object_get(model, "version"));
        printf("%s\t%s\t%" JSON_INTEGER_FORMAT "\t%" JSON_INTEGER_FORMAT "\t%" JSON_INTEGER_FORMAT
               "\t%.1f\t%.1f\t%.1f\n",
               name ? name : "", version ? version : "",
               json_integer_value(json_object_get(model, "inference_count")),
               json_integer_value(json_object_get(model, "execution_count")),
               json_integer_value(json_object_get(fail, "count")), mean_us(model, "success"),
               mean_us(model, "queue"), mean_us(model, "compute_infer"));
    }
    json_decref(root);
    ifd_client_text_free(text);
    return IFD_CLIENT_OK;
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

static enum ifd_client_code command_log(struct ifd_client *client,
                                        const struct ifd_cli_arguments *args,
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

enum model_argument { MODEL_NONE, MODEL_OPTIONAL, MODEL_NEEDED };

static const struct command {
    const char *name;
    enum model_argument model;
    enum ifd_client_code (*run)(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                struct ifd_client_err *err);
} commands[] = {
    {"live", MODEL_NONE, command_live},       {"ready", MODEL_OPTIONAL, command_ready},
    {"index", MODEL_NONE, command_index},     {"metadata", MODEL_OPTIONAL, command_metadata},
    {"config", MODEL_NEEDED, command_config}, {"infer", MODEL_NEEDED, ifd_cli_infer},
    {"load", MODEL_NEEDED, command_load},     {"unload", MODEL_NEEDED, command_unload},
    {"stats", MODEL_OPTIONAL, command_stats}, {"log", MODEL_OPTIONAL, command_log},
};

/* A decimal number from 1 to max; false for anything else. */
static bool parse_count(const char *text, long max, long *ret_value)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

static bool apply_option(int option, const char *value, struct ifd_cli_arguments *args)
{
    long number = 0;
    switch (option) {
    case 'u':
        args->url = value;
        return true;
    case 'a':
        args->admin_socket = value;
        return true;
    case 's':
        args->token_file = value;
        return true;
    case 'c':
        args->config = value;
        return true;
    case 'v':
        args->version = value;
        return true;
    case 'o':
        args->output_dir = value;
        return true;
    case 'j':
        args->is_json = true;
        return true;
    case 'i':
        if (args->input_count == IFD_CLI_INPUTS_MAX) {
            fprintf(stderr, "inferctl: more than %d inputs\n", IFD_CLI_INPUTS_MAX);
            return false;
        }
        args->inputs[args->input_count++] = value;
        return true;
    case 't':
    case 'k':
        if (!parse_count(value, 1000000, &number)) {
            fprintf(stderr, "inferctl: \"%s\" is not a number from 1 to 1000000\n", value);
            return false;
        }
        if (option == 't') {
            args->timeout_ms = number * 1000;
        } else {
            args->top_count = (unsigned)number;
        }
        return true;
    default: /* getopt has printed the reason */
        return false;
    }
}

/* The command of the arguments; NULL, and the reason on standard error, if they are wrong. */
static const struct command *find_command(const struct ifd_cli_arguments *args, const char *excess)
{
    const struct command *c = commands, *end = commands + sizeof(commands) / sizeof(commands[0]);
    while (args->command && c < end && strcmp(c->name, args->command) != 0) {
        c++;
    }
    if (!args->command) {
        fputs(usage, stderr);
    } else if (c == end) {
        fprintf(stderr, "inferctl: there is no command \"%s\"; --help lists them\n", args->command);
    } else if (!args->model && c->model == MODEL_NEEDED) {
        fprintf(stderr, "inferctl: %s needs the name of a model\n", c->name);
    } else if (excess || (args->model && c->model == MODEL_NONE)) {
        fprintf(stderr, "inferctl: %s: unexpected argument \"%s\"\n", c->name,
                c->model == MODEL_NONE ? args->model : excess);
    } else {
        return c;
    }
    return NULL;
}

/* Reads the first line of the file, which only its owner may read or write. */
static enum ifd_client_code read_token(const char *path, char *token, size_t size,
                                       struct ifd_client_err *err)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &info) != 0) {
        int reason = errno;
        if (file) {
            fclose(file);
        }
        return ifd_cli_fail(err, path, strerror(reason));
    }
    bool is_private = S_ISREG(info.st_mode) && (info.st_mode & 077) == 0;
    bool is_read = is_private && fgets(token, (int)size, file) != NULL;
    fclose(file);
    if (!is_private) {
        return ifd_cli_fail(err, path, "other users may read or write this token: chmod 600");
    }
    size_t length = is_read ? strcspn(token, "\r\n") : 0;
    if (length == 0 || length + 1 == size) {
        return ifd_cli_fail(err, path, "its first line is empty or too long for a token");
    }
    token[length] = '\0';
    return IFD_CLIENT_OK;
}

static enum ifd_client_code connect_and_run(const struct command *command,
                                            const struct ifd_cli_arguments *args,
                                            struct ifd_client_options *options,
                                            struct ifd_client_err *err)
{
    struct ifd_client *client = NULL;
    char token[TOKEN_BYTES];
    enum ifd_client_code code = IFD_CLIENT_OK;
    if (args->token_file) {
        code = read_token(args->token_file, token, sizeof(token), err);
        options->token = token;
    }
    if (code == IFD_CLIENT_OK) {
        code = ifd_client_create(options, &client, err);
    }
    if (code == IFD_CLIENT_OK) {
        code = command->run(client, args, err);
    }
    ifd_client_destroy(client);
    return code;
}

static int run(const struct command *command, const struct ifd_cli_arguments *args)
{
    struct ifd_client_err err = {0};
    char url[256];
    if (args->admin_socket) {
        int size = snprintf(url, sizeof(url), "unix:%s", args->admin_socket);
        if (size < 0 || (size_t)size >= sizeof(url)) {
            fprintf(stderr, "inferctl: the path of the admin socket is too long\n");
            return EXIT_USAGE;
        }
    }
    struct ifd_client_options options = {.url = args->admin_socket ? url : args->url,
                                         .timeout_ms = args->timeout_ms};
    enum ifd_client_code code = connect_and_run(command, args, &options, &err);
    if (code == IFD_CLIENT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        code = ifd_cli_fail(&err, "standard output", "it cannot be written");
    }
    if (code != IFD_CLIENT_OK) {
        fprintf(stderr, "inferctl: %s\n", err.text);
    }
    return exit_status(code);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"url", required_argument, NULL, 'u'},
        {"admin-socket", required_argument, NULL, 'a'},
        {"token-file", required_argument, NULL, 's'},
        {"config", required_argument, NULL, 'c'},
        {"version", required_argument, NULL, 'v'},
        {"input", required_argument, NULL, 'i'},
        {"output-dir", required_argument, NULL, 'o'},
        {"top", required_argument, NULL, 'k'},
        {"timeout", required_argument, NULL, 't'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct ifd_cli_arguments args = {.url = "http://127.0.0.1:8000"};
    for (int option = 0; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        }
        if (!apply_option(option, optarg, &args)) {
            return EXIT_USAGE;
        }
    }
    args.command = optind < argc ? argv[optind] : NULL;
    args.model = optind + 1 < argc ? argv[optind + 1] : NULL;
    const struct command *command =
        find_command(&args, optind + 2 < argc ? argv[optind + 2] : NULL);
    if (!command) {
        return EXIT_USAGE;
    }
    return run(command, &args);
}
