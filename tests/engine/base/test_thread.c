#include "engine/base/thread.h"
#include "tests/support/cores.h"
#include "tests/support/test.h"

#include <stdio.h>

static void a_thread_changes_its_core_and_may_use_all_of_them_again(void)
{
    enum { TIMES = 100 };
    cpu_set_t allowed, now;
    int changes = 0;
    cores_need(2, &allowed);
    for (int i = 0; i < TIMES; i++) {
        const int before = ifd_thread_core();
        EXPECT(before >= 0 && CPU_ISSET((size_t)before, &allowed));
        ifd_thread_change_core();
        changes += ifd_thread_core() != before;
        cores_get(&now);
        EXPECT(CPU_EQUAL(&now, &allowed));
    }
    printf("%d changes\n", changes);
    EXPECT(changes > TIMES / 2); /* the kernel may have moved it back */
}

static void a_thread_with_one_core_stays_there(void)
{
    cpu_set_t allowed, one, now;
    cores_need(1, &allowed);
    cores_pin_to_first(&allowed);
    cores_get(&one);
    const int core = ifd_thread_core();
    ifd_thread_change_core();
    EXPECT_INT(ifd_thread_core(), core);
    cores_get(&now);
    EXPECT(CPU_EQUAL(&now, &one));
    cores_allow(&allowed);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_thread_changes_its_core_and_may_use_all_of_them_again),
        T(a_thread_with_one_core_stays_there),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
