/* Every allocation of a request fails, first alone, then with all that follow: a clean refusal, and
 * no memory is kept. */
#include "tests/support/fail_alloc.h"
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define ROUNDS_MAX 10000
#define ROW        "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"
#define PAIR                                                                                       \
    "{\"id\":\"\\u0041\",\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16]" \
    ","                                                                                            \
    "\"data\":" ROW "},{\"data\":" ROW ",\"name\":\"INPUT1\",\"datatype\":\"INT32\","              \
    "\"shape\":[1,16]}]}"

struct request {
    const char *method, *path;
    const char *const *headers;
    const void *body;
    size_t size;
};

/* One request against a fresh API; the status, 0 if there was no memory for the API itself. */
static int ask(const struct ifd_alloc *alloc, const struct request *request)
{
    struct loopback loop;
    struct loopback_answer answer;
    if (!loopback_init_with(&loop, alloc, fake_service_ops(), 1 << 20, true)) {
        return 0;
    }
    loopback_ask(&loop, request->method, request->path, request->headers, request->body,
                 request->size, &answer);
    int status = answer.status;
    EXPECT(status == 200 || strncmp(loopback_text(&answer), "{\"error\":", 9) == 0);
    loopback_release(&answer);
    loopback_finish(&loop);
    return status;
}

static void torture_as(const struct request *request, bool goes_on)
{
    int refused = 0;
    for (long k = 1; k < ROUNDS_MAX; k++) {
        struct fail_alloc fail;
        fail_alloc_init(&fail, k);
        atomic_store(&fail.goes_on, goes_on);
        int status = ask(&fail.alloc, request);
        bool failed = fail.failed;
        fail_alloc_finish(&fail);
        if (!failed) {
            EXPECT_INT(status, 200);
            EXPECT(refused > 0);
            return;
        }
        /* 200: the failed step was optional, such as compressing the answer */
        EXPECT(status == 0 || status == 503 || status == 200);
        refused += status != 200;
    }
    EXPECT(false && "it ends");
}

static void torture(const struct request *request)
{
    torture_as(request, false);
    torture_as(request, true);
}

static void inference_in_json_survives_every_failed_allocation(void)
{
    torture(&(struct request){"POST", "/v2/models/simple/infer", NULL, PAIR, sizeof(PAIR) - 1});
}

static void large_answers_survive_every_failed_allocation(void)
{
    static char body[110 + 40000];
    static const char *const headers[] = {"Inference-Header-Content-Length", "110", NULL};
    int size = snprintf(body, 110,
                        "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[10000],"
                        "\"parameters\":{\"binary_data_size\":40000}}]}");
    REQUIRE(size < 110);
    memset(body + size, ' ', 110 - (size_t)size); /* blanks may follow the JSON */
    torture(&(struct request){"POST", "/v2/models/identity/infer", headers, body, sizeof(body)});
}

static void compression_survives_every_failed_allocation(void)
{
    static const char *const headers[] = {"Content-Encoding", "deflate", "Accept-Encoding", "gzip",
                                          NULL};
    static uint8_t packed[1000];
    uLongf size = sizeof(packed);
    REQUIRE(compress(packed, &size, (const Bytef *)PAIR, sizeof(PAIR) - 1) == Z_OK);
    torture(&(struct request){"POST", "/v2/models/simple/infer", headers, packed, size});
}

static void classification_survives_every_failed_allocation(void)
{
    static const char body[] =
        "{\"inputs\":[{\"name\":\"DATA\",\"datatype\":\"FP32\",\"shape\":[1,10],\"data\":"
        "[0,1,2,3,4,5,6,7,8,9]}],\"outputs\":[{\"name\":\"PROB\",\"parameters\":{"
        "\"classification\":3,\"binary_data\":true}}]}";
    torture(&(struct request){"POST", "/v2/models/classify/infer", NULL, body, sizeof(body) - 1});
}

static void pictures_and_strings_survive_every_failed_allocation(void)
{
    static const char *const headers[] = {"Content-Type", "image/png", NULL};
    static const char strings[] = "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"BYTES\",\"shape\":"
                                  "[2],\"data\":[\"a\\n\",\"b\"]}]}";
    torture(&(struct request){"POST", "/v2/models/picture/infer", headers, "FAKE\1", 5});
    torture(
        &(struct request){"POST", "/v2/models/strings/infer", NULL, strings, sizeof(strings) - 1});
}

static void other_routes_survive_every_failed_allocation(void)
{
    static const char load[] =
        "{\"parameters\":{\"config\":\"{\\n}\",\"file:1/model.tflite\":\"AAECAw==\"}}";
    static const char *const paths[] = {"/v2",
                                        "/v2/health/live",
                                        "/v2/health/ready",
                                        "/v2/models/%73imple",
                                        "/v2/models/simple/config",
                                        "/v2/models/stats"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        torture(&(struct request){"GET", paths[i], NULL, "", 0});
    }
    torture(&(struct request){"POST", "/v2/repository/index", NULL, "{\"ready\":true}", 14});
    torture(&(struct request){"POST", "/v2/repository/models/classify/load", NULL, load,
                              sizeof(load) - 1});
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(inference_in_json_survives_every_failed_allocation),
        T(large_answers_survive_every_failed_allocation),
        T(compression_survives_every_failed_allocation),
        T(classification_survives_every_failed_allocation),
        T(pictures_and_strings_survive_every_failed_allocation),
        T(other_routes_survive_every_failed_allocation),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
