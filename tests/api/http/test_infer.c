/* Inference over HTTP: JSON, binary and raw bodies, refusals, clients that leave. */
#include "engine/base/str.h"
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define ROW    "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"
#define INPUT0 "{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16],\"data\":" ROW "}"
#define INPUT1 "{\"name\":\"INPUT1\",\"datatype\":\"INT32\",\"shape\":[1,16],\"data\":" ROW "}"

static struct loopback loop;
static struct loopback_answer answer;

static void begin(void)
{
    loopback_init(&loop, ifd_alloc_system());
}

static void end(void)
{
    loopback_release(&answer);
    loopback_finish(&loop);
}

static void expect(const char *model, const char *body, int status, const char *part)
{
    char path[100];
    REQUIRE(ifd_str_format(path, sizeof(path), "/v2/models/%s/infer", model));
    loopback_release(&answer);
    loopback_post(&loop, path, body, &answer);
    EXPECT_INT(answer.status, status);
    EXPECT_HAS(loopback_text(&answer), part);
}

/* One input of an identity model. */
static void expect_identity(const char *type, const char *shape, const char *data, int status,
                            const char *part)
{
    char model[40], body[2000];
    REQUIRE(ifd_str_format(model, sizeof(model), "id_%s", type));
    REQUIRE(ifd_str_format(body, sizeof(body),
                           "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"%s\",\"shape\":%s,"
                           "\"data\":%s}]}",
                           type, shape, data));
    expect(model, body, status, part);
}

static void members_may_come_in_any_order(void)
{
    begin();
    expect("simple",
           "{\"inputs\":[{\"data\":" ROW ",\"shape\":[1,16],\"datatype\":\"INT32\",\"name\":"
           "\"INPUT1\"},{\"shape\":[1,16],\"data\":[" ROW "],\"datatype\":\"INT32\",\"name\":"
           "\"INPUT0\",\"unknown\":{\"x\":[1]}}],\"id\":\"a\\\"b\",\"outputs\":[{\"name\":"
           "\"OUTPUT1\"}],\"extra\":null}",
           200,
           "{\"id\":\"a\\\"b\",\"model_name\":\"simple\",\"model_version\":\"3\",\"outputs\":[{"
           "\"name\":\"OUTPUT1\",\"datatype\":\"INT32\",\"shape\":[1,16],\"data\":[0,0,0,0,0,0,0,0,"
           "0,0,0,0,0,0,0,0]}]}");
    EXPECT_TEXT(loop.fake.last_id, "a\"b");
    end();
}

static void every_type_goes_through_json(void)
{
    begin();
    expect_identity("INT8", "[2]", "[-128,127]", 200, "\"data\":[-128,127]");
    expect_identity("UINT8", "[2]", "[0,255]", 200, "\"data\":[0,255]");
    expect_identity("INT16", "[1]", "[-32768]", 200, "\"data\":[-32768]");
    expect_identity("UINT16", "[1]", "[65535]", 200, "\"data\":[65535]");
    expect_identity("INT32", "[1]", "[-2147483648]", 200, "\"data\":[-2147483648]");
    expect_identity("UINT32", "[1]", "[4294967295]", 200, "\"data\":[4294967295]");
    expect_identity("INT64", "[1]", "[-9223372036854775808]", 200,
                    "\"data\":[-9223372036854775808]");
    expect_identity("UINT64", "[1]", "[18446744073709551615]", 200,
                    "\"data\":[18446744073709551615]");
    expect_identity("FP32", "[4]", "[0.1,1,3e38,0.10000000149011612]", 200,
                    "\"data\":[0.1,1.0,3e38,0.1]");
    expect_identity("FP64", "[1]", "[0.1]", 200, "\"data\":[0.1]");
    expect_identity("BOOL", "[2]", "[true,false]", 200, "\"data\":[true,false]");
    expect_identity("BYTES", "[2]", "[\"\\u00e9\",\"\"]", 200, "\"data\":[\"\xc3\xa9\",\"\"]");
    expect_identity("FP32", "[0]", "[]", 200, "\"shape\":[0],\"data\":[]");
    end();
}

