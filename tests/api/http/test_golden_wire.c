/* The recorded requests of Triton 2.51 against our API: same status, same members, same values,
 * same bytes, except where the recording's README says that Triton is wrong. The models of the
 * recording stand in tests/support/fake_service.c. */
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define RECORDS "golden/wire/triton_2.51.json"

/* Records that are compared elsewhere or need a missing feature, by the beginning of their name. */
static const struct {
    const char *name, *why;
} skipped[] = {
    {"server metadata", "names the server"},
    {"model config", "names the backend; test_model_meta.c has its members"},
    {"config after override", "needs a server"},
    {"infer NaN binary, JSON out", "quoted, since bare NaN is not JSON; test_infer.c"},
    {"sequence", "sequence batching is not here"},
    {"repository index", "lists the models; test_repository.c"},
    {"index after unload", "lists the models; test_repository.c"},
    {"statistics", "counts; test_repository.c"},
    {"queue of two", "needs a queue"},
    {"metrics", "needs a server"},
    {"root", "leads to the console; acceptance.wire runs without one"},
};

/* Exact, so that no record is lost. */
#define RECORDS_COMPARED 106
#define RECORDS_SKIPPED  19

/* Refused records: the status and a part of the error. The status is the recorded one, or 400 for
 * the recorded 500 of a client's mistake; otherwise the row has the reason. */
static const struct refusal {
    const char *name;
    int status;
    const char *text;
    const char *why;
} refusals[] = {
    {"server metadata, trailing slash", 404, "Not Found", NULL},
    {"live by POST", 405, "Method Not Allowed", NULL},
    {"model metadata, no such version", 404, "unknown model: 'simple' version 9 is not found",
     NULL},
    {"model metadata, version not a number", 404, "Not Found", NULL},
    {"model metadata, no such model", 404, "unknown model: 'nope' is not found", NULL},
    {"model ready, no such model", 400, "unknown model: 'nope' is not found", NULL},
    {"model config, no such model", 404, "unknown model: 'nope' is not found", NULL},
    {"no such route", 404, "Not Found", NULL},
    {"DELETE on infer", 405, "Method Not Allowed", NULL},
    {"GET on infer", 405, "Method Not Allowed", NULL},
    {"OPTIONS", 405, "Method Not Allowed", NULL},
    {"infer unknown content encoding", 415, "may be identity, gzip or deflate, not 'br'",
     "RFC 9110: 501 is for methods"},
    {"bad: not JSON", 400, "at byte 1", NULL},
    {"bad: empty body", 400, "the document is empty", NULL},
    {"bad: JSON array", 400, "it is not an object", NULL},
    {"bad: no inputs", 400, "'inputs'", NULL},
    {"bad: inputs empty", 400, "missing required input(s) ['INPUT0','INPUT1']", NULL},
    {"bad: one input missing", 400, "missing required input(s) ['INPUT1']", NULL},
    {"bad: unknown input", 400, "unexpected inference input 'INPUT9' for model 'simple'", NULL},
    {"bad: input twice", 400, "input 'INPUT0' already exists", NULL},
    {"bad: unknown output", 400, "unexpected inference output 'NOPE' for model 'simple'", NULL},
    {"bad: datatype", 400, "'INPUT0' data-type is 'FP32', but model 'simple' expects 'INT32'",
     NULL},
    {"bad: unknown datatype", 400, "input INPUT0: 'INT33'", NULL},
    {"bad: shape", 400, "'INPUT0' for model 'simple'. Expected [-1,16], got [1,15]", NULL},
    {"bad: negative shape", 400, "'shape' of input 'INPUT0': -1 is not", NULL},
    {"bad: shape overflow", 400, "'INPUT0' causes total element count to exceed", NULL},
    {"bad: batch above maximum", 400, "must be <= 8 for 'simple', got 9", NULL},
    {"bad: too few elements", 400, "'INPUT0': 'data' has 15 elements, its shape has 16", NULL},
    {"bad: too many elements", 400, "'INPUT0': 'data' has more than the 16 elements", NULL},
    {"bad: no data", 400, "no field is set for input 'INPUT0'", NULL},
    {"bad: no datatype", 400, "'datatype': input INPUT0", NULL},
    {"bad: no shape", 400, "'shape': input INPUT0", NULL},
    {"bad: no name", 400, "'name': input", NULL},
    {"bad: string in INT32", 400, "'INPUT0': element 0 is not a number, expected INT32", NULL},
    {"bad: INT32 out of range", 400,
     "'INPUT0': element 0 is 2147483648, outside INT32's range -2147483648 … 2147483647",
     "recorded: 200 with wrong numbers"},
    {"bad: float in INT32", 400, "'INPUT0': element 0 is 1.5, expected INT32", NULL},
    {"bad: binary size too small", 400, "'INPUT0' for model 'simple'. Expected 64, got 60", NULL},
    {"bad: binary size beyond body", 400, "'INPUT0', expecting 54 additional bytes", NULL},
    {"bad: bytes left over", 400, "4 bytes behind the last input", NULL},
    {"bad: header length beyond body", 400, "in range (0, 252), got: 99999", NULL},
    {"bad: header length not a number", 400, "in range (0, 252), got: abc", NULL},
    {"bad: header length negative", 400, "in range (0, 252), got: -5", NULL},
    {"bad: raw body for two inputs", 400, "model 'simple' has 2 inputs, a raw body is for one",
     NULL},
    {"bad: raw body size", 400, "Expected a multiple of 4, got 6", NULL},
    {"bad: gzip garbage", 400, "gzip body is damaged", NULL},
    {"bad: string length beyond", 400, "'IN', expecting string of length 99 but only 4", NULL},
    {"bad: reserved parameter", 400, "'triton_x'", NULL},
    {"bad: no such model", 404, "unknown model: 'nope' is not found", NULL},
    {"bad: no such version", 404, "unknown model: 'simple' version 7 is not found", NULL},
    {"bad: shared memory not registered", 404, "shared memory region: 'r'", NULL},
    {"bad: unregistered shm output", 404, "shared memory region: 'r'", NULL},
    {"repository index by GET", 405, "Method Not Allowed", NULL},
    {"load, no such model", 400, "failed to load: config.pbtxt:1: expected a number", NULL},
    {"load, broken config", 400, "failed to load: config.pbtxt:1: expected a number", NULL},
    {"unload, no such model", 404, "no such model to unload", "recorded: 200, nothing happens"},
    {"metadata after unload", 404, "unknown model: 'classify' has no available versions", NULL},
    {"infer after unload", 404, "unknown model: 'classify' has no available versions", NULL},
    {"statistics, no such model", 400, "model 'nope' is not available", NULL},
    {"shared memory register, no such region", 501, "shared memory is not supported",
     "there is no shared memory here"},
    {"trace setting, unknown", 400, "unknown trace setting 'nope'",
     "recorded: 200, nothing happens"},
    {"logging, unknown", 400, "unknown log setting 'nope'", "recorded: 200, nothing happens"},
};

