/** Is a client slower than it may be? Bytes are counted over windows, so that neither a fast start nor a byte now and then
 *  hides a slow rest. Pure; times are the caller's. Thread: any. */
#ifndef INFERD_SERVER_NET_PACE_H
#define INFERD_SERVER_NET_PACE_H

#include <stdbool.h>
#include <stdint.h>

/** A client may stand still this long: shorter than the patience of users, longer than what loss on a radio link costs. */
#define IFD_PACE_WINDOW_MS UINT64_C(5000)

struct ifd_pace {
    uint64_t since_ms, bytes;
};

/** The count of bytes stands at bytes now. true: at the end of a window, less than min_rate bytes a second came in it.
 *  min_rate 0: never. */
bool ifd_pace_is_slow(struct ifd_pace *pace, uint64_t now_ms, uint64_t bytes, uint32_t min_rate);

#endif
