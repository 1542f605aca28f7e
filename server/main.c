/* The program: chooses the sub-command, and for "serve" makes a server from the arguments. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/builtin.h"
#include "engine/base/escape.h"
#include "engine/tools/tools.h"
#include "server/config/config.h"
#include "server/init.h"
#include "server/obs/log_stderr.h"
#include "server/serve/picture.h"
#include "server/server.h"

static const char usage[] =
    "usage: inferd COMMAND [arguments]\n\n"
    "  serve [DIR|MODEL] …     answer requests for the models of a folder, or a model file\n"
    "  init DIR MODEL          put a model into a folder, with a config that explains itself\n"
    "  run MODEL …             run a model on files\n"
    "  check MODEL …           say whether a model runs, with how much memory, how fast\n"
    "  inspect MODEL …         show a model's graph, plan and memory\n"
    "  compare MODEL …         compare backends with each other or with expected outputs\n"
    "  bench MODEL …           measure a model\n\n"
    "inferd COMMAND --help explains a command; inferd --version. The settings of serve as texts:\n"
    "inferd --man | --man-conf | --markdown | --bash-completion | --zsh-completion\n"
    "exit status: 0 done, 1 it failed, 2 wrong usage\n";

/* File descriptors of the server besides connections. */
#define OWN_DESCRIPTORS 64

static void on_ready(void *context, const struct ifd_server_ready *ready)
{
    (void)context;
    (void)printf("inferd " IFD_VERSION " ready at %s (%u of %u models)%s%s\n", ready->url,
                 ready->ready_models, ready->all_models,
                 ready->metrics_url[0] != '\0' ? ", metrics at " : "", ready->metrics_url);
    (void)fflush(stdout);
}

static int fail(int status, const struct ifd_err *err)
{
    char line[2 * IFD_ERR_TEXT_BYTES];
    (void)fprintf(stderr, "inferd: %s\n", ifd_escape_line(err->text, line, sizeof(line)));
    return status;
}

/* Raises the descriptor limit as far as allowed: every connection needs one. */
static void raise_descriptors(const struct ifd_config *config, const struct ifd_log *log)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < (rlim_t)config->max_connections + OWN_DESCRIPTORS) {
        ifd_log_warn(log, "file descriptors limit connections", "descriptors=%llu connections=%u",
                     (unsigned long long)limit.rlim_max, config->max_connections);
    }
}

/* Lets the C library keep chunks up to 4 MiB, 16 MiB in all. By default it returns the memory of
 * every large request to the system and maps it again page by page: a fifth of the time of a large
 * JSON request. */
static void keep_some_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

static int serve(const struct ifd_tool_host *host, int argc, char **argv)
{
    struct ifd_config config;
    struct ifd_err err = {0};
    struct ifd_server *server = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            ifd_config_help(stdout);
            return 0;
        }
    }
    if (ifd_config_parse(argc - 1, argv + 1, &config, &err)) {
        return fail(2, &err);
    }
    const struct ifd_environment environment = ifd_config_environment();
    bool is_journal = ifd_log_is_journal(STDERR_FILENO, environment.journal_stream);
    struct ifd_log log = ifd_log_to_fd(STDERR_FILENO,
                                       config.log_format == IFD_LINES_JSON ? IFD_LOG_JSON
                                       : is_journal                        ? IFD_LOG_JOURNAL
                                                                           : IFD_LOG_TEXT,
                                       ifd_server_log_levels(&config));
    const struct ifd_server_options options = {.alloc = ifd_alloc_system(),
                                               .config = &config,
                                               .argc = argc - 1,
                                               .argv = argv + 1,
                                               .log = &log,
                                               .program_version = IFD_VERSION,
                                               .backends = host->backends,
                                               .backend_count = host->backend_count,
                                               .finds_plugins = true,
                                               .handles_signals = true,
                                               .may_leave = true,
                                               .notify_socket = environment.notify_socket,
                                               .watchdog_us = environment.watchdog_us,
                                               .on_ready = on_ready};
    (void)signal(SIGPIPE, SIG_IGN);
    raise_descriptors(&config, &log);
    keep_some_memory();
    enum ifd_code code = ifd_server_create(&options, &server, &err);
    if (code) {
        return fail(code == IFD_INVALID ? 2 : 1, &err); /* INVALID: settings */
    }
    code = ifd_server_run(server, &err);
    if (ifd_server_leave(server)) {
        _exit(code ? fail(1, &err) : 0); /* threads still use what exit() would tear down */
    }
    ifd_server_destroy(server);
    return code ? fail(1, &err) : 0;
}

/* Opens descriptors 0 to 2 if they are closed: else they would become sockets or files, and output
 * and log would go there. */
static void open_closed_descriptors(void)
{
    int fd = 0;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Exit status of a command that prints; 1 if standard output failed. */
static int printed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    (void)fprintf(stderr, "inferd: standard output cannot be written\n");
    return status ? status : 1;
}

/* Texts about the settings, for people, packages and shells. */
static const struct {
    const char *flag;
    void (*print)(FILE *out);
} texts[] = {{"--man", ifd_config_man},
             {"--man-conf", ifd_config_man_file},
             {"--markdown", ifd_config_markdown},
             {"--bash-completion", ifd_config_bash},
             {"--zsh-completion", ifd_config_zsh}};

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct ifd_tool_host *host, int argc, char **argv);
    } commands[] = {{"serve", serve},
                    {"init", ifd_init},
                    {"run", ifd_tool_run},
                    {"check", ifd_tool_check},
                    {"inspect", ifd_tool_inspect},
                    {"compare", ifd_tool_compare},
                    {"bench", ifd_tool_bench}};
    struct ifd_tool_host host = {.decode_image = ifd_picture_for_port};
    open_closed_descriptors();
    (void)signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error, not the end */
    host.backends = ifd_backends_builtin(&host.backend_count);
    const char *name = argc > 1 ? argv[1] : "--help";
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(name, commands[i].name) == 0) {
            int status = commands[i].run(&host, argc - 1, argv + 1);
            return commands[i].run == serve ? status : printed(status);
        }
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(name, texts[i].flag) == 0) {
            texts[i].print(stdout);
            return printed(0);
        }
    }
    if (strcmp(name, "--version") == 0) {
        (void)puts("inferd " IFD_VERSION);
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        (void)fputs(usage, argc > 1 ? stdout : stderr);
        return argc > 1 ? 0 : 2;
    } else {
        (void)fprintf(stderr, "inferd: unknown command \"%s\"\n\n%s", name, usage);
        return 2;
    }
    return printed(0);
}