/* Records that are answered 200 with a body that differs from the recorded one. */
static const struct {
    const char *name, *body, *why;
} ours[] = {
    {"live", "{\"live\":true}", "recorded: an empty body"},
    {"ready", "{\"live\":true,\"ready\":true}", "recorded: an empty body"},
    {"model ready", "{\"name\":\"simple\",\"ready\":true}", "recorded: an empty body"},
    {"model ready, version", "{\"name\":\"simple\",\"ready\":true}", "recorded: an empty body"},
    {"HEAD live", "{\"live\":true}", "recorded: 405; the transport keeps the body"},
    {"load, override is not JSON", "", "judged by the server, not by the fake"},
};

static json_t *load_records(void)
{
    json_error_t error;
    json_t *records = json_load_file(test_shared(RECORDS), JSON_ALLOW_NUL, &error);
    REQUIRE(json_is_array(records));
    return records;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static size_t decode_base64(const char *text, uint8_t *to)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size = 0;
    uint32_t bits = 0, count = 0;
    for (; *text && *text != '='; text++) {
        const char *at = strchr(alphabet, *text);
        REQUIRE(at != NULL);
        bits = bits << 6 | (uint32_t)(at - alphabet);
        count += 6;
        if (count >= 8) {
            count -= 8;
            to[size++] = (uint8_t)(bits >> count);
        }
    }
    return size;
}

