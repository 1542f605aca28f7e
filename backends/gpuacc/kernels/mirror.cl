// A tensor with a border that mirrors it. Elements are not looked into (ELEMENT: an integer type of
// their size). edge: 1 if the outermost element is repeated. Work item: one element of the result;
// of RANK dimensions, innermost first: size of the result and of the input, elements before it,
// stride.

inline int mirrored(int i, int size, int edge)
{
    return i < 0 ? -i - edge : (i >= size ? 2 * (size - 1) - i + edge : i);
}

kernel void mirror(global const ELEMENT *x, const uint x_at, global ELEMENT *y, const uint y_at,
                   const int count, const int edge, const int out0, const int in0,
                   const int before0, const int stride0, const int out1, const int in1,
                   const int before1, const int stride1, const int out2, const int in2,
                   const int before2, const int stride2, const int out3, const int in3,
                   const int before3, const int stride3, const int out4, const int in4,
                   const int before4, const int stride4, const int out5, const int in5,
                   const int before5, const int stride5, const int out6, const int in6,
                   const int before6, const int stride6, const int out7, const int in7,
                   const int before7, const int stride7)
{
    const int i = (int)get_global_id(0);
    int rest = i, from = 0;
    if (i >= count) {
        return;
    }
#define STEP(d)                                                                                    \
    if (RANK > d) {                                                                                \
        from += mirrored(rest % out##d - before##d, in##d, edge) * stride##d;                      \
        rest /= out##d;                                                                            \
    }
    EACH_DIMENSION(STEP)
    y[y_at + i] = x[x_at + from];
}
