/* A ring with one producer, the loop, and one consumer, the writer thread. */
#include "server/obs/access_log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/escape.h"
#include "engine/base/str.h"
#include "engine/base/thread.h"

#define RING_RECORDS 4096 /* a power of two */
#define PATH_BYTES   128
#define CALLER_BYTES 33
#define SOURCE_BYTES 64
#define LINE_BYTES   1664 /* escapes make up to six bytes of one */
/* The writer collects records for this long after a wake-up: a busy server wakes it at most 50
 * times a second. */
#define COLLECT_NS   UINT64_C(20000000)
#define LAST_WAIT_MS 1000

struct record {
    const char *method, *outcome;
    struct timespec at;
    uint64_t took_ns;
    size_t body_bytes, answer_bytes;
    int status;
    sa_family_t family;
    uint8_t address[16];
    char caller[CALLER_BYTES]; /* "": no token */
    char source[SOURCE_BYTES]; /* "": none */
    char path[PATH_BYTES];
};

struct ifd_access_log {
    const struct ifd_alloc *alloc;
    struct ifd_metric_set *metrics;
    const struct ifd_log *log;
    int fd;
    bool is_json;
    bool has_given_up; /* the writer's: stopping, and nobody reads the other end */
    bool is_failing;   /* the writer's: the failure was logged */
    struct ifd_thread thread;
    struct ifd_mutex mutex; /* only for the two conditions */
    struct ifd_cond filled, stopped;
    atomic_bool is_stopping, is_asleep;
    atomic_int next_fd;        /* replaces fd; -1: none */
    _Atomic size_t head, tail; /* records added by the loop, taken by the writer */
    struct record ring[RING_RECORDS];
};

/* ---- lines ---- */

/* In quotes, with JSON's escapes in both formats. */
static void add_quoted(struct ifd_buf *buf, struct ifd_str text)
{
    char escaped[IFD_ESCAPE_BYTES];
    ifd_buf_add(buf, "\"", 1);
    while (text.size > 0) {
        const size_t size = ifd_escape_next(&text, escaped);
        ifd_buf_add(buf, escaped, size);
    }
    ifd_buf_add(buf, "\"", 1);
}

static void format_time(const struct timespec *at, char *text, size_t size)
{
    struct tm utc = {0};
    (void)gmtime_r(&at->tv_sec, &utc);
    size_t used = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text + used, size - used, ".%03ldZ", at->tv_nsec / 1000000);
}

static void add_line(struct ifd_buf *buf, const struct record *r, bool is_json)
{
    char at[48], client[INET6_ADDRSTRLEN] = "-";
    format_time(&r->at, at, sizeof(at));
    if (r->family == AF_INET || r->family == AF_INET6) {
        (void)inet_ntop(r->family, r->address, client, sizeof(client));
    } else if (r->family == AF_UNIX) {
        (void)snprintf(client, sizeof(client), "unix");
    }
    ifd_buf_addf(buf, is_json ? "{\"time\":\"%s\",\"client\":\"%s\"" : "time=%s client=%s", at,
                 client);
    if (r->caller[0] != '\0') {
        ifd_buf_addf(buf, is_json ? ",\"token\":\"%s\"" : " token=%s", r->caller);
    }
    ifd_buf_addf(buf, is_json ? ",\"method\":\"%s\",\"path\":" : " method=%s path=", r->method);
    add_quoted(buf, ifd_str(r->path));
    if (r->source[0] != '\0') {
        ifd_buf_addf(buf, is_json ? ",\"source\":" : " source=");
        add_quoted(buf, ifd_str(r->source));
    }
    ifd_buf_addf(buf,
                 is_json ? ",\"status\":%d,\"outcome\":\"%s\",\"bytes_in\":%zu,\"bytes_out\":%zu,"
                           "\"took_us\":%llu}\n"
                         : " status=%d outcome=%s bytes_in=%zu bytes_out=%zu took_us=%llu\n",
                 r->status, r->outcome, r->body_bytes, r->answer_bytes,
                 (unsigned long long)(r->took_ns / 1000));
}

/* ---- writing ---- */

/* Logs the first failure and the recovery. error: 0 if lines were written. */
static void tell(struct ifd_access_log *log, int error)
{
    if (error != 0 && !log->is_failing) {
        ifd_log_warn(log->log, "access log write failed, lines are lost", "reason=%s",
                     strerror(error));
    } else if (error == 0 && log->is_failing) {
        ifd_log_info(log->log, "access log recovered", NULL);
    }
    log->is_failing = error != 0;
}

