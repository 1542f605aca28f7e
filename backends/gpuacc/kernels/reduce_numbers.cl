// Reductions of integers and truths along one range of dimensions: a tensor [outer][row][inner]
// becomes [outer][inner]. T: a type. REDUCE(a, b) is defined in front. Work item: one result.

kernel void reduce_numbers(global const T *x, const uint x_at, global T *y, const uint y_at,
                           const int results, const int row, const int inner)
{
    const int i = (int)get_global_id(0);
    if (i >= results) {
        return;
    }
    x += x_at + i / inner * row * inner + i % inner;
    T v = x[0];
    for (int k = 1; k < row; k++) {
        const T next = x[k * inner];
        v = REDUCE(v, next);
    }
    y[y_at + i] = v;
}
