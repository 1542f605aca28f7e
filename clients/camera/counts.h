/** What became of the frames of a camera, and how old they were when they were answered. */
#ifndef INFERD_CLIENTS_CAMERA_COUNTS_H
#define INFERD_CLIENTS_CAMERA_COUNTS_H

#include "spread.h"

struct ifd_counts {
    uint64_t sent, answered;
    uint64_t skipped;      /* a newer frame of the camera came (409) */
    uint64_t refused;      /* too much load, or its time ran out (503) */
    uint64_t failed;       /* any other end */
    uint64_t lost;         /* not sent: all connections were busy */
    struct ifd_spread age; /* of answered frames */
};

#endif