/* Writes of at most PIPE_BUF after a poll never block, so a reader that stopped reading cannot
 * delay the end. */
static bool write_all(struct ifd_access_log *log, const uint8_t *data, size_t size)
{
    while (size > 0 && !log->has_given_up) {
        struct pollfd ready = {.fd = log->fd, .events = POLLOUT};
        bool was_stopping = atomic_load(&log->is_stopping);
        int count = poll(&ready, 1, LAST_WAIT_MS);
        log->has_given_up = count == 0 && was_stopping;
        if (count <= 0) {
            continue;
        }
        ssize_t written = write(log->fd, data, size < PIPE_BUF ? size : PIPE_BUF);
        if (written < 0 && errno != EINTR) {
            tell(log, errno);
            return false;
        }
        data += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    if (size == 0) {
        tell(log, 0);
    }
    return size == 0;
}

static void take_next_fd(struct ifd_access_log *log)
{
    int fd = atomic_exchange(&log->next_fd, -1);
    if (fd >= 0) {
        (void)close(log->fd);
        log->fd = fd;
    }
}

/* Writes everything that is in the ring now. */
static void drain(struct ifd_access_log *log, struct ifd_buf *buf)
{
    take_next_fd(log);
    size_t tail = atomic_load_explicit(&log->tail, memory_order_relaxed);
    size_t head = atomic_load(&log->head);
    while (tail != head) {
        size_t lines = 0;
        buf->size = 0;
        for (; tail != head && buf->size + LINE_BYTES <= PIPE_BUF; lines++) {
            add_line(buf, &log->ring[tail++ % RING_RECORDS], log->is_json);
        }
        atomic_store(&log->tail, tail);
        if (buf->failed || !write_all(log, buf->data, buf->size)) {
            ifd_metric_add_shared(log->metrics, IFD_METRIC_ACCESS_LOG_DROPPED, 0, lines);
        }
    }
}

static bool is_empty(struct ifd_access_log *log)
{
    return atomic_load(&log->head) == atomic_load(&log->tail);
}

static void wait_for_records(struct ifd_access_log *log)
{
    ifd_mutex_lock(&log->mutex);
    atomic_store(&log->is_asleep, true);
    while (is_empty(log) && atomic_load(&log->next_fd) < 0 && !atomic_load(&log->is_stopping)) {
        ifd_cond_wait(&log->filled, &log->mutex);
    }
    atomic_store(&log->is_asleep, false);
    uint64_t until_ns = ifd_monotonic_ns() + COLLECT_NS;
    while (!atomic_load(&log->is_stopping) &&
           ifd_cond_wait_until(&log->stopped, &log->mutex, until_ns)) {
    }
    ifd_mutex_unlock(&log->mutex);
}

static void write_lines(void *arg)
{
    struct ifd_access_log *log = arg;
    struct ifd_buf buf;
    ifd_buf_init(&buf, log->alloc, PIPE_BUF);
    while (!atomic_load(&log->is_stopping)) {
        wait_for_records(log);
        drain(log, &buf);
    }
    drain(log, &buf); /* what was added before the stop was seen */
    ifd_buf_finish(&buf);
}

/* ---- the loop's side ---- */

static void copy_address(struct record *record, const struct sockaddr *client)
{
    record->family = client ? client->sa_family : AF_UNSPEC;
    if (record->family == AF_INET) {
        const struct sockaddr_in *at = (const struct sockaddr_in *)(const void *)client;
        memcpy(record->address, &at->sin_addr, sizeof(at->sin_addr));
    } else if (record->family == AF_INET6) {
        const struct sockaddr_in6 *at = (const struct sockaddr_in6 *)(const void *)client;
        memcpy(record->address, &at->sin6_addr, sizeof(at->sin6_addr));
    }
}

/* Cuts text to the room. */
static void copy_text(char *to, size_t room, struct ifd_str text)
{
    const size_t size = text.size < room - 1 ? text.size : room - 1;
    if (size > 0) {
        memcpy(to, text.data, size);
    }
    to[size] = '\0';
}

static void wake_writer(struct ifd_access_log *log)
{
    ifd_mutex_lock(&log->mutex);
    ifd_cond_signal(&log->filled);
    ifd_mutex_unlock(&log->mutex);
}

void ifd_access_log_reopen(struct ifd_access_log *log, int fd)
{
    int unused = atomic_exchange(&log->next_fd, fd);
    if (unused >= 0) {
        (void)close(unused);
    }
    wake_writer(log);
}

void ifd_access_log_add(struct ifd_access_log *log, const struct ifd_access *access)
{
    if (!log) {
        return;
    }
    size_t head = atomic_load_explicit(&log->head, memory_order_relaxed);
    if (head - atomic_load(&log->tail) == RING_RECORDS) {
        ifd_metric_add_shared(log->metrics, IFD_METRIC_ACCESS_LOG_DROPPED, 0, 1);
        return;
    }
    struct record *record = &log->ring[head % RING_RECORDS];
    record->method = access->method;
    record->outcome = access->outcome;
    record->status = access->status;
    record->took_ns = access->took_ns;
    record->body_bytes = access->body_bytes;
    record->answer_bytes = access->answer_bytes;
    (void)clock_gettime(CLOCK_REALTIME, &record->at);
    copy_address(record, access->client);
    copy_text(record->caller, sizeof(record->caller), ifd_str(access->caller));
    copy_text(record->source, sizeof(record->source), ifd_str(access->source));
    copy_text(record->path, sizeof(record->path), access->path);
    atomic_store(&log->head, head + 1);
    if (atomic_load(&log->is_asleep)) {
        wake_writer(log);
    }
}

void ifd_access_debug(const struct ifd_log *log, const struct ifd_access *access)
{
    if (!ifd_log_takes(log, IFD_LOG_DEBUG)) {
        return;
    }
    char path[256];
    (void)snprintf(path, sizeof(path), "%.*s", (int)access->path.size, access->path.data);
    ifd_log_debug(log, "request answered",
                  "token=%s method=%s path=%s status=%d outcome=%s bytes_in=%zu "
                  "bytes_out=%zu took_us=%llu",
                  access->caller ? access->caller : "-", access->method, path, access->status,
                  access->outcome, access->body_bytes, access->answer_bytes,
                  (unsigned long long)(access->took_ns / 1000));
}

/* ---- life ---- */

enum ifd_code ifd_access_log_open(const char *path, int *ret_fd, struct ifd_err *err)
{
    int fd = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                    : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        return ifd_fail(err, IFD_IO, "access log \"%s\" cannot be opened: %s", path,
                        strerror(errno));
    }
    *ret_fd = fd;
    return IFD_OK;
}

