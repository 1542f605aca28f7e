/* Faulty repositories: faults are reported, all else is served. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/builtin.h"
#include "engine/base/file.h"
#include "tests/http/live.h"
#include "tests/http/notes.h"
#include "tests/support/test.h"

static char extra[64], option[100];

static const char *in_extra(const char *path)
{
    static char full[200];
    (void)snprintf(full, sizeof(full), "%s/%s", extra, path);
    return full;
}

static void add_file(const char *path, const char *text)
{
    FILE *out = fopen(in_extra(path), "w");
    REQUIRE(out != NULL);
    (void)fputs(text, out);
    (void)fclose(out);
}

static void add_folder(const char *path)
{
    REQUIRE(mkdir(in_extra(path), 0700) == 0);
}

/* A second repository beside that of live_start. */
static void begin(void)
{
    (void)snprintf(extra, sizeof(extra), "/tmp/ifd_extra_XXXXXX");
    REQUIRE(mkdtemp(extra) != NULL);
    (void)snprintf(option, sizeof(option), "--model-repository=%s", extra);
}

static void remove_all(const char *const *path)
{
    for (; *path; path++) {
        EXPECT(remove(in_extra(*path)) == 0);
    }
}

#define REMOVE(...)                                                                                \
    do {                                                                                           \
        remove_all((const char *const[]){__VA_ARGS__, NULL});                                      \
        EXPECT(rmdir(extra) == 0);                                                                 \
    } while (0)

/* These cases want errors at load; the log has them, too. */
static void start(struct live *live, const char *more)
{
    live_start(live, (const char *const[]){option, more, NULL});
}

static void config_with_a_typo_makes_only_its_model_unavailable(void)
{
    struct live live;
    begin();
    add_folder("typo");
    add_file("typo/config.pbtxt", "backend: \"identity\"\nmax_batch_size: many\n");
    start(&live, NULL);
    struct answer answer = client_get(&live, "/v2/models/typo");
    EXPECT_INT(answer.status, 404);
    EXPECT_HAS(answer.body, "config.pbtxt:2: max_batch_size");
    EXPECT_INT(client_get(&live, "/v2/models/echo/ready").status, 200);
    answer = client_get(&live, "/v2/health/ready");
    EXPECT(answer.status != 200);
    EXPECT_HAS(answer.body, "typo");
    live_stop(&live);
    REMOVE("typo/config.pbtxt", "typo");
}

static void readiness_can_overlook_failed_models(void)
{
    struct live live;
    begin();
    add_folder("typo");
    add_file("typo/config.pbtxt", "max_batch_size: many\n");
    start(&live, "--strict-readiness=false");
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    live_stop(&live);
    REMOVE("typo/config.pbtxt", "typo");
}

static void model_in_two_repositories_is_served_from_neither(void)
{
    struct live live;
    begin();
    add_folder("echo");
    add_file("echo/config.pbtxt", "backend: \"identity\"");
    start(&live, NULL);
    struct answer answer = client_get(&live, "/v2/models/echo");
    EXPECT_INT(answer.status, 404);
    EXPECT_HAS(answer.body, "two repositories");
    EXPECT_INT(client_get(&live, "/v2/models/slow").status, 200);
    live_stop(&live);
    REMOVE("echo/config.pbtxt", "echo");
}

/* As if config file and command line both name it. */
static void repository_given_twice_is_one(void)
{
    struct live live;
    char again[120];
    begin();
    add_folder("twice");
    add_file("twice/config.pbtxt",
             "backend: \"identity\"\ninput { name: \"a\" data_type: TYPE_FP32 "
             "dims: 1 }\noutput { name: \"b\" data_type: TYPE_FP32 dims: 1 }");
    (void)snprintf(again, sizeof(again), "--model-repository=%s/.", extra);
    start(&live, again);
    EXPECT_INT(client_get(&live, "/v2/models/twice").status, 200);
    live_stop(&live);
    REMOVE("twice/config.pbtxt", "twice");
}

