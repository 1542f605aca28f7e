/** A server whose clients can compute every answer, so that lost and wrong answers are seen, and
 *  its footprint. The model "sum" has inputs A and B and two contents: OUTPUT0 is A + B or A -
 *  B. */
#ifndef INFERD_TESTS_HTTP_SUM_WORLD_H
#define INFERD_TESTS_HTTP_SUM_WORLD_H

#include "tests/http/live.h"
#include "tests/support/fail_alloc.h"

#define CLIENTS     4
#define MODEL_BYTES 65536
#define PATIENCE_MS 60000
#define EXPLICIT    "--model-control-mode=explicit", "--load-model=sum", "--admin-on-http"

struct content {
    uint8_t data[MODEL_BYTES];
    size_t size;
};

struct world {
    struct live live;
    struct fail_alloc alloc;
    char dir[64], option[100];
    struct content content[2]; /* [0]: OUTPUT0 is A + B; [1]: A - B */
    bool has_sums;             /* world_replace writes a SHA256SUMS, too */
};

void world_pause_ms(long ms);

/** A folder with model sum, content 0. world_remove undoes it. */
void world_make(struct world *world);
void world_remove(const struct world *world);
/** A server for it with these options, ended by NULL. */
void world_serve(struct world *world, const char *const *options);
/** Both. */
void world_begin(struct world *world, const char *const *options);
void world_end(struct world *world);

/** Below the folder. Static buffers, four at a time. */
const char *world_path(const struct world *world, const char *name);
void world_put(const char *path, const void *data, size_t size);
/** Replaces the file of sum's version 1: writes another name, then renames. */
void world_replace(const struct world *world, const struct content *content);

struct answer world_post(const struct world *world, const char *path, const char *body);
/** Loads sum by the repository API. */
struct answer world_load(const struct world *world);
/** Content that answers: 0, 1, or -1 for neither. */
int world_content(const struct world *world);
/** The same on the caller's connection with the caller's numbers, the first of six digits. */
int world_ask(int fd, int a, int b);

/** A client that sends requests until it is stopped. */
struct ledger {
    const struct world *world;
    const char *path;
    struct ifd_thread thread;
    atomic_bool stop;
    atomic_long sent;
    long right, failed, wrong;
    struct answer bad; /* one of those */
};

/** CLIENTS of them. */
void ledger_start(const struct world *world, struct ledger *ledger);
/** Number of requests; the test fails if one was not answered correctly. */
long ledger_stop(struct ledger *ledger);

struct footprint {
    long allocations, bytes; /* of the server, through its allocator */
    size_t heap;             /* of the process, its libraries included */
    int descriptors, threads, maps;
};

int world_entries(const char *dir);
/** Footprint once it does not change any more: closed connections and drained versions take a
 *  moment. */
struct footprint world_settle(const struct world *world);

#endif
