/* Requests of many clients in one run: each gets its own answer, and statistics show how they
 * ran. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

#define CLIENTS  8
#define ELEMENTS 16

/* A second repository: "sum" computes OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1 on the
 * engine, from a file whose batch is fixed to 1. A full batch leaves at once; the delay is longer
 * than any test. */
static const char sum_config[] =
    "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 600000000 "
    "default_queue_policy { default_timeout_microseconds: 500000000 allow_timeout_override: true } "
    "}";

/* Any number of FP32: no max_batch_size, so the only dimension belongs to the request. */
static const char open_config[] = "input { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] } "
                                  "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }";

/* Shapes differ between requests; a short delay ends incomplete batches. */
static const char any_config[] = "backend: \"identity\" max_batch_size: 8 input { name: \"IN\" "
                                 "data_type: TYPE_FP32 dims: [ -1 ] } "
                                 "output { name: \"OUT\" data_type: TYPE_FP32 dims: [ -1 ] } "
                                 "dynamic_batching { max_queue_delay_microseconds: 50000 }";

/* A request alone waits for others longer than for its turn. */
static const char patient_config[] = "backend: \"identity\" max_batch_size: 8 input { name: \"IN\" "
                                     "data_type: TYPE_FP32 dims: [ 1 ] } "
                                     "output { name: \"OUT\" data_type: TYPE_FP32 dims: [ 1 ] } "
                                     "dynamic_batching { max_queue_delay_microseconds: 1500000 }";

static const struct {
    const char *name, *config, *model; /* model: a folder of tests/data/repository */
} models[] = {{"sum", sum_config, "simple"},
              {"open", open_config, "identity"},
              {"any", any_config, NULL},
              {"patient", patient_config, NULL}};

#define MODELS (sizeof(models) / sizeof(models[0]))

struct repository {
    char dir[64], option[96];
};

static void copy_file(const char *from, const char *to)
{
    static char data[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    REQUIRE(in && out);
    size_t size = fread(data, 1, sizeof(data), in);
    REQUIRE(size > 0 && size < sizeof(data));
    EXPECT_INT(fwrite(data, 1, size, out), size);
    (void)fclose(in);
    (void)fclose(out);
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    REQUIRE(out != NULL);
    (void)fputs(text, out);
    (void)fclose(out);
}

static void repository_begin(struct repository *r)
{
    char path[300], from[600];
    (void)snprintf(r->dir, sizeof(r->dir), "/tmp/ifd_batch_XXXXXX");
    REQUIRE(mkdtemp(r->dir) != NULL);
    for (size_t i = 0; i < MODELS; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", r->dir, models[i].name);
        REQUIRE(mkdir(path, 0700) == 0);
        (void)snprintf(path, sizeof(path), "%s/%s/config.pbtxt", r->dir, models[i].name);
        write_text(path, models[i].config);
        (void)snprintf(path, sizeof(path), "%s/%s/1", r->dir, models[i].name);
        REQUIRE(mkdir(path, 0700) == 0);
        if (models[i].model) {
            (void)snprintf(from, sizeof(from), "%s/tests/data/repository/%s/1/model.tflite",
                           IFD_SOURCE_DIR, models[i].model);
            (void)snprintf(path, sizeof(path), "%s/%s/1/model.tflite", r->dir, models[i].name);
            copy_file(from, path);
        }
    }
    (void)snprintf(r->option, sizeof(r->option), "--model-repository=%s", r->dir);
}

static void repository_end(const struct repository *r)
{
    static const char *const part[] = {"/1/model.tflite", "/1", "/config.pbtxt", ""};
    char path[300];
    for (size_t i = 0; i < MODELS; i++) {
        for (size_t k = 0; k < sizeof(part) / sizeof(part[0]); k++) {
            (void)snprintf(path, sizeof(path), "%s/%s%s", r->dir, models[i].name, part[k]);
            (void)remove(path);
        }
    }
    (void)remove(r->dir);
}

static void start(struct live *live, struct repository *r)
{
    repository_begin(r);
    live_start(live, (const char *const[]){r->option, NULL});
}

static void stop(struct live *live, const struct repository *r)
{
    live_stop(live);
    repository_end(r);
}

/* fields: more of the header */
static void send_infer(int fd, const char *model, const char *fields, const char *json,
                       const void *data, size_t size)
{
    char head[300];
    (void)snprintf(head, sizeof(head),
                   "POST /v2/models/%s/infer HTTP/1.1\r\nHost: a\r\n%s"
                   "Inference-Header-Content-Length: %zu\r\nContent-Length: %zu\r\n\r\n",
                   model, fields, strlen(json), strlen(json) + size);
    client_send_text(fd, head);
    client_send_text(fd, json);
    client_send(fd, data, size);
}

/* Start of the tensors of a binary answer; their size in bytes. */
static const char *tensors_of(const struct answer *answer, size_t size)
{
    const char *length = strcasestr(answer->head, "inference-header-content-length:");
    REQUIRE(answer->status == 200 && length != NULL);
    size_t json = strtoul(length + 32, NULL, 10);
    REQUIRE(json + size == answer->body_size);
    return answer->body + json;
}

/* Sends rows samples of the client's numbers to "sum". */
static void send_sum(int fd, int32_t client, int rows)
{
    static int32_t data[2 * CLIENTS * ELEMENTS];
    char json[500];
    int count = rows * ELEMENTS;
    for (int i = 0; i < count; i++) {
        data[i] = client * 1000 + i;
        data[count + i] = client * 7 - i;
    }
    size_t bytes = (size_t)count * sizeof(int32_t);
    (void)snprintf(json, sizeof(json),
                   "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[%d,16],\"datatype\":\"INT32\","
                   "\"parameters\":{\"binary_data_size\":%zu}},{\"name\":\"INPUT1\","
                   "\"shape\":[%d,16],\"datatype\":\"INT32\","
                   "\"parameters\":{\"binary_data_size\":%zu}}],"
                   "\"parameters\":{\"binary_data_output\":true}}",
                   rows, bytes, rows, bytes);
    send_infer(fd, "sum", "", json, data, 2 * bytes);
}

static void expect_sum(int fd, int32_t client, int rows)
{
    struct answer answer = client_read(fd);
    int count = rows * ELEMENTS;
    const char *at = tensors_of(&answer, 2 * (size_t)count * sizeof(int32_t));
    static int32_t got[2 * CLIENTS * ELEMENTS];
    memcpy(got, at, 2 * (size_t)count * sizeof(int32_t));
    for (int i = 0; i < count; i++) {
        EXPECT_INT(got[i], client * 1007);
        EXPECT_INT(got[count + i], client * 993 + 2 * i);
    }
}

static void connect_all(const struct live *live, int *fd)
{
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = client_connect(live);
        REQUIRE(fd[i] >= 0);
    }
}