/* A missing folder must not keep the server from starting. */
static void model_to_load_that_is_not_there_harms_nobody(void)
{
    struct live live;
    begin();
    live_start(&live, (const char *const[]){option, "--model-control-mode=explicit",
                                            "--load-model=gone,echo", "--admin-on-http", NULL});
    EXPECT_INT(client_get(&live, "/v2/models/echo").status, 200);
    EXPECT_HAS(client_get(&live, "/v2/models/gone").body, "no repository has a model of this name");
    struct answer answer = client_get(&live, "/v2/health/ready");
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "gone");
    answer = client_post(&live, "/v2/repository/index");
    EXPECT_HAS(answer.body,
               "{\"name\":\"gone\",\"state\":\"UNAVAILABLE\",\"reason\":\"no repository");
    add_folder("gone");
    add_file("gone/config.pbtxt", "backend: \"identity\"\ninput { name: \"a\" data_type: TYPE_FP32 "
                                  "dims: 1 }\noutput { name: \"b\" data_type: TYPE_FP32 dims: 1 }");
    EXPECT_INT(client_post(&live, "/v2/repository/models/gone/load").status, 200);
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    live_stop(&live);
    REMOVE("gone/config.pbtxt", "gone");
}

static void damaged_model_file_is_named_and_harms_nobody(void)
{
    struct live live;
    begin();
    add_folder("torn");
    add_folder("torn/1");
    add_file("torn/1/model.tflite", "this is no model");
    start(&live, NULL);
    EXPECT_INT(client_get(&live, "/v2/models/torn").status, 404);
    EXPECT_INT(client_get(&live, "/v2/models/echo").status, 200);
    live_stop(&live);
    REMOVE("torn/1/model.tflite", "torn/1", "torn");
}

static void add_model(const char *path)
{
    struct ifd_bytes file = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_file_read(test_source("tests/data/repository/simple/1/model.tflite"), 1 << 20,
                             ifd_alloc_system(), &file, &err),
               &err);
    REQUIRE_OK(ifd_file_write(in_extra(path), file, &err), &err);
    ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)file.data, file.size);
}

#define STAND_IN(version, result)                                                                  \
    "\ninferd_model_stand_in{model=\"m\",version=\"" version "\",result=\"" result "\"} "

/* Repository with m/1, which loads, and m/2, which does not. */
static void begin_with_broken_version(void)
{
    begin();
    add_folder("m");
    add_folder("m/1");
    add_folder("m/2");
    add_model("m/1/model.tflite");
    add_file("m/2/model.tflite", "this is no model");
}

static void a_misspelt_parameter_is_named_with_the_nearest(void)
{
    struct live live;
    begin();
    add_folder("m");
    add_folder("m/1");
    add_file("m/config.pbtxt",
             "backend: \"identity\" input { name: \"x\" data_type: TYPE_FP32 dims: [ 1 ] }\n"
             "output { name: \"x\" data_type: TYPE_FP32 dims: [ 1 ] }\n"
             "parameters { key: \"threds\" value { string_value: \"1\" } }\n"
             "parameters { key: \"preset\" value { string_value: \"ssd\" } }\n");
    notes_clear();
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.log = notes_take});
    EXPECT(notes_have("config parameter is unknown model=m parameter=threds nearest=threads"));
    EXPECT(strstr(notes_text(), "parameter=preset") == NULL);
    live_stop(&live);
    REMOVE("m/config.pbtxt", "m/1", "m");
}

static void newest_version_that_loads_is_served_and_the_others_say_why(void)
{
    struct live live;
    begin_with_broken_version();
    notes_clear();
    live_start_as(&live, (const char *const[]){option, "--exit-on-error", NULL},
                  &(struct live_options){.log = notes_take});
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"1\"]");
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    struct answer index = client_post(&live, "/v2/repository/index");
    EXPECT_HAS(index.body, "{\"name\":\"m\",\"version\":\"1\",\"state\":\"READY\"}");
    EXPECT_HAS(index.body,
               "{\"name\":\"m\",\"version\":\"2\",\"state\":\"UNAVAILABLE\",\"reason\":\"");
    EXPECT(notes_have("model load failed model=m version=2 reason="));
    EXPECT(notes_have("older content serves model=m version=1 failed_version=2 reason="));
    EXPECT_INT(live_metric(&live, "\ninferd_models_outdated "), 1);
    EXPECT_INT(live_metric(&live, STAND_IN("1", "corrupt")), 1);
    EXPECT_INT(live_metric(&live, STAND_IN("1", "i/o")), 0);
    live_stop(&live);
    REMOVE("m/1/model.tflite", "m/2/model.tflite", "m/1", "m/2", "m");
}

