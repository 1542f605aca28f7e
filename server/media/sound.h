/** Sounds into samples: WAV (PCM of 8 to 32 bits, floats) or samples without a header, mixed to one
 *  channel and resampled (libspeexdsp). Thread: any. */
#ifndef INFERD_SERVER_MEDIA_SOUND_H
#define INFERD_SERVER_MEDIA_SOUND_H

#include "engine/base/arena.h"
#include "server/model/sound.h"

/** Floats of -1 … 1 (float files may exceed that, up to 1000) at this rate, in the arena. Errors:
 *  CORRUPT, INVALID (an unlikely rate or number of channels), UNSUPPORTED (other codings),
 *  TOO_LARGE (source->most, before memory is taken), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_sound_read(const struct ifd_sound_source *source, uint32_t rate,
                                           struct ifd_arena *arena, float **ret, size_t *ret_count,
                                           struct ifd_err *err);

#endif
