/** Cameras that send frames at a rate, each over several connections. */
#ifndef INFERD_CLIENTS_CAMERA_SENDER_H
#define INFERD_CLIENTS_CAMERA_SENDER_H

#include "counts.h"
#include "feed.h"
#include "options.h"

struct ifd_senders;

/** Starts all cameras; their first frames are spread over a period. token: NULL for none. feed,
 *  options and token outlive the senders. On failure NULL, with a sentence in text. */
struct ifd_senders *ifd_senders_start(const struct ifd_camera_options *options, const char *token,
                                      struct ifd_feed *feed, char *text, size_t text_bytes);
/** True once no frame will be sent any more: the device ended. Thread: any. */
bool ifd_senders_have_ended(struct ifd_senders *senders);
/** Sends nothing new, and waits for what is under way. */
void ifd_senders_stop(struct ifd_senders *senders);
/** Of a camera; after stop. */
const struct ifd_counts *ifd_senders_counts(const struct ifd_senders *senders, unsigned camera);
/** The first failure in words; "": there was none. After stop. */
const char *ifd_senders_failure(const struct ifd_senders *senders);
void ifd_senders_destroy(struct ifd_senders *senders);

#endif
