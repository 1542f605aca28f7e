/** A real server in this process, on a free loopback port, and clients that send raw bytes. */
#ifndef INFERD_TESTS_HTTP_LIVE_H
#define INFERD_TESTS_HTTP_LIVE_H

#include "engine/base/thread.h"
#include "server/server.h"

struct live {
    struct ifd_config config;
    struct ifd_server *server;
    struct ifd_thread thread;
    struct ifd_log log;
    enum ifd_code code;
    struct ifd_err err;
    char dir[64];
    uint16_t port, metrics_port;
    char *argv[20];
    int argc;
};

/** Options that live_start leaves at 0. */
struct live_options {
    const struct ifd_alloc *alloc; /* NULL: the system's */
    const char *notify_socket;
    uint64_t watchdog_us;
    bool handles_signals;
    const struct ifd_backend *const *backends; /* NULL: those that are built in */
    uint32_t backend_count;
    /** Hears everything but debug lines; NULL: errors go to standard error. Thread: any. */
    void (*log)(void *context, enum ifd_log_level level, const char *sentence, const char *fields);
};

/** The repository that live_start serves: identity models of one FP32 [-1] input each. "echo";
 *  "slow" (every run takes 300 ms); "narrow" (800 ms, a queue of 1); "hasty" (800 ms, requests wait
 *  200 ms at most). Other requests wait as long as it takes, unless options say otherwise. */
void live_start(struct live *live,
                const char *const *options); /* of the command line, ended by NULL; may be NULL */
/** The same with the caller's allocator. */
void live_start_in(struct live *live, const char *const *options, const struct ifd_alloc *alloc);
void live_start_as(struct live *live, const char *const *options, const struct live_options *as);
/** Waits for the end. */
void live_join(struct live *live);
/** Removes the models of a server whose process was killed. */
void live_remove_models(const char *dir);
/** Stops and waits. */
void live_stop(struct live *live);

/** A connected socket; -1 if refused. */
int client_connect(const struct live *live);
/** The same with the caller's socket; must succeed. */
void client_connect_with(const struct live *live, int fd);
/** Sends all of it, or the test fails. */
void client_send(int fd, const void *data, size_t size);
void client_send_text(int fd, const char *text);

struct answer {
    int status; /* 0: the connection ended without one */
    char head[2048];
    char body[16384]; /* ended by NUL; what does not fit is read and dropped */
    size_t body_size;
};
/** Reads one answer with a Content-Length. Skips interim 100 answers. */
struct answer client_read(int fd);
/** Reads until the end of the stream; true if there was nothing else. */
bool client_is_closed(int fd);

/** A whole exchange on a new connection. */
struct answer client_get(const struct live *live, const char *path);
/** Without a body. */
struct answer client_post(const struct live *live, const char *path);
/** Value of a series at /metrics; series: its text from the line feed in front to the blank
 *  behind. */
long long live_metric(const struct live *live, const char *series);
/** The same with a token. */
long long live_metric_as(const struct live *live, const char *token, const char *series);
/** Waits until the series has this value; fails after a multiple of all promised times. */
void live_wait_for_metric(const struct live *live, const char *series, long long want);
/** The same for a counter that goes on counting: this value or more. */
void live_wait_for_count(const struct live *live, const char *series, long long least);
/** Text of a request: inference of one number on a model. */
const char *client_infer_text(const char *model, int number);

#endif
