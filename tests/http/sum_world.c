#include "tests/http/sum_world.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/test.h"

void world_pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* ---- the repository ---- */

const char *world_path(const struct world *world, const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *at = path[turn++ % 4];
    (void)snprintf(at, sizeof(path[0]), "%s/%s", world->dir, name);
    return at;
}

void world_put(const char *path, const void *data, size_t size)
{
    FILE *out = fopen(path, "wb");
    REQUIRE(out != NULL);
    REQUIRE(fwrite(data, 1, size, out) == size);
    REQUIRE(fclose(out) == 0);
}

void world_replace(const struct world *world, const struct content *content)
{
    const char *part = world_path(world, "sum/1/.model");
    world_put(part, content->data, content->size);
    REQUIRE(rename(part, world_path(world, "sum/1/model.tflite")) == 0);
    if (world->has_sums) {
        char command[200];
        (void)snprintf(command, sizeof(command), "cd %s && sha256sum model.tflite > SHA256SUMS",
                       world_path(world, "sum/1"));
        REQUIRE(system(command) == 0);
    }
}

static void read_contents(struct world *world)
{
    struct content *sum = &world->content[0];
    FILE *in = fopen(test_source("tests/data/repository/simple/1/model.tflite"), "rb");
    REQUIRE(in != NULL);
    sum->size = fread(sum->data, 1, sizeof(sum->data), in);
    (void)fclose(in);
    REQUIRE(sum->size > 0 && sum->size < sizeof(sum->data));
    /* The other content: the two outputs change names. */
    world->content[1] = *sum;
    unsigned changed = 0;
    for (size_t i = 0; i + 7 <= sum->size; i++) {
        uint8_t *name = world->content[1].data + i;
        if (memcmp(name, "OUTPUT", 6) == 0) {
            name[6] = name[6] == '0' ? '1' : '0';
            changed++;
        }
    }
    REQUIRE(changed == 2);
}

void world_make(struct world *world)
{
    read_contents(world);
    (void)snprintf(world->dir, sizeof(world->dir), "/tmp/ifd_reload_XXXXXX");
    REQUIRE(mkdtemp(world->dir) != NULL);
    (void)snprintf(world->option, sizeof(world->option), "--model-repository=%s", world->dir);
    REQUIRE(mkdir(world_path(world, "sum"), 0700) == 0);
    REQUIRE(mkdir(world_path(world, "sum/1"), 0700) == 0);
    world_replace(world, &world->content[0]);
}

void world_serve(struct world *world, const char *const *options)
{
    const char *all[12] = {world->option};
    size_t count = 1;
    for (; *options; options++) {
        all[count++] = *options;
    }
    fail_alloc_init(&world->alloc, 0);
    live_start_in(&world->live, all, &world->alloc.alloc);
}

void world_begin(struct world *world, const char *const *options)
{
    world_make(world);
    world_serve(world, options);
}

void world_remove(const struct world *world)
{
    (void)unlink(world_path(world, "sum/1/model.tflite"));
    (void)unlink(world_path(world, "sum/1/SHA256SUMS"));
    (void)unlink(world_path(world, "sum/config.pbtxt"));
    (void)rmdir(world_path(world, "sum/1"));
    (void)rmdir(world_path(world, "sum"));
    EXPECT(rmdir(world->dir) == 0);
}

void world_end(struct world *world)
{
    live_stop(&world->live);
    fail_alloc_finish(&world->alloc);
    world_remove(world);
}

/* ---- clients ---- */

static struct answer post(int fd, const char *path, const char *body)
{
    char text[2048];
    int size =
        snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
                 path, strlen(body), body);
    REQUIRE(size > 0 && (size_t)size < sizeof(text));
    client_send(fd, text, (size_t)size);
    return client_read(fd);
}

struct answer world_post(const struct world *world, const char *path, const char *body)
{
    int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    struct answer answer = post(fd, path, body);
    (void)close(fd);
    return answer;
}

struct answer world_load(const struct world *world)
{
    return world_post(world, "/v2/repository/models/sum/load", "");
}

static struct answer ask(int fd, const char *path, int a, int b)
{
    char body[1024];
    (void)snprintf(body, sizeof(body),
                   "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16],"
                   "\"data\":[%d,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},{\"name\":\"INPUT1\",\"datatype\":"
                   "\"INT32\",\"shape\":[1,16],\"data\":[%d,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}],"
                   "\"outputs\":[{\"name\":\"OUTPUT0\"}]}",
                   a, b);
    return post(fd, path, body);
}

