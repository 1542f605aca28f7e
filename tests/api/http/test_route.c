/* Paths and methods. */
#include "api/http/route.h"

#include "api/http/handlers.h"
#include "engine/base/name.h"
#include "engine/base/str.h"
#include "tests/support/test.h"

#include <string.h>

static struct ifd_arena arena;
static struct ifd_err err;

static enum ifd_code find(enum ifd_http_method method, const char *path,
                          struct ifd_route_match *match)
{
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), 1 << 16);
    err = (struct ifd_err){0};
    return ifd_route_find(ifd_routes, ifd_route_count, method, ifd_str(path), &arena, match, &err);
}

static void end(void)
{
    ifd_arena_finish(&arena);
}

static void every_row_is_found_by_its_own_path(void)
{
    static const struct {
        enum ifd_http_method method;
        const char *path;
        ifd_handler_fn handler;
    } rows[] = {
#define ROUTE(method, path, handler, body, access, kind)                                           \
    {IFD_HTTP_##method, path, ifd_handle_##handler},
#include "api/http/route_list.inc"
#undef ROUTE
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ifd_route_match match;
        struct ifd_str rest = ifd_str(rows[i].path + 1);
        char path[200] = "";
        while (rest.data) {
            struct ifd_str part = ifd_str_part(&rest, '/');
            bool is_version = ifd_str_equal(part, "{version}");
            size_t at = strlen(path);
            REQUIRE(ifd_str_format(path + at, sizeof(path) - at, "/%.*s",
                                   is_version            ? 2
                                   : part.data[0] == '{' ? 5
                                                         : (int)part.size,
                                   is_version            ? "12"
                                   : part.data[0] == '{' ? "m-0.x"
                                                         : part.data));
        }
        EXPECT_CODE(find(rows[i].method, path, &match), IFD_OK, &err);
        EXPECT(match.route && match.route->handler == rows[i].handler);
        EXPECT(strstr(rows[i].path, "{version}") ? match.version == 12 : match.version == 0);
        EXPECT(!strstr(rows[i].path, "{model}") == !match.model.data);
    }
    end();
}

static void unknown_paths_are_not_found(void)
{
    static const char *const paths[] = {"",
                                        "//",
                                        "v2",
                                        "/v2/",
                                        "/v1",
                                        "//v2",
                                        "/v2/foo",
                                        "/v2/health",
                                        "/v2/health/live/",
                                        "/v2//health/live",
                                        "/V2/health/live",
                                        "/v2/models",
                                        "/v2/models/",
                                        "/v2/models//infer",
                                        "/v2/models/a/b",
                                        "/v2/models/a/versions",
                                        "/v2/models/a/versions/",
                                        "/v2/models/a/versions/x",
                                        "/v2/models/a/versions/v1",
                                        "/v2/models/a/versions/-1",
                                        "/v2/models/a/versions/1/infer/x",
                                        "/v2/health/live%2f",
                                        "/a/b/c/d/e/f/g/h/i/j/k"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct ifd_route_match match;
        EXPECT_CODE(find(IFD_HTTP_GET, paths[i], &match), IFD_NOT_FOUND, &err);
        EXPECT_TEXT(err.text, "Not Found");
        EXPECT_INT(match.allowed, 0);
    }
    end();
}

static void other_methods_are_told_what_is_allowed(void)
{
    struct ifd_route_match match;
    EXPECT_CODE(find(IFD_HTTP_GET, "/v2/models/m/infer", &match), IFD_NOT_FOUND, &err);
    EXPECT_INT(match.allowed, IFD_BIT(IFD_HTTP_POST));
    EXPECT_CODE(find(IFD_HTTP_HEAD, "/v2/models/m/infer", &match), IFD_NOT_FOUND, &err);
    EXPECT_INT(match.allowed, IFD_BIT(IFD_HTTP_POST));
    EXPECT_CODE(find(IFD_HTTP_POST, "/v2/health/live", &match), IFD_NOT_FOUND, &err);
    EXPECT_INT(match.allowed, IFD_BIT(IFD_HTTP_GET) | IFD_BIT(IFD_HTTP_HEAD));
    EXPECT_CODE(find(IFD_HTTP_OTHER, "/v2", &match), IFD_NOT_FOUND, &err);
    EXPECT(match.allowed != 0);
    EXPECT_CODE(find(IFD_HTTP_HEAD, "/v2/health/live", &match), IFD_OK, &err);
    end();
}

static void segments_are_percent_decoded(void)
{
    struct ifd_route_match match;
    EXPECT_CODE(find(IFD_HTTP_GET, "/%762/models/%61b%2Dc", &match), IFD_OK, &err);
    EXPECT_TEXT(match.model.data, "ab-c");
    static const char *const bad[] = {"/v2/models/a%", "/v2/models/a%4", "/v2/models/a%4g",
                                      "/v2/models/%zz", "/v2/%"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT_CODE(find(IFD_HTTP_GET, bad[i], &match), IFD_INVALID, &err);
        EXPECT_HAS(err.text, "hexadecimal");
    }
    end();
}

static void model_names_are_of_the_allowed_characters(void)
{
    static const char *const bad[] = {"%2e%2e", ".hidden", "a%2fb", "a%00b", "a%20b", "a:b",
                                      "%ff",    "a%0a",    "a*",    "~",     "a'b"};
    struct ifd_route_match match;
    char path[400];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        REQUIRE(ifd_str_format(path, sizeof(path), "/v2/models/%s/infer", bad[i]));
        EXPECT_CODE(find(IFD_HTTP_POST, path, &match), IFD_INVALID, &err);
        EXPECT_HAS(err.text, "model name");
    }
    char name[IFD_NAME_BYTES_MAX + 2] = {0};
    memset(name, 'n', IFD_NAME_BYTES_MAX);
    REQUIRE(ifd_str_format(path, sizeof(path), "/v2/models/%s", name));
    EXPECT_CODE(find(IFD_HTTP_GET, path, &match), IFD_OK, &err);
    name[IFD_NAME_BYTES_MAX] = 'n';
    REQUIRE(ifd_str_format(path, sizeof(path), "/v2/models/%s", name));
    EXPECT_CODE(find(IFD_HTTP_GET, path, &match), IFD_INVALID, &err);
    end();
}

static void versions_that_cannot_be_are_unknown_models(void)
{
    struct ifd_route_match match;
    EXPECT_CODE(find(IFD_HTTP_GET, "/v2/models/m/versions/0", &match), IFD_NOT_FOUND, &err);
    EXPECT_TEXT(err.text, "Request for unknown model: 'm' version 0 is not found");
    EXPECT_CODE(find(IFD_HTTP_GET, "/v2/models/m/versions/99999999999999999999", &match),
                IFD_NOT_FOUND, &err);
    EXPECT_HAS(err.text, "Request for unknown model");
    end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_row_is_found_by_its_own_path),        T(unknown_paths_are_not_found),
        T(other_methods_are_told_what_is_allowed),    T(segments_are_percent_decoded),
        T(model_names_are_of_the_allowed_characters), T(versions_that_cannot_be_are_unknown_models),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
