/* Requests of many clients in shared runs of a real model: every client gets its own numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/cpu.h"
#include "engine/base/file.h"
#include "tests/http/live.h"
#include "tests/support/test.h"

#define CLIENTS 48

/* OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1; see tests/data/README.md. */
static const char config[] = "max_batch_size: 8\n"
                             "dynamic_batching { max_queue_delay_microseconds: 200000 }\n";

static char dir[64];

static void path_of(char *ret, size_t size, const char *name)
{
    (void)snprintf(ret, size, "%s/%s", dir, name);
}

static void write_config(const char *text)
{
    char path[200];
    struct ifd_err err = {0};
    const struct ifd_bytes content = {(const uint8_t *)text, strlen(text)};
    path_of(path, sizeof(path), "sum/config.pbtxt");
    REQUIRE_OK(ifd_file_write(path, content, &err), &err);
}

static void make_repository(void)
{
    char path[200];
    struct ifd_bytes file = {0};
    struct ifd_err err = {0};
    (void)snprintf(dir, sizeof(dir), "/tmp/ifd_batch_XXXXXX");
    REQUIRE(mkdtemp(dir) != NULL);
    path_of(path, sizeof(path), "sum");
    REQUIRE(mkdir(path, 0700) == 0);
    path_of(path, sizeof(path), "sum/1");
    REQUIRE(mkdir(path, 0700) == 0);
    REQUIRE_OK(ifd_file_read(test_source("tests/data/repository/simple/1/model.tflite"), 1 << 20,
                             ifd_alloc_system(), &file, &err),
               &err);
    path_of(path, sizeof(path), "sum/1/model.tflite");
    REQUIRE_OK(ifd_file_write(path, file, &err), &err);
    ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)file.data, file.size);
    write_config(config);
}

static void remove_repository(void)
{
    static const char *const names[] = {"sum/config.pbtxt", "sum/1/model.tflite", "sum/1", "sum",
                                        ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[200];
        path_of(path, sizeof(path), names[i]);
        EXPECT(remove(path) == 0);
    }
}

/* batch × 16 numbers counting up from first, as JSON. */
static void add_numbers(char *text, size_t size, int first, int batch)
{
    for (int i = 0; i < 16 * batch; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, size - used, "%s%d", i > 0 ? "," : "", first + i);
    }
}

static void send_request(int fd, int client, int batch)
{
    static char body[8192], head[256];
    (void)snprintf(body, sizeof(body),
                   "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[%d,16],\"datatype\":\"INT32\","
                   "\"data\":[",
                   batch);
    add_numbers(body, sizeof(body), 1000 * client, batch);
    size_t used = strlen(body);
    (void)snprintf(body + used, sizeof(body) - used,
                   "]},{\"name\":\"INPUT1\",\"shape\":[%d,16],\"datatype\":\"INT32\",\"data\":[",
                   batch);
    add_numbers(body, sizeof(body), client, batch);
    used = strlen(body);
    (void)snprintf(body + used, sizeof(body) - used, "]}]}");
    (void)snprintf(head, sizeof(head),
                   "POST /v2/models/sum/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
                   strlen(body));
    client_send_text(fd, head);
    client_send_text(fd, body);
}

static void expect_answer(int fd, int client, int batch)
{
    static struct answer answer;
    answer = client_read(fd);
    EXPECT_INT(answer.status, 200);
    const char *difference = strstr(answer.body, "\"name\":\"OUTPUT1\"");
    REQUIRE(difference != NULL);
    const char *at = strstr(difference, "\"data\":[");
    REQUIRE(at != NULL);
    at += strlen("\"data\":[");
    for (int i = 0; i < 16 * batch; i++) {
        char *end = NULL;
        REQUIRE(strtol(at, &end, 10) == 999L * client);
        at = end + 1;
    }
    at = strstr(strstr(answer.body, "\"name\":\"OUTPUT0\""), "\"data\":[") + strlen("\"data\":[");
    for (int i = 0; i < 16 * batch; i++) {
        char *end = NULL;
        REQUIRE(strtol(at, &end, 10) == 1001L * client + 2 * i);
        at = end + 1;
    }
}

static void clients_share_runs_and_get_their_own_numbers(void)
{
    struct live live;
    char option[100];
    int fd[CLIENTS];
    make_repository();
    (void)snprintf(option, sizeof(option), "--model-repository=%s", dir);
    live_start(&live, (const char *const[]){option, NULL});
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        send_request(fd[i], i, 1 + i % 3);
    }
    for (int i = 0; i < CLIENTS; i++) {
        expect_answer(fd[i], i, 1 + i % 3);
        (void)close(fd[i]);
    }
    struct answer stats = client_get(&live, "/v2/models/sum/stats");
    const char *inferences = strstr(stats.body, "\"inference_count\":");
    const char *executions = strstr(stats.body, "\"execution_count\":");
    REQUIRE(inferences && executions);
    EXPECT_INT(strtol(inferences + 18, NULL, 10), 2 * CLIENTS); /* 1 + 2 + 3 of every three */
    EXPECT(strtol(executions + 18, NULL, 10) < CLIENTS);
    EXPECT(strtol(executions + 18, NULL, 10) >= 2 * CLIENTS / 8);
    live_stop(&live);
    remove_repository();
}

