// The largest elements of a row, in order, and where they were; the first of equal ones comes
// first. T, INDEX: types. Work group: one row; its ITEMS items share the row's elements in each
// search for the next one.

// Does a at i come before b at k?
inline bool precedes(T a, int i, T b, int k) { return a > b || (!(b > a) && i < k); }

kernel void top_k(global const T *x, const uint x_at, global T *y, const uint y_at,
                  global INDEX *where, const uint where_at, const int row, const int count)
{
    local int found[ITEMS];
    const int item = (int)get_local_id(0), group = (int)get_group_id(0);
    int last = -1; // the latest one
    x += x_at + group * row;
    for (int n = 0; n < count; n++) {
        int best = -1;
        for (int i = item; i < row; i += ITEMS) {
            if ((last < 0 || precedes(x[last], last, x[i], i)) &&
                (best < 0 || precedes(x[i], i, x[best], best))) {
                best = i;
            }
        }
        found[item] = best;
        for (int half_way = ITEMS / 2; half_way > 0; half_way /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < half_way) {
                const int mine = found[item], other = found[item + half_way];
                found[item] =
                    other < 0 || (mine >= 0 && precedes(x[mine], mine, x[other], other)) ? mine
                                                                                           : other;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        last = max(found[0], 0);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0) {
            y[y_at + group * count + n] = x[last];
            where[where_at + group * count + n] = (INDEX)last;
        }
    }
}
