/* The test frame. */
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EXIT_SKIPPED 77
#define NO_SKIPS     "INFERD_TEST_NO_SKIPS"

static int failures;
static char **extra_args;
static size_t extra_count;

int test_main(int argc, char **argv, const struct test_case *cases, size_t count)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    extra_args = argv + 2;
    extra_count = argc > 2 ? (size_t)argc - 2 : 0;
    size_t ran = 0;
    for (size_t i = 0; i < count; i++) {
        if (!only || strcmp(only, cases[i].name) == 0) {
            int before = failures;
            cases[i].run();
            ran++;
            printf("%s %s\n", failures == before ? "ok  " : "FAIL", cases[i].name);
        }
    }
    if (ran == 0) {
        fprintf(stderr, "no case \"%s\"\n", only ? only : "");
        return 2;
    }
    return failures ? 1 : 0;
}

const char *test_arg(size_t index)
{
    return index < extra_count ? extra_args[index] : NULL;
}

static void __attribute__((noreturn)) skip(const char *reason, bool is_allowed)
{
    printf("%s: %s\n", is_allowed ? "skipped" : "may not be skipped (" NO_SKIPS ")", reason);
    if (failures > 0) {
        printf("%d failures before the skip\n", failures);
    }
    exit(is_allowed && failures == 0 ? EXIT_SKIPPED : 1);
}

void test_skip(const char *reason)
{
    skip(reason, getenv(NO_SKIPS) == NULL);
}

void test_does_not_apply(const char *reason)
{
    skip(reason, true);
}

static char *path_buffer(void)
{
    static char buffers[4][1024];
    static unsigned next;
    return buffers[next++ % 4];
}

const char *test_shared(const char *relative)
{
    char *path = path_buffer();
    struct stat info;
    (void)snprintf(path, 1024, "%s/%s", IFD_SHARED, relative);
    if (stat(path, &info) != 0) {
        char reason[1100];
        (void)snprintf(reason, sizeof(reason), "%s is not here", path);
        test_skip(reason);
    }
    return path;
}

const char *test_source(const char *relative)
{
    char *path = path_buffer();
    (void)snprintf(path, 1024, "%s/%s", IFD_SOURCE_DIR, relative);
    return path;
}

static void report(const char *file, int line, const char *text)
{
    failures++;
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
}

void test_expect(bool ok, const char *file, int line, const char *text, bool fatal)
{
    if (!ok) {
        report(file, line, text);
        if (fatal) {
            exit(1);
        }
    }
}

void test_expect_int(long long got, long long want, const char *file, int line, const char *text)
{
    if (got != want) {
        report(file, line, text);
        fprintf(stderr, "    got %lld, wanted %lld\n", got, want);
    }
}

void test_expect_text(const char *got, const char *want, const char *file, int line,
                      const char *text)
{
    if (!got || strcmp(got, want) != 0) {
        report(file, line, text);
        fprintf(stderr, "    got    \"%s\"\n    wanted \"%s\"\n", got ? got : "(null)", want);
    }
}

void test_expect_has(const char *got, const char *part, const char *file, int line,
                     const char *text)
{
    if (!got || !strstr(got, part)) {
        report(file, line, text);
        fprintf(stderr, "    got \"%s\", which lacks \"%s\"\n", got ? got : "(null)", part);
    }
}

void test_expect_close(double got, double want, double tolerance, const char *file, int line,
                       const char *text)
{
    if (!(fabs(got - want) <= tolerance)) {
        report(file, line, text);
        fprintf(stderr, "    got %.9g, wanted %.9g ± %.3g\n", got, want, tolerance);
    }
}

void test_expect_code(enum ifd_code got, enum ifd_code want, const struct ifd_err *err,
                      const char *file, int line, const char *text, bool fatal)
{
    if (got != want) {
        report(file, line, text);
        fprintf(stderr, "    got %s, wanted %s: %s\n", ifd_code_name(got), ifd_code_name(want),
                err ? err->text : "");
        if (fatal) {
            exit(1);
        }
    }
}

void test_expect_bytes(const void *got, const void *want, size_t size, const char *file, int line,
                       const char *text)
{
    const unsigned char *a = got;
    const unsigned char *b = want;
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            report(file, line, text);
            fprintf(stderr, "    byte %zu of %zu: got 0x%02x, wanted 0x%02x\n", i, size, a[i],
                    b[i]);
            return;
        }
    }
}

unsigned long long test_random_u64(struct test_random *random)
{
    unsigned long long x = random->state ? random->state : 0x9e3779b97f4a7c15ull;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * 0x2545f4914f6cdd1dull;
}

long long test_random_int(struct test_random *random, long long low, long long high)
{
    unsigned long long span = (unsigned long long)high - (unsigned long long)low + 1;
    unsigned long long value = test_random_u64(random);
    if (span == 0) {
        return (long long)value;
    }
    /* the upper half scaled: 64-bit division is very slow on 32-bit processors, most of all
     * emulated ones */
    const unsigned long long part = span <= UINT32_MAX ? (value >> 32) * span >> 32 : value % span;
    return (long long)((unsigned long long)low + part);
}

float test_random_f32(struct test_random *random, float low, float high)
{
    double unit = (double)(test_random_u64(random) >> 11) / 9007199254740992.0;
    return (float)((double)low + unit * ((double)high - (double)low));
}
