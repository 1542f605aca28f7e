/* Log and trace settings. */
#include "tests/support/loopback.h"
#include "tests/support/test.h"

static struct loopback loop;
static struct loopback_answer answer;

static void post(const char *path, const char *body, int status, const char *part)
{
    loopback_post(&loop, path, body, &answer);
    EXPECT_INT(answer.status, status);
    EXPECT_HAS(loopback_text(&answer), part);
    loopback_release(&answer);
}

static void get(const char *path, int status, const char *text)
{
    loopback_get(&loop, path, &answer);
    EXPECT_INT(answer.status, status);
    EXPECT_HAS(loopback_text(&answer), text);
    loopback_release(&answer);
}

static void log_settings_are_read_and_changed(void)
{
    loopback_init(&loop, ifd_alloc_system());
    get("/v2/logging", 200,
        "{\"log_file\":\"\",\"log_info\":true,\"log_warning\":true,\"log_error\":true,"
        "\"log_verbose_level\":0,\"log_format\":\"default\"}");
    post("/v2/logging", "{\"log_info\":false,\"log_verbose_level\":1,\"log_format\":\"ISO8601\"}",
         200,
         "{\"log_file\":\"\",\"log_info\":false,\"log_warning\":true,\"log_error\":true,"
         "\"log_verbose_level\":1,\"log_format\":\"ISO8601\"}");
    post("/v2/logging", "", 200, "\"log_info\":false");
    post("/v2/logging", "{\"log_info\":null,\"log_format\":null}", 200,
         "\"log_verbose_level\":1,\"log_format\":\"ISO8601\"}");
    loopback_finish(&loop);
}

static void wrong_log_setting_is_named_and_changes_nothing(void)
{
    loopback_init(&loop, ifd_alloc_system());
    post("/v2/logging", "{\"log_info\":false,\"nope\":1}", 400, "unknown log setting 'nope'");
    post("/v2/logging", "{\"log_file\":\"/tmp/x\"}", 400, "log_file cannot be changed");
    post("/v2/logging", "{\"log_error\":1}", 400, "true or false");
    post("/v2/logging", "{\"log_verbose_level\":-1}", 400, "");
    post("/v2/logging", "{\"log_format\":\"rot13\"}", 400, "'rot13'");
    post("/v2/logging", "{\"log_info\":false,\"log_info\":false}", 400, "'log_info' comes twice");
    post("/v2/logging", "[]", 400, "an object");
    get("/v2/logging", 200, "\"log_info\":true");
    loopback_finish(&loop);
}

static void nothing_is_traced(void)
{
    static const char off[] = "{\"trace_level\":[\"OFF\"],\"trace_rate\":\"1000\",\"trace_count\":"
                              "\"-1\",\"log_frequency\":\"0\",\"trace_file\":\"\",\"trace_mode\":"
                              "\"triton\"}";
    loopback_init(&loop, ifd_alloc_system());
    get("/v2/trace/setting", 200, off);
    get("/v2/models/simple/trace/setting", 200, off);
    get("/v2/models/nope/trace/setting", 404, "nope");
    post("/v2/trace/setting", "{\"trace_level\":[\"OFF\"],\"trace_rate\":null}", 200, off);
    post("/v2/models/simple/trace/setting", "{\"trace_level\":null}", 200, off);
    post("/v2/trace/setting", "{\"trace_level\":[\"TIMESTAMPS\"]}", 501, "'TIMESTAMPS'");
    post("/v2/trace/setting", "{\"trace_count\":\"3\"}", 501, "trace_count");
    post("/v2/trace/setting", "{\"nope\":1}", 400, "unknown trace setting 'nope'");
    loopback_finish(&loop);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(log_settings_are_read_and_changed),
        T(wrong_log_setting_is_named_and_changes_nothing),
        T(nothing_is_traced),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