static void what_json_lacks_is_quoted_in_answers(void)
{
    begin();
    expect_identity("FP32", "[3]", "[NaN,Infinity,-Infinity]", 200,
                    "\"data\":[\"NaN\",\"Infinity\",\"-Infinity\"]");
    expect_identity("FP32", "[3]", "[\"NaN\",\"Infinity\",\"-Infinity\"]", 200,
                    "\"data\":[\"NaN\",\"Infinity\",\"-Infinity\"]");
    end();
}

static void what_json_has_no_number_for_travels_in_binary_only(void)
{
    static const char *const headers[] = {"Inference-Header-Content-Length", "0", NULL};
    begin();
    expect_identity("FP16", "[1]", "[1]", 400,
                    "receiving FP16 data via JSON is not supported. Please use the binary data "
                    "format for input INPUT0");
    expect_identity("BF16", "[1]", "[1]", 400, "receiving BF16 data via JSON");
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/id_FP16/infer", headers, "\0\x3c", 2, &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_BYTES(answer.body.data + answer.body.size - 2, "\0\x3c", 2);
    expect_identity("COMPLEX64", "[1]", "[1]", 400, "receiving COMPLEX64 data via JSON");
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/id_COMPLEX64/infer", headers, "\0\0\x80\x3f\0\0\0\x40",
                 8, &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_BYTES(answer.body.data + answer.body.size - 8, "\0\0\x80\x3f\0\0\0\x40", 8);
    expect("id_FP16",
           "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP16\",\"shape\":[0],\"parameters\":{"
           "\"binary_data_size\":0}}]}",
           400, "sending FP16 data via JSON is not supported");
    end();
}

static void malformed_requests_are_refused(void)
{
    static const struct {
        const char *body, *part;
    } cases[] = {
        {"", "the document is empty"},
        {"   ", "failed to parse the request JSON buffer"},
        {"[]", "not an object"},
        {"{bad", "a member's name"},
        {"{}", "Unable to parse 'inputs'"},
        {"{\"inputs\":{}}", "an array"},
        {"{\"inputs\":[5]}", "an object"},
        {"{\"inputs\":[]}", "expected 2 inputs but got 0 inputs for model 'simple'. Got input(s) "
                            "[], but missing required input(s) ['INPUT0','INPUT1']"},
        {"{\"inputs\":[" INPUT0 "]}", "expected 2 inputs but got 1 inputs"},
        {"{\"inputs\":[" INPUT0 "," INPUT0 "]}", "input 'INPUT0' already exists in request"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "]} x", "the end"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"inputs\":[]}", "'inputs' comes twice"},
        {"{\"inputs\":[{\"name\":\"X\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[1]}]}",
         "unexpected inference input 'X' for model 'simple', whose input(s) are "
         "['INPUT0','INPUT1'], "
         "at byte"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"name\":\"INPUT1\"}]}", "'name' comes twice"},
        {"{\"inputs\":[{\"parameters\":{},\"parameters\":{}}]}", "'parameters' comes twice"},
        {"{\"inputs\":[{\"parameters\":{\"binary_data_size\":4,\"binary_data_size\":8}}]}",
         "'binary_data_size' comes twice"},
        {"{\"parameters\":{\"priority\":1,\"priority\":1}}", "'priority' comes twice"},
        {"{\"parameters\":{\"timeout\":1,\"timeout\":2}}", "'timeout' comes twice"},
        {"{\"parameters\":{\"binary_data_output\":true,\"binary_data_output\":false}}",
         "'binary_data_output' comes twice"},
        {"{\"outputs\":[{\"parameters\":{\"binary_data\":true,\"binary_data\":false}}]}",
         "'binary_data' comes twice"},
        {"{\"outputs\":[{\"parameters\":{\"classification\":1,\"classification\":2}}]}",
         "'classification' comes twice"},
        {"{\"outputs\":[{\"parameters\":{},\"parameters\":{}}]}", "'parameters' comes twice"},
        {"{\"inputs\":null}", "Unable to parse 'inputs'"},
        {"{\"inputs\":[{\"datatype\":\"INT32\",\"shape\":[1,16],\"data\":[1]}]}",
         "Unable to parse 'name'"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,16],\"data\":[1]}]}",
         "Unable to parse 'datatype'"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"data\":[1]}]}",
         "Unable to parse 'shape'"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16]}]}",
         "But no field is set"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16],\"data\":" ROW
         ",\"parameters\":{\"binary_data_size\":64}}]}",
         "But several are set"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT33\",\"shape\":[1],\"data\":[1]}]}",
         "invalid datatype for input INPUT0"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,16],\"data\":[1]}]}",
         "inference input 'INPUT0' data-type is 'FP32', but model 'simple' expects 'INT32'"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,15],\"data\":[1]}]"
         "}",
         "unexpected shape for input 'INPUT0' for model 'simple'. Expected [-1,16], got [1,15]"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[16],\"data\":[1]}]}",
         "Expected [-1,16], got [16]. NOTE"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[-1,16],\"data\":[1]}"
         "]}",
         "-1 is not an integer"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1.5],\"data\":[1]}]}",
         "1.5 is not an integer"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":"
         "[4611686018427387904,16],\"data\":[1]}]}",
         "exceed maximum size"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":"
         "[99999999999999999999,16],\"data\":[1]}]}",
         "not an integer of 0"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":"
         "[1,1,1,1,1,1,1,1,1],\"data\":[1]}]}",
         "more than 8 dimensions"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1000000,16],"
         "\"data\":[1]}]}",
         "too short for the 16000000 elements"},
        {"{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16],\"data\":[1,2]}"
         "]}",
         "elements"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"outputs\":[{\"name\":\"NOPE\"}]}",
         "unexpected inference output 'NOPE' for model 'simple', whose output(s) are "
         "['OUTPUT0','OUTPUT1']"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"outputs\":[{}]}", "Unable to parse 'name'"},
        {"{\"inputs\":[" INPUT0 "," INPUT1
         "],\"outputs\":[{\"name\":\"OUTPUT0\"},{\"name\":\"OUTPUT0\"}]}",
         "requested twice"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"parameters\":{\"triton_x\":1}}", "reserved"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"parameters\":{\"x\":[1]}}", "invalid type"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"parameters\":{\"x\":null}}", "invalid type"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"parameters\":{\"timeout\":-1}}",
         "-1 is not an integer"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"parameters\":{\"binary_data_output\":1}}",
         "true or false"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"id\":5}", "a string"},
        {"{\"inputs\":[" INPUT0 "," INPUT1 "],\"id\":\"\xff\"}", "not UTF-8"},
    };
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect("simple", cases[i].body, 400, cases[i].part);
        EXPECT_TEXT(loopback_header(&answer, "Content-Type"), "application/json");
    }
    expect("simple",
           "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16],"
           "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":64}}]}",
           404, "Unable to find shared memory region: 'r'");
    end();
}

