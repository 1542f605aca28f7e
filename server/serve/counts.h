/** Counts requests: statistics of a version, which end with it, and its metrics, which continue.
 *  Thread: loop. */
#ifndef INFERD_SERVER_SERVE_COUNTS_H
#define INFERD_SERVER_SERVE_COUNTS_H

#include "server/serve/served.h"

/** An inference request begins, and ends with any outcome. */
void ifd_count_begun(struct ifd_served *served);
void ifd_count_ended(struct ifd_served *served, const struct ifd_request_end *end);

/** A job of a request ended, see job->code. */
void ifd_count_job(struct ifd_served *served, const struct ifd_job *job,
                   const struct ifd_infer_request *request);
/** A request reached the queue, or nearly, and has no result because of code. ifd_count_job counts
 *  failed jobs itself. */
void ifd_count_failure(struct ifd_served *served, uint64_t received_ns, enum ifd_code code);

#endif
