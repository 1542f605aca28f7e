/* The C client's inference call: what goes over the wire, and which answers it accepts. */
#include "inferd_client.h"
#include "tests/clients/fake_http.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct pair {
    struct fake_http *server;
    struct ifd_client *client;
    struct ifd_client_result *result;
    struct ifd_client_err err;
};

static void open_pair(struct pair *pair)
{
    *pair = (struct pair){.server = fake_http_start()};
    struct ifd_client_options options = {.url = fake_http_url(pair->server)};
    REQUIRE(ifd_client_create(&options, &pair->client, &pair->err) == IFD_CLIENT_OK);
}

static void close_pair(struct pair *pair)
{
    ifd_client_result_destroy(pair->result);
    ifd_client_destroy(pair->client);
    fake_http_stop(pair->server);
}

/* Sends one input and returns the code; the result lands in the pair. */
static enum ifd_client_code send_input(struct pair *p, const struct ifd_client_tensor *input,
                                       enum ifd_client_encoding encoding)
{
    const struct ifd_client_request request = {
        .model = "m", .encoding = encoding, .inputs = input, .input_count = 1};
    return ifd_client_infer(p->client, &request, &p->result, &p->err);
}

static const int64_t shape_1x2[] = {1, 2};
static const int32_t two_ints[] = {-7, 70000};
static const struct ifd_client_tensor ints = {"x", "INT32", shape_1x2, 2, two_ints, 8};

/* The client's result for a fixed request and this answer of the server. */
static enum ifd_client_code read_answer(struct pair *p, const char *body)
{
    fake_http_answer_text(p->server, 200, body);
    return send_input(p, &ints, IFD_CLIENT_JSON);
}

static void binary_request_is_json_and_then_the_tensors(void)
{
    struct pair p;
    open_pair(&p);
    fake_http_answer_text(p.server, 200, "{\"outputs\":[]}");
    EXPECT_INT(send_input(&p, &ints, IFD_CLIENT_BINARY), IFD_CLIENT_OK);
    static const char json[] =
        "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\"x\",\"datatype\":"
        "\"INT32\",\"shape\":[1,2],\"parameters\":{\"binary_data_size\":8}}]}";
    struct fake_request request = fake_http_request(p.server, 0);
    REQUIRE(request.body_bytes == strlen(json) + sizeof(two_ints));
    EXPECT_BYTES(request.body, json, strlen(json));
    EXPECT_BYTES(request.body + strlen(json), two_ints, sizeof(two_ints));
    char header[64];
    snprintf(header, sizeof(header), "\r\nInference-Header-Content-Length: %zu\r\n", strlen(json));
    EXPECT_HAS(request.head, header);
    EXPECT_HAS(request.head, "\r\nContent-Type: application/octet-stream\r\n");
    EXPECT_HAS(request.head, "POST /v2/models/m/infer HTTP/1.1\r\n");
    close_pair(&p);
}

static void json_request_carries_numbers_and_chosen_outputs(void)
{
    struct pair p;
    open_pair(&p);
    fake_http_answer_text(p.server, 200, "{\"outputs\":[]}");
    const struct ifd_client_wanted wanted[] = {{"y", 0}, {"z", 3}};
    const struct ifd_client_request request = {.model = "m",
                                               .version = "2",
                                               .id = "r1",
                                               .encoding = IFD_CLIENT_JSON,
                                               .inputs = &ints,
                                               .input_count = 1,
                                               .outputs = wanted,
                                               .output_count = 2};
    EXPECT_INT(ifd_client_infer(p.client, &request, &p.result, &p.err), IFD_CLIENT_OK);
    EXPECT_TEXT(fake_http_request(p.server, 0).body,
                "{\"id\":\"r1\",\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT32\",\"shape\":[1,2],"
                "\"data\":[-7,70000]}],\"outputs\":[{\"name\":\"y\",\"parameters\":{}},"
                "{\"name\":\"z\",\"parameters\":{\"classification\":3}}]}");
    EXPECT_HAS(fake_http_request(p.server, 0).head, "POST /v2/models/m/versions/2/infer ");
    close_pair(&p);
}

