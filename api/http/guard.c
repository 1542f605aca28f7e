/* Access over HTTP: asks the guard, refuses as RFC 6750 says. */
#include "api/http/guard.h"

#include "api/http/answer.h"
#include "engine/base/str.h"

struct refusal {
    int status;
    const char *challenge, *text;
};

static const struct refusal refusals[IFD_VERDICT_COUNT] = {
    [IFD_VERDICT_NO_TOKEN] = {401, "Bearer realm=\"inferd\"",
                              "this server requires a token: Authorization: Bearer TOKEN"},
    [IFD_VERDICT_UNKNOWN_TOKEN] = {401, "Bearer realm=\"inferd\", error=\"invalid_token\"",
                                   "the server does not know this token"},
    [IFD_VERDICT_OTHER_MODEL] = {403, "Bearer realm=\"inferd\", error=\"insufficient_scope\"",
                                 "this token is for other models"},
};

/* The token lacks the class that the request needs. */
#define OTHER_CLASS(name)                                                                          \
    {                                                                                              \
        403, "Bearer realm=\"inferd\", error=\"insufficient_scope\", scope=\"" name "\"",          \
            "this request requires a token of class " name                                         \
    }
static const struct refusal other_class[] = {
    [IFD_ACCESS_DATA] = OTHER_CLASS("data"),
    [IFD_ACCESS_OBSERVE] = OTHER_CLASS("observe"),
    [IFD_ACCESS_ADMIN] = OTHER_CLASS("admin"),
};

bool ifd_guard_admits(const struct ifd_guard *guard, struct ifd_http_exchange *exchange,
                      struct ifd_str authorization, enum ifd_access_class access,
                      struct ifd_str model)
{
    if (!guard || access == IFD_ACCESS_OPEN || exchange->is_local_admin) {
        return true;
    }
    struct ifd_str caller = {0};
    enum ifd_verdict verdict = guard->judge(guard->context, authorization, access, model, &caller);
    if (caller.data) {
        exchange->caller = ifd_arena_text(exchange->arena, caller.data, caller.size);
        if (!exchange->caller) {
            ifd_answer_fail(exchange, IFD_NOMEM, NULL);
            return false;
        }
    }
    if (verdict == IFD_VERDICT_GRANTED) {
        return true;
    }
    const struct refusal *refusal =
        verdict == IFD_VERDICT_OTHER_CLASS ? &other_class[access] : &refusals[verdict];
    ifd_answer_error(exchange, refusal->status, ifd_str(refusal->text));
    ifd_answer_header(&exchange->response, "WWW-Authenticate", refusal->challenge);
    return false;
}

/* A request without a token is not judged: probes bring none, and this must not count as a
 * denial. */
bool ifd_guard_trusts(const struct ifd_guard *guard, const struct ifd_http_exchange *exchange,
                      enum ifd_access_class access)
{
    struct ifd_str caller = {0};
    if (!guard || exchange->is_local_admin) {
        return true;
    }
    const struct ifd_str authorization = exchange->header(exchange, "Authorization");
    return authorization.data && guard->judge(guard->context, authorization, access,
                                              (struct ifd_str){0}, &caller) == IFD_VERDICT_GRANTED;
}
