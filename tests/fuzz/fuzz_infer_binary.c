/* Any bytes as a body with a binary part. First byte: the model; second: content type and codings;
 * third and fourth: the length of the JSON, 0 for a raw body. Must: an answer of 200 or 4xx whose
 * own binary length fits, nothing kept. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/loopback.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD_BYTES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const codings[] = {"identity", "gzip", "deflate", "br"};
    static const char *const accepted[] = {"", "gzip", "deflate;q=0.5, gzip;q=0.1", "*"};
    struct loopback loop;
    struct loopback_answer answer;
    char path[100], length[24];
    if (size < HEAD_BYTES) {
        return 0;
    }
    const unsigned choice = data[1];
    (void)snprintf(length, sizeof(length), "%u", data[2] | (unsigned)data[3] << 8);
    const char *const headers[] = {"Content-Encoding",
                                   codings[choice & 3],
                                   "Accept-Encoding",
                                   accepted[choice >> 2 & 3],
                                   "Content-Type",
                                   choice & 16 ? "image/png" : "application/octet-stream",
                                   choice & 32 ? NULL : "Inference-Header-Content-Length",
                                   length,
                                   NULL};
    loopback_init(&loop, ifd_alloc_system());
    const char *model = loop.fake.model[data[0] % loop.fake.model_count].desc.name;
    (void)snprintf(path, sizeof(path), "/v2/models/%s/infer", model);
    loopback_ask(&loop, "POST", path, headers, data + HEAD_BYTES, size - HEAD_BYTES, &answer);
    MUST(answer.status == 200 || (answer.status >= 400 && answer.status < 500));
    const char *json = loopback_header(&answer, "Inference-Header-Content-Length");
    MUST(!json || loopback_header(&answer, "Content-Encoding") ||
         strtoull(json, NULL, 10) < answer.body.size);
    loopback_release(&answer);
    MUST(loop.fake.held_refs == 0 && loop.fake.held_outputs == 0 && loop.fake.job_count == 0);
    loopback_finish(&loop);
    return 0;
}
