/* Index, load, unload, statistics, shared memory. */
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include <string.h>

static struct loopback loop;
static struct loopback_answer answer;

static void post(const char *path, const char *body, int status, const char *part)
{
    loopback_post(&loop, path, body, &answer);
    EXPECT_INT(answer.status, status);
    EXPECT_HAS(loopback_text(&answer), part);
    loopback_release(&answer);
}

static void get(const char *path, int status, const char *part)
{
    loopback_get(&loop, path, &answer);
    EXPECT_INT(answer.status, status);
    EXPECT_HAS(loopback_text(&answer), part);
    loopback_release(&answer);
}

static void index_lists_versions_states_reasons_and_retries(void)
{
    loopback_init(&loop, ifd_alloc_system());
    post("/v2/repository/index", "", 200,
         "[{\"name\":\"broken\",\"state\":\"UNAVAILABLE\",\"reason\":\"config.pbtxt:1: expected a "
         "number\",\"attempts\":\"1\",\"next_retry\":\"never\"},{\"name\":\"distant\",\"state\":"
         "\"UNAVAILABLE\",\"reason\":\"read: I/O error\",\"attempts\":\"3\",\"next_retry\":\"8\"},"
         "{\"name\":\"simple\",\"version\":\"1\",\"state\":\"READY\"},{\"name\":"
         "\"simple\",\"version\":\"3\",\"state\":\"READY\"}");
    post("/v2/repository/index", "{\"ready\":true}", 200, "[{\"name\":\"simple\"");
    post("/v2/repository/index", " {\"ready\":false,\"other\":[1]} ", 200, "broken");
    post("/v2/repository/index", "{\"ready\":null}", 200, "broken");
    post("/v2/repository/index", "{\"ready\":1}", 400, "true or false");
    post("/v2/repository/index", "{\"ready\":true,\"ready\":false}", 400, "'ready' comes twice");
    post("/v2/repository/index", "[]", 400, "an object");
    post("/v2/repository/mine/index", "{\"ready\":true}", 200, "[{\"name\":\"simple\"");
    loopback_finish(&loop);
}

static void load_and_unload_are_answered_when_they_ended(void)
{
    loopback_init(&loop, ifd_alloc_system());
    post("/v2/repository/models/classify/unload", "{\"parameters\":{\"unload_dependents\":true}}",
         200, "");
    EXPECT(loop.fake.last_dependents);
    get("/v2/models/classify", 404, "has no available versions");
    post("/v2/repository/models/classify/load", "", 200, "");
    get("/v2/models/classify", 200, "PROB");
    post("/v2/repository/models/nope/load", "", 400, "failed to load");
    post("/v2/repository/models/nope/unload", "", 404, "no such model");
    post("/v2/repository/mine/models/classify/load", "", 501, "'repository_name'");
    post("/v2/repository/mine/models/classify/unload", "", 501, "'repository_name'");
    loopback_finish(&loop);
}

static void load_brings_config_and_files(void)
{
    loopback_init(&loop, ifd_alloc_system());
    post("/v2/repository/models/classify/load",
         "{\"parameters\":{\"config\":\"{\\\"max_batch_size\\\":2}\","
         "\"file:1/model.tflite\":\"AAECA/8=\"}}",
         200, "");
    EXPECT_TEXT(loop.fake.last_config, "{\"max_batch_size\":2}");
    EXPECT_INT(loop.fake.last_file_count, 1);
    EXPECT_BYTES(loop.fake.last_file, "\0\1\2\3\xff", 5);
    post("/v2/repository/models/classify/load", "{\"parameters\":{\"file:1/m\":\"AAEC\"}}", 400,
         "without parameter 'config'");
    post("/v2/repository/models/classify/load",
         "{\"parameters\":{\"config\":\"{}\",\"file:1/m\":\"A*EC\"}}", 400, "not base64");
    post("/v2/repository/models/classify/load",
         "{\"parameters\":{\"config\":\"{}\",\"file:1/m\":\"AAE\"}}", 400, "not base64");
    post("/v2/repository/models/classify/load", "{\"parameters\":{\"nope\":1}}", 400,
         "unknown load parameter 'nope'");
    post("/v2/repository/models/classify/unload", "{\"parameters\":{\"nope\":1}}", 400,
         "unknown unload parameter");
    post("/v2/repository/models/classify/load", "{", 400, "JSON ends");
    loopback_finish(&loop);
}

