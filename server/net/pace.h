/** Detects slow clients. Bytes are counted over time windows, so that neither a fast start nor an
 *  occasional byte hides a slow client. Pure; the caller passes the time. Thread: any. */
#ifndef INFERD_SERVER_NET_PACE_H
#define INFERD_SERVER_NET_PACE_H

#include <stdbool.h>
#include <stdint.h>

/** A client may pause this long: longer than packet loss on a radio link takes, shorter than the
 *  patience of users. */
#define IFD_PACE_WINDOW_MS UINT64_C(5000)

struct ifd_pace {
    uint64_t since_ms, bytes;
};

/** bytes: total until now. True: a window has ended with less than min_rate bytes per second.
 *  min_rate 0: never. */
bool ifd_pace_is_slow(struct ifd_pace *pace, uint64_t now_ms, uint64_t bytes, uint32_t min_rate);

#endif
