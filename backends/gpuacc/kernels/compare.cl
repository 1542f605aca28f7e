// Comparisons of numbers whose operands repeat along any dimensions. IN: type of the operands.
// COMPARE(a, b): a comparison. Work item: one element of the result, whose place in each operand is
// counted from the innermost dimension outwards.

#define STEP(d)                                                                                    \
    a_i += rest % dim##d * a##d;                                                                   \
    b_i += rest % dim##d * b##d;                                                                   \
    rest /= dim##d;

kernel void compare(global const IN *a, const uint a_at, global const IN *b, const uint b_at,
                    global uchar *z, const uint z_at, const int count, const int dim0,
                    const int a0, const int b0, const int dim1, const int a1, const int b1,
                    const int dim2, const int a2, const int b2, const int dim3, const int a3,
                    const int b3, const int dim4, const int a4, const int b4, const int dim5,
                    const int a5, const int b5)
{
    const int i = (int)get_global_id(0);
    int rest = i, a_i = 0, b_i = 0;
    if (i >= count) {
        return;
    }
    STEP(0)
    STEP(1)
    STEP(2)
    STEP(3)
    STEP(4)
    STEP(5)
    z[z_at + i] = COMPARE(a[a_at + a_i], b[b_at + b_i]) ? 1 : 0;
}
