// Chosen rows of a tensor. Elements are not looked into (ELEMENT: an integer type of their size).
// Work item: one element of the result.

kernel void gather(global const ELEMENT *x, const uint x_at, global const int *pick,
                   global ELEMENT *y, const uint y_at, const int count, const int outer,
                   const int choices, const int picks, const int inner)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    const int place = i / inner % picks, before = i / inner / picks; // before: batch and outer
    const int row = before * choices + pick[before / outer * picks + place];
    y[y_at + i] = x[x_at + row * inner + i % inner];
}