static void batches_are_checked_against_model_and_each_other(void)
{
    char body[4000], row[1200] = "[0";
    begin();
    expect("classify",
           "{\"inputs\":[{\"name\":\"DATA\",\"datatype\":\"FP32\",\"shape\":[0,10],\"data\":[]}]}",
           400, "batch-size must be >= 1");
    for (int i = 1; i < 90; i++) {
        size_t at = strlen(row);
        (void)snprintf(row + at, sizeof(row) - at, ",%d", i);
    }
    (void)snprintf(body, sizeof(body),
                   "{\"inputs\":[{\"name\":\"DATA\",\"datatype\":\"FP32\",\"shape\":[9,10],"
                   "\"data\":%s]}]}",
                   row);
    expect("classify", body, 400,
           "inference request batch-size must be <= 8 for 'classify', got 9");
    expect("simple",
           "{\"inputs\":[" INPUT0 ",{\"name\":\"INPUT1\",\"datatype\":\"INT32\",\"shape\":[2,16],"
           "\"data\":[" ROW "," ROW "]}]}",
           400, "input 'INPUT1' batch size does not match other inputs for 'simple'");
    end();
}

static void deep_nesting_is_refused(void)
{
    enum { DEEP = 250000 };
    static char body[DEEP + 200];
    begin();
    int at = snprintf(body, 200,
                      "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],"
                      "\"data\":");
    memset(body + at, '[', DEEP);
    expect("id_FP32", body, 400, "deeper than 100 levels");
    memset(body, '[', DEEP);
    expect("id_FP32", body, 400, "failed to parse");
    memcpy(body, "{\"x\":", 5);
    expect("id_FP32", body, 400, "deeper than 100 levels");
    end();
}

