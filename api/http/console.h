/** The page of GET /console, made from console.html by console.cmake. */
#ifndef INFERD_API_HTTP_CONSOLE_H
#define INFERD_API_HTTP_CONSOLE_H

#include "inferd/types.h"

extern const struct ifd_bytes ifd_console_page;
/** Value of its Content-Security-Policy. */
extern const char ifd_console_policy[];

#endif
