#include "engine/backend/registry.h"
#include "backends/null/null.h"
#include "engine/backend/host.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

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
    return ifd_registry_init(registry, alloc, backends, count, err);
}

static void backends_keep_their_order_and_reasons(void)
{
    struct ifd_backend absent = ifd_backend_null;
    absent.name = "Absent";
    absent.open = refuse_open;
    const struct ifd_backend *const list[] = {&absent, &ifd_backend_null};
    struct ifd_registry registry = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(init(&registry, ifd_alloc_system(), list, 2, &err), &err);
    EXPECT_INT(registry.count, 2);
    EXPECT(!registry.slot[0].available);
    EXPECT_TEXT(registry.slot[0].reason.text, "no device on this machine");
    EXPECT(registry.slot[1].available);
    EXPECT_INT(ifd_registry_find(&registry, "Null"), 1);
    EXPECT_INT(ifd_registry_find(&registry, "null"), 2);
    ifd_registry_finish(&registry);
}

static void foreign_abi_small_descriptor_and_missing_function_are_unavailable(void)
{
    struct ifd_backend newer = ifd_backend_null, older = ifd_backend_null, holed = ifd_backend_null;
    newer.name = "Newer";
    newer.abi = IFD_BACKEND_ABI + 1;
    older.name = "Older";
    older.bytes = 16;
    holed.name = "Holed";
    holed.run = NULL;
    const struct ifd_backend *const list[] = {&newer, &older, &holed};
    struct ifd_registry registry = {0};
    REQUIRE_OK(init(&registry, ifd_alloc_system(), list, 3, NULL), NULL);
    EXPECT_HAS(registry.slot[0].reason.text, "ABI version 3, expected 2");
    EXPECT_HAS(registry.slot[1].reason.text, "descriptor of 16 bytes");
    EXPECT_HAS(registry.slot[2].reason.text, "lacks a function");
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT(!registry.slot[i].available);
    }
    ifd_registry_finish(&registry);
}

static void same_name_twice_is_refused(void)
{
    const struct ifd_backend *const list[] = {&ifd_backend_null, &ifd_backend_null};
    struct ifd_registry registry = {0};
    struct ifd_err err = {0};
    EXPECT_CODE(init(&registry, ifd_alloc_system(), list, 2, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "Null is named twice");
}

static void no_memory_is_reported_and_nothing_leaks(void)
{
    const struct ifd_backend *const list[] = {&ifd_backend_null};
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

static void null_backend_refuses_every_node_with_a_reason(void)
{
    const struct ifd_backend *const list[] = {&ifd_backend_null};
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
        T(no_memory_is_reported_and_nothing_leaks),
        T(null_backend_refuses_every_node_with_a_reason),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
