/** The orientation that a camera wrote into a picture. Thread: any. */
#ifndef INFERD_SERVER_MEDIA_EXIF_H
#define INFERD_SERVER_MEDIA_EXIF_H

#include "inferd/types.h"

/** The orientation, 1 … 8, of EXIF data, which begin with the TIFF header ("II*" or "MM"). 1, which
 *  is upright, for data without one or that are broken: a picture is worth more than its notes. */
unsigned ifd_exif_orientation(struct ifd_bytes exif);

#endif