static void every_datatype_survives_json_both_ways(void)
{
    static const struct {
        const char *datatype, *json;
        unsigned char bytes[16];
        size_t size;
    } rows[] = {
        {"BOOL", "[true,false]", {1, 0}, 2},
        {"INT8", "[-128,127]", {0x80, 0x7f}, 2},
        {"INT16", "[-2,258]", {0xfe, 0xff, 2, 1}, 4},
        {"INT32", "[-2,16909060]", {0xfe, 0xff, 0xff, 0xff, 4, 3, 2, 1}, 8},
        {"INT64",
         "[-2,72623859790382856]",
         {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 8, 7, 6, 5, 4, 3, 2, 1},
         16},
        {"UINT8", "[0,255]", {0, 255}, 2},
        {"UINT16", "[0,65535]", {0, 0, 255, 255}, 4},
        {"UINT32", "[1,4294967295]", {1, 0, 0, 0, 255, 255, 255, 255}, 8},
        {"UINT64", "[1,256]", {1, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 16},
        {"FP32", "[1.5,-2.25]", {0, 0, 0xc0, 0x3f, 0, 0, 0x10, 0xc0}, 8},
        {"FP64", "[1.0,-0.5]", {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0xe0, 0xbf}, 16},
        {"BYTES", "[\"ab\",\"\"]", {2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0}, 10},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair p;
        open_pair(&p);
        char answer[256], sent[128];
        snprintf(answer, sizeof(answer),
                 "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"%s\",\"shape\":[1,2],\"data\":%s}]}",
                 rows[i].datatype, rows[i].json);
        fake_http_answer_text(p.server, 200, answer);
        const struct ifd_client_tensor input = {"x", rows[i].datatype, shape_1x2,
                                                2,   rows[i].bytes,    rows[i].size};
        REQUIRE(send_input(&p, &input, IFD_CLIENT_JSON) == IFD_CLIENT_OK);
        snprintf(sent, sizeof(sent), "\"data\":%s", rows[i].json);
        EXPECT_HAS(fake_http_request(p.server, 0).body, sent);
        const struct ifd_client_tensor *output = ifd_client_result_output(p.result, 0);
        EXPECT_TEXT(output->datatype, rows[i].datatype);
        REQUIRE(output->data_bytes == rows[i].size);
        EXPECT_BYTES(output->data, rows[i].bytes, rows[i].size);
        close_pair(&p);
    }
}

static void values_that_json_cannot_carry_are_refused_before_sending(void)
{
    struct pair p;
    open_pair(&p);
    const float nan_first[] = {NAN, 1};
    const uint64_t huge[] = {UINT64_MAX, 1};
    const unsigned char halves[4] = {0};
    const char wrong_length[] = {9, 0, 0, 0, 'a'};
    const struct ifd_client_tensor inputs[] = {
        {"x", "FP32", shape_1x2, 2, nan_first, 8},
        {"x", "UINT64", shape_1x2, 2, huge, 16},
        {"x", "FP16", shape_1x2, 2, halves, 4},
        {"x", "BYTES", shape_1x2, 2, wrong_length, sizeof(wrong_length)},
    };
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        EXPECT_INT(send_input(&p, &inputs[i], IFD_CLIENT_JSON), IFD_CLIENT_INVALID);
        EXPECT_HAS(p.err.text, "binary");
    }
    EXPECT_INT(fake_http_connection_count(p.server), 0);
    close_pair(&p);
}

static void input_that_does_not_fit_its_shape_is_refused_before_sending(void)
{
    struct pair p;
    open_pair(&p);
    static const int64_t negative[] = {-1, 2}, huge[] = {INT64_MAX, INT64_MAX};
    const struct ifd_client_tensor inputs[] = {
        {"x", "INT32", shape_1x2, 2, two_ints, 7},
        {"x", "INT33", shape_1x2, 2, two_ints, 8},
        {"x", "INT32", negative, 2, two_ints, 8},
        {"x", "INT32", huge, 2, two_ints, 8},
    };
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        EXPECT_INT(send_input(&p, &inputs[i], IFD_CLIENT_BINARY), IFD_CLIENT_INVALID);
    }
    EXPECT_INT(fake_http_connection_count(p.server), 0);
    close_pair(&p);
}

static void binary_and_json_outputs_mix_in_one_answer(void)
{
    struct pair p;
    open_pair(&p);
    static const char json[] =
        "{\"model_name\":\"m\",\"model_version\":\"3\",\"outputs\":["
        "{\"name\":\"a\",\"datatype\":\"UINT8\",\"shape\":[3],\"parameters\":{"
        "\"binary_data_size\":3}},"
        "{\"name\":\"b\",\"datatype\":\"INT16\",\"shape\":[1],\"data\":[-3]},"
        "{\"name\":\"c\",\"datatype\":\"BYTES\",\"shape\":[2],\"parameters\":{"
        "\"binary_data_size\":11}}]}";
    static const char tail[] = "\1\2\3\3\0\0\0cat\0\0\0\0";
    char body[sizeof(json) + sizeof(tail)], header[64];
    memcpy(body, json, sizeof(json) - 1);
    memcpy(body + sizeof(json) - 1, tail, sizeof(tail) - 1);
    snprintf(header, sizeof(header), "inference-header-content-length: %zu\r\n", sizeof(json) - 1);
    fake_http_answer(p.server, 200, header, body, sizeof(json) + sizeof(tail) - 2);
    REQUIRE(send_input(&p, &ints, IFD_CLIENT_BINARY) == IFD_CLIENT_OK);
    EXPECT_TEXT(ifd_client_result_version(p.result), "3");
    REQUIRE(ifd_client_result_output_count(p.result) == 3);
    const struct ifd_client_tensor *a = ifd_client_result_output(p.result, 0);
    const struct ifd_client_tensor *b = ifd_client_result_output(p.result, 1);
    const struct ifd_client_tensor *c = ifd_client_result_output(p.result, 2);
    EXPECT_BYTES(a->data, "\1\2\3", 3);
    EXPECT_BYTES(b->data, "\xfd\xff", 2);
    EXPECT_INT(b->shape[0], 1);
    size_t offset = 0, text_bytes = 9;
    const char *text = NULL;
    REQUIRE(ifd_client_bytes_next(c, &offset, &text, &text_bytes));
    EXPECT_INT(text_bytes, 3);
    EXPECT_BYTES(text, "cat", 3);
    REQUIRE(ifd_client_bytes_next(c, &offset, &text, &text_bytes));
    EXPECT_INT(text_bytes, 0);
    EXPECT(!ifd_client_bytes_next(c, &offset, &text, &text_bytes));
    close_pair(&p);
}