/* Between the broken newest one and the one that serves. */
static void newer_version_that_loads_replaces_the_one_that_serves(void)
{
    struct live live;
    begin_with_broken_version();
    live_start_as(&live,
                  (const char *const[]){option, "--model-control-mode=explicit", "--load-model=m",
                                        "--admin-on-http", NULL},
                  &(struct live_options){.log = notes_take});
    add_folder("m/3");
    add_folder("m/4");
    add_model("m/3/model.tflite");
    add_file("m/4/model.tflite", "nor is this");
    struct answer answer = client_post(&live, "/v2/repository/models/m/load");
    EXPECT_INT(answer.status, 400); /* the newest was not loaded */
    EXPECT_HAS(answer.body, "failed to load 'm'");
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"3\"]");
    EXPECT_INT(live_metric(&live, STAND_IN("3", "corrupt")), 1);
    /* Repaired: no version stands in any more. */
    add_model("m/4/model.tflite");
    EXPECT_INT(client_post(&live, "/v2/repository/models/m/load").status, 200);
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"4\"]");
    EXPECT_INT(live_metric(&live, "\ninferd_models_outdated "), 0);
    EXPECT_INT(live_metric(&live, STAND_IN("4", "corrupt")), 0);
    /* Its own content is broken, and the newer one too: older ones do not take its place. */
    add_folder("m/5");
    add_file("m/5/model.tflite", "nor is this");
    add_file("m/4/model.tflite", "nor is this");
    EXPECT_INT(client_post(&live, "/v2/repository/models/m/load").status, 400);
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"4\"]");
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    EXPECT(remove(in_extra("m/4/model.tflite")) == 0 && remove(in_extra("m/4")) == 0);
    EXPECT_INT(client_post(&live, "/v2/repository/models/m/load").status, 400);
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"4\"]");
    live_stop(&live);
    REMOVE("m/1/model.tflite", "m/2/model.tflite", "m/3/model.tflite", "m/5/model.tflite", "m/1",
           "m/2", "m/3", "m/5", "m");
}

/* If all versions are wanted, nothing stands in for an older one that fails. */
static void wanted_version_that_fails_keeps_the_server_from_being_ready(void)
{
    struct live live;
    begin_with_broken_version();
    add_folder("m/3");
    add_model("m/3/model.tflite");
    add_file("m/config.pbtxt", "version_policy { all {} }");
    start(&live, NULL);
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"1\",\"3\"]");
    struct answer answer = client_get(&live, "/v2/health/ready");
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "version 2 is not ready");
    EXPECT_INT(live_metric(&live, "\ninferd_models_outdated "), 0);
    live_stop(&live);
    /* "latest": as many as are wanted serve. */
    add_file("m/config.pbtxt", "version_policy { latest { num_versions: 2 } }");
    start(&live, NULL);
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"1\",\"3\"]");
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    live_stop(&live);
    /* "specific": the named ones serve. */
    add_file("m/config.pbtxt", "version_policy { specific { versions: [ 1 ] } }");
    start(&live, NULL);
    EXPECT_HAS(client_get(&live, "/v2/models/m").body, "\"versions\":[\"1\"]");
    EXPECT(strstr(client_post(&live, "/v2/repository/index").body, "\"version\":\"3\"") == NULL);
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    live_stop(&live);
    REMOVE("m/1/model.tflite", "m/2/model.tflite", "m/3/model.tflite", "m/config.pbtxt", "m/1",
           "m/2", "m/3", "m");
}

/* A FIFO without a writer, a folder, a socket: not the server's fault. */
static void model_file_that_is_no_file_is_a_bad_request(void)
{
    struct live live;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    begin();
    for (const char *const *name = (const char *const[]){"fifo", "folder", "socket", NULL}; *name;
         name++) {
        char version[40];
        (void)snprintf(version, sizeof(version), "%s/1", *name);
        add_folder(*name);
        add_folder(version);
    }
    REQUIRE(mkfifo(in_extra("fifo/1/model.tflite"), 0600) == 0);
    add_folder("folder/1/model.tflite");
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket/1/model.tflite", extra);
    REQUIRE(bind(listening, (const struct sockaddr *)&address, sizeof(address)) == 0);
    live_start(&live, (const char *const[]){option, "--model-control-mode=explicit",
                                            "--admin-on-http", NULL});
    struct answer answer = client_post(&live, "/v2/repository/models/fifo/load");
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(answer.body, "failed to load 'fifo', cannot read");
    EXPECT_HAS(answer.body, "model.tflite\\\": not a regular file");
    answer = client_post(&live, "/v2/repository/models/folder/load");
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(answer.body, "not a regular file");
    EXPECT_INT(client_post(&live, "/v2/repository/models/socket/load").status, 400);
    live_stop(&live);
    (void)close(listening);
    REMOVE("fifo/1/model.tflite", "fifo/1", "fifo", "folder/1/model.tflite", "folder/1", "folder",
           "socket/1/model.tflite", "socket/1", "socket");
}

