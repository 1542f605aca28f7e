// Where along a dimension the largest (or smallest) element lies; the first of equal ones. IN, OUT:
// types. BETTER(a, b): is a better than b? Work item: one result.

kernel void arg(global const IN *x, const uint x_at, global OUT *y, const uint y_at,
                const int results, const int row, const int inner)
{
    const int i = (int)get_global_id(0);
    if (i >= results) {
        return;
    }
    x += x_at + i / inner * row * inner + i % inner;
    int best = 0;
    for (int k = 1; k < row; k++) {
        best = BETTER(x[k * inner], x[best * inner]) ? k : best;
    }
    y[y_at + i] = best;
}
