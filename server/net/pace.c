/* Rates over time windows. */
#include "server/net/pace.h"

bool ifd_pace_is_slow(struct ifd_pace *pace, uint64_t now_ms, uint64_t bytes, uint32_t min_rate)
{
    uint64_t took_ms = now_ms - pace->since_ms;
    if (took_ms < IFD_PACE_WINDOW_MS) {
        return false;
    }
    uint64_t moved = bytes - pace->bytes;
    *pace = (struct ifd_pace){.since_ms = now_ms, .bytes = bytes};
    return moved < (uint64_t)min_rate * took_ms / 1000;
}
