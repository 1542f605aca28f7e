/* inferctl: the command line of the C client. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "token_file.h"

enum {
    EXIT_REFUSED = 1,     /* the server refused, or is not ready */
    EXIT_USAGE = 2,       /* wrong arguments or files */
    EXIT_UNREACHABLE = 3, /* no answer */
};

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

/* Opens a regular file of at most IFD_CLI_FILE_BYTES_MAX; a negative descriptor after err is
 * filled. */
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
    } else if (info.st_size > IFD_CLI_FILE_BYTES_MAX) {
        char why[80];
        snprintf(why, sizeof(why), "has %lld bytes, at most %d can be sent",
                 (long long)info.st_size, IFD_CLI_FILE_BYTES_MAX);
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

static const struct command {
    const char *name;
    enum ifd_cli_model model;
    enum ifd_client_code (*run)(struct ifd_client *client, const struct ifd_cli_arguments *args,
                                struct ifd_client_err *err);
} commands[] = {
#define COMMAND(name_, model_, function, arguments, text)                                          \
    {.name = #name_, .model = IFD_CLI_MODEL_##model_, .run = function},
#define OPTION(letter, name, value, text)
#include "cli_list.inc"
#undef OPTION
#undef COMMAND
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

static bool apply_number(const struct option *which, const char *value,
                         struct ifd_cli_arguments *args)
{
    const long max = which->val == 'C' ? IFD_CLI_CLIENTS_MAX : 1000000;
    long number = 0;
    if (!parse_count(value, max, &number)) {
        fprintf(stderr, "inferctl: --%s: \"%s\" is not a number from 1 to %ld\n", which->name,
                value, max);
        return false;
    }
    switch (which->val) {
    case 't':
        args->timeout_ms = number * 1000;
        break;
    case 'k':
        args->top_count = (unsigned)number;
        break;
    case 'C':
        args->clients = (unsigned)number;
        break;
    case 'R':
        args->rate = (unsigned)number;
        break;
    case 'S':
        args->seconds = (unsigned)number;
        break;
    default:
        args->warm_up = (unsigned)number;
    }
    return true;
}

static bool apply_option(const struct option *which, const char *value,
                         struct ifd_cli_arguments *args)
{
    switch (which->val) {
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
    case 'J':
        args->is_report_json = true;
        return true;
    case 't':
    case 'k':
    case 'C':
    case 'R':
    case 'S':
    case 'W':
        return apply_number(which, value, args);
    default:
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
        ifd_cli_usage(stderr);
    } else if (c == end) {
        fprintf(stderr, "inferctl: there is no command \"%s\"; --help lists them\n", args->command);
    } else if (!args->model && c->model == IFD_CLI_MODEL_NEEDED) {
        fprintf(stderr, "inferctl: %s needs the name of a model\n", c->name);
    } else if (excess || (args->model && c->model == IFD_CLI_MODEL_NONE)) {
        fprintf(stderr, "inferctl: %s: unexpected argument \"%s\"\n", c->name,
                c->model == IFD_CLI_MODEL_NONE ? args->model : excess);
    } else {
        return c;
    }
    return NULL;
}

static enum ifd_client_code connect_and_run(const struct command *command,
                                            const struct ifd_cli_arguments *args,
                                            struct ifd_client_options *options,
                                            struct ifd_client_err *err)
{
    struct ifd_client *client = NULL;
    char token[IFD_TOKEN_BYTES];
    enum ifd_client_code code = IFD_CLIENT_OK;
    if (args->token_file) {
        code = ifd_token_file_read(args->token_file, token, err);
        options->token = token;
    }
    if (code == IFD_CLIENT_OK) {
        code = ifd_client_create(options, &client, err);
    }
    if (code == IFD_CLIENT_OK) {
        struct ifd_cli_arguments connected = *args;
        connected.connection = options;
        code = command->run(client, &connected, err);
    }
    ifd_client_destroy(client);
    return code;
}

/* Shows on a terminal what takes long. */
static void show_wait(void *arg, double seconds)
{
    const struct ifd_cli_arguments *args = arg;
    if (seconds >= 2) {
        fprintf(stderr, "\r%s%s%s: waiting for %.0f s \033[K", args->command,
                args->model ? " " : "", args->model ? args->model : "", seconds);
    }
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
    const bool is_watched = isatty(STDERR_FILENO) == 1 && command->run != ifd_cli_bench;
    struct ifd_client_options options = {.url = args->admin_socket ? url : args->url,
                                         .timeout_ms = args->timeout_ms,
                                         .waits = is_watched ? show_wait : NULL,
                                         .waits_arg = (void *)(uintptr_t)args};
    enum ifd_client_code code = connect_and_run(command, args, &options, &err);
    if (is_watched) {
        fputs("\r\033[K", stderr);
    }
    if (code == IFD_CLIENT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        code = ifd_cli_fail(&err, "standard output", "it cannot be written");
    }
    if (code != IFD_CLIENT_OK) {
        fprintf(stderr, "inferctl: %s\n", err.text);
    }
    return exit_status(code);
}

/* No model has such a name. */
static bool is_url(const char *word)
{
    return strstr(word, "://") != NULL || strncmp(word, "unix:", 5) == 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
#define COMMAND(name, model, function, arguments, text)
#define OPTION(letter, name_, value, text)                                                         \
    {.name = name_, .has_arg = (value)[0] != '\0' ? required_argument : no_argument, .val = letter},
#include "cli_list.inc"
#undef OPTION
#undef COMMAND
        {NULL, 0, NULL, 0},
    };
    if (argc == 2 && ifd_cli_print(argv[1])) {
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_USAGE;
    }
    struct ifd_cli_arguments args = {
        .url = "http://127.0.0.1:8000", .clients = 1, .seconds = 10, .warm_up = 1};
    int which = 0;
    for (int option = 0; (option = getopt_long(argc, argv, "h", options, &which)) != -1;) {
        if (option == 'h') {
            ifd_cli_usage(stdout);
            return EXIT_SUCCESS;
        }
        if (option == '?') { /* getopt has printed the reason */
            fprintf(stderr, "inferctl: --help lists the options\n");
            return EXIT_USAGE;
        }
        if (!apply_option(&options[which], optarg, &args)) {
            return EXIT_USAGE;
        }
    }
    args.command = optind < argc ? argv[optind] : NULL;
    if (optind + 1 < argc && is_url(argv[optind + 1])) {
        args.url = argv[++optind];
    }
    args.model = optind + 1 < argc ? argv[optind + 1] : NULL;
    const struct command *command =
        find_command(&args, optind + 2 < argc ? argv[optind + 2] : NULL);
    if (!command) {
        return EXIT_USAGE;
    }
    return run(command, &args);
}
