/** What an HTTP client sees of an enum ifd_code. Thread: any. */
#ifndef INFERD_API_HTTP_STATUS_H
#define INFERD_API_HTTP_STATUS_H

#include "inferd/status.h"

/** Status of the answer to a request that ended with code; 200 for IFD_OK. */
int ifd_http_status(enum ifd_code code);

#endif
