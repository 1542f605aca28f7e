/* One connection, one request at a time: what a client waits, and how much of that is not the
 * engine's.
 *
 *   one_client PORT MODEL BODY HEADER_BYTES [--spin] [--count N] [--warm-up N] [--gap-us N]
 *   one_client floor ANSWER_BYTES BODY HEADER_BYTES [--work-us N] …
 *
 * BODY: file; its first HEADER_BYTES are JSON, the rest a binary tensor. --spin: the client never
 * sleeps, so that waking it, which is not the server's work, is not counted; it wants a core of its
 * own. --gap-us: pause between requests, spent like the waiting: spinning or sleeping. Before and
 * after each request the server's statistics are read on the same connection; what they say of
 * computing is subtracted from the time of the same request.
 *
 * floor: the other side is a process of this program, one thread that reads the request with large
 * reads and answers zeros: what the system takes for moving the bytes and for waking two sides.
 * --work-us: in between it reads memory, more than fits into a second-level cache, for N µs, and
 * tells how long it was: what moving the bytes costs with caches as a model leaves them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT_DEFAULT   400
#define WARM_UP_DEFAULT 100
#define ANSWER_MAX      (1u << 20)
#define WORK_BYTES      (8u << 20)

struct client {
    int fd;
    bool spins;
    size_t size; /* of the answer so far */
    char answer[ANSWER_MAX];
};

struct run {
    const char *request;
    size_t request_bytes;
    uint16_t port;
    const char *model; /* NULL: no statistics */
    bool spins;
    long count, warm_up, gap_us, work_us;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "one_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_us(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- the client ---- */

static void connect_to(struct client *client, uint16_t port, bool spins)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    client->spins = spins;
    if (client->fd < 0 || connect(client->fd, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        (spins && fcntl(client->fd, F_SETFL, O_NONBLOCK) != 0)) {
        fail("connect");
    }
}

static void send_all(const struct client *client, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(client->fd, data, size, MSG_NOSIGNAL);
        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
        } else if (errno != EAGAIN && errno != EINTR) {
            fail("send");
        }
    }
}

static size_t answer_bytes(const struct client *client)
{
    const char *end = memmem(client->answer, client->size, "\r\n\r\n", 4);
    const char *length = end ? strcasestr(client->answer, "\r\ncontent-length:") : NULL;
    return length ? (size_t)(end - client->answer) + 4 + strtoul(length + 17, NULL, 10) : SIZE_MAX;
}

static void read_answer(struct client *client)
{
    client->size = 0;
    do {
        ssize_t got = recv(client->fd, client->answer + client->size,
                           sizeof(client->answer) - 1 - client->size, 0);
        if (got > 0) {
            client->size += (size_t)got;
            client->answer[client->size] = '\0';
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            fail("receive");
        }
    } while (client->size == 0 || client->size < answer_bytes(client));
    if (strncmp(client->answer, "HTTP/1.1 200", 12) != 0) {
        (void)fprintf(stderr, "one_client: %.400s\n", client->answer);
        exit(1);
    }
}

/* What the server has spent on computing so far. */
static double computed_us(struct client *client, const char *model)
{
    static const char *const stage[] = {"\"compute_input\"", "\"compute_infer\"",
                                        "\"compute_output\""};
    char ask[300];
    int size =
        snprintf(ask, sizeof(ask), "GET /v2/models/%s/stats HTTP/1.1\r\nHost: a\r\n\r\n", model);
    send_all(client, ask, (size_t)size);
    read_answer(client);
    double total = 0;
    for (size_t i = 0; i < sizeof(stage) / sizeof(stage[0]); i++) {
        const char *at = strstr(client->answer, stage[i]);
        const char *ns = at ? strstr(at, "\"ns\":") : NULL;
        if (!ns) {
            (void)fprintf(stderr, "one_client: no statistics: %.400s\n", client->answer);
            exit(1);
        }
        total += strtod(ns + 5, NULL) / 1e3;
    }
    return total;
}

/* The same, as the floor tells it of its last answer. */
static double worked_us(const struct client *client)
{
    const char *at = strstr(client->answer, "\r\nWorked-Ns: ");
    return at ? strtod(at + 13, NULL) / 1e3 : 0;
}

