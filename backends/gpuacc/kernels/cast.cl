// Stored numbers in another type. CONVERT(v): one of them. Work item: one element.

kernel void cast(global const IN *x, const uint x_at, global OUT *y, const uint y_at,
                 const int count)
{
    const int i = (int)get_global_id(0);
    if (i < count) {
        y[y_at + i] = CONVERT(x[x_at + i]);
    }
}
