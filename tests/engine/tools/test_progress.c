/* What takes long says so on a terminal, and only there. */
#include "engine/tools/progress.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

#define CLEAR "\r\033[K"

/* Standard error is a terminal whose other end is read here. */
struct terminal {
    int master, saved;
    char text[512];
    size_t size;
};

static void begin(struct terminal *t)
{
    *t = (struct terminal){.master = posix_openpt(O_RDWR | O_NOCTTY), .saved = dup(STDERR_FILENO)};
    REQUIRE(t->master >= 0 && t->saved >= 0);
    REQUIRE(grantpt(t->master) == 0 && unlockpt(t->master) == 0);
    const int slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0 && dup2(slave, STDERR_FILENO) == STDERR_FILENO);
    close(slave);
}

static void read_until(struct terminal *t, const char *wanted)
{
    while (!strstr(t->text, wanted)) {
        const ssize_t n = read(t->master, t->text + t->size, sizeof(t->text) - 1 - t->size);
        REQUIRE(n > 0);
        t->size += (size_t)n;
        t->text[t->size] = '\0';
    }
}

static void end(struct terminal *t)
{
    dup2(t->saved, STDERR_FILENO);
    close(t->saved);
    close(t->master);
}

static void what_takes_long_is_named_until_it_ends(void)
{
    struct terminal t;
    struct ifd_waiting waiting;
    begin(&t);
    ifd_waiting_begin(&waiting, "loading", ifd_alloc_system());
    read_until(&t, "loading, 2 s");
    ifd_waiting_end(&waiting);
    t.size = 0;
    t.text[0] = '\0';
    read_until(&t, CLEAR);
    end(&t);
}

/* A thread that was there would print into the terminal that follows. */
static void where_no_terminal_is_nobody_watches(void)
{
    struct ifd_waiting waiting;
    int pair[2];
    REQUIRE(pipe(pair) == 0);
    const int saved = dup(STDERR_FILENO);
    dup2(pair[1], STDERR_FILENO);
    ifd_waiting_begin(&waiting, "loading", ifd_alloc_system());
    dup2(saved, STDERR_FILENO);
    EXPECT(!waiting.is_watched);
    ifd_waiting_end(&waiting);
    close(saved);
    close(pair[0]);
    close(pair[1]);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_takes_long_is_named_until_it_ends),
        T(where_no_terminal_is_nobody_watches),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
