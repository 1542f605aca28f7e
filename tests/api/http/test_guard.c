/* Access: what every route asks the guard first, and how refusals are answered. */
#include "api/core/guard.h"

#include <string.h>

#include "engine/base/str.h"
#include "tests/support/loopback.h"
#include "tests/support/test.h"

static struct loopback loop;
static struct loopback_answer answer;

/* ---- a guard with a fixed verdict that notes its questions ---- */

static struct {
    enum ifd_verdict verdict;
    uint32_t questions;
    enum ifd_access_class access;
    char model[40], authorization[40];
} guard;

static void note(struct ifd_str text, char *ret_text, size_t size)
{
    REQUIRE(ifd_str_format(ret_text, size, "%.*s", (int)text.size, text.data ? text.data : "-"));
}

static enum ifd_verdict judge(void *context, struct ifd_str authorization,
                              enum ifd_access_class access, struct ifd_str model,
                              struct ifd_str *ret_caller)
{
    EXPECT(context == &guard);
    EXPECT(!ret_caller->data);
    guard.questions++;
    guard.access = access;
    note(model.data ? model : ifd_str("-"), guard.model, sizeof(guard.model));
    note(authorization.data ? authorization : ifd_str("-"), guard.authorization,
         sizeof(guard.authorization));
    *ret_caller = ifd_str("camera");
    return guard.verdict;
}

static void begin(enum ifd_verdict verdict, bool admin_on_http)
{
    static const struct ifd_guard asked = {.judge = judge, .context = &guard};
    struct ifd_err err = {0};
    guard.verdict = verdict;
    loopback_init(&loop, ifd_alloc_system());
    ifd_api_destroy(loop.api);
    const struct ifd_api_options options = {.alloc = loop.alloc,
                                            .ops = fake_service_ops(),
                                            .service = &loop.fake,
                                            .guard = &asked,
                                            .has_console = true,
                                            .admin_on_http = admin_on_http};
    REQUIRE_OK(ifd_api_create(&options, &loop.api, &err), &err);
}

static void end(void)
{
    loopback_finish(&loop);
}

static int ask(const char *method, const char *path)
{
    guard.questions = 0;
    loopback_ask(&loop, method, path, NULL, "", 0, &answer);
    int status = answer.status;
    loopback_release(&answer);
    return status;
}

/* ---- the table ---- */

enum { OPEN, DATA, OBSERVE, ADMIN };
static const enum ifd_access_class classes[] = {IFD_ACCESS_OPEN, IFD_ACCESS_DATA,
                                                IFD_ACCESS_OBSERVE, IFD_ACCESS_ADMIN};

/* The class of each route, decided a second time. A row of route_list.inc without a row here
 * fails. */
