/** A camera of this machine: the newest frame of a V4L2 device, as MJPEG or YUYV. */
#ifndef INFERD_CLIENTS_CAMERA_DEVICE_H
#define INFERD_CLIENTS_CAMERA_DEVICE_H

#include "feed.h"

struct ifd_device;

/** On failure NULL, with a sentence in text. */
struct ifd_device *ifd_device_open(const char *path, unsigned width, unsigned height, char *text,
                                   size_t text_bytes);
void ifd_device_close(struct ifd_device *device);
/** As ifd_feed_take; waits for the first frame. Thread: any. */
bool ifd_device_take(struct ifd_device *device, struct ifd_frame *frame);

#endif
