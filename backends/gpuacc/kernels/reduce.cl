// Sums, means, extremes and products along one range of dimensions: a tensor [outer][row][inner]
// becomes [outer][inner]. Work group: ITEMS items share the rows of one or 4 results, so that they
// read 4 neighbouring elements. REDUCE(a, b), START, and FINISH(v) are defined in front.

kernel void reduce(global const real_in *x, const uint x_at, global real_out *y, const uint y_at,
                   const int row, const int inner, const float divisor)
{
    local float4 shared[ITEMS];
    const int item = (int)get_local_id(0);
    const int i = (int)get_global_id(1) * 4, n = inner - i;
    const int outer = (int)get_global_id(2);
    x += x_at + outer * row * inner + i;
    float4 v = (float4)(START);
    for (int k = item; k < row; k += ITEMS) {
        const float4 in = load4(x + k * inner, n);
        v = REDUCE(v, in);
    }
    shared[item] = v;
    for (int half_way = ITEMS / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) {
            shared[item] = REDUCE(shared[item], shared[item + half_way]);
        }
    }
    if (item == 0) {
        store4(FINISH(shared[0]), y + y_at + outer * inner + i, n);
    }
}