/* Body of a request or an answer; static buffers, two at a time. */
static struct ifd_bytes body_of(const json_t *message)
{
    static uint8_t buffers[2][65536];
    static unsigned next;
    uint8_t *to = buffers[next++ % 2];
    const json_t *plain = json_object_get(message, "body");
    if (!plain) {
        const char *text = text_of(message, "body_base64");
        REQUIRE(strlen(text) < 65536);
        return (struct ifd_bytes){.data = to, .size = decode_base64(text, to)};
    }
    size_t size = json_string_length(plain);
    REQUIRE(size < 65536);
    memcpy(to, json_string_value(plain), size);
    return (struct ifd_bytes){.data = to, .size = size};
}

static const char *header_of(const json_t *message, const char *name)
{
    return json_string_value(json_object_get(json_object_get(message, "headers"), name));
}

static bool same_number(const json_t *got, const json_t *want)
{
    double a = json_number_value(got), b = json_number_value(want);
    /* FP32 values: Triton prints the double next to them, we the shortest text */
    return json_typeof(got) == json_typeof(want) && (a == b || (float)a == (float)b);
}

static bool same_json(const json_t *got, const json_t *want)
{
    if (json_is_number(want)) {
        return same_number(got, want);
    }
    if (json_is_array(want)) {
        bool same = json_is_array(got) && json_array_size(got) == json_array_size(want);
        for (size_t i = 0; same && i < json_array_size(want); i++) {
            same = same_json(json_array_get(got, i), json_array_get(want, i));
        }
        return same;
    }
    if (json_is_object(want)) {
        bool same = json_is_object(got) && json_object_size(got) == json_object_size(want);
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)want, key, value)
        {
            /* "platform" is each server's own name */
            same = same &&
                   (strcmp(key, "platform") == 0 ? json_is_string(json_object_get(got, key))
                                                 : same_json(json_object_get(got, key), value));
        }
        return same;
    }
    return json_equal(got, want);
}

/* Decompresses zlib or gzip. */
static struct ifd_bytes inflate_all(struct ifd_bytes body, uint8_t *to, size_t room)
{
    z_stream stream = {.next_in = (z_const Bytef *)body.data, .avail_in = (uInt)body.size};
    stream.next_out = to;
    stream.avail_out = (uInt)room;
    REQUIRE(inflateInit2(&stream, 15 + 32) == Z_OK);
    EXPECT_INT(inflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t size = stream.total_out;
    (void)inflateEnd(&stream);
    return (struct ifd_bytes){.data = to, .size = size};
}

static void compare_bodies(struct ifd_bytes got, struct ifd_bytes want, size_t got_json,
                           size_t want_json)
{
    json_error_t error;
    if (want_json == 0) {
        EXPECT_INT(got_json, 0);
        return;
    }
    json_t *a = json_loadb((const char *)got.data, got_json, JSON_DECODE_ANY, &error);
    json_t *b = json_loadb((const char *)want.data, want_json, JSON_DECODE_ANY, &error);
    bool same = a && b && same_json(a, b);
    if (!same) {
        fprintf(stderr, "    got    %.*s\n    wanted %.*s\n", (int)got_json, got.data,
                (int)want_json, want.data);
    }
    EXPECT(same);
    EXPECT_INT(got.size - got_json, want.size - want_json);
    if (got.size - got_json == want.size - want_json) {
        EXPECT_BYTES(got.data + got_json, want.data + want_json, got.size - got_json);
    }
    json_decref(a);
    json_decref(b);
}

static void compare_success(const struct loopback_answer *answer, const json_t *response)
{
    static uint8_t plain_got[65536], plain_want[65536];
    struct ifd_bytes got = {.data = answer->body.data, .size = answer->body.size};
    struct ifd_bytes want = body_of(response);
    const char *coding = header_of(response, "Content-Encoding");
    if (coding) {
        EXPECT_TEXT(loopback_header(answer, "Content-Encoding"), coding);
        got = inflate_all(got, plain_got, sizeof(plain_got));
        want = inflate_all(want, plain_want, sizeof(plain_want));
    } else {
        EXPECT(!loopback_header(answer, "Content-Encoding"));
    }
    EXPECT_TEXT(loopback_header(answer, "Content-Type"), header_of(response, "Content-Type"));
    const char *want_length = header_of(response, "Inference-Header-Content-Length");
    const char *got_length = loopback_header(answer, "Inference-Header-Content-Length");
    EXPECT(!want_length == !got_length);
    size_t got_json = got_length ? strtoul(got_length, NULL, 10) : got.size;
    size_t want_json = want_length ? strtoul(want_length, NULL, 10) : want.size;
    REQUIRE(got_json <= got.size && want_json <= want.size);
    compare_bodies(got, want, got_json, want_json);
}

static void compare_refusal(const struct loopback_answer *answer, const struct refusal *refusal)
{
    json_error_t error;
    EXPECT_TEXT(loopback_header(answer, "Content-Type"), "application/json");
    json_t *body = json_loadb((const char *)answer->body.data, answer->body.size, 0, &error);
    const char *text = json_string_value(json_object_get(body, "error"));
    EXPECT_HAS(text ? text : "", refusal->text);
    json_decref(body);
}

static const struct refusal *find_refusal(const char *name)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (strcmp(name, refusals[i].name) == 0) {
            return &refusals[i];
        }
    }
    return NULL;
}