static void folders_that_are_no_models_are_passed_over(void)
{
    struct live live;
    begin();
    add_folder("notes");
    add_file("notes/README.md", "nothing to serve");
    add_file("stray.txt", "nor this");
    start(&live, NULL);
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    EXPECT_INT(client_get(&live, "/v2/models/notes").status, 404);
    live_stop(&live);
    REMOVE("notes/README.md", "notes", "stray.txt");
}

/* The index as with POST /v2/repository/index. */
static struct answer index_of(const struct live *live)
{
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send_text(fd, "POST /v2/repository/index HTTP/1.1\r\nHost: a\r\nContent-Length: "
                         "0\r\n\r\n");
    struct answer answer = client_read(fd);
    (void)close(fd);
    EXPECT_INT(answer.status, 200);
    return answer;
}

static int post_control(const struct live *live, const char *model, const char *verb)
{
    char text[200];
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    (void)snprintf(text, sizeof(text),
                   "POST /v2/repository/models/%s/%s HTTP/1.1\r\nHost: a\r\nContent-Length: "
                   "0\r\n\r\n",
                   model, verb);
    client_send_text(fd, text);
    int status = client_read(fd).status;
    (void)close(fd);
    return status;
}

static const char identity_config[] =
    "backend: \"identity\" input { name: \"IN\" data_type: TYPE_FP32 dims: -1 } "
    "output { name: \"OUT\" data_type: TYPE_FP32 dims: -1 } max_batch_sise: 3";

static atomic_int typo_warnings;

static void count_typos(void *context, enum ifd_log_level level, const char *sentence,
                        const char *fields)
{
    (void)context;
    (void)sentence;
    if (level == IFD_LOG_WARN && strstr(fields, "max_batch_sise")) {
        atomic_fetch_add(&typo_warnings, 1);
    }
}

static void explicit_index_follows_the_folders(void)
{
    struct live live;
    begin();
    live_start_as(
        &live,
        (const char *const[]){option, "--model-control-mode=explicit", "--admin-on-http", NULL},
        &(struct live_options){.log = count_typos});
    EXPECT_HAS(index_of(&live).body, "{\"name\":\"echo\"}");
    EXPECT(strstr(index_of(&live).body, "late") == NULL);
    add_folder("late");
    add_folder("late/1");
    add_folder("late/2");
    add_file("late/config.pbtxt", identity_config);
    EXPECT_HAS(index_of(&live).body, "{\"name\":\"late\"}");
    EXPECT_INT(post_control(&live, "late", "load"), 200);
    EXPECT_INT(atomic_load(&typo_warnings), 1); /* one typo, one warning */
    EXPECT_HAS(index_of(&live).body, "{\"name\":\"late\",\"version\":\"2\",\"state\":\"READY\"}");
    remove_all((const char *const[]){"late/config.pbtxt", "late/1", "late/2", "late", NULL});
    EXPECT_HAS(index_of(&live).body, "\"late\""); /* it serves on */
    EXPECT_INT(post_control(&live, "late", "unload"), 200);
    EXPECT(strstr(index_of(&live).body, "late") == NULL);
    live_stop(&live);
    EXPECT(rmdir(extra) == 0);
}

/* Loads a model "warm" of two inputs with this model_warmup; returns the answer. */
static struct answer load_warm(struct live *live, const char *warm_up)
{
    char text[1500];
    (void)snprintf(text, sizeof(text),
                   "backend: \"identity\" max_batch_size: 4 "
                   "input { name: \"A\" data_type: TYPE_FP32 dims: 2 } "
                   "input { name: \"B\" data_type: TYPE_STRING dims: -1 } "
                   "output { name: \"C\" data_type: TYPE_FP32 dims: 2 } "
                   "output { name: \"D\" data_type: TYPE_STRING dims: -1 } model_warmup { %s }",
                   warm_up);
    add_file("warm/config.pbtxt", text);
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send_text(fd, "POST /v2/repository/models/warm/load HTTP/1.1\r\nHost: a\r\n"
                         "Content-Length: 0\r\n\r\n");
    struct answer answer = client_read(fd);
    (void)close(fd);
    return answer;
}

