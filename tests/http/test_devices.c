/* A server whose device with memory of its own is lost and comes back: no answer is missing or
 * wrong. */
#include <stdio.h>
#include <string.h>

#include "backends/cpuref/cpuref.h"
#include "tests/http/notes.h"
#include "tests/http/sum_world.h"
#include "tests/support/fake_device.h"
#include "tests/support/test.h"

#define DEGRADED "\ninferd_backends_degraded"
#define FAILURES "\ninferd_backend_failures_total"

static void begin(struct world *world, const char *more)
{
    static const struct ifd_backend *const backends[] = {&fake_device, &ifd_backend_cpuref};
    fake_device_state = (struct fake_device_state){.fails_with = IFD_UNAVAILABLE};
    fake_device_takes_all(1);
    *world = (struct world){0};
    world_make(world);
    live_start_as(
        &world->live, (const char *const[]){world->option, EXPLICIT, more, NULL},
        &(struct live_options){.log = notes_take, .backends = backends, .backend_count = 2});
}

static void end(struct world *world)
{
    live_stop(&world->live);
    world_remove(world);
    EXPECT_INT(fake_device_state.contexts, 0);
    EXPECT_INT(fake_device_state.bound, 0);
}

static void answers_go_on_while_a_device_is_lost(void)
{
    struct world world;
    begin(&world, NULL);
    EXPECT_INT(world_content(&world), 0);
    EXPECT(live_metric(&world.live,
                       "\ninferd_model_memory_bytes{model=\"sum\",version=\"1\",kind=\"gpu\"}") >
           0);
    EXPECT_INT(live_metric(&world.live, DEGRADED), 0);
    EXPECT(strstr(client_get(&world.live, "/v2").body, "missing_backends") == NULL);
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    atomic_store(&fake_device_state.fails_at, 1);
    EXPECT_INT(world_content(&world), 0);
    EXPECT(notes_have("device lost backend=Dev reason=\"backend Dev: "));
    EXPECT_INT(live_metric(&world.live, DEGRADED), 1);
    EXPECT_INT(live_metric(&world.live, FAILURES), 1);
    EXPECT_HAS(client_get(&world.live, "/v2").body,
               "],\"missing_backends\":[{\"name\":\"Dev\",\"reason\":\"backend Dev: ");
    EXPECT(client_get(&world.live, "/v2/health/ready").status != 200);
    EXPECT_INT(client_get(&world.live, "/v2/models/sum/ready").status, 200);
    EXPECT_INT(client_get(&world.live, "/v2/health/live").status, 200);
    /* The device is tried again after a second. */
    for (int i = 0; i < 300 && live_metric(&world.live, DEGRADED) != 0; i++) {
        world_pause_ms(100);
        EXPECT_INT(world_content(&world), 0);
    }
    EXPECT(notes_have("device works again backend=Dev"));
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    end(&world);
}

static void readiness_can_overlook_lost_devices(void)
{
    struct world world;
    begin(&world, "--strict-readiness=false");
    atomic_store(&fake_device_state.fails_at, 1);
    EXPECT_INT(world_content(&world), 0);
    EXPECT_INT(live_metric(&world.live, DEGRADED), 1);
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    end(&world);
}

static void clients_and_reloads_see_nothing_of_a_device_that_comes_and_goes(void)
{
    struct world world;
    static struct ledger ledger[CLIENTS];
    begin(&world, "--strict-readiness=false");
    ledger_start(&world, ledger);
    for (int i = 0; i < 20; i++) {
        atomic_store(&fake_device_state.fails_at, 1 + (unsigned)i % 7);
        world_pause_ms(50);
        EXPECT_INT(world_load(&world).status, 200);
    }
    EXPECT(ledger_stop(ledger) > 0);
    EXPECT(live_metric(&world.live, FAILURES) > 0);
    end(&world);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(answers_go_on_while_a_device_is_lost),
        T(readiness_can_overlook_lost_devices),
        T(clients_and_reloads_see_nothing_of_a_device_that_comes_and_goes),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
