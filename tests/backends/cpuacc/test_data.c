/* Nodes that normalize, choose, compare, sum up and move: CpuAcc equals the reference kernels, on
 * one thread and on several. */
#include "tests/backends/cpuacc/trial.h"

static uint32_t next_value(struct trial *t)
{
    return add_value(t, IFD_F32, (struct ifd_shape){0}, none);
}

static uint32_t binary(struct trial *t, enum ifd_op op, uint32_t a, uint32_t b)
{
    const uint32_t out = next_value(t);
    (void)add_node(t, op, (const uint32_t[]){a, b}, 2, out);
    return out;
}

static uint32_t mean_of_rows(struct trial *t, uint32_t x)
{
    const uint32_t out = next_value(t);
    struct ifd_reduce_attrs *attrs = attrs_of(add_node(t, IFD_OP_REDUCE_MEAN, &x, 1, out));
    attrs->axes = (struct ifd_ints){.count = 1, .value = {pick(t, 0, 1) ? 2 : -1}};
    attrs->keep_dims = true;
    return out;
}

/* Rows by their mean and deviation, or by their squares alone, in the forms that exporters write;
 * sometimes the mean or a centred row is read by others, too. */
static void normalized(struct trial *t)
{
    static const float epsilon[] = {1e-3f};
    const int64_t n = pick(t, 2, 70);
    const bool has_mean = pick(t, 0, 2) > 0, divides = pick(t, 0, 1) != 0;
    t->input = add_value(t, IFD_F32, SHAPE(pick(t, 1, 3), pick(t, 1, 50), n), none);
    uint32_t centred = t->input;
    const uint32_t mean = has_mean ? mean_of_rows(t, t->input) : 0;
    if (has_mean) {
        centred = binary(t, IFD_OP_SUB, t->input, mean);
    }
    uint32_t square = next_value(t);
    if (pick(t, 0, 1)) {
        (void)add_node(t, IFD_OP_SQUARE, &centred, 1, square);
    } else {
        square = binary(t, IFD_OP_MUL, centred, centred);
    }
    const uint32_t sum = binary(t, IFD_OP_ADD, mean_of_rows(t, square),
                                constant(t, add_value(t, IFD_F32, SHAPE(1), none), epsilon));
    const uint32_t root = next_value(t);
    (void)add_node(t, divides ? IFD_OP_SQRT : IFD_OP_RSQRT, &sum, 1, root);
    uint32_t out = divides || pick(t, 0, 1)
                       ? binary(t, divides ? IFD_OP_DIV : IFD_OP_MUL, centred, root)
                       : binary(t, IFD_OP_MUL, root, centred);
    if (pick(t, 0, 2) > 0) {
        out = binary(t, IFD_OP_MUL, out, constant(t, add_value(t, IFD_F32, SHAPE(n), none), NULL));
    }
    if (pick(t, 0, 2) > 0) {
        out =
            binary(t, IFD_OP_ADD, constant(t, add_value(t, IFD_F32, SHAPE(1, n), none), NULL), out);
    }
    if (pick(t, 0, 3) == 0) {
        (void)binary(t, IFD_OP_ADD, out, has_mean && pick(t, 0, 1) ? mean : centred);
    }
}

NODE(normalization_of_rows, normalized)

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(normalization_of_rows_equals_its_reference),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