static void pause_us(const struct run *run)
{
    if (run->spins) {
        for (double until = now_us() + (double)run->gap_us; now_us() < until;) {
        }
    } else if (run->gap_us > 0) {
        (void)usleep((useconds_t)run->gap_us);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_quantiles(const char *what, double *value, size_t count)
{
    qsort(value, count, sizeof(*value), compare);
    (void)printf("%-8s p10 %8.1f  p50 %8.1f  p90 %8.1f  p99 %8.1f us\n", what, value[count / 10],
                 value[count / 2], value[count * 9 / 10], value[count * 99 / 100]);
}

static void measure(const struct run *run)
{
    static struct client client;
    double *total = calloc((size_t)run->count, sizeof(*total));
    double *engine = calloc((size_t)run->count, sizeof(*engine));
    double *added = calloc((size_t)run->count, sizeof(*added));
    double before = 0;
    connect_to(&client, run->port, run->spins);
    if (run->model) {
        before = computed_us(&client, run->model);
    }
    for (long i = -run->warm_up; i < run->count; i++) {
        pause_us(run);
        double start = now_us();
        send_all(&client, run->request, run->request_bytes);
        read_answer(&client);
        double took = now_us() - start;
        double after = run->model ? computed_us(&client, run->model) : before + worked_us(&client);
        if (i >= 0) {
            total[i] = took;
            engine[i] = after - before;
            added[i] = took - engine[i];
        }
        before = after;
    }
    print_quantiles("waited", total, (size_t)run->count);
    print_quantiles("engine", engine, (size_t)run->count);
    print_quantiles("added", added, (size_t)run->count);
    (void)close(client.fd);
    free(total);
    free(engine);
    free(added);
}

/* ---- the floor ---- */

static double work(long us)
{
    static volatile unsigned char memory[WORK_BYTES];
    double start = now_us();
    while (now_us() < start + (double)us) {
        for (size_t i = 0, at = (size_t)now_us() * 64; i < 64; i++, at += 64) {
            memory[at % WORK_BYTES]++;
        }
    }
    return us > 0 ? now_us() - start : 0;
}

static void serve(int listener, const struct run *run, size_t answer_size)
{
    static char body[ANSWER_MAX], answer[ANSWER_MAX];
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (fd < 0 || set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("accept");
    }
    for (size_t got = 0;;) {
        (void)epoll_wait(set, &event, 1, -1);
        ssize_t part = recv(fd, body + got, sizeof(body) - got, 0);
        if (part == 0) {
            exit(0);
        }
        got += part > 0 ? (size_t)part : 0;
        if (got == run->request_bytes) {
            int head = snprintf(answer, sizeof(answer),
                                "HTTP/1.1 200 OK\r\nWorked-Ns: %.0f\r\nContent-Length: %zu\r\n\r\n",
                                work(run->work_us) * 1e3, answer_size);
            ssize_t sent = send(fd, answer, (size_t)head + answer_size, MSG_NOSIGNAL);
            (void)sent;
            got = 0;
        }
    }
}

static pid_t start_floor(struct run *run, size_t answer_size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (const struct sockaddr *)&at, size) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&at, &size) != 0) {
        fail("listen");
    }
    pid_t child = fork();
    if (child == 0) {
        serve(listener, run, answer_size);
    }
    run->port = ntohs(at.sin_port);
    return child;
}

/* ---- arguments ---- */

/* The whole request: head and the content of the file. */
static char *make_request(const char *model, const char *path, const char *header_bytes,
                          size_t *ret_bytes)
{
    struct stat status = {0};
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0) {
        fail(path);
    }
    size_t body_bytes = (size_t)status.st_size;
    char *request = malloc(body_bytes + 600);
    int head = snprintf(request, 600,
                        "POST /v2/models/%.200s/infer HTTP/1.1\r\nHost: bench\r\n"
                        "Content-Type: application/octet-stream\r\n"
                        "Inference-Header-Content-Length: %s\r\nContent-Length: %zu\r\n\r\n",
                        model, header_bytes, body_bytes);
    if (read(fd, request + head, body_bytes) != status.st_size) {
        fail(path);
    }
    (void)close(fd);
    *ret_bytes = (size_t)head + body_bytes;
    return request;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void)fprintf(stderr, "usage: one_client PORT|floor MODEL|ANSWER_BYTES BODY HEADER_BYTES "
                              "[--spin] [--count N] [--warm-up N] [--gap-us N]\n");
        return 2;
    }
    bool is_floor = strcmp(argv[1], "floor") == 0;
    struct run run = {.port = (uint16_t)strtoul(argv[1], NULL, 10),
                      .model = is_floor ? NULL : argv[2],
                      .count = COUNT_DEFAULT,
                      .warm_up = WARM_UP_DEFAULT};
    for (int i = 5; i < argc; i++) {
        if (strcmp(argv[i], "--spin") == 0) {
            run.spins = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--count") == 0) {
            run.count = strtol(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--warm-up") == 0) {
            run.warm_up = strtol(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--gap-us") == 0) {
            run.gap_us = strtol(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--work-us") == 0) {
            run.work_us = strtol(argv[++i], NULL, 10);
        } else {
            (void)fprintf(stderr, "one_client: unknown argument %s\n", argv[i]);
            return 2;
        }
    }
    char *request = make_request(argv[2], argv[3], argv[4], &run.request_bytes);
    run.request = request;
    pid_t child = is_floor ? start_floor(&run, strtoul(argv[2], NULL, 10)) : 0;
    measure(&run);
    if (child > 0) {
        (void)waitpid(child, NULL, 0);
    }
    free(request);
    return 0;
}
