// Elements of a where c is true, else of b; all three repeat along any dimensions. Elements are not
// looked into (ELEMENT: an integer type of their size). Work item: one element of the result, whose
// place in each operand is counted from the innermost of RANK dimensions outwards.

kernel void choose(global const uchar *c, const uint c_at, global const ELEMENT *a, const uint a_at,
                   global const ELEMENT *b, const uint b_at, global ELEMENT *y, const uint y_at,
                   const int count, const int dim0, const int c0, const int a0, const int b0,
                   const int dim1, const int c1, const int a1, const int b1, const int dim2,
                   const int c2, const int a2, const int b2, const int dim3, const int c3,
                   const int a3, const int b3, const int dim4, const int c4, const int a4,
                   const int b4, const int dim5, const int c5, const int a5, const int b5,
                   const int dim6, const int c6, const int a6, const int b6, const int dim7,
                   const int c7, const int a7, const int b7)
{
    const int i = (int)get_global_id(0);
    int rest = i, c_i = 0, a_i = 0, b_i = 0;
    if (i >= count) {
        return;
    }
#define STEP(d)                                                                                    \
    if (RANK > d) {                                                                                \
        c_i += rest % dim##d * c##d;                                                               \
        a_i += rest % dim##d * a##d;                                                               \
        b_i += rest % dim##d * b##d;                                                               \
        rest /= dim##d;                                                                            \
    }
    EACH_DIMENSION(STEP)
    y[y_at + i] = c[c_at + c_i] != 0 ? a[a_at + a_i] : b[b_at + b_i];
}
