/** The test frame: a file is a program, a case is a static function listed once in main's table.
 *
 *      static void broadcast_rejects_mismatched_dims(void) { EXPECT(!…); EXPECT_INT(got, want); }
 *
 *      int main(int argc, char **argv)
 *      {
 *          static const struct test_case cases[] = {
 *              T(broadcast_rejects_mismatched_dims),
 *          };
 *          return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
 *      }
 *
 *  A case that is not listed is an unused function, which does not compile. Without arguments every
 *  case runs. A failed expectation is printed and counted; the case goes on unless it is one of the
 *  REQUIRE kind, which ends the process. */
#ifndef INFERD_TESTS_SUPPORT_TEST_H
#define INFERD_TESTS_SUPPORT_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "inferd/status.h"

struct test_case {
    const char *name;
    void (*run)(void);
};

#define T(name)                                                                                    \
    {                                                                                              \
#name, name                                                                                \
    }

int test_main(int argc, char **argv, const struct test_case *cases, size_t count);

/** Arguments after the case's name on the command line. */
const char *test_arg(size_t index);

/** Ends the process as "skipped" (77) with the reason, or as failed (1) if an expectation failed
 *  before. The case needs a file or tool that is absent: where INFERD_TEST_NO_SKIPS is set
 *  (tests/run.sh sets it), that is a failure too. */
void test_skip(const char *reason) __attribute__((noreturn));

/** Like test_skip, but allowed everywhere: the case does not apply to this processor, user, kernel
 *  or build. */
void test_does_not_apply(const char *reason) __attribute__((noreturn));

/** Path below the shared folder; skips the case if that file or folder is absent. Static buffers,
 *  four at a time. */
const char *test_shared(const char *relative);

/** Path of a file of the source tree. Static buffers, four at a time. */
const char *test_source(const char *relative);

void test_expect(bool ok, const char *file, int line, const char *text, bool fatal);
void test_expect_int(long long got, long long want, const char *file, int line, const char *text);
void test_expect_text(const char *got, const char *want, const char *file, int line,
                      const char *text);
void test_expect_has(const char *got, const char *part, const char *file, int line,
                     const char *text);
void test_expect_close(double got, double want, double tolerance, const char *file, int line,
                       const char *text);
void test_expect_code(enum ifd_code got, enum ifd_code want, const struct ifd_err *err,
                      const char *file, int line, const char *text, bool fatal);
void test_expect_bytes(const void *got, const void *want, size_t size, const char *file, int line,
                       const char *text);

#define EXPECT(cond)  test_expect((cond), __FILE__, __LINE__, #cond, false)
#define REQUIRE(cond) test_expect((cond), __FILE__, __LINE__, #cond, true)
#define EXPECT_INT(got, want)                                                                      \
    test_expect_int((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
#define EXPECT_TEXT(got, want) test_expect_text((got), (want), __FILE__, __LINE__, #got)
#define EXPECT_HAS(got, part)  test_expect_has((got), (part), __FILE__, __LINE__, #got)
#define EXPECT_CLOSE(got, want, tol)                                                               \
    test_expect_close((got), (want), (tol), __FILE__, __LINE__, #got)
#define EXPECT_CODE(got, want, err)                                                                \
    test_expect_code((got), (want), (err), __FILE__, __LINE__, #got, false)
#define REQUIRE_OK(got, err) test_expect_code((got), IFD_OK, (err), __FILE__, __LINE__, #got, true)
#define EXPECT_BYTES(got, want, size)                                                              \
    test_expect_bytes((got), (want), (size), __FILE__, __LINE__, #got)

/** Small deterministic random numbers (xorshift64*), the same everywhere. */
struct test_random {
    unsigned long long state;
};
unsigned long long test_random_u64(struct test_random *random);
/** low … high, both included. */
long long test_random_int(struct test_random *random, long long low, long long high);
float test_random_f32(struct test_random *random, float low, float high);

#endif