enum ifd_code ifd_access_log_create(int fd, bool is_json, struct ifd_metric_set *metrics,
                                    const struct ifd_log *errors, const struct ifd_alloc *alloc,
                                    struct ifd_access_log **ret_log, struct ifd_err *err)
{
    struct ifd_access_log *log = ifd_acquire_zeroed(alloc, 1, sizeof(*log));
    if (!log) {
        (void)close(fd);
        return ifd_fail(err, IFD_NOMEM, "no memory for the access log");
    }
    log->alloc = alloc;
    log->metrics = metrics;
    log->log = errors;
    log->fd = fd;
    atomic_store(&log->next_fd, -1);
    log->is_json = is_json;
    ifd_mutex_init(&log->mutex);
    ifd_cond_init(&log->filled);
    ifd_cond_init(&log->stopped);
    enum ifd_code code = ifd_thread_start(&log->thread, "access-log", write_lines, log, alloc, err);
    if (code) {
        ifd_cond_finish(&log->stopped);
        ifd_cond_finish(&log->filled);
        ifd_mutex_finish(&log->mutex);
        (void)close(fd);
        ifd_release(alloc, log, sizeof(*log));
        return code;
    }
    *ret_log = log;
    return IFD_OK;
}

void ifd_access_log_destroy(struct ifd_access_log *log)
{
    if (!log) {
        return;
    }
    ifd_mutex_lock(&log->mutex);
    atomic_store(&log->is_stopping, true);
    ifd_cond_signal(&log->filled);
    ifd_cond_signal(&log->stopped);
    ifd_mutex_unlock(&log->mutex);
    ifd_thread_join(&log->thread);
    ifd_cond_finish(&log->stopped);
    ifd_cond_finish(&log->filled);
    ifd_mutex_finish(&log->mutex);
    take_next_fd(log);
    (void)close(log->fd);
    ifd_release(log->alloc, log, sizeof(*log));
}
