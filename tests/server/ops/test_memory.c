/* Limits of control groups, read from folders in place of / . */
#include "server/ops/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/repo/budget.h"
#include "tests/support/test.h"

#define MACHINE ((uint64_t)8 << 30)

static char root[64];

static void begin(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/ifd_memory_XXXXXX");
    REQUIRE(mkdtemp(root) != NULL);
}

static void put(const char *path, const char *text)
{
    char full[256];
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(full, 0700);
        *at = '/';
    }
    FILE *out = fopen(full, "we");
    REQUIRE(out != NULL);
    REQUIRE(fputs(text, out) >= 0);
    REQUIRE(fclose(out) == 0);
}

static void expect(uint64_t bytes, const char *source)
{
    char command[100];
    struct ifd_memory memory = ifd_memory_limit(root, MACHINE);
    EXPECT_INT(memory.bytes, bytes);
    EXPECT_TEXT(memory.source, source);
    (void)snprintf(command, sizeof(command), "rm -r '%s'", root);
    REQUIRE(system(command) == 0);
}

static void machine_is_the_limit_without_groups(void)
{
    begin();
    expect(MACHINE, "machine");
    EXPECT(ifd_memory_limit("", 0).bytes > 1 << 20);
}

static void least_of_the_groups_around_counts(void)
{
    begin();
    put("proc/self/cgroup", "0::/system.slice/inferd.service\n");
    put("sys/fs/cgroup/system.slice/inferd.service/memory.max", "max\n");
    put("sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
    expect(1073741824, "cgroup v2");
}

static void container_sees_its_group_as_the_root(void)
{
    begin();
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "536870912\n");
    expect(536870912, "cgroup v2");
}

static void version_1_has_a_hierarchy_of_its_own(void)
{
    begin();
    put("proc/self/cgroup", "12:cpu,cpuacct:/a\n7:memory:/docker/c0ffee\n1:name=systemd:/x\n");
    put("sys/fs/cgroup/memory/docker/c0ffee/memory.limit_in_bytes", "268435456\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    expect(268435456, "cgroup v1");
}

static void limits_above_the_machine_and_nonsense_change_nothing(void)
{
    begin();
    put("proc/self/cgroup", "0::/a\nnonsense\n::\n3:memory:relative\n");
    put("sys/fs/cgroup/a/memory.max", "18446744073709551616\n");
    put("sys/fs/cgroup/memory.max", "17179869184\n");
    expect(MACHINE, "machine");
}

static void budget_refuses_in_numbers_and_changes_nothing(void)
{
    struct ifd_budget budget = {.limit_bytes = 1000};
    struct ifd_err err = {0};
    uint64_t a = 0, b = 0;
    REQUIRE_OK(ifd_budget_hold(&budget, &a, 600, &err), &err);
    EXPECT_CODE(ifd_budget_hold(&budget, &b, 401, &err), IFD_NOMEM, &err);
    EXPECT_TEXT(err.text, "401 bytes of memory needed, 400 of 1000 are left (--memory-budget)");
    EXPECT_INT(b, 0);
    EXPECT_CODE(ifd_budget_hold(&budget, &a, UINT64_MAX, &err), IFD_NOMEM, &err);
    EXPECT_INT(a, 600);
    REQUIRE_OK(ifd_budget_hold(&budget, &b, 400, &err), &err);
    EXPECT_INT(budget.used_bytes, 1000);
    REQUIRE_OK(ifd_budget_hold(&budget, &a, 100, &err), &err);
    REQUIRE_OK(ifd_budget_hold(&budget, &a, 600, &err), &err);
    ifd_budget_give_back(&budget, &a);
    ifd_budget_give_back(&budget, &a);
    EXPECT_INT(budget.used_bytes, 400);
    EXPECT_INT(budget.refusals, 2);
    ifd_budget_give_back(&budget, &b);
    EXPECT_INT(budget.used_bytes, 0);
    REQUIRE_OK(ifd_budget_hold(NULL, &a, UINT64_MAX, &err), &err);
}

#define MIB ((size_t)1 << 20)

static void memory_is_slack_when_little_of_much_is_used_for_a_while(void)
{
    struct ifd_slack slack = {0};
    EXPECT_INT(ifd_slack_look(&slack, 200 * MIB, 1000), IFD_SLACK_NO);
    EXPECT_INT(ifd_slack_look(&slack, 101 * MIB, 2000), IFD_SLACK_NO); /* more than half */
    EXPECT_INT(ifd_slack_look(&slack, 100 * MIB, 3000), IFD_SLACK_BEGINS);
    EXPECT_INT(ifd_slack_look(&slack, 0, 4999), IFD_SLACK_NO);
    EXPECT_INT(ifd_slack_look(&slack, 1 * MIB, 5000), IFD_SLACK_LASTS);
    EXPECT_INT(ifd_slack_look(&slack, 1 * MIB, 9000), IFD_SLACK_NO); /* it was given back */
    EXPECT_INT(ifd_slack_look(&slack, 16 * MIB, 10000), IFD_SLACK_NO);
    EXPECT_INT(ifd_slack_look(&slack, 0, 11000), IFD_SLACK_BEGINS);
}

static void pauses_between_large_requests_are_no_slack(void)
{
    struct ifd_slack slack = {0};
    for (uint64_t now_ms = 0; now_ms < 100000; now_ms += 1900) {
        EXPECT_INT(ifd_slack_look(&slack, 60 * MIB, now_ms), IFD_SLACK_NO);
        EXPECT_INT(ifd_slack_look(&slack, 0, now_ms + 1), IFD_SLACK_BEGINS);
        EXPECT_INT(ifd_slack_look(&slack, 0, now_ms + 1899), IFD_SLACK_NO);
    }
}

static void what_the_library_keeps_anyway_is_no_slack(void)
{
    struct ifd_slack slack = {0};
    EXPECT_INT(ifd_slack_look(&slack, 16 * MIB - 1, 0), IFD_SLACK_NO);
    EXPECT_INT(ifd_slack_look(&slack, 0, 1), IFD_SLACK_NO);
    EXPECT_INT(ifd_slack_look(&slack, 0, 100000), IFD_SLACK_NO);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(machine_is_the_limit_without_groups),
        T(least_of_the_groups_around_counts),
        T(container_sees_its_group_as_the_root),
        T(version_1_has_a_hierarchy_of_its_own),
        T(limits_above_the_machine_and_nonsense_change_nothing),
        T(budget_refuses_in_numbers_and_changes_nothing),
        T(memory_is_slack_when_little_of_much_is_used_for_a_while),
        T(pauses_between_large_requests_are_no_slack),
        T(what_the_library_keeps_anyway_is_no_slack),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
