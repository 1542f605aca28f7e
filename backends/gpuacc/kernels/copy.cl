// Strided copies of elements that are not looked into (ELEMENT: an integer type of their size), and
// what stands in front of them: filling a tensor. Work item: one element. Strides and places are in
// elements.

kernel void copy(global const ELEMENT *x, const uint x_at, global ELEMENT *y, const uint y_at,
                 const int count, const int in_offset, const int out_offset, const int dim0,
                 const int in0, const int out0, const int dim1, const int in1, const int out1,
                 const int dim2, const int in2, const int out2, const int dim3, const int in3,
                 const int out3, const int dim4, const int in4, const int out4, const int dim5,
                 const int in5, const int out5, const int dim6, const int in6, const int out6,
                 const int dim7, const int in7, const int out7)
{
    int rest = (int)get_global_id(0), from = in_offset, to = out_offset;
    if (rest >= count) {
        return;
    }
#define STEP(d)                                                                                    \
    if (RANK > d) {                                                                                \
        from += rest % dim##d * in##d;                                                             \
        to += rest % dim##d * out##d;                                                              \
        rest /= dim##d;                                                                            \
    }
    EACH_DIMENSION(STEP)
    y[y_at + to] = x[x_at + from];
}

kernel void fill(global ELEMENT *y, const uint y_at, const int count, const int low,
                 const int high)
{
    const int i = (int)get_global_id(0);
    if (i < count) {
        y[y_at + i] = (ELEMENT)((ulong)(uint)low | (ulong)(uint)high << 32);
    }
}