static void warm_up_samples_run_before_a_model_serves(void)
{
    static const char a[] =
        "inputs { key: \"A\" value { data_type: TYPE_FP32 dims: 2 random_data: true } }";
    static const struct {
        const char *more, *refusal; /* NULL: it loads */
    } cases[] = {
        {"name: \"s\" batch_size: 3 count: 2 inputs { key: \"B\" value { data_type: TYPE_STRING "
         "dims: 1 "
         "input_data_file: \"text\" } }",
         NULL},
        {"inputs { key: \"B\" value { data_type: TYPE_STRING dims: 2 zero_data: true } }", NULL},
        {"name: \"s\" batch_size: 5 inputs { key: \"B\" value { data_type: TYPE_STRING dims: 1 } }",
         "model_warmup \\\"s\\\": batch_size 5 is more than 4"},
        {"name: \"s\"", "input \\\"B\\\" is missing"},
        {"inputs { key: \"B\" value { data_type: TYPE_INT8 dims: 1 } }",
         "is BYTES in the model, not INT8"},
        {"inputs { key: \"B\" value { data_type: TYPE_STRING dims: [1, 2] } }",
         "its dims are not those"},
        {"inputs { key: \"B\" value { data_type: TYPE_STRING dims: 1 } } "
         "inputs { key: \"Z\" value { data_type: TYPE_STRING dims: 1 } }",
         "it has 3 inputs, 2 of them"},
        {"inputs { key: \"B\" value { data_type: TYPE_STRING dims: 1 input_data_file: \"none\" } }",
         "warmup/none"},
        {"inputs { key: \"B\" value { data_type: TYPE_STRING dims: 1 input_data_file: "
         "\"../config.pbtxt\" "
         "} }",
         "is not in the folder warmup"},
    };
    struct live live;
    begin();
    add_folder("warm");
    add_folder("warm/1");
    add_folder("warm/warmup");
    add_file("warm/warmup/text",
             "abcd"); /* four bytes: no string of four, but the identity does not look */
    live_start_as(
        &live,
        (const char *const[]){option, "--model-control-mode=explicit", "--admin-on-http", NULL},
        &(struct live_options){.log = count_typos});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1000];
        (void)snprintf(text, sizeof(text), "%s %s", a, cases[i].more);
        struct answer answer = load_warm(&live, text);
        EXPECT_INT(answer.status, cases[i].refusal ? 400 : 200);
        EXPECT_HAS(answer.body, cases[i].refusal ? cases[i].refusal : "");
        EXPECT_INT(client_get(&live, "/v2/models/warm/ready").status, 200); /* the old one stays */
    }
    EXPECT_HAS(
        client_get(&live, "/v2/models/warm/config").body,
        "\"model_warmup\":[{\"name\":\"\",\"batch_size\":1,\"inputs\":{\"A\":{\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[2],\"random_data\":true},\"B\":{\"data_type\":\"TYPE_STRING\","
        "\"dims\":[2],\"zero_data\":true}},\"count\":1}]");
    live_stop(&live);
    REMOVE("warm/warmup/text", "warm/warmup", "warm/config.pbtxt", "warm/1", "warm");
}

/* Each load takes half a second on the only thread; the first one runs when the server stops. */
static void loads_that_wait_are_given_up_when_the_server_stops(void)
{
    enum { LOADS = 20 };
    static const char config[] =
        "backend: \"identity\" input { name: \"IN\" data_type: TYPE_FP32 dims: 1 } "
        "output { name: \"OUT\" data_type: TYPE_FP32 dims: 1 } "
        "parameters { key: \"execute_delay_ms\" value { string_value: \"500\" } } "
        "model_warmup { inputs { key: \"IN\" value { data_type: TYPE_FP32 dims: 1 "
        "zero_data: true } } }";
    struct live live;
    int fd[LOADS], given_up = 0;
    char path[100];
    begin();
    for (int i = 0; i < LOADS; i++) {
        (void)snprintf(path, sizeof(path), "m%d", i);
        add_folder(path);
        (void)snprintf(path, sizeof(path), "m%d/config.pbtxt", i);
        add_file(path, config);
    }
    live_start(&live,
               (const char *const[]){option, "--model-control-mode=explicit", "--admin-on-http",
                                     "--model-load-thread-count=1", NULL});
    for (int i = 0; i < LOADS; i++) {
        char text[200];
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        (void)snprintf(text, sizeof(text),
                       "POST /v2/repository/models/m%d/load HTTP/1.1\r\nHost: a\r\n"
                       "Content-Length: 0\r\n\r\n",
                       i);
        client_send_text(fd[i], text);
    }
    (void)usleep(100000);
    ifd_server_stop(live.server);
    for (int i = 0; i < LOADS; i++) {
        struct answer answer = client_read(fd[i]);
        EXPECT(answer.status == 200 || answer.status == 503);
        given_up += answer.status == 503 && strstr(answer.body, "the server is stopping");
        (void)close(fd[i]);
    }
    EXPECT(given_up > 0);
    live_join(&live);
    for (int i = 0; i < LOADS; i++) {
        (void)snprintf(path, sizeof(path), "m%d/config.pbtxt", i);
        remove_all((const char *const[]){path, NULL});
        (void)snprintf(path, sizeof(path), "m%d", i);
        remove_all((const char *const[]){path, NULL});
    }
    EXPECT(rmdir(extra) == 0);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_TRIM false
#elif defined(__has_feature)
#define HAS_TRIM                                                                                   \
    (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) &&                      \
     !__has_feature(memory_sanitizer))