static void numbers_out_of_range_are_refused_with_their_place(void)
{
    begin();
    expect_identity("INT32", "[2]", "[1,2147483648]", 400,
                    "input 'INPUT0': element 1 is 2147483648, outside INT32's range");
    expect_identity("UINT8", "[1]", "[300]", 400,
                    "element 0 is 300, outside UINT8's range 0 … 255");
    expect_identity("FP32", "[1]", "[1e400]", 400, "outside FP32's range");
    expect_identity("INT64", "[1]", "[9223372036854775808]", 400, "outside INT64's range");
    expect_identity("BYTES", "[1]", "[\"\xc3\"]", 400, "not UTF-8");
    end();
}

/* JSON head and raw tail. */
static void ask_binary(const char *path, const char *json, const void *tail, size_t tail_size)
{
    static uint8_t body[4096];
    char length[24];
    const char *headers[] = {"inference-header-content-length", length, NULL};
    size_t json_size = strlen(json);
    REQUIRE(json_size + tail_size <= sizeof(body));
    (void)snprintf(length, sizeof(length), "%zu", json_size);
    memcpy(body, json, json_size);
    memcpy(body + json_size, tail, tail_size);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", path, headers, body, json_size + tail_size, &answer);
}

static void binary_tensors_are_used_where_they_were_received(void)
{
    const float values[4] = {1.5f, -2.25f, 3e38f, 0.1f};
    begin();
    ask_binary("/v2/models/identity/infer",
               "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[4],"
               "\"parameters\":{\"binary_data_size\":16}}],\"outputs\":[{\"name\":\"OUTPUT0\","
               "\"parameters\":{\"binary_data\":true}}]}",
               values, sizeof(values));
    EXPECT_INT(answer.status, 200);
    EXPECT(loop.fake.last_in_place);
    EXPECT_TEXT(loopback_header(&answer, "Content-Type"), "application/octet-stream");
    EXPECT_BYTES(answer.body.data + answer.body.size - 16, values, 16);
    const char *length = loopback_header(&answer, "Inference-Header-Content-Length");
    char want[24];
    (void)snprintf(want, sizeof(want), "%zu", answer.body.size - 16);
    EXPECT_TEXT(length, want);
    end();
}

static void binary_output_may_be_the_default(void)
{
    begin();
    expect("simple",
           "{\"parameters\":{\"binary_data_output\":true,\"priority\":2,\"timeout\":5000,"
           "\"sequence_id\":\"x\",\"any\":1.5},\"inputs\":[" INPUT0 "," INPUT1
           "],\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{\"binary_data\":false}},"
           "{\"name\":\"OUTPUT1\"}]}",
           200, "\"data\":[0,2,4,6");
    EXPECT_HAS(loopback_text(&answer), "\"parameters\":{\"binary_data_size\":64}");
    EXPECT_INT(loop.fake.last_priority, 2);
    EXPECT_INT(loop.fake.last_timeout_us, 5000);
    end();
}

/* Clients write null for what they leave out. */
static void members_that_are_null_are_not_there(void)
{
    begin();
    expect("id_FP32",
           "{\"id\":null,\"parameters\":null,\"outputs\":null,\"inputs\":[{\"name\":\"INPUT0\","
           "\"parameters\":null,\"datatype\":\"FP32\",\"shape\":[1],\"data\":[5]}]}",
           200, "{\"model_name\":\"id_FP32\"");
    expect("id_FP32",
           "{\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":null}],\"inputs\":[{\"data\":null,"
           "\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[5]}]}",
           200, "\"data\":[5.0]");
    end();
}

static void an_empty_binary_output_needs_no_tail(void)
{
    begin();
    expect("id_FP32",
           "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\"INPUT0\","
           "\"datatype\":\"FP32\",\"shape\":[0],\"data\":[]}]}",
           200, "\"binary_data_size\":0");
    EXPECT_TEXT(loopback_header(&answer, "Content-Type"), "application/json");
    EXPECT(!loopback_header(&answer, "Inference-Header-Content-Length"));
    end();
}

