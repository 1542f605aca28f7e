/* Errors that pass with time. */
#include "api/core/errors.h"

bool ifd_code_may_retry(enum ifd_code code)
{
    return code == IFD_BUSY || code == IFD_UNAVAILABLE || code == IFD_DEADLINE || code == IFD_NOMEM;
}