static void close_all(const int *fd)
{
    for (int i = 0; i < CLIENTS; i++) {
        (void)close(fd[i]);
    }
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    REQUIRE(at != NULL);
    return strtoull(at + strlen(key), NULL, 10);
}

static void eight_clients_share_one_run(void)
{
    struct live live;
    struct repository repository;
    int fd[CLIENTS];
    start(&live, &repository);
    connect_all(&live, fd);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            send_sum(fd[i], i + 10 * round, 1);
        }
        for (int i = 0; i < CLIENTS; i++) {
            expect_sum(fd[i], i + 10 * round, 1);
        }
    }
    struct answer stats = client_get(&live, "/v2/models/sum/stats");
    EXPECT_INT(number_after(stats.body, "\"inference_count\":"), 3 * CLIENTS);
    EXPECT_INT(number_after(stats.body, "\"execution_count\":"), 3);
    EXPECT_INT(number_after(stats.body, "\"batch_size\":"), CLIENTS);
    close_all(fd);
    stop(&live, &repository);
}

static void requests_of_many_samples_share_too(void)
{
    static const int rows[] = {3, 1, 4};
    struct live live;
    struct repository repository;
    int fd[CLIENTS];
    start(&live, &repository);
    connect_all(&live, fd);
    for (int i = 0; i < 3; i++) {
        send_sum(fd[i], i + 1, rows[i]);
    }
    for (int i = 0; i < 3; i++) {
        expect_sum(fd[i], i + 1, rows[i]);
    }
    struct answer stats = client_get(&live, "/v2/models/sum/stats");
    EXPECT_INT(number_after(stats.body, "\"inference_count\":"), 8);
    EXPECT_INT(number_after(stats.body, "\"execution_count\":"), 1);
    EXPECT_INT(number_after(stats.body, "\"success\":{\"count\":"), 3);
    close_all(fd);
    stop(&live, &repository);
}