static void picture_goes_as_the_whole_body(void)
{
    struct pair p;
    open_pair(&p);
    fake_http_answer_text(p.server, 200,
                          "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"BYTES\",\"shape\":[1],"
                          "\"data\":[\"0.9:3:three\"]}]}");
    EXPECT_INT(
        ifd_client_infer_image(p.client, "m", NULL, "image/png", "PNG!", 4, &p.result, &p.err),
        IFD_CLIENT_OK);
    struct fake_request request = fake_http_request(p.server, 0);
    EXPECT_TEXT(request.body, "PNG!");
    EXPECT_HAS(request.head, "\r\nContent-Type: image/png\r\n");
    EXPECT(strstr(request.head, "Inference-Header") == NULL);
    close_pair(&p);
}

static void a_frame_names_its_source(void)
{
    struct pair p;
    open_pair(&p);
    fake_http_answer_text(p.server, 200, "{\"objects\":[]}");
    fake_http_answer_text(p.server, 409, "{\"error\":\"a newer frame came\"}");
    EXPECT_INT(ifd_client_infer_frame(p.client, "m", "2", "front door&x=1", "image/jpeg", "JPG!", 4,
                                      &p.result, &p.err),
               IFD_CLIENT_OK);
    EXPECT_TEXT(ifd_client_result_text(p.result), "{\"objects\":[]}");
    EXPECT_INT(
        ifd_client_infer_frame(p.client, "m", NULL, "door", "image/jpeg", "JPG!", 4, NULL, &p.err),
        IFD_CLIENT_REFUSED);
    EXPECT_INT(p.err.http_status, 409);
    EXPECT_TEXT(p.err.text, "a newer frame came");
    struct fake_request request = fake_http_request(p.server, 0);
    EXPECT_HAS(request.head,
               "POST /v2/models/m/versions/2/infer?source=front%20door%26x%3D1 HTTP/1.1\r\n");
    EXPECT_TEXT(request.body, "JPG!");
    close_pair(&p);
}

static void answers_that_are_no_inference_response_are_refused(void)
{
    static const char *const answers[] = {
        "",
        "hello",
        "[]",
        "{}",
        "{\"outputs\":{}}",
        "{\"outputs\":[1]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"data\":[1]}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1]}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP33\",\"shape\":[1],\"data\":[1]}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1]}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1],\"data\":[]}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"UINT8\",\"shape\":[1],\"data\":[300]}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1.5]}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1],\"parameters\":{"
        "\"binary_data_size\":4}}]}",
        "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1],\"parameters\":{"
        "\"binary_data_size\":-4}}]}",
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct pair p;
        open_pair(&p);
        EXPECT_INT(read_answer(&p, answers[i]), IFD_CLIENT_PROTOCOL);
        EXPECT(p.result == NULL);
        close_pair(&p);
    }
}

static void header_length_that_cannot_be_is_refused(void)
{
    static const char *const headers[] = {
        "Inference-Header-Content-Length: 9999\r\n",
        "Inference-Header-Content-Length: none\r\n",
        "Inference-Header-Content-Length: 99999999999999999999999999\r\n",
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct pair p;
        open_pair(&p);
        fake_http_answer(p.server, 200, headers[i], "{\"outputs\":[]}", 14);
        EXPECT_INT(send_input(&p, &ints, IFD_CLIENT_BINARY), IFD_CLIENT_PROTOCOL);
        close_pair(&p);
    }
}

static void bytes_behind_the_last_output_are_refused(void)
{
    struct pair p;
    open_pair(&p);
    fake_http_answer(p.server, 200, "Inference-Header-Content-Length: 14\r\n", "{\"outputs\":[]}xx",
                     16);
    EXPECT_INT(send_input(&p, &ints, IFD_CLIENT_BINARY), IFD_CLIENT_PROTOCOL);
    EXPECT_HAS(p.err.text, "left over");
    close_pair(&p);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(binary_request_is_json_and_then_the_tensors),
        T(json_request_carries_numbers_and_chosen_outputs),
        T(every_datatype_survives_json_both_ways),
        T(values_that_json_cannot_carry_are_refused_before_sending),
        T(input_that_does_not_fit_its_shape_is_refused_before_sending),
        T(binary_and_json_outputs_mix_in_one_answer),
        T(picture_goes_as_the_whole_body),
        T(a_frame_names_its_source),
        T(answers_that_are_no_inference_response_are_refused),
        T(header_length_that_cannot_be_is_refused),
        T(bytes_behind_the_last_output_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
