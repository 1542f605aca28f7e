/* Reloading under load. Every request has an answer that its client can compute, so that nothing lost and nothing wrong goes
 * unseen: the model "sum" has inputs A and B and two contents, one whose output OUTPUT0 is A + B, one where it is A - B.
 *
 *      test_http_reload reloads_under_load_lose_nothing 10000      as many reloads by hand; ctest does 200 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#define CLIENTS     4
#define MODEL_BYTES 65536
#define WARM_UP     20
/* Of libraries, once: it must not depend on how many reloads there are. */
#define HEAP_SLACK  1024
#define PATIENCE_MS 60000
#define EXPLICIT    "--model-control-mode=explicit", "--load-model=sum", "--admin-on-http"
#define FAST_POLL                                                                                  \
    "--model-control-mode=poll", "--repository-poll-secs=1", "--repository-settle-ms=50",          \
        "--repository-dwell-secs=0"

/* A sanitizer maps memory as it pleases. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWNS_MAPS false
#elif defined(__has_feature)
#define OWNS_MAPS                                                                                  \
    (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) &&                      \
     !__has_feature(memory_sanitizer))
#else
#define OWNS_MAPS true
#endif

struct content {
    uint8_t data[MODEL_BYTES];
    size_t size;
};

struct world {
    struct live live;
    struct fail_alloc alloc;
    char dir[64], option[100];
    struct content content[2]; /* [0]: OUTPUT0 is A + B; [1]: A - B */
};

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* ---- the repository ---- */

static const char *path_of(const struct world *world, const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *at = path[turn++ % 4];
    (void)snprintf(at, sizeof(path[0]), "%s/%s", world->dir, name);
    return at;
}

static void put(const char *path, const void *data, size_t size)
{
    FILE *out = fopen(path, "wb");
    REQUIRE(out != NULL);
    REQUIRE(fwrite(data, 1, size, out) == size);
    REQUIRE(fclose(out) == 0);
}