/* Alone it would wait for ten minutes, or 500 s by its model's limit. */
static void clients_own_timeout_ends_the_wait_for_a_batch(void)
{
    struct live live;
    struct repository repository;
    char json[600], text[900];
    start(&live, &repository);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    (void)snprintf(json, sizeof(json),
                   "{\"parameters\":{\"timeout\":20000},\"inputs\":["
                   "{\"name\":\"INPUT0\",\"shape\":[1,16],\"datatype\":\"INT32\","
                   "\"data\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]},"
                   "{\"name\":\"INPUT1\",\"shape\":[1,16],\"datatype\":\"INT32\","
                   "\"data\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]}");
    (void)snprintf(text, sizeof(text),
                   "POST /v2/models/sum/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(json), json);
    client_send_text(fd, text);
    struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "Request timeout expired");
    struct answer stats = client_get(&live, "/v2/models/sum/stats");
    EXPECT_INT(number_after(stats.body, "\"execution_count\":"), 0);
    EXPECT_INT(number_after(stats.body, "\"fail\":{\"count\":"), 1);
    (void)close(fd);
    stop(&live, &repository);
}

static void waiting_for_a_batch_is_no_waiting_too_long(void)
{
    static const float number = 7;
    struct live live;
    struct repository repository;
    repository_begin(&repository);
    live_start(&live, (const char *const[]){repository.option, "--default-timeout-ms=1000", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    send_infer(fd, "patient", "",
               "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1,1],\"datatype\":\"FP32\","
               "\"parameters\":{\"binary_data_size\":4}}],"
               "\"parameters\":{\"binary_data_output\":true}}",
               &number, sizeof(number));
    struct answer answer = client_read(fd);
    EXPECT_BYTES(tensors_of(&answer, sizeof(number)), &number, sizeof(number));
    (void)close(fd);
    stop(&live, &repository);
}

static void requests_of_other_shapes_get_their_own_answers(void)
{
    struct live live;
    struct repository repository;
    int fd[CLIENTS];
    start(&live, &repository);
    connect_all(&live, fd);
    for (int i = 0; i < CLIENTS; i++) {
        const float data[2] = {(float)i, (float)i + 0.5f};
        int columns = i % 3 == 2 ? 2 : 1;
        char json[300];
        (void)snprintf(json, sizeof(json),
                       "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1,%d],\"datatype\":\"FP32\","
                       "\"parameters\":{\"binary_data_size\":%d}}],"
                       "\"parameters\":{\"binary_data_output\":true}}",
                       columns, columns * 4);
        send_infer(fd[i], "any", "", json, data, (size_t)columns * 4);
    }
    for (int i = 0; i < CLIENTS; i++) {
        const float want[2] = {(float)i, (float)i + 0.5f};
        size_t bytes = i % 3 == 2 ? 8 : 4;
        struct answer answer = client_read(fd[i]);
        EXPECT_BYTES(tensors_of(&answer, bytes), want, bytes);
    }
    struct answer stats = client_get(&live, "/v2/models/any/stats");
    EXPECT_INT(number_after(stats.body, "\"inference_count\":"), CLIENTS);
    close_all(fd);
    stop(&live, &repository);
}

/* Larger than any instance's batch, on the engine: the first dimension is no batch of requests. */
static void first_dimension_without_max_batch_size_is_free(void)
{
    enum { COUNT = 150528 };
    static float data[COUNT];
    static char body[COUNT * 4 + 1024];
    struct live live;
    struct repository repository;
    char json[300];
    start(&live, &repository);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    for (int i = 0; i < COUNT; i++) {
        data[i] = (float)i * 0.25f;
    }
    (void)snprintf(json, sizeof(json),
                   "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[%d],\"datatype\":\"FP32\","
                   "\"parameters\":{\"binary_data_size\":%zu}}],"
                   "\"parameters\":{\"binary_data_output\":true}}",
                   COUNT, sizeof(data));
    send_infer(fd, "open", "Connection: close\r\n", json, data, sizeof(data));
    size_t size = 0;
    ssize_t got = 0;
    while (size < sizeof(body) - 1 &&
           (got = recv(fd, body + size, sizeof(body) - 1 - size, 0)) > 0) {
        size += (size_t)got;
    }
    REQUIRE(size > sizeof(data));
    EXPECT_HAS(body, "\"shape\":[150528]");
    EXPECT_BYTES(body + size - sizeof(data), data, sizeof(data));
    (void)close(fd);
    stop(&live, &repository);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(eight_clients_share_one_run),
        T(requests_of_many_samples_share_too),
        T(clients_own_timeout_ends_the_wait_for_a_batch),
        T(waiting_for_a_batch_is_no_waiting_too_long),
        T(requests_of_other_shapes_get_their_own_answers),
        T(first_dimension_without_max_batch_size_is_free),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