/* Content that answered: 0, 1, or -1 for neither. */
static int content_of(const struct answer *answer, int a, int b)
{
    const char *data = strstr(answer->body, "\"data\":[");
    long value = data ? strtol(data + 8, NULL, 10) : 0;
    return answer->status != 200 || !data ? -1 : value == a + b ? 0 : value == a - b ? 1 : -1;
}

int world_ask(int fd, int a, int b)
{
    struct answer answer = ask(fd, "/v2/models/sum/infer", a, b);
    return content_of(&answer, a, b);
}

int world_content(const struct world *world)
{
    int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    int content = world_ask(fd, 100000, 7);
    (void)close(fd);
    return content;
}

static void keep_asking(void *arg)
{
    struct ledger *ledger = arg;
    int fd = client_connect(&ledger->world->live);
    REQUIRE(fd >= 0);
    for (int a = 100000; !atomic_load(&ledger->stop); a = a < 999999 ? a + 1 : 100000) {
        struct answer answer = ask(fd, ledger->path, a, 3);
        bool is_right = content_of(&answer, a, 3) >= 0;
        ledger->right += is_right;
        ledger->wrong += !is_right && answer.status == 200;
        ledger->failed += answer.status != 200;
        if (!is_right) {
            ledger->bad = answer;
        }
        atomic_fetch_add(&ledger->sent, 1);
    }
    (void)close(fd);
}

void ledger_start(const struct world *world, struct ledger *ledger)
{
    struct ifd_err err = {0};
    for (int i = 0; i < CLIENTS; i++) {
        ledger[i] = (struct ledger){.world = world,
                                    .path = i % 2 ? "/v2/models/sum/infer"
                                                  : "/v2/models/sum/versions/1/infer"};
        REQUIRE_OK(ifd_thread_start(&ledger[i].thread, "client", keep_asking, &ledger[i],
                                    ifd_alloc_system(), &err),
                   &err);
    }
}

long ledger_stop(struct ledger *ledger)
{
    long sent = 0;
    for (int i = 0; i < CLIENTS; i++) {
        atomic_store(&ledger[i].stop, true);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ifd_thread_join(&ledger[i].thread);
        EXPECT_INT(ledger[i].failed, 0);
        EXPECT_INT(ledger[i].wrong, 0);
        EXPECT_INT(ledger[i].right, ledger[i].sent);
        if (ledger[i].failed + ledger[i].wrong > 0) {
            (void)printf("client %d: status %d: %s\n", i, ledger[i].bad.status, ledger[i].bad.body);
        }
        sent += ledger[i].sent;
    }
    return sent;
}

/* ---- footprint ---- */

int world_entries(const char *dir)
{
    int count = 0;
    DIR *folder = opendir(dir);
    REQUIRE(folder != NULL);
    while (readdir(folder)) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

static int count_maps(void)
{
    int lines = 0;
    FILE *in = fopen("/proc/self/maps", "re");
    REQUIRE(in != NULL);
    for (int c = fgetc(in); c != EOF; c = fgetc(in)) {
        lines += c == '\n';
    }
    (void)fclose(in);
    return lines;
}

static struct footprint measure(const struct world *world)
{
    const struct mallinfo2 info = mallinfo2();
    return (struct footprint){.allocations = atomic_load(&world->alloc.live),
                              .bytes = atomic_load(&world->alloc.live_bytes),
                              .heap = info.uordblks + info.hblkhd,
                              .descriptors = world_entries("/proc/self/fd"),
                              .threads = world_entries("/proc/self/task"),
                              .maps = count_maps()};
}

static bool is_equal(const struct footprint *a, const struct footprint *b)
{
    return a->allocations == b->allocations && a->bytes == b->bytes &&
           a->descriptors == b->descriptors && a->threads == b->threads;
}

struct footprint world_settle(const struct world *world)
{
    struct footprint last = measure(world), now = last;
    int same = 0;
    for (int waited = 0; waited < PATIENCE_MS && same < 10; waited += 50) {
        world_pause_ms(50);
        now = measure(world);
        same = is_equal(&last, &now) ? same + 1 : 0;
        last = now;
    }
    return now;
}
