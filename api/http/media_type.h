/** The value of a header like Content-Type: "type/subtype; name=value; name=\"value\"". Thread:
 *  any. */
#ifndef INFERD_API_HTTP_MEDIA_TYPE_H
#define INFERD_API_HTTP_MEDIA_TYPE_H

#include "inferd/types.h"

/** Whether the part in front of the first semicolon is this, in any case. */
bool ifd_media_type_is(struct ifd_str header, const char *type);

/** Value of a parameter (name in any case), without quotes; {NULL,0} if absent. */
struct ifd_str ifd_media_type_parameter(struct ifd_str header, const char *name);

#endif
