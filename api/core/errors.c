/* The one table from codes to HTTP. */
#include "api/core/errors.h"

#include "api/http/api.h"

static const struct {
    int status;
    bool may_retry;
} table[] = {
    [IFD_OK] = {200, false},         [IFD_INVALID] = {400, false},
    [IFD_CORRUPT] = {400, false},    [IFD_UNSUPPORTED] = {501, false},
    [IFD_NOT_FOUND] = {404, false},  [IFD_EXISTS] = {409, false},
    [IFD_TOO_LARGE] = {413, false},  [IFD_BUSY] = {503, true},
    [IFD_UNAVAILABLE] = {503, true}, [IFD_DEADLINE] = {503, true},
    [IFD_CANCELLED] = {503, false},  [IFD_NOMEM] = {503, true},
    [IFD_IO] = {500, false},         [IFD_INTERNAL] = {500, false},
};

_Static_assert(sizeof(table) / sizeof(table[0]) == IFD_CODE_COUNT, "a code has no HTTP status");
_Static_assert(IFD_CODE_COUNT == 14, "give the new code a row above, then count it here");

static enum ifd_code known(enum ifd_code code)
{
    return (unsigned)code < IFD_CODE_COUNT ? code : IFD_INTERNAL;
}

int ifd_http_status(enum ifd_code code)
{
    return table[known(code)].status;
}

enum ifd_outcome ifd_api_outcome(const struct ifd_http_response *response)
{
    int status = response->status;
    if (status == 408 || response->code == IFD_DEADLINE) {
        return IFD_OUTCOME_TIMEOUT;
    }
    if (status == 503) {
        return IFD_OUTCOME_SHED;
    }
    /* 501: the request asked for something that no server of this kind does */
    if ((status >= 400 && status < 500) || status == 501 || status == 505) {
        return IFD_OUTCOME_CLIENT_ERROR;
    }
    return status >= 500 ? IFD_OUTCOME_FAILED : IFD_OUTCOME_OK;
}

bool ifd_http_may_retry(enum ifd_code code)
{
    return table[known(code)].may_retry;
}
