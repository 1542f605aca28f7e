#include "tests/http/live.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/builtin.h"
#include "tests/support/test.h"

static const struct {
    const char *name, *extra;
} models[] = {
    {"echo", ""},
    {"slow", "parameters { key: \"execute_delay_ms\" value { string_value: \"300\" } }"},
    {"narrow", "parameters { key: \"execute_delay_ms\" value { string_value: \"800\" } } "
               "dynamic_batching { default_queue_policy { max_queue_size: 1 } }"},
    {"hasty", "parameters { key: \"execute_delay_ms\" value { string_value: \"800\" } } "
              "dynamic_batching { default_queue_policy { default_timeout_microseconds: 200000 } }"},
};

static void write_models(struct live *live)
{
    (void)snprintf(live->dir, sizeof(live->dir), "/tmp/ifd_live_XXXXXX");
    REQUIRE(mkdtemp(live->dir) != NULL);
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        char path[200];
        (void)snprintf(path, sizeof(path), "%s/%s", live->dir, models[i].name);
        REQUIRE(mkdir(path, 0700) == 0);
        (void)snprintf(path, sizeof(path), "%s/%s/config.pbtxt", live->dir, models[i].name);
        FILE *out = fopen(path, "w");
        REQUIRE(out != NULL);
        (void)fprintf(out,
                      "backend: \"identity\" input { name: \"IN\" data_type: TYPE_FP32 dims: -1 } "
                      "output { name: \"OUT\" data_type: TYPE_FP32 dims: -1 } %s",
                      models[i].extra);
        (void)fclose(out);
    }
}

void live_remove_models(const char *dir)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        char path[200];
        (void)snprintf(path, sizeof(path), "%s/%s/config.pbtxt", dir, models[i].name);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/%s", dir, models[i].name);
        (void)rmdir(path);
    }
    (void)rmdir(dir);
}

static void quiet(void *context, enum ifd_log_level level, const char *sentence, const char *fields)
{
    (void)context;
    if (level == IFD_LOG_ERROR) {
        (void)fprintf(stderr, "%s %s\n", sentence, fields);
    }
}

static void run(void *arg)
{
    struct live *live = arg;
    live->code = ifd_server_run(live->server, &live->err);
}

void live_start(struct live *live, const char *const *options)
{
    live_start_in(live, options, ifd_alloc_system());
}

void live_start_in(struct live *live, const char *const *options, const struct ifd_alloc *alloc)
{
    live_start_as(live, options, &(struct live_options){.alloc = alloc});
}

static void parse(struct live *live, const char *const *options)
{
    const size_t room = sizeof(live->argv) / sizeof(live->argv[0]);
    live->argv[live->argc++] = live->dir;
    live->argv[live->argc++] = (char *)(uintptr_t) "--http-port=0";
    live->argv[live->argc++] = (char *)(uintptr_t) "--metrics-port=0";
    bool sets_timeout = false; /* itself, or in a file, which the command line would hide */
    for (; options && *options; options++) {
        REQUIRE((size_t)live->argc < room);
        live->argv[live->argc++] = (char *)(uintptr_t)*options;
        sets_timeout = sets_timeout || strncmp(*options, "--config", 8) == 0 ||
                       strncmp(*options, "--default-timeout-ms", 20) == 0;
    }
    if (!sets_timeout) {
        REQUIRE((size_t)live->argc < room);
        live->argv[live->argc++] = (char *)(uintptr_t) "--default-timeout-ms=0";
    }
    REQUIRE_OK(ifd_config_parse(live->argc, live->argv, &live->config, &live->err), &live->err);
}