static void wrong_binary_sizes_are_refused(void)
{
    static const uint8_t zeros[80];
    const char *json = "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[16],"
                       "\"parameters\":{\"binary_data_size\":64}}]}";
    begin();
    ask_binary("/v2/models/id_INT32/infer", json, zeros, 60);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(loopback_text(&answer), "expecting 4 additional bytes");
    ask_binary("/v2/models/id_INT32/infer", json, zeros, 68);
    EXPECT_HAS(loopback_text(&answer), "unexpected additional input data");
    ask_binary("/v2/models/id_INT32/infer",
               "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[16],"
               "\"parameters\":{\"binary_data_size\":60}}]}",
               zeros, 60);
    EXPECT_HAS(loopback_text(&answer), "Expected 64, got 60");
    ask_binary("/v2/models/id_INT32/infer",
               "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[16],"
               "\"parameters\":{\"binary_data_size\":18446744073709551615}}]}",
               zeros, 64);
    EXPECT_INT(answer.status, 400);
    end();
}

static void header_lengths_are_checked(void)
{
    static const char *const lengths[] = {
        "-5", "abc", "99999", "", "1e3", "0x10", "18446744073709551616"};
    begin();
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const char *headers[] = {"Inference-Header-Content-Length", lengths[i], NULL};
        loopback_release(&answer);
        loopback_ask(&loop, "POST", "/v2/models/identity/infer", headers, "{}", 2, &answer);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(loopback_text(&answer), "inference header size should be in range (0, 2)");
    }
    end();
}

static void ask_raw(const char *model, const void *body, size_t size)
{
    static const char *const headers[] = {"Inference-Header-Content-Length", "0", NULL};
    char path[100];
    (void)snprintf(path, sizeof(path), "/v2/models/%s/infer", model);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", path, headers, body, size, &answer);
}

static void a_raw_body_is_the_one_input(void)
{
    static const uint8_t zeros[80];
    begin();
    ask_raw("identity", zeros, 8);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(loopback_text(&answer), "\"shape\":[2],\"parameters\":{\"binary_data_size\":8}");
    ask_raw("classify", zeros, 40);
    EXPECT_HAS(loopback_text(&answer), "\"shape\":[1,10]");
    ask_raw("classify", zeros, 44);
    EXPECT_INT(answer.status, 400);
    ask_raw("identity", zeros, 6);
    EXPECT_HAS(loopback_text(&answer), "Expected a multiple of 4, got 6");
    ask_raw("simple", zeros, 64);
    EXPECT_HAS(loopback_text(&answer), "a raw body is for one input");
    ask_raw("id_BYTES", "anything", 8);
    EXPECT_INT(answer.status, 200);
    EXPECT_BYTES(answer.body.data + answer.body.size - 12, "\x8\0\0\0anything", 12);
    end();
}

static void labels_are_answered_on_request(void)
{
    begin();
    expect("classify",
           "{\"inputs\":[{\"name\":\"DATA\",\"datatype\":\"FP32\",\"shape\":[1,10],\"data\":"
           "[0,0,9,0,0,0,0,0,8,0]}],\"outputs\":[{\"name\":\"PROB\",\"parameters\":{"
           "\"classification\":2}}]}",
           200,
           "{\"name\":\"PROB\",\"datatype\":\"BYTES\",\"shape\":[1,2],\"data\":[\"9.000000:2:two\","
           "\"8.000000:8:eight\"]}");
    expect("classify",
           "{\"inputs\":[{\"name\":\"DATA\",\"datatype\":\"FP32\",\"shape\":[1,10],\"data\":"
           "[0,0,9,0,0,0,0,0,8,0]}],\"outputs\":[{\"name\":\"PROB\",\"parameters\":{"
           "\"classification\":18446744073709551615}}]}",
           200, "\"shape\":[1,10]");
    expect("id_BYTES",
           "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"x\"]"
           "}],\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{\"classification\":1}}]}",
           400, "cannot be classified");
    end();
}

static void compressed_requests_and_answers_work_together(void)
{
    static const char json[] = "{\"inputs\":[" INPUT0 "," INPUT1 "]}";
    static const char *const headers[] = {"Content-Encoding", "deflate", "Accept-Encoding",
                                          "gzip;q=0.5,deflate;q=0.4", NULL};
    uint8_t packed[1000], plain[2000];
    uLongf packed_size = sizeof(packed);
    begin();
    REQUIRE(compress(packed, &packed_size, (const Bytef *)json, strlen(json)) == Z_OK);
    loopback_ask(&loop, "POST", "/v2/models/simple/infer", headers, packed, packed_size, &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loopback_header(&answer, "Content-Encoding"), "gzip");
    z_stream stream = {.next_in = answer.body.data, .avail_in = (uInt)answer.body.size};
    stream.next_out = plain;
    stream.avail_out = sizeof(plain) - 1;
    REQUIRE(inflateInit2(&stream, 31) == Z_OK);
    EXPECT_INT(inflate(&stream, Z_FINISH), Z_STREAM_END);
    plain[stream.total_out] = '\0';
    EXPECT_HAS((const char *)plain, "\"data\":[0,2,4,6,8");
    (void)inflateEnd(&stream);
    end();
}

