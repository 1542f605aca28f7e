#include "engine/backend/registry.h"
#include "engine/backend/host.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static enum ifd_code refuse_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    (void)host;
    (void)ret_device;
    return ifd_fail(err, IFD_UNAVAILABLE, "no device on this machine");
}

static enum ifd_code init(struct ifd_registry *registry, const struct ifd_alloc *alloc,
                          const struct ifd_backend *const *backends, uint32_t count,
                          struct ifd_err *err)
{
    ifd_host_init(&registry->host, &(struct ifd_engine_options){.alloc = alloc});
    const struct ifd_registry_setup setup = {
        .alloc = alloc, .backends = backends, .backend_count = count};
    return ifd_registry_init(registry, &setup, err);
}

static const struct ifd_backend *null_backend(void)
{
    return ifd_backend_query(IFD_BACKEND_ABI);
}

static void backends_keep_their_order_and_reasons(void)
{
    struct ifd_backend absent = *null_backend();
    absent.name = "Absent";
    absent.open = refuse_open;
    const struct ifd_backend *const list[] = {&absent, null_backend()};
    struct ifd_registry registry = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(init(&registry, ifd_alloc_system(), list, 2, &err), &err);
    EXPECT_INT(registry.count, 2);
    EXPECT_INT(registry.slot[0].state, IFD_DEVICE_ABSENT);
    EXPECT_TEXT(registry.slot[0].reason.text, "no device on this machine");
    EXPECT_INT(registry.slot[1].state, IFD_DEVICE_OPEN);
    EXPECT_INT(ifd_registry_find(&registry, "Null"), 1);
    EXPECT_INT(ifd_registry_find(&registry, "null"), 2);
    ifd_registry_finish(&registry);
}

static void foreign_abi_small_descriptor_and_missing_function_are_unavailable(void)
{
    struct ifd_backend newer = *null_backend(), older = *null_backend(), holed = *null_backend();
    newer.name = "Newer";
    newer.abi = IFD_BACKEND_ABI + 1;
    older.name = "Older";
    older.bytes = 16;
    holed.name = "Holed";
    holed.run = NULL;
    const struct ifd_backend *const list[] = {&newer, &older, &holed};
    struct ifd_registry registry = {0};
    REQUIRE_OK(init(&registry, ifd_alloc_system(), list, 3, NULL), NULL);
    char want[64];
    (void)snprintf(want, sizeof(want), "ABI version %u, expected %u", IFD_BACKEND_ABI + 1,
                   IFD_BACKEND_ABI);
    EXPECT_HAS(registry.slot[0].reason.text, want);
    EXPECT_HAS(registry.slot[1].reason.text, "descriptor of 16 bytes");
    EXPECT_HAS(registry.slot[2].reason.text, "lacks a function");
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(registry.slot[i].state, IFD_DEVICE_ABSENT);
    }
    ifd_registry_finish(&registry);
}

