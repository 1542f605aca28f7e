/* The one table from codes to statuses, and from statuses to outcomes. */
#include "api/http/status.h"

static const int statuses[] = {
    [IFD_OK] = 200,          [IFD_INVALID] = 400,  [IFD_CORRUPT] = 400,   [IFD_UNSUPPORTED] = 501,
    [IFD_NOT_FOUND] = 404,   [IFD_EXISTS] = 409,   [IFD_TOO_LARGE] = 413, [IFD_BUSY] = 503,
    [IFD_UNAVAILABLE] = 503, [IFD_DEADLINE] = 503, [IFD_CANCELLED] = 503, [IFD_NOMEM] = 503,
    [IFD_IO] = 500,          [IFD_INTERNAL] = 500,
};

_Static_assert(sizeof(statuses) / sizeof(statuses[0]) == IFD_CODE_COUNT,
               "a code has no HTTP status");
_Static_assert(IFD_CODE_COUNT == 14, "give the new code a status above, then count it here");

int ifd_http_status(enum ifd_code code)
{
    return statuses[(unsigned)code < IFD_CODE_COUNT ? code : IFD_INTERNAL];
}

enum ifd_outcome ifd_http_outcome(const struct ifd_http_response *response)
{
    int status = response->status;
    if (status == 408 || response->code == IFD_DEADLINE) {
        return IFD_OUTCOME_TIMEOUT;
    }
    if (status == 503 || status == 409) { /* 409: a newer frame of its source came */
        return IFD_OUTCOME_SHED;
    }
    /* 501: the request asked for an unsupported feature */
    if ((status >= 400 && status < 500) || status == 501 || status == 505) {
        return IFD_OUTCOME_CLIENT_ERROR;
    }
    return status >= 500 ? IFD_OUTCOME_FAILED : IFD_OUTCOME_OK;
}