/* As one should: under another name, then renamed. */
static void replace(const struct world *world, const struct content *content)
{
    const char *part = path_of(world, "sum/1/.model");
    put(part, content->data, content->size);
    REQUIRE(rename(part, path_of(world, "sum/1/model.tflite")) == 0);
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

static void make_repository(struct world *world)
{
    read_contents(world);
    (void)snprintf(world->dir, sizeof(world->dir), "/tmp/ifd_reload_XXXXXX");
    REQUIRE(mkdtemp(world->dir) != NULL);
    (void)snprintf(world->option, sizeof(world->option), "--model-repository=%s", world->dir);
    REQUIRE(mkdir(path_of(world, "sum"), 0700) == 0);
    REQUIRE(mkdir(path_of(world, "sum/1"), 0700) == 0);
    replace(world, &world->content[0]);
}

static void begin(struct world *world, const char *const *options)
{
    const char *all[12] = {world->option};
    size_t count = 1;
    make_repository(world);
    for (; *options; options++) {
        all[count++] = *options;
    }
    fail_alloc_init(&world->alloc, 0);
    live_start_in(&world->live, all, &world->alloc.alloc);
}

static void remove_repository(const struct world *world)
{
    (void)unlink(path_of(world, "sum/1/model.tflite"));
    (void)unlink(path_of(world, "sum/config.pbtxt"));
    (void)rmdir(path_of(world, "sum/1"));
    (void)rmdir(path_of(world, "sum"));
    EXPECT(rmdir(world->dir) == 0);
}

static void end(struct world *world)
{
    live_stop(&world->live);
    fail_alloc_finish(&world->alloc);
    remove_repository(world);
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

static struct answer post_once(const struct world *world, const char *path, const char *body)
{
    int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    struct answer answer = post(fd, path, body);
    (void)close(fd);
    return answer;
}

static struct answer load(const struct world *world)
{
    return post_once(world, "/v2/repository/models/sum/load", "");
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

/* Which content answered: 0, 1, or -1 for neither. */
static int content_of(const struct answer *answer, int a, int b)
{
    const char *data = strstr(answer->body, "\"data\":[");
    long value = data ? strtol(data + 8, NULL, 10) : 0;
    return answer->status != 200 || !data ? -1 : value == a + b ? 0 : value == a - b ? 1 : -1;
}

static int content_now(const struct world *world)
{
    int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    struct answer answer = ask(fd, "/v2/models/sum/infer", 100000, 7);
    (void)close(fd);
    return content_of(&answer, 100000, 7);
}

struct ledger {
    const struct world *world;
    const char *path;
    struct ifd_thread thread;
    atomic_bool stop;
    atomic_long sent;
    long right, failed, wrong;
    struct answer bad; /* one of those */
};

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

static void start_clients(const struct world *world, struct ledger *ledger)
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

/* The number of requests; every one was answered, and rightly. */
static long stop_clients(struct ledger *ledger)
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

/* ---- what must not grow ---- */

struct footprint {
    long allocations, bytes; /* of the server, through its allocator */
    size_t heap;             /* of the process, its libraries included */
    int descriptors, threads, maps;
};

static int count_entries(const char *dir)
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
                              .descriptors = count_entries("/proc/self/fd"),
                              .threads = count_entries("/proc/self/task"),
                              .maps = count_maps()};
}

static bool is_equal(const struct footprint *a, const struct footprint *b)
{
    return a->allocations == b->allocations && a->bytes == b->bytes &&
           a->descriptors == b->descriptors && a->threads == b->threads;
}

/* What is closed and drained takes a moment to be gone: the footprint once nothing moves any more. */
static struct footprint settle(const struct world *world)
{
    struct footprint last = measure(world), now = last;
    int same = 0;
    for (int waited = 0; waited < PATIENCE_MS && same < 10; waited += 50) {
        pause_ms(50);
        now = measure(world);
        same = is_equal(&last, &now) ? same + 1 : 0;
        last = now;
    }
    return now;
}

static void reload_often(struct world *world, long reloads)
{
    struct ledger *ledger = calloc(CLIENTS, sizeof(*ledger));
    REQUIRE(ledger != NULL);
    start_clients(world, ledger);
    for (long i = 1; i <= reloads; i++) {
        replace(world, &world->content[i % 2]);
        struct answer answer = load(world);
        EXPECT_INT(answer.status, 200);
        EXPECT_INT(content_now(world), i % 2); /* from the answer on, nobody gets the old one */
    }
    long sent = stop_clients(ledger);
    (void)printf("%ld reloads, %ld requests\n", reloads, sent);
    EXPECT(sent > 0);
    free(ledger);
}

static void print_footprint(const char *when, const struct footprint *f)
{
    (void)printf("%s: %ld allocations, %ld bytes, heap %zu, %d descriptors, %d threads, %d maps\n",
                 when, f->allocations, f->bytes, f->heap, f->descriptors, f->threads, f->maps);
}

static void reloads_under_load_lose_nothing(void)
{
    static struct world world;
    const char *number = test_arg(0);
    long reloads = number ? strtol(number, NULL, 10) : 200;
    begin(&world, (const char *const[]){EXPLICIT, NULL});
    reload_often(&world, WARM_UP);
    const struct footprint before = settle(&world);
    reload_often(&world, reloads);
    const struct footprint after = settle(&world);
    print_footprint("before", &before);
    print_footprint("after", &after);
    EXPECT_INT(after.allocations, before.allocations);
    EXPECT_INT(after.bytes, before.bytes);
    EXPECT_INT(after.descriptors, before.descriptors);
    EXPECT_INT(after.threads, before.threads);
    EXPECT_INT(after.maps, OWNS_MAPS ? before.maps : after.maps);
    EXPECT(after.heap <= before.heap + HEAP_SLACK);
    end(&world);
}

static void same_content_is_not_loaded_again(void)
{
    static struct world world;
    begin(&world, (const char *const[]){EXPLICIT, NULL});
    EXPECT_INT(load(&world).status, 200);
    const struct footprint before = settle(&world);
    struct answer stats = client_get(&world.live, "/v2/models/sum/stats");
    EXPECT_HAS(stats.body, "\"inference_count\":0");
    EXPECT_INT(content_now(&world), 0);
    for (int i = 0; i < 5; i++) {
        replace(&world, &world.content[0]); /* another file, other times, the same bytes */
        EXPECT_INT(load(&world).status, 200);
    }
    stats = client_get(&world.live, "/v2/models/sum/stats");
    EXPECT_HAS(stats.body, "\"inference_count\":1"); /* it is still the version that counted */
    EXPECT_INT(settle(&world).threads, before.threads);
    end(&world);
}

static void truncated_model_is_never_served(void)
{
    static struct world world;
    begin(&world, (const char *const[]){EXPLICIT, NULL});
    const struct content *whole = &world.content[1];
    for (size_t size = 0; size < whole->size; size += 4) {
        put(path_of(&world, "sum/1/model.tflite"), whole->data, size); /* in place */
        struct answer answer = load(&world);
        if (answer.status == 200) { /* what was cut off was padding: then it is whole */
            EXPECT_INT(content_now(&world), 1);
            replace(&world, &world.content[0]);
            EXPECT_INT(load(&world).status, 200);
            continue;
        }
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(answer.body, "failed to load 'sum', ");
        EXPECT_INT(content_now(&world), 0);
    }
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    struct answer index = post_once(&world, "/v2/repository/index", "");
    EXPECT_HAS(index.body, "\"version\":\"1\",\"state\":\"READY\",\"reason\":\"");
    put(path_of(&world, "sum/1/model.tflite"), whole->data, whole->size);
    EXPECT_INT(load(&world).status, 200);
    EXPECT_INT(content_now(&world), 1);
    end(&world);
}

static void truncated_new_version_leaves_the_old_one_alone(void)
{
    static struct world world;
    static struct content digits;
    FILE *in = fopen(test_source("models/digits/1/model.tflite"), "rb");
    REQUIRE(in != NULL);
    digits.size = fread(digits.data, 1, sizeof(digits.data), in);
    (void)fclose(in);
    REQUIRE(digits.size > 30 * 1024 && digits.size < sizeof(digits.data));
    begin(&world, (const char *const[]){EXPLICIT, NULL});
    REQUIRE(mkdir(path_of(&world, "sum/2"), 0700) == 0);
    for (size_t size = 0; size < digits.size; size += 1024) {
        put(path_of(&world, "sum/2/model.tflite"), digits.data, size);
        struct answer answer = load(&world);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(answer.body, "failed to load 'sum', ");
        EXPECT_INT(content_now(&world), 0);
    }
    struct answer index = post_once(&world, "/v2/repository/index", "");
    EXPECT_HAS(index.body, "{\"name\":\"sum\",\"version\":\"1\",\"state\":\"READY\"}");
    EXPECT_HAS(index.body, "{\"name\":\"sum\",\"version\":\"2\",\"state\":\"UNAVAILABLE\",");
    put(path_of(&world, "sum/2/model.tflite"), digits.data, digits.size);
    EXPECT_INT(load(&world).status, 200);
    EXPECT_HAS(client_get(&world.live, "/v2/models/sum").body, "\"versions\":[\"2\"]");
    REQUIRE(unlink(path_of(&world, "sum/2/model.tflite")) == 0);
    REQUIRE(rmdir(path_of(&world, "sum/2")) == 0);
    end(&world);
}

/* ---- torture ---- */

/* A request that may get no answer: its connection is closed when there is no memory for it. 0: none. */
static int try_post(const struct world *world, const char *path)
{
    char text[200];
    int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    (void)snprintf(text, sizeof(text),
                   "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                   path);
    client_send_text(fd, text);
    int status = client_read(fd).status;
    (void)close(fd);
    return status;
}

/* Loads and an unload while the k-th allocation fails, for every k until one round needs fewer: whatever is answered, the
 * server then serves one whole content, and the next load without failures succeeds. */
static void fail_every_allocation(bool goes_on)
{
    static struct world world;
    long k = 1, refused = 0;
    bool did_fail = true;
    begin(&world, (const char *const[]){EXPLICIT, NULL});
    EXPECT_INT(load(&world).status, 200);
    struct fail_alloc *alloc = &world.alloc;
    for (; did_fail; k++) {
        int before = content_now(&world);
        REQUIRE(before >= 0);
        replace(&world, &world.content[1 - before]);
        atomic_store(&alloc->failed, false);
        atomic_store(&alloc->goes_on, goes_on);
        atomic_store(&alloc->fail_at, atomic_load(&alloc->requests) + k);
        int status = try_post(&world, "/v2/repository/models/sum/load");
        did_fail = atomic_load(&alloc->failed);
        atomic_store(&alloc->fail_at, 0);
        refused += status != 200;
        EXPECT(status == 200 || status == 503 || (status == 0 && did_fail));
        int now = content_now(&world);
        EXPECT(now == before || now == 1 - before);
        EXPECT(status != 200 || now == 1 - before);
        EXPECT_INT(load(&world).status, 200);
        EXPECT_INT(content_now(&world), 1 - before);
    }
    (void)printf("%ld allocations failed in turn, %ld loads were refused\n", k, refused);
    EXPECT(refused > 20);
    for (k = 1, did_fail = true; did_fail; k++) {
        atomic_store(&alloc->failed, false);
        atomic_store(&alloc->fail_at, atomic_load(&alloc->requests) + k);
        int status = try_post(&world, "/v2/repository/models/sum/unload");
        did_fail = atomic_load(&alloc->failed);
        atomic_store(&alloc->fail_at, 0);
        EXPECT(status == 200 || status == 503 || (status == 0 && did_fail));
        EXPECT_INT(load(&world).status, 200);
        EXPECT(content_now(&world) >= 0);
    }
    end(&world);
}

static void load_and_unload_survive_the_failure_of_each_allocation(void)
{
    fail_every_allocation(false);
}

static void load_and_unload_survive_the_failure_of_all_allocations_from_each_on(void)
{
    fail_every_allocation(true);
}

static void kill_self(void)
{
    (void)raise(SIGKILL);
}

/* What a server of its own process says before its first load. */
struct told {
    char dir[64]; /* of live_start: the process is killed and cannot remove it */
    int content;
};

/* Serves world's repository and loads its other content, killed by itself at the allocation kill_at of that load. If it
 * comes through, it says how many there were. */
static void serve_until_killed(struct world *world, long kill_at, int tell)
{
    struct fail_alloc *alloc = &world->alloc;
    struct told told = {0};
    const char *all[] = {world->option, EXPLICIT, NULL};
    fail_alloc_init(alloc, 0);
    alloc->instead = kill_self;
    live_start_in(&world->live, all, &alloc->alloc);
    told.content = content_now(world);
    memcpy(told.dir, world->live.dir, sizeof(told.dir));
    REQUIRE(write(tell, &told, sizeof(told)) == sizeof(told));
    REQUIRE(told.content >= 0);
    replace(world, &world->content[1 - told.content]);
    long before = atomic_load(&alloc->requests);
    atomic_store(&alloc->fail_at, before + kill_at);
    (void)load(world);
    atomic_store(&alloc->fail_at, 0);
    long requests = atomic_load(&alloc->requests) - before;
    REQUIRE(write(tell, &requests, sizeof(requests)) == sizeof(requests));
    kill_self();
}

/* The content that was served at the start of such a process; *ret_requests 0: it was killed in its load. */
static int run_until_killed(struct world *world, long kill_at, long *ret_requests)
{
    struct told told = {0};
    int tell[2], status = 0;
    *ret_requests = 0;
    REQUIRE(pipe(tell) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        (void)close(tell[0]);
        serve_until_killed(world, kill_at, tell[1]);
    }
    (void)close(tell[1]);
    REQUIRE(read(tell[0], &told, sizeof(told)) == sizeof(told));
    (void)!read(tell[0], ret_requests, sizeof(*ret_requests));
    (void)close(tell[0]);
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    live_remove_models(told.dir);
    return told.content;
}

/* The steps of a reload, told apart by the allocations that they make. */
static void killed_at_any_step_of_a_reload_the_next_server_converges(void)
{
    static struct world world;
    long requests = 0, step = 1, kills = 0;
    make_repository(&world);
    int expected = 0;
    int files = count_entries(path_of(&world, "sum/1"));
    while (requests == 0) {
        EXPECT_INT(run_until_killed(&world, step, &requests), expected);
        expected = 1 - expected; /* it had been replaced before the load */
        kills += requests == 0;
        step++;
    }
    (void)printf("killed at %ld of %ld steps\n", kills, requests);
    EXPECT(kills > 40);
    EXPECT_INT(count_entries(path_of(&world, "sum/1")), files); /* no litter */
    remove_repository(&world);
}

/* A reload needs room for the old and the new content at once. */
static void model_beyond_the_memory_budget_is_refused_and_the_old_one_stays(void)
{
    static struct world world;
    char budget[60];
    begin(&world, (const char *const[]){EXPLICIT, NULL});
    long long held = live_metric(&world.live, "\ninferd_memory_held_bytes ");
    EXPECT(held > (long long)world.content[0].size);
    EXPECT(live_metric(&world.live, "\ninferd_memory_budget_bytes ") > held);
    end(&world);
    (void)snprintf(budget, sizeof(budget), "--memory-budget=%lld", held * 3 / 2);
    begin(&world, (const char *const[]){EXPLICIT, budget, NULL});
    EXPECT_INT(content_now(&world), 0);
    replace(&world, &world.content[1]);
    struct answer answer = load(&world);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "failed to load 'sum', file of ");
    EXPECT_HAS(answer.body, " are left (--memory-budget)");
    EXPECT_INT(content_now(&world), 0);
    EXPECT_INT(live_metric(&world.live, "\ninferd_memory_held_bytes "), held);
    EXPECT_INT(live_metric(&world.live, "\ninferd_limit_hits_total{limit=\"memory-budget\"} "), 1);
    EXPECT_INT(post_once(&world, "/v2/repository/models/sum/unload", "").status, 200);
    (void)settle(&world);
    EXPECT_INT(live_metric(&world.live, "\ninferd_memory_held_bytes "), 0);
    EXPECT_INT(load(&world).status, 200);
    EXPECT_INT(content_now(&world), 1);
    end(&world);
}

static void concurrent_loads_and_unloads_of_one_model_take_turns(void)
{
    static struct world world;
    int fd[12], served = 0;
    begin(&world, (const char *const[]){EXPLICIT, NULL});
    for (int round = 0; round < 10; round++) {
        replace(&world, &world.content[round % 2]);
        for (int i = 0; i < 12; i++) {
            char text[200];
            fd[i] = client_connect(&world.live);
            REQUIRE(fd[i] >= 0);
            (void)snprintf(text, sizeof(text),
                           "POST /v2/repository/models/sum/%s HTTP/1.1\r\nHost: a\r\n"
                           "Content-Length: 0\r\n\r\n",
                           i % 3 == 1 ? "unload" : "load");
            client_send_text(fd[i], text);
        }
        for (int i = 0; i < 12; i++) {
            served += client_read(fd[i]).status == 200;
            (void)close(fd[i]);
        }
        EXPECT_INT(load(&world).status, 200);
        EXPECT_INT(content_now(&world), round % 2);
    }
    EXPECT_INT(served, 120);
    end(&world);
}

static void unloaded_model_answers_what_it_accepted(void)
{
    static struct world world;
    begin(&world, (const char *const[]){"--model-control-mode=explicit", "--load-model=slow",
                                        "--admin-on-http", NULL});
    int fd = client_connect(&world.live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text("slow", 5));
    pause_ms(100);
    EXPECT_INT(post_once(&world, "/v2/repository/models/slow/unload", "").status, 200);
    struct answer index = post_once(&world, "/v2/repository/index", "");
    EXPECT_HAS(index.body, "{\"name\":\"slow\",\"version\":\"1\",\"state\":\"UNLOADING\"");
    EXPECT_INT(client_get(&world.live, "/v2/models/slow").status, 404);
    struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(answer.body, "[5");
    (void)close(fd);
    (void)settle(&world);
    index = post_once(&world, "/v2/repository/index", "");
    EXPECT_HAS(
        index.body,
        "{\"name\":\"slow\",\"version\":\"1\",\"state\":\"UNAVAILABLE\",\"reason\":\"unloaded\"");
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    EXPECT_INT(post_once(&world, "/v2/repository/models/slow/load", "").status, 200);
    EXPECT_INT(client_get(&world.live, "/v2/models/slow/ready").status, 200);
    end(&world);
}

static void control_is_closed_in_other_modes_and_without_leave(void)
{
    static struct world world;
    begin(&world, (const char *const[]){"--admin-on-http", NULL});
    struct answer answer = load(&world);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "--model-control-mode explicit");
    end(&world);
    begin(&world, (const char *const[]){"--model-control-mode=explicit", NULL});
    EXPECT_INT(load(&world).status, 403);
    end(&world);
}