#else
#define HAS_TRIM true
#endif

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    REQUIRE(in != NULL);
    REQUIRE(fscanf(in, "%ld %ld", &pages, &resident) == 2);
    (void)fclose(in);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Chunks are too small to be mapped separately, and the last one stays, so that nothing is released
 * by itself. */
static void memory_goes_back_to_the_system_with_a_model(void)
{
    enum { PIECES = 512, PIECE_BYTES = 64 << 10 };
    const struct ifd_alloc *alloc = ifd_alloc_system();
    static void *piece[PIECES];
    struct live live;
    if (!HAS_TRIM) {
        test_does_not_apply("a sanitizer keeps memory as it pleases");
        return;
    }
    live_start(&live, (const char *const[]){"--model-control-mode=explicit", "--load-model=echo",
                                            "--admin-on-http", NULL});
    for (size_t i = 0; i < PIECES; i++) {
        piece[i] = ifd_acquire(alloc, PIECE_BYTES);
        REQUIRE(piece[i] != NULL);
        memset(piece[i], 1, PIECE_BYTES);
    }
    for (size_t i = 0; i + 1 < PIECES; i++) {
        ifd_release(alloc, piece[i], PIECE_BYTES);
    }
    const long before_kib = resident_kib();
    EXPECT_INT(client_post(&live, "/v2/repository/models/echo/unload").status, 200);
    live_stop(&live);
    EXPECT(before_kib - resident_kib() > PIECES / 2 * PIECE_BYTES / 1024);
    ifd_release(alloc, piece[PIECES - 1], PIECE_BYTES);
}