static const struct row {
    const char *method, *path;
    int access;
    bool has_model;
} rows[] = {
    {"POST", "/v2/models/m/infer", DATA, true},
    {"POST", "/v2/models/m/versions/1/infer", DATA, true},
    {"POST", "/v2/models/m/profile", DATA, true},
    {"POST", "/v2/models/m/versions/1/profile", DATA, true},
    {"POST", "/v1/vision/detection", DATA, false},
    {"POST", "/v1/vision/face", DATA, false},
    {"GET", "/v1/vision/custom/list", OBSERVE, false},
    {"POST", "/v1/vision/custom/list", OBSERVE, false},
    {"POST", "/v1/vision/custom/m", DATA, true},
    {"GET", "/", OPEN, false},
    {"GET", "/console", OPEN, false},
    {"GET", "/v2", DATA, false},
    {"GET", "/v2/health/live", OPEN, false},
    {"GET", "/v2/health/ready", OPEN, false},
    {"GET", "/v2/models/stats", OBSERVE, false},
    {"GET", "/v2/models/m", DATA, true},
    {"GET", "/v2/models/m/versions/1", DATA, true},
    {"GET", "/v2/models/m/ready", DATA, true},
    {"GET", "/v2/models/m/versions/1/ready", DATA, true},
    {"GET", "/v2/models/m/config", DATA, true},
    {"GET", "/v2/models/m/versions/1/config", DATA, true},
    {"GET", "/v2/models/m/stats", OBSERVE, true},
    {"GET", "/v2/models/m/versions/1/stats", OBSERVE, true},
    {"POST", "/v2/repository/index", OBSERVE, false},
    {"POST", "/v2/repository/r/index", OBSERVE, false},
    {"POST", "/v2/repository/r/models/m/load", ADMIN, true},
    {"POST", "/v2/repository/r/models/m/unload", ADMIN, true},
    {"POST", "/v2/repository/models/m/load", ADMIN, true},
    {"POST", "/v2/repository/models/m/unload", ADMIN, true},
    {"GET", "/v2/logging", OBSERVE, false},
    {"POST", "/v2/logging", ADMIN, false},
    {"GET", "/v2/trace/setting", OBSERVE, false},
    {"POST", "/v2/trace/setting", ADMIN, false},
    {"GET", "/v2/models/m/trace/setting", OBSERVE, true},
    {"POST", "/v2/models/m/trace/setting", ADMIN, true},
    {"GET", "/v2/systemsharedmemory/status", DATA, false},
    {"GET", "/v2/systemsharedmemory/region/r/status", DATA, false},
    {"POST", "/v2/systemsharedmemory/region/r/register", DATA, false},
    {"POST", "/v2/systemsharedmemory/region/r/unregister", DATA, false},
    {"POST", "/v2/systemsharedmemory/unregister", DATA, false},
    {"GET", "/v2/cudasharedmemory/status", DATA, false},
    {"GET", "/v2/cudasharedmemory/region/r/status", DATA, false},
    {"POST", "/v2/cudasharedmemory/region/r/register", DATA, false},
    {"POST", "/v2/cudasharedmemory/region/r/unregister", DATA, false},
    {"POST", "/v2/cudasharedmemory/unregister", DATA, false},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

#define ROUTE(...) +1
_Static_assert(ROW_COUNT == 0
#include "api/http/route_list.inc"
               ,
               "a route without a row above: say what it is for");
#undef ROUTE

static void every_route_asks_for_its_class_and_model(void)
{
    begin(IFD_VERDICT_UNKNOWN_TOKEN, true);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &rows[i];
        int status = ask(row->method, row->path);
        EXPECT_INT(guard.questions, row->access != OPEN);
        EXPECT_INT(status, row->access != OPEN ? 401 : strcmp(row->path, "/") == 0 ? 302 : 200);
        if (row->access != OPEN) {
            EXPECT_INT(guard.access, classes[row->access]);
            EXPECT_TEXT(guard.model, row->has_model ? "m" : "-");
            EXPECT_TEXT(guard.authorization, "-");
        }
    }
    (void)ask("HEAD", "/v2/models/%6d");
    EXPECT_INT(guard.access, IFD_ACCESS_DATA);
    EXPECT_TEXT(guard.model, "m");
    end();
}

static void what_is_no_route_is_told_to_those_who_may_know(void)
{
    static const struct {
        const char *method, *path;
        int status;
    } cases[] = {{"GET", "/v2/nothing", 404},
                 {"GET", "//", 404},
                 {"GET", "/v2/models/%zz", 400},
                 {"GET", "/v2/models/m/infer", 405},
                 {"DELETE", "/v2/health/live", 405}};
    for (int is_known = 0; is_known < 2; is_known++) {
        begin(is_known ? IFD_VERDICT_GRANTED : IFD_VERDICT_NO_TOKEN, true);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            EXPECT_INT(ask(cases[i].method, cases[i].path), is_known ? cases[i].status : 401);
            EXPECT_INT(guard.questions, 1);
            EXPECT_INT(guard.access, IFD_ACCESS_KNOWN);
        }
        end();
    }
}

