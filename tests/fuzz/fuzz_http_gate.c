/* Any bytes from a client. First byte: the size of the chunks in which they arrive. Must: no more
 * answers than a strict reader of the same bytes counts requests; bytes that can be read in two
 * ways end the connection (except those that gate.h lists); every answer is whole, every refusal is
 * JSON; no memory is kept. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/net/http_impl.h"
#include "server/net/listen.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/loopback.h"

#define REQUESTS_MAX 256
#define ANSWERS_MAX  ((size_t)1 << 20)
#define PIECES_MAX   64

/* ---- the strict reader ---- */

struct requests {
    int count;
    bool is_unsure; /* a header has what gate.h names as left: how many there are is not said */
    bool is_head[REQUESTS_MAX];
};

struct line {
    const char *text;
    size_t size;
};

static bool take_line(const char **at, const char *end, struct line *ret)
{
    const char *cr = memchr(*at, '\r', (size_t)(end - *at));
    if (!cr || cr + 1 == end || cr[1] != '\n') {
        return false;
    }
    *ret = (struct line){.text = *at, .size = (size_t)(cr - *at)};
    *at = cr + 2;
    return true;
}

static bool is_plain(struct line line)
{
    return !memchr(line.text, '\0', line.size) && !memchr(line.text, '\n', line.size);
}

static bool has_name(struct line line, const char *name)
{
    size_t size = strlen(name);
    return line.size > size && strncasecmp(line.text, name, size) == 0 && line.text[size] == ':';
}

/* Digits, with blanks around them. */
static bool read_length(struct line line, size_t *ret)
{
    size_t at = 15, value = 0, digits = 0;
    while (at < line.size && (line.text[at] == ' ' || line.text[at] == '\t')) {
        at++;
    }
    for (; at < line.size && line.text[at] >= '0' && line.text[at] <= '9'; at++, digits++) {
        if (value > SIZE_MAX / 100) {
            return false;
        }
        value = value * 10 + (size_t)(line.text[at] - '0');
    }
    while (at < line.size && (line.text[at] == ' ' || line.text[at] == '\t')) {
        at++;
    }
    *ret = value;
    return digits > 0 && at == line.size;
}

/* Behind the header; false: what follows is nobody's request. */
static bool take_header(const char **at, const char *end, size_t *ret_length)
{
    struct line line;
    int lengths = 0;
    *ret_length = 0;
    if (!take_line(at, end, &line) || !is_plain(line)) {
        return false;
    }
    while (take_line(at, end, &line)) {
        if (line.size == 0) {
            return true;
        }
        const char *colon = memchr(line.text, ':', line.size);
        if (!is_plain(line) || !colon || line.text[0] == ' ' || line.text[0] == '\t' ||
            has_name(line, "transfer-encoding")) {
            return false;
        }
        if (has_name(line, "content-length") && (lengths++ > 0 || !read_length(line, ret_length))) {
            return false;
        }
    }
    return false;
}

static struct requests read_strictly(const char *at, size_t size)
{
    struct requests requests = {0};
    const char *end = at + size;
    size_t length = 0;
    for (;;) {
        while (at < end && (*at == '\r' || *at == '\n')) {
            at++;
        }
        if (at == end || requests.count == REQUESTS_MAX) {
            return requests;
        }
        requests.is_head[requests.count++] = end - at > 4 && memcmp(at, "HEAD", 4) == 0;
        const char *start = at;
        bool is_good = take_header(&at, end, &length);
        size_t bytes = (size_t)((is_good ? at : end) - start);
        requests.is_unsure |= memchr(start, '\0', bytes) || memmem(start, bytes, "\n:\n", 3) ||
                              memmem(start, bytes, "\n:\r\n", 4);
        if (!is_good || length > (size_t)(end - at)) {
            return requests;
        }
        at += length;
    }
}

/* ---- the answers ---- */

static void check_answers(const char *at, size_t size, const struct requests *requests)
{
    const char *end = at + size;
    int count = 0;
    while (at < end) {
        const char *body = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
        MUST(end - at > 12 && memcmp(at, "HTTP/1.1 ", 9) == 0 && body);
        body += 4;
        if (memcmp(at + 9, "100", 3) == 0) {
            at = body;
            continue;
        }
        MUST(count < requests->count);
        MUST(at[9] < '4' ||
             memmem(at, (size_t)(body - at), "\r\nContent-Type: application/json\r\n", 34));
        const char *length = memmem(at, (size_t)(body - at), "\r\nContent-Length: ", 18);
        MUST(length);
        size_t bytes = strtoul(length + 18, NULL, 10);
        bool has_body = !requests->is_head[count] ||
                        (body < end && (end - body < 9 || memcmp(body, "HTTP/1.1 ", 9) != 0));
        count++;
        MUST(!has_body || bytes <= (size_t)(end - body));
        at = body + (has_body ? bytes : 0);
    }
}

