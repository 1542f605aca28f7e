/* Any bytes as a sound, with a header or without: refused, or finite samples of the wanted rate. */
#include <math.h>

#include "server/media/sound.h"
#include "tests/fuzz/fuzz.h"

static void read_sound(const struct ifd_sound_source *source)
{
    struct ifd_arena arena;
    struct ifd_err err = {0};
    float *sample = NULL;
    size_t count = 0;
    ifd_arena_init(&arena, ifd_alloc_system(), (size_t)64 << 20);
    const enum ifd_code code = ifd_sound_read(source, 16000, &arena, &sample, &count, &err);
    MUST(!code || err.text[0] != '\0');
    MUST(code || count > 0);
    for (size_t i = 0; i < count && !code; i++) {
        MUST(isfinite(sample[i]));
    }
    ifd_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ifd_sound_source source = {.bytes = {.data = data, .size = size}};
    read_sound(&source);
    source.format = (enum ifd_sound_format)(1 + size % (IFD_SOUND_COUNT - 1));
    source.rate = size % 3 == 0 ? 16000 : 22050;
    source.channels = (uint32_t)(size % 5);
    read_sound(&source);
    return 0;
}