static const char *our_body(const char *name)
{
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strcmp(name, ours[i].name) == 0) {
            return ours[i].body;
        }
    }
    return NULL;
}

static void compare(const char *name, const struct loopback_answer *answer, const json_t *response)
{
    const struct refusal *refusal = find_refusal(name);
    const char *body = our_body(name);
    const int recorded = (int)json_integer_value(json_object_get(response, "status"));
    const int want = refusal ? refusal->status : 200;
    if (answer->status != want) {
        fprintf(stderr, "    record \"%s\": status %d, wanted %d: %s\n", name, answer->status, want,
                answer->body.data);
    }
    EXPECT_INT(answer->status, want);
    if (refusal) {
        EXPECT(want == recorded || (want == 400 && recorded == 500) || refusal->why);
        compare_refusal(answer, refusal);
    } else if (body) {
        EXPECT_TEXT(loopback_text(answer), body);
    } else {
        EXPECT_INT(recorded, 200);
        compare_success(answer, response);
    }
}

static const char *why_skipped(const char *name)
{
    for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
        size_t size = strlen(skipped[i].name);
        /* "statistics, no such model" is compared: a prefix must be the whole first part */
        if (strncmp(name, skipped[i].name, size) == 0 &&
            strcmp(name, "statistics, no such model") != 0 &&
            strcmp(name, "server metadata, trailing slash") != 0 &&
            strcmp(name, "model config, no such model") != 0 &&
            strcmp(name, "repository index by GET") != 0) {
            return skipped[i].why;
        }
    }
    return NULL;
}

static void replay(struct loopback *loop, const json_t *record)
{
    const char *headers[32] = {NULL};
    const char *name = text_of(record, "name");
    const json_t *request = json_object_get(record, "request");
    const json_t *response = json_object_get(record, "response");
    struct loopback_answer answer;
    size_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(request, "headers"), key, value)
    {
        headers[count++] = key;
        headers[count++] = json_string_value(value);
    }
    struct ifd_bytes body = body_of(request);
    loopback_ask(loop, text_of(request, "method"), text_of(request, "path"), headers, body.data,
                 body.size, &answer);
    compare(name, &answer, response);
    loopback_release(&answer);
}

static void recorded_requests_get_the_recorded_answers(void)
{
    struct loopback loop;
    json_t *records = load_records();
    size_t compared = 0, left_out = 0, i = 0;
    json_t *record;
    loopback_init(&loop, ifd_alloc_system());
    json_array_foreach(records, i, record)
    {
        const char *name = text_of(record, "name");
        const char *why = why_skipped(name);
        if (why) {
            printf("left out: %s (%s)\n", name, why);
            left_out++;
            continue;
        }
        replay(&loop, record);
        compared++;
    }
    printf("%zu of %zu records compared\n", compared, json_array_size(records));
    EXPECT_INT(compared, RECORDS_COMPARED);
    EXPECT_INT(left_out, RECORDS_SKIPPED);
    loopback_finish(&loop);
    json_decref(records);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(recorded_requests_get_the_recorded_answers),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
