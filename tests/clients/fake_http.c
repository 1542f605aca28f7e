/* One thread, blocking sockets; every wait ends when the client hangs up or fake_http_stop shuts
 * the sockets down. */
#include "tests/clients/fake_http.h"

#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { EXCHANGES_MAX = 16, REQUEST_BYTES_MAX = 1 << 20 };

struct exchange {
    char *answer; /* status line, headers, body */
    size_t answer_bytes;
    char *head, *body;
    size_t body_bytes;
};

struct fake_http {
    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    int listener, connection;
    bool is_stopping;
    size_t connection_count, answer_count, used_count;
    struct exchange exchanges[EXCHANGES_MAX];
    char url[128];
};

/* Bytes of the body that the headers announce. */
static size_t announced_bytes(const char *head)
{
    static const char name[] = "\r\ncontent-length:";
    for (const char *p = head; *p != '\0'; p++) {
        if (strncasecmp(p, name, sizeof(name) - 1) == 0) {
            return (size_t)strtoull(p + sizeof(name) - 1, NULL, 10);
        }
    }
    return 0;
}

/* Reads one request into buffer (terminated); false at the end of the connection. */
static bool read_request(int fd, char *buffer, size_t *ret_head_bytes, size_t *ret_body_bytes)
{
    size_t size = 0, head_bytes = 0, body_bytes = 0;
    while (head_bytes == 0 || size < head_bytes + body_bytes) {
        ssize_t n = recv(fd, buffer + size, REQUEST_BYTES_MAX - size, 0);
        if (n <= 0) {
            return false;
        }
        size += (size_t)n;
        buffer[size] = '\0';
        const char *end = head_bytes == 0 ? strstr(buffer, "\r\n\r\n") : NULL;
        if (end) {
            head_bytes = (size_t)(end - buffer) + 4;
            body_bytes = announced_bytes(buffer);
        }
    }
    *ret_head_bytes = head_bytes;
    *ret_body_bytes = body_bytes;
    return true;
}

static char *copy_of(const char *data, size_t size)
{
    char *copy = calloc(1, size + 1);
    REQUIRE(copy != NULL);
    memcpy(copy, data, size);
    return copy;
}

/* Keeps the request and takes the next answer; false if there is none. */
static bool take_exchange(struct fake_http *server, const char *buffer, size_t head_bytes,
                          size_t body_bytes, struct exchange *ret_exchange)
{
    pthread_mutex_lock(&server->lock);
    bool has_answer = server->used_count < server->answer_count;
    if (has_answer) {
        struct exchange *exchange = &server->exchanges[server->used_count++];
        exchange->head = copy_of(buffer, head_bytes);
        exchange->body = copy_of(buffer + head_bytes, body_bytes);
        exchange->body_bytes = body_bytes;
        *ret_exchange = *exchange;
    }
    pthread_mutex_unlock(&server->lock);
    return has_answer;
}

static void serve(struct fake_http *server, int fd, char *buffer)
{
    size_t head_bytes = 0, body_bytes = 0;
    struct exchange exchange;
    while (read_request(fd, buffer, &head_bytes, &body_bytes) &&
           take_exchange(server, buffer, head_bytes, body_bytes, &exchange)) {
        if (send(fd, exchange.answer, exchange.answer_bytes, MSG_NOSIGNAL) < 0) {
            return;
        }
    }
}

static void *run(void *context)
{
    struct fake_http *server = context;
    char *buffer = malloc(REQUEST_BYTES_MAX + 1);
    REQUIRE(buffer != NULL);
    for (int fd; (fd = accept(server->listener, NULL, NULL)) >= 0;) {
        pthread_mutex_lock(&server->lock);
        bool is_stopping = server->is_stopping;
        server->connection = fd;
        server->connection_count++;
        pthread_mutex_unlock(&server->lock);
        if (!is_stopping) {
            serve(server, fd, buffer);
        }
        pthread_mutex_lock(&server->lock);
        server->connection = -1;
        pthread_mutex_unlock(&server->lock);
        close(fd);
    }
    free(buffer);
    return NULL;
}

static struct fake_http *start(int family, struct sockaddr *address, socklen_t length)
{
    struct fake_http *server = calloc(1, sizeof(*server));
    REQUIRE(server != NULL);
    server->connection = -1;
    server->listener = socket(family, SOCK_STREAM, 0);
    REQUIRE(server->listener >= 0);
    REQUIRE(bind(server->listener, address, length) == 0);
    REQUIRE(getsockname(server->listener, address, &length) == 0);
    REQUIRE(listen(server->listener, 4) == 0);
    REQUIRE(pthread_mutex_init(&server->lock, NULL) == 0);
    REQUIRE(pthread_create(&server->thread, NULL, run, server) == 0);
    return server;
}

struct fake_http *fake_http_start(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct fake_http *server = start(AF_INET, (struct sockaddr *)&address, sizeof(address));
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d", ntohs(address.sin_port));
    return server;
}

struct fake_http *fake_http_start_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    REQUIRE(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    struct fake_http *server = start(AF_UNIX, (struct sockaddr *)&address, sizeof(address));
    snprintf(server->url, sizeof(server->url), "unix:%s", path);
    return server;
}

void fake_http_stop(struct fake_http *server)
{
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    shutdown(server->listener, SHUT_RDWR);
    if (server->connection >= 0) {
        shutdown(server->connection, SHUT_RDWR);
    }
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->thread, NULL);
    close(server->listener);
    for (size_t i = 0; i < EXCHANGES_MAX; i++) {
        free(server->exchanges[i].answer);
        free(server->exchanges[i].head);
        free(server->exchanges[i].body);
    }
    pthread_mutex_destroy(&server->lock);
    free(server);
}

const char *fake_http_url(const struct fake_http *server)
{
    return server->url;
}

void fake_http_answer(struct fake_http *server, int status, const char *headers, const void *body,
                      size_t body_bytes)
{
    char head[512];
    int head_bytes = snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n",
                              status, body_bytes, headers);
    REQUIRE(head_bytes > 0 && (size_t)head_bytes < sizeof(head));
    char *answer = malloc((size_t)head_bytes + body_bytes);
    REQUIRE(answer != NULL);
    memcpy(answer, head, (size_t)head_bytes);
    memcpy(answer + head_bytes, body, body_bytes);
    pthread_mutex_lock(&server->lock);
    REQUIRE(server->answer_count < EXCHANGES_MAX);
    struct exchange *exchange = &server->exchanges[server->answer_count++];
    exchange->answer = answer;
    exchange->answer_bytes = (size_t)head_bytes + body_bytes;
    pthread_mutex_unlock(&server->lock);
}

void fake_http_answer_text(struct fake_http *server, int status, const char *body)
{
    fake_http_answer(server, status, "Content-Type: application/json\r\n", body, strlen(body));
}

struct fake_request fake_http_request(struct fake_http *server, size_t index)
{
    pthread_mutex_lock(&server->lock);
    REQUIRE(index < server->used_count);
    const struct exchange *exchange = &server->exchanges[index];
    struct fake_request request = {exchange->head, exchange->body, exchange->body_bytes};
    pthread_mutex_unlock(&server->lock);
    return request;
}

size_t fake_http_connection_count(struct fake_http *server)
{
    pthread_mutex_lock(&server->lock);
    size_t count = server->connection_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}
