// Operators of one or two 8-bit operands as tables of all their results, which the reference kernel
// made. Work item of table1: 4 elements; of table2: one element, whose place in each operand is
// counted from the innermost dimension outwards.
//
// RESULT: type of a result.

kernel void table1(global const uchar *x, const uint x_at, global const RESULT *table,
                   global RESULT *y, const uint y_at, const int count)
{
    const int i = (int)get_global_id(0) * 4;
    for (int k = i; k < i + 4 && k < count; k++) {
        y[y_at + k] = table[x[x_at + k]];
    }
}

#define STEP(d)                                                                                    \
    a_i += rest % dim##d * a##d;                                                                   \
    b_i += rest % dim##d * b##d;                                                                   \
    rest /= dim##d;

kernel void table2(global const uchar *a, const uint a_at, global const uchar *b, const uint b_at,
                   global const RESULT *table, global RESULT *y, const uint y_at, const int count,
                   const int dim0, const int a0, const int b0, const int dim1, const int a1,
                   const int b1, const int dim2, const int a2, const int b2, const int dim3,
                   const int a3, const int b3, const int dim4, const int a4, const int b4,
                   const int dim5, const int a5, const int b5)
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
    y[y_at + i] = table[a[a_at + a_i] * 256 + b[b_at + b_i]];
}
