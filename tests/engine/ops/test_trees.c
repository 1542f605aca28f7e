/* What trees refuses of ensembles. */
#include "inferd/op.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

/* Trees that are all the one leaf 0. */
static enum ifd_code infer(int64_t rows, int64_t trees, int64_t results, struct ifd_err *err)
{
    static const int32_t node[4] = {0}, root[1 << 15] = {0};
    const struct ifd_trees_attrs attrs = {.of = IFD_TREES_SUM};
    const struct ifd_desc x = {.dtype = IFD_F32, .shape = {2, {rows, 1}}},
                          nodes = {.dtype = IFD_S32, .shape = {2, {1, 4}}},
                          roots = {.dtype = IFD_S32, .shape = {1, {trees}}},
                          weights = {.dtype = IFD_F32, .shape = {2, {1, results}}};
    const struct ifd_operand operand[] = {
        {.desc = &x},
        {.desc = &nodes, .data = {(const void *)node, sizeof(node)}},
        {.desc = &roots, .data = {(const void *)root, (size_t)trees * sizeof(*root)}},
        {.desc = &weights}};
    struct ifd_desc out[] = {{.dtype = IFD_F32}};
    const struct ifd_op_def *def = ifd_op_def(IFD_OP_TREES);
    const struct ifd_infer call = {
        .def = def, .attrs = &attrs, .input = operand, .input_count = 4, .output_count = 1};
    return def->infer(&call, out, err);
}

static void runs_of_minutes_are_refused(void)
{
    struct ifd_err err = {0};
    REQUIRE_OK(infer(1000, 1000, 1000, &err), &err);
    EXPECT_INT(infer(10000000, 10000, 1, NULL), IFD_TOO_LARGE);
    EXPECT_INT(infer(1, 20000, 4000000, NULL), IFD_TOO_LARGE);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(runs_of_minutes_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
