/* Reads WAV, mixes, resamples. */
#include "server/media/sound.h"

#include <math.h>
#include <string.h>

#include <speex/speex_resampler.h>

#define RATE_MIN     1000
#define RATE_MAX     384000
#define CHANNELS_MAX 64
#define QUALITY      5 /* of speexdsp's 0 … 10: below the noise of 16 bits */
#define PIECE        ((size_t)1 << 16)
#define LOUDEST      1000.0f /* floats beyond are clipped, so that resampling stays finite */

/* Interleaved samples. */
struct samples {
    struct ifd_bytes bytes;
    enum ifd_sound_format format;
    uint32_t rate, channels;
};

/* ---- WAV ---- */

static uint32_t number(struct ifd_bytes bytes, size_t at, int size)
{
    uint32_t value = 0;
    for (int i = 0; i < size; i++) {
        value |= (uint32_t)bytes.data[at + (size_t)i] << (8 * i);
    }
    return value;
}

static enum ifd_sound_format format_of(uint32_t coding, uint32_t bits)
{
    if (coding == 1) {
        return bits == 8    ? IFD_SOUND_U8
               : bits == 16 ? IFD_SOUND_S16LE
               : bits == 24 ? IFD_SOUND_S24LE
               : bits == 32 ? IFD_SOUND_S32LE
                            : IFD_SOUND_WAV;
    }
    return coding == 3 && bits == 32   ? IFD_SOUND_F32LE
           : coding == 3 && bits == 64 ? IFD_SOUND_F64LE
                                       : IFD_SOUND_WAV;
}

static enum ifd_code read_format(struct ifd_bytes chunk, struct samples *ret, struct ifd_err *err)
{
    if (chunk.size < 16) {
        return ifd_fail(err, IFD_CORRUPT, "WAV: a format of %zu bytes", chunk.size);
    }
    uint32_t coding = number(chunk, 0, 2);
    const uint32_t bits = number(chunk, 14, 2);
    if (coding == 0xfffe && chunk.size >= 26) { /* extensible: the coding begins a GUID */
        coding = number(chunk, 24, 2);
    }
    ret->channels = number(chunk, 2, 2);
    ret->rate = number(chunk, 4, 4);
    ret->format = format_of(coding, bits);
    return ret->format != IFD_SOUND_WAV
               ? IFD_OK
               : ifd_fail(err, IFD_UNSUPPORTED,
                          "WAV: coding %u with %u bits is neither PCM of 8, 16, 24 or 32 nor "
                          "floats of 32 or 64",
                          coding, bits);
}

/* A data chunk that claims more than there is ends with the file, as recorders leave it. */
static enum ifd_code read_wav(struct ifd_bytes file, struct samples *ret, struct ifd_err *err)
{
    bool has_format = false, has_data = false;
    size_t at = 12;
    if (file.size < 12 || memcmp(file.data, "RIFF", 4) != 0 ||
        memcmp(file.data + 8, "WAVE", 4) != 0) {
        return ifd_fail(err, IFD_CORRUPT, "sound: no WAV file");
    }
    while (file.size - at >= 8 && !has_data) {
        const uint32_t claimed = number(file, at + 4, 4);
        const size_t left = file.size - at - 8;
        const struct ifd_bytes chunk = {.data = file.data + at + 8,
                                        .size = claimed < left ? claimed : left};
        if (memcmp(file.data + at, "fmt ", 4) == 0) {
            enum ifd_code code = read_format(chunk, ret, err);
            if (code) {
                return code;
            }
            has_format = true;
        } else if (memcmp(file.data + at, "data", 4) == 0) {
            ret->bytes = chunk;
            has_data = true;
        }
        at += 8 + chunk.size;
        at += chunk.size % 2 != 0 && at < file.size; /* chunks begin at even places */
    }
    return has_format && has_data
               ? IFD_OK
               : ifd_fail(err, IFD_CORRUPT, "WAV: no %s", has_format ? "data" : "format in front");
}

/* ---- samples ---- */

static float sample_at(const uint8_t *data, enum ifd_sound_format format)
{
    const struct ifd_bytes bytes = {.data = data, .size = 8};
    float single = 0;
    double wide = 0;
    switch (format) {
    case IFD_SOUND_U8:
        return (float)(data[0] - 128) / 128;
    case IFD_SOUND_S16LE:
        return (float)(int16_t)number(bytes, 0, 2) / 32768;
    case IFD_SOUND_S24LE:
        return (float)(int32_t)(number(bytes, 0, 3) << 8) / 2147483648.0f;
    case IFD_SOUND_S32LE:
        return (float)(int32_t)number(bytes, 0, 4) / 2147483648.0f;
    case IFD_SOUND_F32LE:
        memcpy(&single, data, sizeof(single));
        return single;
    case IFD_SOUND_F64LE:
        memcpy(&wide, data, sizeof(wide));
        return (float)wide;
    case IFD_SOUND_WAV:
    case IFD_SOUND_COUNT:
        break;
    }
    return 0;
}

static size_t frame_bytes(const struct samples *samples)
{
    static const size_t sizes[] = {
#define X(id, name, bytes) [IFD_SOUND_##id] = (bytes),
        IFD_SOUND_FORMATS(X)
#undef X
    };
    return sizes[samples->format] * samples->channels;
}

