/** Sounds as requests send them and models want them. Shared by the API, which reads requests and
 *  writes answers, by server/serve and by server/media, which decodes. */
#ifndef INFERD_SERVER_MODEL_SOUND_H
#define INFERD_SERVER_MODEL_SOUND_H

#include "inferd/types.h"

/** Samples without a header, as `audio/x-raw; format=…` names them (GStreamer), and in WAV files:
 *  X(id, name, bytes). */
#define IFD_SOUND_FORMATS(X)                                                                       \
    X(U8, "U8", 1)                                                                                 \
    X(S16LE, "S16LE", 2)                                                                           \
    X(S24LE, "S24LE", 3)                                                                           \
    X(S32LE, "S32LE", 4)                                                                           \
    X(F32LE, "F32LE", 4)                                                                           \
    X(F64LE, "F64LE", 8)

#define X(id, name, bytes) IFD_SOUND_##id,
enum ifd_sound_format { IFD_SOUND_WAV, IFD_SOUND_FORMATS(X) IFD_SOUND_COUNT };
#undef X

/** A sound as a request brings it. */
struct ifd_sound_source {
    struct ifd_bytes bytes;
    enum ifd_sound_format format; /* WAV: its header tells the rest */
    uint32_t rate, channels;      /* of samples without a header */
    size_t most;                  /* samples of the result; more are refused. 0: any number */
};

/** How a sound becomes the tensor of an input: mixed to one channel, resampled to rate, cut into
 *  windows that fill the input and begin hop samples apart; -1 … 1. has_sound is false where the
 *  input cannot be a sound. */
struct ifd_sound_rule {
    bool has_sound;
    uint32_t rate, window, hop;
};

#endif