/* ---- the server ---- */

struct bench {
    struct ifd_log log;
    struct ifd_loop *loop;
    struct ifd_timer *stop;
    struct loopback api;
    struct ifd_http *http;
    char *answers;
    size_t answer_bytes;
};

static void quiet(void *context, enum ifd_log_level level, const char *sentence, const char *fields)
{
    (void)context;
    (void)level;
    (void)sentence;
    (void)fields;
}

static void stop(void *arg)
{
    ifd_loop_stop(arg);
}

static void start(struct bench *b)
{
    struct ifd_err err = {0};
    uint16_t port = 0;
    int fd = -1;
    b->log.levels = IFD_LOG_UP_TO(IFD_LOG_DEBUG);
    b->log.write = quiet;
    b->answers = malloc(ANSWERS_MAX);
    MUST(b->answers);
    loopback_init(&b->api, ifd_alloc_system());
    MUST(!ifd_loop_create(ifd_alloc_system(), &b->loop, &err));
    MUST(!ifd_timer_create(b->loop, stop, b->loop, &b->stop, &err));
    const struct ifd_http_options options = {.alloc = ifd_alloc_system(),
                                             .request_alloc = ifd_alloc_system(),
                                             .loop = b->loop,
                                             .api = b->api.api,
                                             .log = &b->log,
                                             .max_connections = 8,
                                             .max_header_bytes = 8192,
                                             .header_timeout_secs = 3600,
                                             .receive_timeout_secs = 3600,
                                             .send_timeout_secs = 3600,
                                             .idle_timeout_secs = 3600};
    MUST(!ifd_http_create(&options, &b->http, &err));
    MUST(!ifd_listen_tcp("127.0.0.1", 0, &fd, &port, &err));
    MUST(!ifd_http_serve(b->http, fd, false, &err));
}

static void collect(struct bench *b, int fd)
{
    for (ssize_t got = 1; got > 0; b->answer_bytes += got > 0 ? (size_t)got : 0) {
        MUST(b->answer_bytes < ANSWERS_MAX);
        got = recv(fd, b->answers + b->answer_bytes, ANSWERS_MAX - b->answer_bytes, MSG_DONTWAIT);
    }
}

/* Turns of the loop: what a turn makes ready, the next one does. */
static void turn(struct bench *b, int times)
{
    while (times-- > 0) {
        fake_service_run(&b->api.fake);
        b->http->listener[0].needs_run = true;
        ifd_timer_start(b->stop, 0, 0);
        ifd_loop_run(b->loop);
    }
}

static int connect_to(struct bench *b)
{
    struct ifd_listener *l = &b->http->listener[0];
    const struct ifd_client client = {0};
    const struct sockaddr address = {.sa_family = AF_UNIX};
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    l->accepting = ifd_connection_begin(l, pair[0], &client);
    MUST(l->accepting && ifd_mhd_take(l, pair[0], &address, sizeof(address)));
    return pair[1];
}

static void send_pieces(struct bench *b, int fd, const uint8_t *data, size_t size, size_t piece)
{
    if (piece < size / PIECES_MAX + 1) {
        piece = size / PIECES_MAX + 1;
    }
    while (size > 0) {
        ssize_t sent = send(fd, data, size < piece ? size : piece, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN) {
            return;
        }
        data += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
        turn(b, 1);
        collect(b, fd);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bench bench;
    if (size == 0 || size > 100000) {
        return 0;
    }
    if (!bench.loop) {
        start(&bench);
    }
    bench.answer_bytes = 0;
    int fd = connect_to(&bench);
    send_pieces(&bench, fd, data + 1, size - 1, data[0] > 0 ? data[0] : size);
    turn(&bench, 3);
    (void)shutdown(fd, SHUT_WR);
    turn(&bench, 3);
    collect(&bench, fd);
    const struct requests requests = read_strictly((const char *)data + 1, size - 1);
    if (!requests.is_unsure) {
        check_answers(bench.answers, bench.answer_bytes, &requests);
    }
    (void)close(fd);
    turn(&bench, 3);
    ifd_linger_sweep(bench.http, true);
    turn(&bench, 1);
    MUST(!bench.http->connections && bench.http->open_count == 0 && bench.http->waiting_count == 0);
    MUST(bench.api.fake.held_refs == 0 && bench.api.fake.held_outputs == 0);
    return 0;
}