/* Many clients in the middle of bodies. The last one stays, and so does the end of the heap. */
static void memory_goes_back_to_the_system_with_a_crowd(void)
{
    enum { CROWD = 800, BODY_BYTES = 48 << 10 };
    static char text[BODY_BYTES];
    static int fd[CROWD];
    struct live live;
    if (!HAS_TRIM) {
        test_does_not_apply("a sanitizer keeps memory as it pleases");
        return;
    }
    live_start(&live, NULL);
    const int head = snprintf(
        text, sizeof(text),
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", BODY_BYTES);
    memset(text + head, ' ', sizeof(text) - (size_t)head);
    const long before_kib = resident_kib();
    for (int i = 0; i < CROWD; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        client_send(fd[i], text, sizeof(text));
    }
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    const long most_kib = resident_kib() - before_kib;
    EXPECT(most_kib > (long)CROWD * BODY_BYTES / 1024);
    for (int i = 0; i + 1 < CROWD; i++) {
        (void)close(fd[i]);
    }
    for (int waited = 0; waited < 60000 && resident_kib() - before_kib > most_kib / 4;
         waited += 100) {
        (void)usleep(100000);
    }
    EXPECT(resident_kib() - before_kib <= most_kib / 4);
    (void)close(fd[CROWD - 1]);
    live_stop(&live);
}

static void send_with_priority(int fd, int priority)
{
    char text[600], body[300];
    (void)snprintf(body, sizeof(body),
                   "{\"parameters\":{\"priority\":%d},\"inputs\":[{\"name\":\"IN\",\"shape\":[1,1],"
                   "\"datatype\":\"FP32\",\"data\":[1]}]}",
                   priority);
    (void)snprintf(text, sizeof(text),
                   "POST /v2/models/levels/infer HTTP/1.1\r\nHost: a\r\nContent-Length: "
                   "%zu\r\n\r\n%s",
                   strlen(body), body);
    client_send_text(fd, text);
}

/* One request of level 2 may wait, any number of level 1; a running one does not wait. */
static void priority_level_has_a_queue_size_of_its_own(void)
{
    struct live live;
    int fd[5];
    begin();
    add_folder("levels");
    add_file("levels/config.pbtxt",
             "backend: \"identity\" max_batch_size: 1 "
             "input { name: \"IN\" data_type: TYPE_FP32 dims: 1 } "
             "output { name: \"OUT\" data_type: TYPE_FP32 dims: 1 } "
             "parameters { key: \"execute_delay_ms\" value { string_value: \"500\" } } "
             "dynamic_batching { priority_levels: 2 default_priority_level: 1 "
             "priority_queue_policy { key: 2 value { max_queue_size: 1 } } }");
    start(&live, NULL);
    EXPECT_HAS(client_get(&live, "/v2/models/levels/config").body,
               "\"priority_queue_policy\":{\"2\":{\"timeout_action\":\"REJECT\","
               "\"default_timeout_microseconds\":0,\"allow_timeout_override\":false,"
               "\"max_queue_size\":1}}");
    static const int priority[] = {1, 2, 2, 1, 1};
    static const int status[] = {200, 200, 503, 200, 200};
    for (int i = 0; i < 5; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        send_with_priority(fd[i], priority[i]);
        (void)usleep(60000); /* they come in this order */
    }
    for (int i = 0; i < 5; i++) {
        EXPECT_INT(client_read(fd[i]).status, status[i]);
        (void)close(fd[i]);
    }
    live_stop(&live);
    REMOVE("levels/config.pbtxt", "levels");
}

static void ignore(void *context, enum ifd_log_level level, const char *sentence,
                   const char *fields)
{
    (void)context;
    (void)level;
    (void)sentence;
    (void)fields;
}

/* Starts a server that must fail; part: text of the reason. */
static void expect_no_start(int argc, const char *const *argv, enum ifd_code want, const char *part)
{
    struct ifd_log log = {.levels = IFD_LOG_UP_TO(IFD_LOG_ERROR), .write = ignore};
    struct ifd_config config;
    struct ifd_err err = {0};
    struct ifd_server *server = NULL;
    uint32_t count = 0;
    REQUIRE_OK(ifd_config_parse(argc, (char **)(uintptr_t)argv, &config, &err), &err);
    const struct ifd_server_options options = {.alloc = ifd_alloc_system(),
                                               .config = &config,
                                               .log = &log,
                                               .program_version = "0",
                                               .backends = ifd_backends_builtin(&count),
                                               .backend_count = 1};
    EXPECT_CODE(ifd_server_create(&options, &server, &err), want, &err);
    EXPECT_HAS(err.text, part);
}

static void labels_that_do_not_fit_are_named(void)
{
    struct live live;
    begin();
    for (int i = 0; i < 2; i++) {
        add_folder(i == 0 ? "few" : "fit");
        add_folder(i == 0 ? "few/1" : "fit/1");
        add_file(i == 0 ? "few/labels.txt" : "fit/labels.txt", "one\ntwo\nthree\n");
        add_file(
            i == 0 ? "few/config.pbtxt" : "fit/config.pbtxt",
            i == 0
                ? "backend: \"identity\" input { name: \"x\" data_type: TYPE_FP32 dims: [ 9 ] }\n"
                  "output { name: \"y\" data_type: TYPE_FP32 dims: [ 9 ]"
                  " label_filename: \"labels.txt\" }\n"
                : "backend: \"identity\" input { name: \"x\" data_type: TYPE_FP32 dims: [ 4 ] }\n"
                  "output { name: \"y\" data_type: TYPE_FP32 dims: [ 4 ]"
                  " label_filename: \"labels.txt\" }\n");
    }
    notes_clear();
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.log = notes_take});
    EXPECT(notes_have("labels do not fit the output model=few file=labels.txt labels=3 output=y "
                      "elements=9"));
    EXPECT(strstr(notes_text(), "model=fit file=") == NULL);
    live_stop(&live);
    REMOVE("few/labels.txt", "few/config.pbtxt", "few/1", "few", "fit/labels.txt",
           "fit/config.pbtxt", "fit/1", "fit");
}

static void model_files_in_the_wrong_place_are_named(void)
{
    struct live live;
    begin();
    add_model("net.tflite");
    add_file("net.onnx.txt", "a note");
    add_folder("other");
    add_model("other/x.onnx");
    add_folder("2");
    add_model("2/model.tflite");
    add_folder("good");
    add_folder("good/1");
    add_model("good/1/model.tflite");
    notes_clear();
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.log = notes_take});
    EXPECT(notes_have("file=2/model.tflite put_it_into=NAME/1/model.tflite"));
    EXPECT(notes_have("file=net.tflite put_it_into=net/1/model.tflite"));
    EXPECT(notes_have("file=other/x.onnx put_it_into=other/1/model.onnx"));
    EXPECT(strstr(notes_text(), "file=net.onnx.txt") == NULL);
    EXPECT(strstr(notes_text(), "file=good") == NULL);
    live_stop(&live);
    REMOVE("2/model.tflite", "2", "net.tflite", "net.onnx.txt", "other/x.onnx", "other",
           "good/1/model.tflite", "good/1", "good");
}

