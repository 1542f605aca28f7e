/** A real server in this process, on a free port of the loopback, and clients that speak raw bytes to it. */
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

/** What live_start leaves at nothing. */
struct live_options {
    const struct ifd_alloc *alloc; /* NULL: the system's */
    const char *notify_socket;
    uint64_t watchdog_us;
    bool handles_signals;
    /** Hears everything but debug lines; NULL: errors go to standard error. Thread: any. */
    void (*log)(void *context, enum ifd_log_level level, const char *sentence, const char *fields);
};

/** The repository that live_start serves: identity models of one FP32 [-1] input each.
 *  "echo"; "slow" (every run takes 300 ms); "narrow" (800 ms, a queue of 1); "hasty" (800 ms, requests wait 200 ms at most). */
void live_start(struct live *live,
                const char *const *options); /* of the command line, ended by NULL; may be NULL */
/** The same with an allocator of the caller's. */
void live_start_in(struct live *live, const char *const *options, const struct ifd_alloc *alloc);
void live_start_as(struct live *live, const char *const *options, const struct live_options *as);
/** Waits for the end. */
void live_join(struct live *live);
/** Removes what live_start made: of a server whose process was killed. */
void live_remove_models(const char *dir);
/** Stops and waits. */
void live_stop(struct live *live);

/** A connected socket; -1 if refused. */
int client_connect(const struct live *live);
/** The same with a socket of the caller's, which must succeed. */
void client_connect_with(const struct live *live, int fd);
/** All of it, or the test fails. */
void client_send(int fd, const void *data, size_t size);
void client_send_text(int fd, const char *text);

struct answer {
    int status; /* 0: the connection ended without one */
    char head[2048];
    char body[16384]; /* ended by NUL; what does not fit is read and dropped */
    size_t body_size;
};
/** One answer with a Content-Length. Interim 100 answers are passed over. */
struct answer client_read(int fd);
/** Bytes until the end of the stream; true if there was nothing but the end. */
bool client_is_closed(int fd);

/** A whole exchange on a connection of its own. */
struct answer client_get(const struct live *live, const char *path);
/** Without a body. */
struct answer client_post(const struct live *live, const char *path);
/** Value of a series at /metrics: its text from the line feed in front to the blank behind. */
long long live_metric(const struct live *live, const char *series);
/** The same of a server that wants a token. */
long long live_metric_as(const struct live *live, const char *token, const char *series);
/** Until it has this value; fails if that takes many times longer than anything here promises. */
void live_wait_for_metric(const struct live *live, const char *series, long long want);
/** The request text of an inference of one number on a model. */
const char *client_infer_text(const char *model, int number);

#endif
