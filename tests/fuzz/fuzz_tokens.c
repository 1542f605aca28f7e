/* Any text as a file of tokens, and any line of it as a request's header: read, or refused with a
 * reason, both times alike. The one known token is found if the file has its sum; a token for one
 * model opens nothing that concerns all. */
#include <string.h>

#include "engine/base/str.h"
#include "server/auth/tokens.h"
#include "tests/fuzz/fuzz.h"

static void ask(const struct ifd_tokens *tokens, struct ifd_str header, struct ifd_str model)
{
    for (int access = IFD_ACCESS_KNOWN; access <= IFD_ACCESS_ADMIN; access++) {
        const enum ifd_access_class class = (enum ifd_access_class)access;
        struct ifd_str caller = {0}, again = {0};
        enum ifd_verdict verdict = ifd_tokens_judge(tokens, header, class, model, &caller);
        MUST(verdict < IFD_VERDICT_COUNT);
        MUST((verdict == IFD_VERDICT_NO_TOKEN || verdict == IFD_VERDICT_UNKNOWN_TOKEN) ==
             !caller.data);
        MUST(ifd_tokens_judge(tokens, header, class, model, &again) == verdict);
        MUST(caller.data == again.data && caller.size == again.size);
        MUST(caller.size <= IFD_TOKEN_NAME_BYTES_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ifd_str text = {.data = (const char *)data, .size = size};
    struct ifd_tokens *tokens = NULL, *again = NULL;
    struct ifd_err err = {0};
    enum ifd_code code = ifd_tokens_parse(text, ifd_alloc_system(), &tokens, &err);
    MUST(ifd_tokens_parse(text, ifd_alloc_system(), &again, &err) == code);
    MUST(!code == !!tokens && (!code || err.text[0] != '\0'));
    if (tokens) {
        MUST(ifd_tokens_count(tokens) > 0 && ifd_tokens_count(tokens) <= IFD_TOKENS_MAX);
        MUST(ifd_tokens_count(tokens) == ifd_tokens_count(again));
        ask(tokens, ifd_str("Bearer data-token"), ifd_str("digits"));
        ask(tokens, ifd_str("Bearer data-token"), (struct ifd_str){0});
        for (struct ifd_str rest = text; rest.data;) {
            const struct ifd_str line = ifd_str_part(&rest, '\n');
            ask(tokens, line, line);
        }
    }
    ifd_tokens_destroy(tokens);
    ifd_tokens_destroy(again);
    return 0;
}