/* Beside a repository; both are ready when the server says so. */
static void a_model_file_is_served_by_itself(void)
{
    struct live live;
    char file[120];
    begin();
    add_folder("m");
    add_folder("m/1");
    add_model("m/1/model.tflite");
    add_model("my-net.v2.tflite");
    (void)snprintf(file, sizeof(file), "--model-repository=%s/my-net.v2.tflite", extra);
    live_start(&live, (const char *const[]){option, file, NULL});
    EXPECT_HAS(client_get(&live, "/v2/models/my-net.v2").body, "\"versions\":[\"1\"]");
    EXPECT_INT(client_get(&live, "/v2/models/m/ready").status, 200);
    EXPECT_HAS(index_of(&live).body, "{\"name\":\"my-net.v2\",\"version\":\"1\"");
    EXPECT_INT(client_get(&live, "/v2/models/my-net.v2/ready").status, 200); /* it stays */
    live_stop(&live);
    expect_no_start(4,
                    (const char *const[]){"--http-port=0", "--metrics-port=0", file,
                                          "--model-control-mode=poll"},
                    IFD_INVALID, "is a file, and --model-control-mode=poll watches folders");
    add_file("a b.tflite", "");
    (void)snprintf(file, sizeof(file), "%s/a b.tflite", extra);
    expect_no_start(3, (const char *const[]){"--http-port=0", "--metrics-port=0", file},
                    IFD_INVALID, "\"a b\" can be no model's name");
    add_file("notes.txt", "");
    (void)snprintf(file, sizeof(file), "%s/notes.txt", extra);
    expect_no_start(3, (const char *const[]){"--http-port=0", "--metrics-port=0", file},
                    IFD_INVALID, "neither a folder nor a .tflite or .onnx file");
    REMOVE("notes.txt", "a b.tflite", "my-net.v2.tflite", "m/1/model.tflite", "m/1", "m");
}

static void what_cannot_start_says_why(void)
{
    struct live live;
    char port[32];
    begin();
    start(&live, NULL);
    (void)snprintf(port, sizeof(port), "--http-port=%u", live.port);
    expect_no_start(3, (const char *const[]){extra, port, "--metrics-port=0"}, IFD_EXISTS,
                    "already in use");
    live_stop(&live);
    expect_no_start(2, (const char *const[]){"--http-port=0", "--metrics-port=0"}, IFD_INVALID,
                    "no model repository");
    expect_no_start(3,
                    (const char *const[]){"--http-port=0", "--metrics-port=0", "/nowhere/at/all"},
                    IFD_NOT_FOUND, "/nowhere/at/all");
    expect_no_start(
        4, (const char *const[]){"--http-port=0", "--metrics-port=0", extra, "--backend=CpuAbacus"},
        IFD_INVALID, "CpuAbacus");
    EXPECT(rmdir(extra) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(config_with_a_typo_makes_only_its_model_unavailable),
        T(readiness_can_overlook_failed_models),
        T(model_in_two_repositories_is_served_from_neither),
        T(repository_given_twice_is_one),
        T(model_to_load_that_is_not_there_harms_nobody),
        T(damaged_model_file_is_named_and_harms_nobody),
        T(a_misspelt_parameter_is_named_with_the_nearest),
        T(newest_version_that_loads_is_served_and_the_others_say_why),
        T(newer_version_that_loads_replaces_the_one_that_serves),
        T(wanted_version_that_fails_keeps_the_server_from_being_ready),
        T(model_file_that_is_no_file_is_a_bad_request),
        T(folders_that_are_no_models_are_passed_over),
        T(explicit_index_follows_the_folders),
        T(memory_goes_back_to_the_system_with_a_model),
        T(memory_goes_back_to_the_system_with_a_crowd),
        T(loads_that_wait_are_given_up_when_the_server_stops),
        T(priority_level_has_a_queue_size_of_its_own),
        T(warm_up_samples_run_before_a_model_serves),
        T(labels_that_do_not_fit_are_named),
        T(model_files_in_the_wrong_place_are_named),
        T(a_model_file_is_served_by_itself),
        T(what_cannot_start_says_why),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