/* Number of instances of the model in a server with the option; 0 if it refuses the model. */
#define SUM "{model=\"sum\",version=\"1\"} "

static void start(struct live *live, const char *text, const char *other)
{
    char option[100];
    write_config(text);
    (void)snprintf(option, sizeof(option), "--model-repository=%s", dir);
    live_start(live, (const char *const[]){option, other, NULL});
}

static long long memory_of(const char *text)
{
    struct live live;
    start(&live, text, NULL);
    const long long bytes = live_metric(&live, "\ninferd_memory_held_bytes ");
    live_stop(&live);
    return bytes;
}

static long instances(const char *text, const char *other)
{
    struct live live;
    start(&live, text, other);
    const struct answer answer = client_get(&live, "/v2/models/sum/config");
    const char *group = strstr(answer.body, "\"instance_group\":");
    const char *count = group ? strstr(group, "\"count\":") : NULL;
    const long number = count ? strtol(count + 8, NULL, 10) : 0;
    live_stop(&live);
    return number;
}

/* Starts a server with model "sum" under this config, and a request of 4 samples that waits for 4
 * more. */
static int begin_waiting(struct live *live, const char *text)
{
    static char option[100];
    make_repository();
    write_config(text);
    (void)snprintf(option, sizeof(option), "--model-repository=%s", dir);
    live_start(live,
               (const char *const[]){option, "--model-control-mode=explicit", "--load-model=*",
                                     "--admin-on-http", "--exit-timeout-secs=3", NULL});
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    send_request(fd, 1, 4);
    live_wait_for_metric(live, "\ninferd_queue_requests" SUM, 1);
    return fd;
}

static const char hour_config[] = "max_batch_size: 8\n"
                                  "dynamic_batching { max_queue_delay_microseconds: 3600000000 }\n";

static void batch_is_not_waited_for_when_the_server_stops(void)
{
    struct live live;
    int fd = begin_waiting(&live, hour_config);
    ifd_server_stop(live.server);
    expect_answer(fd, 1, 4); /* not the 503 of --exit-timeout-secs */
    (void)close(fd);
    live_join(&live);
    remove_repository();
}

static void batch_is_not_waited_for_when_the_model_is_unloaded(void)
{
    struct live live;
    int fd = begin_waiting(&live, hour_config);
    EXPECT_INT(client_post(&live, "/v2/repository/models/sum/unload").status, 200);
    expect_answer(fd, 1, 4);
    (void)close(fd);
    live_stop(&live);
    remove_repository();
}

static void longest_delay_is_no_short_one(void)
{
    struct live live;
    int fd = begin_waiting(
        &live, "max_batch_size: 8\n"
               "dynamic_batching { max_queue_delay_microseconds: 9223372036854775808 }\n");
    int other = client_connect(&live);
    send_request(other, 2, 4);
    expect_answer(fd, 1, 4);
    expect_answer(other, 2, 4);
    EXPECT_INT(live_metric(&live, "\ninferd_executions_total" SUM), 1);
    (void)close(fd);
    (void)close(other);
    live_stop(&live);
    remove_repository();
}

static void there_are_as_many_instances_as_cores_unless_the_config_says(void)
{
    static const char hint[] =
        "parameters { key: \"performance_hint\" value { string_value: \"fast\" } }";
    static const char pairs[] = "parameters { key: \"threads\" value { string_value: \"2\" } }";
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    const long cores = cpu.cores < 64 ? cpu.cores : 64;
    make_repository();
    EXPECT_INT(instances("", NULL), cores);
    EXPECT_INT(instances(pairs, NULL), cores);
    EXPECT_INT(instances(hint, "--performance-hint=throughput"), cores);
    EXPECT_INT(instances("instance_group { count: 3 }", NULL), 3);
    EXPECT_INT(instances("instance_group { count: 1 }", "--performance-hint=throughput"), 1);
    /* Two fit in the budget, but not in an eighth of it: one that is made needs up to four times
     * what it holds. */
    char budget[100];
    (void)snprintf(budget, sizeof(budget), "--memory-budget=%lld",
                   8 * memory_of("max_batch_size: 4096 instance_group { count: 1 }"));
    EXPECT_INT(instances("max_batch_size: 4096", budget), 1);
    remove_repository();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(clients_share_runs_and_get_their_own_numbers),
        T(batch_is_not_waited_for_when_the_server_stops),
        T(batch_is_not_waited_for_when_the_model_is_unloaded),
        T(longest_delay_is_no_short_one),
        T(there_are_as_many_instances_as_cores_unless_the_config_says),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
