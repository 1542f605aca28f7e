/* Sounds: each coding of WAV, mixing, resampling, files that are cut or lie. */
#include <math.h>
#include <string.h>

#include "server/media/sound.h"
#include "tests/support/test.h"

#define RATE 16000

struct file {
    uint8_t data[1 << 16];
    size_t size;
};

static void put(struct file *file, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        file->data[file->size++] = (uint8_t)(value >> (8 * i));
    }
}

static void put_text(struct file *file, const char *text)
{
    memcpy(file->data + file->size, text, 4);
    file->size += 4;
}

/* The header of a file with data_bytes of samples behind it. */
static void begin(struct file *file, uint32_t coding, uint32_t bits, uint32_t channels,
                  uint32_t rate, uint32_t data_bytes)
{
    file->size = 0;
    put_text(file, "RIFF");
    put(file, 36 + 11 + 1 + data_bytes, 4);
    put_text(file, "WAVE");
    put_text(file, "LIST"); /* an odd chunk that nobody reads */
    put(file, 3, 4);
    put(file, 0, 4);
    put_text(file, "fmt ");
    put(file, 16, 4);
    put(file, coding, 2);
    put(file, channels, 2);
    put(file, rate, 4);
    put(file, rate * channels * bits / 8, 4);
    put(file, channels * bits / 8, 2);
    put(file, bits, 2);
    put_text(file, "data");
    put(file, data_bytes, 4);
}

static enum ifd_code read_file(const struct file *file, uint32_t rate, struct ifd_arena *arena,
                               float **ret, size_t *ret_count, struct ifd_err *err)
{
    const struct ifd_sound_source source = {.bytes = {.data = file->data, .size = file->size}};
    ifd_arena_init(arena, ifd_alloc_system(), 0);
    return ifd_sound_read(&source, rate, arena, ret, ret_count, err);
}

static uint64_t bits_of(double value, int bytes)
{
    const float single = (float)value;
    uint64_t bits = 0;
    memcpy(&bits, bytes == 8 ? (const void *)&value : (const void *)&single, (size_t)bytes);
    return bits;
}

static void every_coding_is_read(void)
{
    /* The samples ½ and -¼ in each coding. */
    static const struct {
        uint32_t coding, bits;
        uint64_t half, quarter;
    } codings[] = {{1, 8, 192, 96},
                   {1, 16, 0x4000, 0xe000},
                   {1, 24, 0x400000, 0xe00000},
                   {1, 32, 0x40000000, 0xe0000000},
                   {3, 32, 0x3f000000, 0xbe800000},
                   {3, 64, 0x3fe0000000000000, 0xbfd0000000000000}};
    for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
        static struct file file;
        struct ifd_arena arena;
        struct ifd_err err = {0};
        float *sample = NULL;
        size_t count = 0;
        const int bytes = (int)codings[i].bits / 8;
        begin(&file, codings[i].coding, codings[i].bits, 1, RATE, (uint32_t)(2 * bytes));
        put(&file, codings[i].half, bytes);
        put(&file, codings[i].quarter, bytes);
        REQUIRE_OK(read_file(&file, RATE, &arena, &sample, &count, &err), &err);
        REQUIRE(count == 2);
        EXPECT_CLOSE(sample[0], 0.5, 0);
        EXPECT_CLOSE(sample[1], -0.25, 0);
        ifd_arena_finish(&arena);
    }
}

static void channels_are_mixed(void)
{
    static struct file file;
    struct ifd_arena arena;
    struct ifd_err err = {0};
    float *sample = NULL;
    size_t count = 0;
    begin(&file, 3, 32, 3, RATE, 24);
    for (int i = 0; i < 6; i++) {
        put(&file, bits_of(i == 5 ? NAN : 0.25 * i, 4), 4);
    }
    REQUIRE_OK(read_file(&file, RATE, &arena, &sample, &count, &err), &err);
    REQUIRE(count == 2);
    EXPECT_CLOSE(sample[0], 0.25, 1e-7);
    EXPECT_CLOSE(sample[1], 0, 0); /* what is no number is silence */
    ifd_arena_finish(&arena);
}

/* A sine of 440 Hz keeps its pitch, phase and loudness at other rates. */
static void rates_are_changed(void)
{
    static const uint32_t rates[] = {8000, 22050, 44100, 48000, 44101};
    for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
        static struct file file;
        struct ifd_arena arena;
        struct ifd_err err = {0};
        float *sample = NULL;
        size_t count = 0;
        const uint32_t samples = rates[r] / 4;
        begin(&file, 3, 32, 1, rates[r], samples * 4);
        for (uint32_t i = 0; i < samples; i++) {
            put(&file, bits_of(0.5 * sin(2 * 3.141592653589793 * 440 * i / rates[r]), 4), 4);
        }
        REQUIRE_OK(read_file(&file, RATE, &arena, &sample, &count, &err), &err);
        EXPECT(count >= RATE / 4 - 1 && count <= RATE / 4 + 1);
        for (int i = 200; i < RATE / 4 - 200; i++) {
            EXPECT_CLOSE(sample[i], 0.5 * sin(2 * 3.141592653589793 * 440 * i / RATE), 2e-3);
        }
        ifd_arena_finish(&arena);
    }
}