static void members_of_control_come_once_and_may_be_null(void)
{
    static const char load[] = "/v2/repository/models/classify/load";
    static const char unload[] = "/v2/repository/models/classify/unload";
    loopback_init(&loop, ifd_alloc_system());
    post(load, "{\"parameters\":null}", 200, "");
    post(load, "{\"parameters\":{\"config\":null}}", 200, "");
    post(load, "{\"parameters\":{\"config\":\"{}\",\"config\":\"{}\"}}", 400,
         "'config' comes twice");
    post(load, "{\"parameters\":{},\"parameters\":{}}", 400, "'parameters' comes twice");
    post(unload, "{\"parameters\":{},\"parameters\":{}}", 400, "'parameters' comes twice");
    post(unload, "{\"parameters\":{\"unload_dependents\":true,\"unload_dependents\":true}}", 400,
         "'unload_dependents' comes twice");
    post(unload, "{\"parameters\":[]}", 400, "an object");
    get("/v2/models/classify", 200, "PROB");
    post(unload, "{\"parameters\":{\"unload_dependents\":null}}", 200, "");
    EXPECT(!loop.fake.last_dependents);
    post(load, "", 200, "");
    post(unload, "{\"parameters\":null}", 200, "");
    get("/v2/models/classify", 404, "has no available versions");
    loopback_finish(&loop);
}

static void without_control_load_and_unload_are_not_allowed(void)
{
    REQUIRE(loopback_init_with(&loop, ifd_alloc_system(), fake_service_ops_without_control(),
                               1 << 20, true));
    loop.fake.control_mode = "poll";
    loopback_post(&loop, "/v2/repository/models/classify/load", "", &answer);
    EXPECT_INT(answer.status, 400); /* asking again does not help */
    EXPECT(!loopback_header(&answer, "Retry-After"));
    EXPECT_TEXT(loopback_text(&answer),
                "{\"error\":\"explicit model load / unload is not allowed: the server runs with "
                "--model-control-mode=poll, it takes --model-control-mode=explicit\"}");
    loopback_release(&answer);
    loop.fake.control_mode = "none";
    post("/v2/repository/models/classify/unload", "", 400, "runs with --model-control-mode=none");
    get("/v2/models/stats", 501, "statistics");
    loopback_finish(&loop);
}

static void an_abandoned_load_is_waited_for(void)
{
    struct loopback_exchange exchange;
    loopback_init(&loop, ifd_alloc_system());
    loopback_begin(&loop, "POST", "/v2/repository/models/classify/load", NULL, "", 0, &exchange);
    EXPECT(!exchange.is_answered);
    EXPECT(!ifd_api_abandon(loop.api, &exchange.http));
    fake_service_run(&loop.fake);
    EXPECT(exchange.is_answered);
    loopback_end(&exchange, NULL);
    loopback_finish(&loop);
}

static void statistics_have_the_members_of_triton(void)
{
    loopback_init(&loop, ifd_alloc_system());
    get("/v2/models/classify/stats", 200,
        "{\"model_stats\":[{\"name\":\"classify\",\"version\":\"1\",\"last_inference\":0,"
        "\"inference_count\":7,\"execution_count\":5,\"inference_stats\":{\"success\":{\"count\":5,"
        "\"ns\":12345},\"fail\":{\"count\":0,\"ns\":0},\"queue\":{\"count\":0,\"ns\":0},"
        "\"compute_input\":{\"count\":0,\"ns\":0},\"compute_infer\":{\"count\":0,\"ns\":0},"
        "\"compute_output\":{\"count\":0,\"ns\":0},\"cache_hit\":{\"count\":0,\"ns\":0},"
        "\"cache_miss\":{\"count\":0,\"ns\":0}},\"response_stats\":{},\"batch_stats\":[{"
        "\"batch_size\":1,\"compute_input\":{\"count\":0,\"ns\":0},\"compute_infer\":{\"count\":5,"
        "\"ns\":99},\"compute_output\":{\"count\":0,\"ns\":0}},{\"batch_size\":3,"
        "\"compute_input\":{\"count\":0,\"ns\":0},\"compute_infer\":{\"count\":1,\"ns\":0},"
        "\"compute_output\":{\"count\":0,\"ns\":0}}],\"memory_usage\":[]}]}");
    get("/v2/models/simple/versions/3/stats", 200, "[{\"name\":\"simple\",\"version\":\"3\"");
    get("/v2/models/stats", 200, "\"name\":\"identity\"");
    get("/v2/models/nope/stats", 400, "requested model 'nope' is not available");
    loopback_finish(&loop);
}

static void shared_memory_is_refused_and_empty(void)
{
    loopback_init(&loop, ifd_alloc_system());
    get("/v2/systemsharedmemory/status", 200, "[]");
    get("/v2/cudasharedmemory/status", 200, "[]");
    get("/v2/systemsharedmemory/region/r/status", 404, "shared memory region");
    post("/v2/systemsharedmemory/region/r/register", "{}", 501, "not supported");
    post("/v2/cudasharedmemory/region/r/register", "{}", 501, "not supported");
    post("/v2/systemsharedmemory/unregister", "", 200, "");
    post("/v2/systemsharedmemory/region/r/unregister", "", 200, "");
    loopback_finish(&loop);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(index_lists_versions_states_reasons_and_retries),
        T(load_and_unload_are_answered_when_they_ended),
        T(load_brings_config_and_files),
        T(members_of_control_come_once_and_may_be_null),
        T(without_control_load_and_unload_are_not_allowed),
        T(an_abandoned_load_is_waited_for),
        T(statistics_have_the_members_of_triton),
        T(shared_memory_is_refused_and_empty),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