void live_start_as(struct live *live, const char *const *options, const struct live_options *as)
{
    *live = (struct live){.log = {.levels = IFD_LOG_UP_TO(IFD_LOG_ERROR), .write = quiet}};
    if (as->log) {
        live->log = (struct ifd_log){.levels = IFD_LOG_UP_TO(IFD_LOG_INFO), .write = as->log};
    }
    struct rlimit limit = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    write_models(live);
    parse(live, options);
    struct ifd_server_options server = {.alloc = as->alloc ? as->alloc : ifd_alloc_system(),
                                        .config = &live->config,
                                        .argc = live->argc,
                                        .argv = live->argv,
                                        .log = &live->log,
                                        .program_version = "0",
                                        .notify_socket = as->notify_socket,
                                        .watchdog_us = as->watchdog_us,
                                        .handles_signals = as->handles_signals};
    server.backends = as->backends ? as->backends : ifd_backends_builtin(&server.backend_count);
    server.backend_count = as->backends ? as->backend_count : server.backend_count;
    REQUIRE_OK(ifd_server_create(&server, &live->server, &live->err), &live->err);
    live->port = ifd_server_port(live->server);
    live->metrics_port = ifd_server_metrics_port(live->server);
    REQUIRE_OK(ifd_thread_start(&live->thread, "live", run, live, ifd_alloc_system(), &live->err),
               &live->err);
    while (!ifd_server_is_loaded(live->server)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void live_join(struct live *live)
{
    ifd_thread_join(&live->thread);
    ifd_server_destroy(live->server);
    EXPECT_CODE(live->code, IFD_OK, &live->err);
    live_remove_models(live->dir);
}

void live_stop(struct live *live)
{
    ifd_server_stop(live->server);
    live_join(live);
}

static struct sockaddr_in address_of(const struct live *live)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(live->port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int client_connect(const struct live *live)
{
    const struct sockaddr_in at = address_of(live);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

void client_connect_with(const struct live *live, int fd)
{
    const struct sockaddr_in at = address_of(live);
    REQUIRE(connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
}

void client_send(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        REQUIRE(sent > 0);
        at += sent;
        size -= (size_t)sent;
    }
}

void client_send_text(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

/* Head up to and with the empty line; false at the end of the stream. */
static bool read_head(int fd, struct answer *answer)
{
    size_t used = 0;
    while (used + 1 < sizeof(answer->head)) {
        if (recv(fd, answer->head + used, 1, 0) != 1) {
            return false;
        }
        answer->head[++used] = '\0';
        if (used >= 4 && strcmp(answer->head + used - 4, "\r\n\r\n") == 0) {
            return true;
        }
    }
    return false;
}

static void read_body(int fd, struct answer *answer, size_t size)
{
    char piece[4096];
    while (size > 0) {
        ssize_t got = recv(fd, piece, size < sizeof(piece) ? size : sizeof(piece), 0);
        REQUIRE(got > 0);
        size_t room = sizeof(answer->body) - 1 - answer->body_size;
        size_t kept = (size_t)got < room ? (size_t)got : room;
        memcpy(answer->body + answer->body_size, piece, kept);
        answer->body_size += kept;
        size -= (size_t)got;
    }
}

struct answer client_read(int fd)
{
    struct answer answer = {0};
    do {
        answer = (struct answer){0};
        if (!read_head(fd, &answer)) {
            return (struct answer){0};
        }
        answer.status = (int)strtol(answer.head + 9, NULL, 10);
    } while (answer.status == 100);
    const char *length = strcasestr(answer.head, "\r\ncontent-length:");
    read_body(fd, &answer, length ? strtoul(length + 17, NULL, 10) : 0);
    return answer;
}

bool client_is_closed(int fd)
{
    char byte = 0;
    return recv(fd, &byte, 1, 0) <= 0;
}

struct answer client_get(const struct live *live, const char *path)
{
    char text[512];
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    client_send_text(fd, text);
    struct answer answer = client_read(fd);
    (void)close(fd);
    return answer;
}

struct answer client_post(const struct live *live, const char *path)
{
    char text[200];
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    (void)snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                   path);
    client_send_text(fd, text);
    struct answer answer = client_read(fd);
    (void)close(fd);
    return answer;
}

long long live_metric(const struct live *live, const char *series)
{
    return live_metric_as(live, NULL, series);
}

long long live_metric_as(const struct live *live, const char *token, const char *series)
{
    char request[200];
    static char text[1 << 18];
    struct live metrics = *live;
    size_t used = 0;
    metrics.port = live->metrics_port;
    int fd = client_connect(&metrics);
    REQUIRE(fd >= 0);
    (void)snprintf(request, sizeof(request),
                   "GET /metrics HTTP/1.1\r\n%s%s%sHost: a\r\nConnection: close\r\n\r\n",
                   token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "");
    client_send_text(fd, request);
    for (ssize_t got = 1; got > 0; used += (size_t)got) {
        got = recv(fd, text + used, sizeof(text) - 1 - used, 0);
        REQUIRE(got >= 0);
    }
    (void)close(fd);
    text[used] = '\0';
    const char *at = strstr(text, series);
    REQUIRE(at != NULL);
    return strtoll(at + strlen(series), NULL, 10);
}

void live_wait_for_metric(const struct live *live, const char *series, long long want)
{
    long long is = live_metric(live, series);
    for (int i = 0; i < 600 && is != want; i++) {
        (void)usleep(100000);
        is = live_metric(live, series);
    }
    EXPECT_INT(is, want);
}

void live_wait_for_count(const struct live *live, const char *series, long long least)
{
    for (int i = 0; i < 600 && live_metric(live, series) < least; i++) {
        (void)usleep(100000);
    }
    EXPECT(live_metric(live, series) >= least);
}

const char *client_infer_text(const char *model, int number)
{
    static char text[1024];
    char body[256];
    (void)snprintf(
        body, sizeof(body),
        "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[%d]}]}",
        number);
    (void)snprintf(text, sizeof(text),
                   "POST /v2/models/%s/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
                   model, strlen(body), body);
    return text;
}
