/** Codes as HTTP statuses, and statuses as outcomes. Thread: any. */
#ifndef INFERD_API_HTTP_STATUS_H
#define INFERD_API_HTTP_STATUS_H

#include "api/http/http.h"

/** Status of the answer to a request that ended with code; 200 for IFD_OK. */
int ifd_http_status(enum ifd_code code);

/** How the request ended that got this answer. */
enum ifd_outcome ifd_http_outcome(const struct ifd_http_response *response);

#endif
