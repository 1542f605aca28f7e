// Running sums along a dimension: [outer][row][inner]. T: a type; integers wrap around. exclusive:
// an element itself is left out. Work item: one row.

kernel void cumsum(global const T *x, const uint x_at, global T *y, const uint y_at, const int rows,
                   const int row, const int inner, const int exclusive, const int reverse)
{
    const int i = (int)get_global_id(0);
    if (i >= rows) {
        return;
    }
    const int first = i / inner * row * inner + i % inner;
    T sum = 0;
    for (int k = 0; k < row; k++) {
        const int at = first + (reverse ? row - 1 - k : k) * inner;
        const T value = x[x_at + at];
        y[y_at + at] = exclusive ? sum : sum + value;
        sum += value;
    }
}