static void a_full_queue_is_said_with_retry_after(void)
{
    static const enum ifd_code codes[] = {IFD_BUSY, IFD_UNAVAILABLE, IFD_DEADLINE, IFD_NOMEM};
    begin();
    for (size_t i = 0; i < 4; i++) {
        loop.fake.refuse_submit = codes[i];
        expect("simple", "{\"inputs\":[" INPUT0 "," INPUT1 "]}", 503, "{\"error\":");
        EXPECT_TEXT(loopback_header(&answer, "Retry-After"), "1");
    }
    loop.fake.refuse_submit = IFD_OK;
    loop.fake.fail_run = IFD_INTERNAL;
    expect("simple", "{\"inputs\":[" INPUT0 "," INPUT1 "]}", 500, "the run failed");
    EXPECT(!loopback_header(&answer, "Retry-After"));
    loop.fake.fail_run = IFD_OK;
    end();
}

static void a_client_that_leaves_is_cancelled(void)
{
    static const char json[] = "{\"inputs\":[" INPUT0 "," INPUT1 "]}";
    struct loopback_exchange exchange;
    begin();
    loopback_begin(&loop, "POST", "/v2/models/simple/infer", NULL, json, strlen(json), &exchange);
    EXPECT(!exchange.is_answered);
    EXPECT_INT(loop.fake.job_count, 1);
    EXPECT(ifd_api_abandon(loop.api, &exchange.http));
    EXPECT_INT(loop.fake.job_count, 0);
    loopback_end(&exchange, NULL);
    loopback_finish(&loop);
}

static void a_run_that_cannot_be_cancelled_is_waited_for(void)
{
    static const char json[] = "{\"inputs\":[" INPUT0 "," INPUT1 "]}";
    struct loopback_exchange exchange;
    begin();
    loop.fake.cancel_waits = true;
    loopback_begin(&loop, "POST", "/v2/models/simple/infer", NULL, json, strlen(json), &exchange);
    EXPECT(!ifd_api_abandon(loop.api, &exchange.http));
    EXPECT(!exchange.is_answered);
    fake_service_run(&loop.fake);
    EXPECT(exchange.is_answered);
    loopback_end(&exchange, NULL);
    loopback_finish(&loop);
}

static void optional_inputs_may_be_left_out(void)
{
    begin();
    expect("strings",
           "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"x\"]}]}",
           200, "\"data\":[\"x\"]");
    expect("strings",
           "{\"inputs\":[{\"name\":\"FLAG\",\"datatype\":\"BOOL\",\"shape\":[1],\"data\":[true]}]}",
           400, "missing required input(s) ['IN']");
    end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(members_may_come_in_any_order),
        T(every_type_goes_through_json),
        T(what_json_lacks_is_quoted_in_answers),
        T(what_json_has_no_number_for_travels_in_binary_only),
        T(malformed_requests_are_refused),
        T(batches_are_checked_against_model_and_each_other),
        T(deep_nesting_is_refused),
        T(numbers_out_of_range_are_refused_with_their_place),
        T(binary_tensors_are_used_where_they_were_received),
        T(binary_output_may_be_the_default),
        T(members_that_are_null_are_not_there),
        T(an_empty_binary_output_needs_no_tail),
        T(wrong_binary_sizes_are_refused),
        T(header_lengths_are_checked),
        T(a_raw_body_is_the_one_input),
        T(labels_are_answered_on_request),
        T(compressed_requests_and_answers_work_together),
        T(a_full_queue_is_said_with_retry_after),
        T(a_client_that_leaves_is_cancelled),
        T(a_run_that_cannot_be_cancelled_is_waited_for),
        T(optional_inputs_may_be_left_out),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