static void samples_without_a_header_are_read(void)
{
    static const uint8_t data[] = {0, 0x40, 0, 0, 0, 0xc0, 0, 0, 9};
    const struct ifd_sound_source source = {.bytes = {.data = data, .size = sizeof(data)},
                                            .format = IFD_SOUND_S16LE,
                                            .rate = RATE,
                                            .channels = 2};
    struct ifd_arena arena;
    struct ifd_err err = {0};
    float *sample = NULL;
    size_t count = 0;
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    REQUIRE_OK(ifd_sound_read(&source, RATE, &arena, &sample, &count, &err), &err);
    REQUIRE(count == 2); /* the rest of a frame is dropped */
    EXPECT_CLOSE(sample[0], 0.25, 0);
    EXPECT_CLOSE(sample[1], -0.25, 0);
    ifd_arena_finish(&arena);
}

/* Its samples would need more memory than the arena gives. */
static void a_sound_that_is_too_long_is_refused_before_it_is_read(void)
{
    static const uint8_t data[4000];
    struct ifd_sound_source source = {.bytes = {.data = data, .size = sizeof(data)},
                                      .format = IFD_SOUND_U8,
                                      .rate = RATE / 8,
                                      .channels = 1,
                                      .most = 31999};
    struct ifd_arena arena;
    struct ifd_err err = {0};
    float *sample = NULL;
    size_t count = 0;
    ifd_arena_init(&arena, ifd_alloc_system(), 1024);
    EXPECT_CODE(ifd_sound_read(&source, RATE, &arena, &sample, &count, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "a sound of 2.0 s, the most are 2.0 s");
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    source.most = 32000;
    REQUIRE_OK(ifd_sound_read(&source, RATE, &arena, &sample, &count, &err), &err);
    EXPECT_INT(count, 32000);
    ifd_arena_finish(&arena);
}

static void data_ends_with_the_file(void)
{
    static struct file file;
    struct ifd_arena arena;
    struct ifd_err err = {0};
    float *sample = NULL;
    size_t count = 0;
    begin(&file, 1, 16, 1, RATE, 0xffffffff);
    put(&file, 0x2000, 2);
    REQUIRE_OK(read_file(&file, RATE, &arena, &sample, &count, &err), &err);
    REQUIRE(count == 1);
    EXPECT_CLOSE(sample[0], 0.25, 0);
    ifd_arena_finish(&arena);
}

static void wrong_files_are_refused(void)
{
    static const struct {
        uint32_t coding, bits, channels, rate, bytes;
        enum ifd_code code;
        const char *why;
    } wrong[] = {
        {2, 4, 1, RATE, 8, IFD_UNSUPPORTED, "coding 2 with 4 bits"},
        {1, 12, 1, RATE, 8, IFD_UNSUPPORTED, "coding 1 with 12 bits"},
        {1, 16, 0, RATE, 8, IFD_INVALID, "16000 samples a second and 0 channels"},
        {1, 16, 65, RATE, 8, IFD_INVALID, "65 channels"},
        {1, 16, 1, 0, 8, IFD_INVALID, "sound of 0 samples a second"},
        {1, 16, 1, 4000000000u, 8, IFD_INVALID, "sound of 4000000000 samples"},
        {1, 16, 1, RATE, 0, IFD_INVALID, "sound without samples"},
    };
    static struct file file;
    struct ifd_arena arena;
    float *sample = NULL;
    size_t count = 0;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ifd_err err = {0};
        begin(&file, wrong[i].coding, wrong[i].bits, wrong[i].channels, wrong[i].rate,
              wrong[i].bytes);
        put(&file, 0, (int)wrong[i].bytes);
        EXPECT_CODE(read_file(&file, RATE, &arena, &sample, &count, &err), wrong[i].code, &err);
        EXPECT_HAS(err.text, wrong[i].why);
        ifd_arena_finish(&arena);
    }
    begin(&file, 1, 16, 1, RATE, 8);
    for (; file.size > 0; file.size--) { /* cut anywhere in front of the samples */
        struct ifd_err err = {0};
        EXPECT(read_file(&file, RATE, &arena, &sample, &count, &err) != IFD_OK);
        ifd_arena_finish(&arena);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_coding_is_read),
        T(channels_are_mixed),
        T(rates_are_changed),
        T(samples_without_a_header_are_read),
        T(a_sound_that_is_too_long_is_refused_before_it_is_read),
        T(data_ends_with_the_file),
        T(wrong_files_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