/* ---- polling ---- */

static bool becomes(const struct world *world, int content)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += 20) {
        if (content_now(world) == content) {
            return true;
        }
        pause_ms(20);
    }
    return false;
}

static void poll_takes_new_content_and_loses_nothing(void)
{
    static struct world world;
    struct ledger *ledger = calloc(CLIENTS, sizeof(*ledger));
    REQUIRE(ledger != NULL);
    begin(&world, (const char *const[]){FAST_POLL, NULL});
    start_clients(&world, ledger);
    replace(&world, &world.content[1]);
    EXPECT(becomes(&world, 1));
    put(path_of(&world, "sum/1/model.tflite"), world.content[0].data, world.content[0].size);
    EXPECT(becomes(&world, 0));
    EXPECT(stop_clients(ledger) > 0);
    free(ledger);
    end(&world);
}

static void poll_never_serves_a_file_that_is_being_written(void)
{
    static struct world world;
    struct ledger *ledger = calloc(CLIENTS, sizeof(*ledger));
    REQUIRE(ledger != NULL);
    begin(&world, (const char *const[]){FAST_POLL, NULL});
    start_clients(&world, ledger);
    const struct content *next = &world.content[1];
    int fd = open(path_of(&world, "sum/1/model.tflite"), O_WRONLY | O_TRUNC);
    REQUIRE(fd >= 0);
    for (size_t at = 0; at < next->size; at += 64) {
        size_t size = next->size - at < 64 ? next->size - at : 64;
        REQUIRE(write(fd, next->data + at, size) == (ssize_t)size);
        pause_ms(200); /* slower than the settle time: loads are tried, and fail */
        EXPECT(at + size == next->size || content_now(&world) == 0);
    }
    (void)close(fd);
    EXPECT(becomes(&world, 1));
    EXPECT(stop_clients(ledger) > 0);
    free(ledger);
    end(&world);
}

