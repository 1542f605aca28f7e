/* A network of very many small nodes is planned in time proportional to their number. Quadratic
 * time would be minutes, more than this test's limit. */
#include "backends/cpuacc/cpuacc.h"
#include "tests/support/model.h"

enum { LONG = 300000 }; /* a multiple of 6 */

/* Each value is the difference of the two before it, so every value is read twice; after 6 they
 * repeat. */
static void differences_of_the_last_two(void)
{
    struct test_run run = test_run_open(&(struct test_run_options){.backend = &ifd_backend_cpuacc});
    struct ifd_graph *graph = &run.model->graph;
    const uint32_t x = test_graph_f32(graph, "x", SHAPE(1, 4));
    uint32_t before = x, last = test_graph_op2(graph, IFD_OP_ADD, x, x, "");
    for (uint32_t i = 0; i < LONG; i++) {
        const uint32_t next = test_graph_op2(graph, IFD_OP_SUB, last, before, "");
        before = last;
        last = next;
    }
    test_graph_io(graph, x, last);
    test_run_plan(&run, 0);
    for (int i = 0; i < 4; i++) {
        ((float *)run.in.data)[i] = (float)(i + 1);
    }
    test_run_once(&run);
    for (int i = 0; i < 4; i++) {
        EXPECT(((const float *)run.out[0].data)[i] == 2 * (float)(i + 1));
    }
    test_run_close(&run);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(differences_of_the_last_two),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
