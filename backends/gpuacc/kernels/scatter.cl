// Slices that are added up where they belong. T: a type; ADD(a, b): a sum. first, which: of each
// slice of the result, the numbers of the slices of x that belong there. Work item: one element of
// the result.

kernel void scatter(global const T *x, const uint x_at, global const int *first,
                    global const int *which, global T *y, const uint y_at, const int count,
                    const int size)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    T sum = 0;
    for (int k = first[i / size]; k < first[i / size + 1]; k++) {
        sum = ADD(sum, x[x_at + which[k] * size + i % size]);
    }
    y[y_at + i] = sum;
}
