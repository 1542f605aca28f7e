/** Where frames come from: the pictures of a folder, or a camera of this machine (V4L2). */
#ifndef INFERD_CLIENTS_CAMERA_FEED_H
#define INFERD_CLIENTS_CAMERA_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ifd_feed;

/** A frame, for one thread. */
struct ifd_frame {
    const void *data;
    size_t bytes;
    const char *content_type; /* the feed's; NULL: the server finds the kind by the first bytes */
    uint64_t taken_ns;        /* monotonic; 0: whenever it is sent */
    void *memory;             /* of a device's frame; freed by ifd_frame_finish */
    size_t capacity;
};

/** path: a folder, one picture, or a device. Reads all pictures of a folder, by name: up to 4096 of
 *  1 GiB together. On failure NULL, with a sentence in text. */
struct ifd_feed *ifd_feed_open(const char *path, unsigned width, unsigned height, char *text,
                               size_t text_bytes);
void ifd_feed_close(struct ifd_feed *feed);
/** Fills frame with a folder's picture of this number (they repeat), or with a device's newest one.
 *  False: the device gives none any more, or there is no memory. Thread: any. */
bool ifd_feed_take(struct ifd_feed *feed, uint64_t number, struct ifd_frame *frame);
void ifd_frame_finish(struct ifd_frame *frame);

#endif