static void poll_keeps_models_whose_repository_went_away(void)
{
    static struct world world;
    char away[80];
    begin(&world, (const char *const[]){FAST_POLL, NULL});
    (void)snprintf(away, sizeof(away), "%s.away", world.dir);
    REQUIRE(rename(world.dir, away) == 0);
    pause_ms(3500); /* three polls */
    EXPECT_INT(content_now(&world), 0);
    REQUIRE(rename(away, world.dir) == 0);
    replace(&world, &world.content[1]);
    EXPECT(becomes(&world, 1));
    end(&world);
}

static void poll_unloads_a_model_that_was_removed_and_loads_it_when_it_is_back(void)
{
    static struct world world;
    begin(&world, (const char *const[]){FAST_POLL, NULL});
    REQUIRE(rename(path_of(&world, "sum"), path_of(&world, ".sum")) == 0);
    EXPECT(becomes(&world, -1));
    EXPECT_INT(client_get(&world.live, "/v2/models/sum").status, 404);
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    REQUIRE(rename(path_of(&world, ".sum"), path_of(&world, "sum")) == 0);
    EXPECT(becomes(&world, 0));
    end(&world);
}

static void poll_adds_and_removes_versions(void)
{
    static struct world world;
    begin(&world, (const char *const[]){FAST_POLL, NULL});
    static const char config[] = "version_policy { latest { num_versions: 2 } }";
    put(path_of(&world, "sum/config.pbtxt"), config, sizeof(config) - 1);
    REQUIRE(mkdir(path_of(&world, "sum/.2"), 0700) == 0);
    put(path_of(&world, "sum/.2/model.tflite"), world.content[1].data, world.content[1].size);
    REQUIRE(rename(path_of(&world, "sum/.2"), path_of(&world, "sum/2")) == 0);
    EXPECT(becomes(&world, 1)); /* the newest answers */
    struct answer answer = client_get(&world.live, "/v2/models/sum");
    EXPECT_HAS(answer.body, "\"versions\":[\"1\",\"2\"]");
    REQUIRE(unlink(path_of(&world, "sum/2/model.tflite")) == 0);
    REQUIRE(rmdir(path_of(&world, "sum/2")) == 0);
    EXPECT(becomes(&world, 0));
    EXPECT_INT(client_get(&world.live, "/v2/models/sum/versions/2").status, 404);
    end(&world);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(reloads_under_load_lose_nothing),
        T(same_content_is_not_loaded_again),
        T(truncated_model_is_never_served),
        T(truncated_new_version_leaves_the_old_one_alone),
        T(model_beyond_the_memory_budget_is_refused_and_the_old_one_stays),
        T(load_and_unload_survive_the_failure_of_each_allocation),
        T(load_and_unload_survive_the_failure_of_all_allocations_from_each_on),
        T(killed_at_any_step_of_a_reload_the_next_server_converges),
        T(concurrent_loads_and_unloads_of_one_model_take_turns),
        T(unloaded_model_answers_what_it_accepted),
        T(control_is_closed_in_other_modes_and_without_leave),
        T(poll_takes_new_content_and_loses_nothing),
        T(poll_never_serves_a_file_that_is_being_written),
        T(poll_keeps_models_whose_repository_went_away),
        T(poll_unloads_a_model_that_was_removed_and_loads_it_when_it_is_back),
        T(poll_adds_and_removes_versions),
    };
    /* Chunks that threads keep for themselves count as in use, and threads that meet in malloc get heaps of their own: without
     * these caches and with one heap the memory is comparable. */
    if (!getenv("GLIBC_TUNABLES")) {
        (void)setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1);
        (void)execv("/proc/self/exe", argv);
    }
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