static void why_it_is_not_ready_is_for_those_who_may_list_models(void)
{
    static const char *const headers[] = {"authorization", "Bearer s3cret", NULL};
    static const struct {
        enum ifd_verdict verdict;
        const char *const *headers;
        const char *why;
    } cases[] = {{IFD_VERDICT_GRANTED, headers, "Server exiting"},
                 {IFD_VERDICT_OTHER_CLASS, headers, "Server not ready"},
                 {IFD_VERDICT_UNKNOWN_TOKEN, headers, "Server not ready"},
                 {IFD_VERDICT_NO_TOKEN, NULL, "Server not ready"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(cases[i].verdict, true);
        loop.fake.is_not_ready = true;
        guard.questions = 0;
        loopback_ask(&loop, "GET", "/v2/health/ready", cases[i].headers, "", 0, &answer);
        EXPECT_INT(answer.status, 503);
        EXPECT_HAS(loopback_text(&answer), cases[i].why);
        EXPECT_INT(guard.questions, cases[i].headers != NULL); /* a probe is denied nothing */
        EXPECT(cases[i].headers == NULL || guard.access == IFD_ACCESS_OBSERVE);
        loopback_release(&answer);
        end();
    }
}

static void refusals_say_what_rfc_6750_wants(void)
{
    static const struct {
        enum ifd_verdict verdict;
        int status;
        const char *challenge, *path, *text;
    } cases[] = {
        {IFD_VERDICT_NO_TOKEN, 401, "Bearer realm=\"inferd\"", "/v2",
         "this server requires a token: Authorization: Bearer TOKEN"},
        {IFD_VERDICT_UNKNOWN_TOKEN, 401, "Bearer realm=\"inferd\", error=\"invalid_token\"", "/v2",
         "the server does not know this token"},
        {IFD_VERDICT_OTHER_CLASS, 403,
         "Bearer realm=\"inferd\", error=\"insufficient_scope\", scope=\"data\"", "/v2",
         "this request requires a token of class data"},
        {IFD_VERDICT_OTHER_CLASS, 403,
         "Bearer realm=\"inferd\", error=\"insufficient_scope\", scope=\"observe\"",
         "/v2/models/stats", "this request requires a token of class observe"},
        {IFD_VERDICT_OTHER_MODEL, 403, "Bearer realm=\"inferd\", error=\"insufficient_scope\"",
         "/v2", "this token is for other models"},
    };
    static const char *const headers[] = {"authorization", "Bearer s3cret", NULL};
    _Static_assert(sizeof(cases) / sizeof(cases[0]) >= IFD_VERDICT_COUNT - 1, "all refusals");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(cases[i].verdict, true);
        loopback_ask(&loop, "GET", cases[i].path, headers, "", 0, &answer);
        EXPECT_TEXT(guard.authorization, "Bearer s3cret");
        EXPECT_INT(answer.status, cases[i].status);
        EXPECT_TEXT(loopback_header(&answer, "WWW-Authenticate"), cases[i].challenge);
        EXPECT_TEXT(loopback_header(&answer, "Content-Type"), "application/json");
        EXPECT_HAS(loopback_text(&answer), cases[i].text);
        EXPECT(!strstr(loopback_text(&answer), "s3cret"));
        loopback_release(&answer);
        end();
    }
}

/* A refused client's body is not kept. */
static void refusals_do_not_wait_for_a_body(void)
{
    static const char *const small[] = {"Content-Length", "2", NULL};
    static const char *const large[] = {"Content-Length", "2000000000", NULL};
    begin(IFD_VERDICT_OTHER_CLASS, true);
    loopback_ask(&loop, "POST", "/v2/models/simple/infer", small, "{}", 2, &answer);
    EXPECT(answer.is_early && !answer.close_connection);
    EXPECT_INT(answer.status, 403);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/simple/infer", large, "{}", 2, &answer);
    EXPECT(answer.is_early && answer.close_connection);
    EXPECT_INT(answer.status, 403);
    loopback_release(&answer);
    end();
}

static void control_stays_closed_on_http_for_every_token(void)
{
    begin(IFD_VERDICT_GRANTED, false);
    loopback_post(&loop, "/v2/logging", "{}", &answer);
    EXPECT_INT(answer.status, 403);
    EXPECT_HAS(loopback_text(&answer), "--admin-on-http");
    EXPECT(!loopback_header(&answer, "WWW-Authenticate")); /* no other token would help */
    loopback_release(&answer);
    end();
}

static void admin_socket_needs_no_token(void)
{
    begin(IFD_VERDICT_NO_TOKEN, false);
    loop.is_local_admin = true;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        int status = ask(rows[i].method, rows[i].path);
        EXPECT(status != 401 && status != 403);
        EXPECT_INT(guard.questions, 0);
    }
    end();
}

static void caller_is_noted_whatever_the_verdict(void)
{
    for (int verdict = 0; verdict < IFD_VERDICT_COUNT; verdict++) {
        struct loopback_exchange exchange;
        begin((enum ifd_verdict)verdict, true);
        loopback_begin(&loop, "GET", "/v2", NULL, "", 0, &exchange);
        EXPECT_TEXT(exchange.http.caller, "camera");
        loopback_end(&exchange, NULL);
        end();
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_route_asks_for_its_class_and_model),
        T(what_is_no_route_is_told_to_those_who_may_know),
        T(why_it_is_not_ready_is_for_those_who_may_list_models),
        T(refusals_say_what_rfc_6750_wants),
        T(refusals_do_not_wait_for_a_body),
        T(control_stays_closed_on_http_for_every_token),
        T(admin_socket_needs_no_token),
        T(caller_is_noted_whatever_the_verdict),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
