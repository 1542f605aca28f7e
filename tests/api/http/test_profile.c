/* A measured run, and the page that asks for it. */
#include <string.h>

#include "tests/support/loopback.h"
#include "tests/support/test.h"

#define PATH "/v2/models/simple/profile"

static void post(struct loopback *loop, const char *path, int status, const char *part)
{
    struct loopback_answer answer;
    loopback_post(loop, path, "", &answer);
    EXPECT_INT(answer.status, status);
    EXPECT_HAS(loopback_text(&answer), part);
    loopback_release(&answer);
}

static void answer_has_the_time_of_each_step_and_the_plan(void)
{
    struct loopback loop;
    loopback_init(&loop, ifd_alloc_system());
    post(&loop, PATH, 200, "{\"model_name\":\"simple\",\"model_version\":\"3\",\"run_ns\":");
    post(&loop, PATH, 200, ",\"step_ns\":[100,200],\"plan\":{\"steps\":[{},{}]}}");
    post(&loop, "/v2/models/simple/versions/1/profile", 200, "\"model_version\":\"1\"");
    loopback_finish(&loop);
}

static void what_cannot_be_measured_is_named(void)
{
    struct loopback loop;
    struct loopback_answer answer;
    loopback_init(&loop, ifd_alloc_system());
    post(&loop, "/v2/models/classify/profile", 501, "model 'classify' has no steps");
    post(&loop, "/v2/models/nope/profile", 404, "Request for unknown model");
    post(&loop, "/v2/models/simple/versions/2/profile", 404, "Request for unknown model");
    loopback_get(&loop, PATH, &answer);
    EXPECT_INT(answer.status, 405);
    loopback_release(&answer);
    loop.fake.fail_run = IFD_DEADLINE;
    post(&loop, PATH, 503, "the run failed");
    loop.fake.fail_run = IFD_OK;
    loop.fake.refuse_submit = IFD_BUSY;
    post(&loop, PATH, 503, "queue size");
    loopback_finish(&loop);
    REQUIRE(loopback_init_with(&loop, ifd_alloc_system(), fake_service_ops_without_control(), 4096,
                               true));
    post(&loop, PATH, 501, "this server measures no steps");
    loopback_finish(&loop);
}

static void get(const struct ifd_service_ops *ops, bool admin_on_http, const char *path, int status,
                const char *part, const char *missing)
{
    struct loopback loop;
    struct loopback_answer answer;
    REQUIRE(loopback_init_with(&loop, ifd_alloc_system(), ops, 4096, admin_on_http));
    loopback_get(&loop, path, &answer);
    EXPECT_INT(answer.status, status);
    EXPECT_HAS(loopback_text(&answer), part);
    EXPECT(!strstr(loopback_text(&answer), missing));
    loopback_release(&answer);
    loopback_finish(&loop);
}

static void metadata_say_where_models_can_be_loaded(void)
{
    get(fake_service_ops(), true, "/v2", 200, "\"may_load\":true", "missing");
    get(fake_service_ops(), false, "/v2", 200, "\"name\"", "may_load");
    get(fake_service_ops_without_control(), true, "/v2", 200, "\"name\"", "may_load");
}

/* tests/acceptance/test_console.py looks at it with a browser. */
static void console_is_a_page_with_a_policy(void)
{
    struct loopback loop;
    struct loopback_answer answer;
    loopback_init(&loop, ifd_alloc_system());
    loopback_get(&loop, "/console", &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(loopback_text(&answer), "</html>");
    EXPECT_HAS(loopback_header(&answer, "Content-Security-Policy"),
               "default-src 'none'; script-src");
    loopback_release(&answer);
    loopback_get(&loop, "/", &answer);
    EXPECT_INT(answer.status, 302);
    EXPECT_TEXT(loopback_header(&answer, "Location"), "/console");
    loopback_release(&answer);
    loopback_finish(&loop);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(answer_has_the_time_of_each_step_and_the_plan),
        T(what_cannot_be_measured_is_named),
        T(metadata_say_where_models_can_be_loaded),
        T(console_is_a_page_with_a_policy),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