static void same_name_twice_is_refused(void)
{
    const struct ifd_backend *const list[] = {null_backend(), null_backend()};
    struct ifd_registry registry = {0};
    struct ifd_err err = {0};
    EXPECT_CODE(init(&registry, ifd_alloc_system(), list, 2, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "Null is named twice");
}

struct heard {
    char text[64];
};

static enum ifd_code note_options(const struct ifd_host *host, struct ifd_device **ret_device,
                                  struct ifd_err *err)
{
    struct heard *heard = host->debug_context;
    for (uint32_t i = 0; i < host->option_count; i++) {
        if (strcmp(host->option[i].key, "bad") == 0) {
            return host->fail(err, IFD_INVALID, "no option \"bad\"");
        }
        const size_t used = strlen(heard->text);
        (void)snprintf(heard->text + used, sizeof(heard->text) - used, "%s=%s;",
                       host->option[i].key, host->option[i].value);
    }
    *ret_device = NULL;
    return IFD_OK;
}

static void close_nothing(struct ifd_device *device)
{
    EXPECT(device == NULL);
}

static enum ifd_code open_with(const char *const *texts, uint32_t count,
                               const struct ifd_alloc *alloc, struct heard *heard,
                               struct ifd_err *err)
{
    struct ifd_backend listens = *null_backend(), other = *null_backend();
    listens.name = "Listens";
    listens.open = note_options;
    listens.close = close_nothing;
    other.name = "Other";
    const struct ifd_backend *const list[] = {&listens, &other};
    struct ifd_backend_options options;
    struct ifd_registry registry = {0};
    enum ifd_code code = ifd_backend_options_init(&options, texts, count, alloc, err);
    if (code == IFD_OK) {
        const struct ifd_registry_setup setup = {
            .alloc = alloc, .backends = list, .backend_count = 2, .options = &options};
        ifd_host_init(&registry.host,
                      &(struct ifd_engine_options){.alloc = alloc, .debug_context = heard});
        code = ifd_registry_init(&registry, &setup, err);
        ifd_registry_finish(&registry);
        ifd_backend_options_finish(&options);
    }
    return code;
}

static void options_reach_the_backend_that_they_name_in_order(void)
{
    struct heard heard = {""};
    struct ifd_err err = {0};
    static const char *const mixed[] = {"Listens:b=2", "Listens:a=x=y:z", "Listens:b="};
    REQUIRE_OK(open_with(mixed, 3, ifd_alloc_system(), &heard, &err), &err);
    EXPECT_TEXT(heard.text, "b=2;a=x=y:z;b=;");
    static const char *const bad[] = {"Listens:bad=1"}, *const nobody[] = {"Nobody:a=1"};
    static const char *const two[] = {"Listens:a=1", "Other:a=1"};
    EXPECT_CODE(open_with(bad, 1, ifd_alloc_system(), &heard, &err), IFD_INVALID, &err);
    EXPECT_TEXT(err.text, "backend Listens: no option \"bad\"");
    EXPECT_CODE(open_with(nobody, 1, ifd_alloc_system(), &heard, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "there is no backend Nobody");
    EXPECT_CODE(open_with(two, 2, ifd_alloc_system(), &heard, &err), IFD_INVALID, &err);
    EXPECT_TEXT(err.text, "backend Other: no option \"a\": Null has none");
}

static void no_memory_for_options_is_reported(void)
{
    static const char *const texts[] = {"Listens:a=1"};
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct heard heard = {""};
        fail_alloc_init(&fail, k);
        const enum ifd_code code = open_with(texts, 1, &fail.alloc, &heard, NULL);
        fail_alloc_finish(&fail);
        if (!fail.failed) {
            EXPECT_INT(code, IFD_OK);
            break;
        }
        EXPECT_INT(code, IFD_NOMEM);
    }
}

static void no_memory_is_reported_and_nothing_leaks(void)
{
    const struct ifd_backend *const list[] = {null_backend()};
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_registry registry = {0};
        fail_alloc_init(&fail, k);
        const enum ifd_code code = init(&registry, &fail.alloc, list, 1, NULL);
        if (code == IFD_OK) {
            ifd_registry_finish(&registry);
        }
        fail_alloc_finish(&fail);
        if (!fail.failed) {
            EXPECT_INT(code, IFD_OK);
            break;
        }
        EXPECT_INT(code, IFD_NOMEM);
    }
}

/* ---- plugins ---- */

struct plugin_world {
    struct ifd_backend backend[2]; /* "Near" and "Far" */
    struct ifd_plugin plugin[2];
    struct ifd_plugins plugins;
    struct ifd_registry registry;
    char told[128];
};

/* How often devices of these tests were opened, and what they answer; zero before a test. */
static struct {
    int opened, closed;
    enum ifd_code code;
} plugin_device;

static enum ifd_code count_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                struct ifd_err *err)
{
    plugin_device.opened++;
    *ret_device = NULL;
    return plugin_device.code ? host->fail(err, plugin_device.code, "says no") : IFD_OK;
}

static void count_close(struct ifd_device *device)
{
    (void)device;
    plugin_device.closed++;
}

static void note_opened(void *context, const char *backend, const struct ifd_err *reason)
{
    struct plugin_world *world = context;
    const size_t used = strlen(world->told);
    (void)snprintf(world->told + used, sizeof(world->told) - used, "%s:%s;", backend,
                   reason ? reason->text : "open");
}

static void begin_plugins(struct plugin_world *world, const struct ifd_backend_options *options)
{
    static const char *const names[] = {"Near", "Far"};
    *world = (struct plugin_world){.plugins = {.plugin = world->plugin, .count = 2}};
    plugin_device.opened = plugin_device.closed = 0;
    plugin_device.code = IFD_OK;
    for (int i = 0; i < 2; i++) {
        world->backend[i] = *null_backend();
        world->backend[i].name = names[i];
        world->backend[i].open = count_open;
        world->backend[i].close = count_close;
        world->plugin[i] = (struct ifd_plugin){.backend = &world->backend[i]};
    }
    ifd_host_init(&world->registry.host, &(struct ifd_engine_options){0});
    world->registry.opened = note_opened;
    world->registry.listener = world;
    const struct ifd_registry_setup setup = {
        .alloc = ifd_alloc_system(), .plugins = &world->plugins, .options = options};
    REQUIRE_OK(ifd_registry_init(&world->registry, &setup, NULL), NULL);
}

static void a_plugin_is_opened_once_when_somebody_asks(void)
{
    struct plugin_world world;
    begin_plugins(&world, NULL);
    EXPECT_INT(plugin_device.opened, 0);
    EXPECT_INT(world.registry.slot[1].state, IFD_DEVICE_UNTRIED);
    EXPECT(ifd_registry_open(&world.registry, 1, NULL));
    EXPECT(ifd_registry_open(&world.registry, 1, NULL));
    EXPECT_INT(plugin_device.opened, 1);
    EXPECT_TEXT(world.told, "Far:open;");
    EXPECT_INT(world.registry.slot[0].state, IFD_DEVICE_UNTRIED);
    ifd_registry_finish(&world.registry);
    EXPECT_INT(plugin_device.closed, 1);
}

