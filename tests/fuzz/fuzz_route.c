/* Any bytes as a path. First byte: the method. Must: a status that the table allows, nothing
 * kept. */
#include "api/http/handlers.h"
#include "engine/base/name.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/loopback.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS", "DELETE"};
    struct loopback loop;
    struct loopback_answer answer;
    struct ifd_arena arena;
    struct ifd_route_match match;
    char path[1024];
    if (size == 0 || size > sizeof(path)) {
        return 0;
    }
    memcpy(path, data + 1, size - 1);
    path[size - 1] = '\0';
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    enum ifd_code code =
        ifd_route_find(ifd_routes, ifd_route_count, IFD_HTTP_GET,
                       (struct ifd_str){.data = path, .size = size - 1}, &arena, &match, NULL);
    MUST(code == IFD_OK || code == IFD_NOT_FOUND || code == IFD_INVALID);
    MUST(code != IFD_OK || (match.route && (!match.model.data || ifd_name_is_valid(match.model))));
    ifd_arena_finish(&arena);

    loopback_init(&loop, ifd_alloc_system());
    loopback_ask(&loop, methods[data[0] % 5], path, NULL, "", 0, &answer);
    const int status = answer.status;
    MUST(status == 200 || status == 302 || status == 400 || status == 404 || status == 405 ||
         status == 501);
    MUST((status == 302) == (loopback_header(&answer, "Location") != NULL));
    MUST((status == 405) == (loopback_header(&answer, "Allow") != NULL));
    loopback_release(&answer);
    MUST(loop.fake.held_refs == 0 && loop.fake.held_outputs == 0 && loop.fake.job_count == 0);
    loopback_finish(&loop);
    return 0;
}