/* Samples of the result. */
static uint64_t count_at(const struct samples *samples, uint64_t count, uint32_t rate)
{
    return (count * rate + samples->rate - 1) / samples->rate;
}

/* A low rate and few bits make a small file a long sound. */
static enum ifd_code check_length(const struct samples *samples, uint32_t rate, size_t most,
                                  struct ifd_err *err)
{
    const uint64_t count = samples->bytes.size / frame_bytes(samples);
    if (most == 0 || count_at(samples, count, rate) <= most) {
        return IFD_OK;
    }
    return ifd_fail(err, IFD_TOO_LARGE, "a sound of %.1f s, the most are %.1f s",
                    (double)count / samples->rate, (double)most / rate);
}

static enum ifd_code mix(const struct samples *samples, struct ifd_arena *arena, float **ret,
                         size_t *ret_count, struct ifd_err *err)
{
    const size_t frame = frame_bytes(samples), size = frame / samples->channels;
    const size_t count = samples->bytes.size / frame;
    float *mixed = ifd_arena_take_array(arena, count + 1, sizeof(*mixed));
    if (!mixed) {
        return ifd_arena_fail(arena, count * sizeof(*mixed), err);
    }
    const uint8_t *data = samples->bytes.data;
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (uint32_t c = 0; c < samples->channels; c++, data += size) {
            sum += sample_at(data, samples->format);
        }
        const float mean = isfinite(sum) ? sum / (float)samples->channels : 0;
        mixed[i] = fminf(fmaxf(mean, -LOUDEST), LOUDEST);
    }
    *ret = mixed;
    *ret_count = count;
    return IFD_OK;
}

/* Feeds the resampler in pieces; zeros at the end push out what it still holds. */
static void resample_all(SpeexResamplerState *state, const float *from, size_t count, float *to,
                         size_t wanted)
{
    static const float silence[256];
    size_t at = 0, made = 0;
    bool moves = true;
    while (made < wanted && moves) {
        const bool is_behind = at >= count;
        const size_t left = is_behind ? 256 : count - at, room = wanted - made;
        spx_uint32_t in = (spx_uint32_t)(left < PIECE ? left : PIECE);
        spx_uint32_t out = (spx_uint32_t)(room < PIECE ? room : PIECE);
        (void)speex_resampler_process_float(state, 0, is_behind ? silence : from + at, &in,
                                            to + made, &out);
        at += in;
        made += out;
        moves = in > 0 || out > 0;
    }
}

static enum ifd_code resample(const struct samples *samples, uint32_t rate, struct ifd_arena *arena,
                              float **inout, size_t *inout_count, struct ifd_err *err)
{
    int failed = 0;
    const uint64_t wanted = count_at(samples, *inout_count, rate);
    float *to =
        wanted < SIZE_MAX ? ifd_arena_take_array(arena, (size_t)wanted + 1, sizeof(*to)) : NULL;
    if (!to) {
        return ifd_arena_fail(arena, (size_t)wanted * sizeof(*to), err);
    }
    SpeexResamplerState *state = speex_resampler_init(1, samples->rate, rate, QUALITY, &failed);
    if (!state) {
        return ifd_fail(err, IFD_NOMEM, "sound from %u to %u samples a second: %s", samples->rate,
                        rate, speex_resampler_strerror(failed));
    }
    (void)speex_resampler_skip_zeros(state);
    resample_all(state, *inout, *inout_count, to, (size_t)wanted);
    speex_resampler_destroy(state);
    *inout = to;
    *inout_count = (size_t)wanted;
    return IFD_OK;
}

enum ifd_code ifd_sound_read(const struct ifd_sound_source *source, uint32_t rate,
                             struct ifd_arena *arena, float **ret, size_t *ret_count,
                             struct ifd_err *err)
{
    struct samples samples = {.bytes = source->bytes,
                              .format = source->format,
                              .rate = source->rate,
                              .channels = source->channels};
    float *mixed = NULL;
    size_t count = 0;
    enum ifd_code code =
        source->format == IFD_SOUND_WAV ? read_wav(source->bytes, &samples, err) : IFD_OK;
    if (!code && (samples.rate < RATE_MIN || samples.rate > RATE_MAX || samples.channels == 0 ||
                  samples.channels > CHANNELS_MAX)) {
        code = ifd_fail(err, IFD_INVALID,
                        "sound of %u samples a second and %u channels, expected %d … %d and "
                        "1 … %d",
                        samples.rate, samples.channels, RATE_MIN, RATE_MAX, CHANNELS_MAX);
    }
    if (!code) {
        code = check_length(&samples, rate, source->most, err);
    }
    if (!code) {
        code = mix(&samples, arena, &mixed, &count, err);
    }
    if (!code && count == 0) {
        code = ifd_fail(err, IFD_INVALID, "sound without samples");
    }
    if (!code && samples.rate != rate) {
        code = resample(&samples, rate, arena, &mixed, &count, err);
    }
    if (!code) {
        *ret = mixed;
        *ret_count = count;
    }
    return code;
}