static void a_plugin_with_an_option_is_opened_at_once(void)
{
    static const char *const texts[] = {"Far:key=value"};
    struct plugin_world world;
    struct ifd_backend_options options;
    REQUIRE_OK(ifd_backend_options_init(&options, texts, 1, ifd_alloc_system(), NULL), NULL);
    begin_plugins(&world, &options);
    EXPECT_INT(plugin_device.opened, 1);
    EXPECT_INT(world.registry.slot[0].state, IFD_DEVICE_UNTRIED);
    EXPECT_INT(world.registry.slot[1].state, IFD_DEVICE_OPEN);
    EXPECT_TEXT(world.told, "");
    ifd_registry_finish(&world.registry);
    ifd_backend_options_finish(&options);
}

static void an_absent_device_is_not_tried_again_but_a_lack_of_memory_is(void)
{
    struct plugin_world world;
    struct ifd_err reason = {0};
    begin_plugins(&world, NULL);
    plugin_device.code = IFD_UNAVAILABLE;
    EXPECT(!ifd_registry_open(&world.registry, 0, &reason));
    EXPECT(!ifd_registry_open(&world.registry, 0, &reason));
    EXPECT_TEXT(reason.text, "says no");
    EXPECT_INT(plugin_device.opened, 1);
    EXPECT_TEXT(world.told, "Near:says no;");
    plugin_device.code = IFD_NOMEM;
    EXPECT(!ifd_registry_open(&world.registry, 1, &reason));
    plugin_device.code = IFD_OK;
    EXPECT(ifd_registry_open(&world.registry, 1, &reason));
    EXPECT_TEXT(world.told, "Near:says no;Far:says no;Far:open;");
    ifd_registry_finish(&world.registry);
    EXPECT_INT(plugin_device.closed, 1);
}

static void a_plugin_has_as_many_devices_as_options_name(void)
{
    static const char *const texts[] = {"Far@b:key=1", "Far@a:key=2", "Far@b:other=3"};
    struct plugin_world world;
    struct ifd_backend_options options;
    REQUIRE_OK(ifd_backend_options_init(&options, texts, 3, ifd_alloc_system(), NULL), NULL);
    begin_plugins(&world, &options);
    EXPECT_INT(world.registry.count, 4);
    EXPECT_INT(plugin_device.opened, 2);
    const uint32_t a = ifd_registry_find(&world.registry, "Far@a");
    const uint32_t b = ifd_registry_find(&world.registry, "Far@b");
    REQUIRE(a >= 2 && a < 4 && b >= 2 && b < 4 && a != b);
    EXPECT(world.registry.slot[a].backend == &world.backend[1]);
    EXPECT_INT(world.registry.slot[a].host.option_count, 1);
    EXPECT_INT(world.registry.slot[b].host.option_count, 2);
    EXPECT_TEXT(world.registry.slot[b].host.option[1].key, "other");
    EXPECT_INT(world.registry.slot[1].state, IFD_DEVICE_UNTRIED);
    ifd_registry_finish(&world.registry);
    EXPECT_INT(plugin_device.closed, 2);
    ifd_backend_options_finish(&options);
}

static void what_is_no_plugin_has_one_device(void)
{
    static const char *const texts[] = {"Other@b:key=1", "Nobody@b:key=1", "Other@:key=1"};
    for (int i = 0; i < 3; i++) {
        struct heard heard = {""};
        struct ifd_err err = {0};
        EXPECT_CODE(open_with(&texts[i], 1, ifd_alloc_system(), &heard, &err), IFD_INVALID, &err);
        EXPECT_HAS(err.text, "there is no ");
    }
}

static void null_backend_refuses_every_node_with_a_reason(void)
{
    const struct ifd_backend *const list[] = {null_backend()};
    struct ifd_registry registry = {0};
    struct ifd_err reason = {0};
    REQUIRE_OK(init(&registry, ifd_alloc_system(), list, 1, NULL), NULL);
    const struct ifd_node_view node = {.name = "probs", .op = IFD_OP_SOFTMAX};
    EXPECT_INT(ifd_backend_slot_cost(&registry.slot[0], &node, &reason), 0);
    EXPECT_HAS(reason.text, "probs");
    EXPECT_INT(ifd_backend_slot_cost(&registry.slot[0], &node, NULL), 0);
    ifd_registry_finish(&registry);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(backends_keep_their_order_and_reasons),
        T(foreign_abi_small_descriptor_and_missing_function_are_unavailable),
        T(same_name_twice_is_refused),
        T(options_reach_the_backend_that_they_name_in_order),
        T(no_memory_for_options_is_reported),
        T(no_memory_is_reported_and_nothing_leaks),
        T(a_plugin_is_opened_once_when_somebody_asks),
        T(a_plugin_with_an_option_is_opened_at_once),
        T(an_absent_device_is_not_tried_again_but_a_lack_of_memory_is),
        T(a_plugin_has_as_many_devices_as_options_name),
        T(what_is_no_plugin_has_one_device),
        T(null_backend_refuses_every_node_with_a_reason),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
