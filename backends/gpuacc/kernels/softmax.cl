// Softmax along rows. Work group: one row; its items share the row's elements. LOG: the logarithm
// of it.

kernel void softmax(global const real_in *x, const uint x_at, global real_out *y, const uint y_at,
                    const int row, const float beta)
{
    local float shared[ITEMS];
    const int item = (int)get_local_id(0);
    const int first = (int)get_group_id(0) * row;
    x += x_at + first;
    y += y_at + first;
    float largest = -FLT_MAX;
    for (int i = item; i < row; i += ITEMS) {
        const float v = load1(x + i);
        largest = largest < v ? v : largest;
    }
    shared[item] = largest;
    for (int half_way = ITEMS / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) {
            shared[item] = fmax(shared[item], shared[item + half_way]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    largest = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = item; i < row; i += ITEMS) {
        sum += exp((load1(x + i) - largest) * beta);
    }
    shared[item] = sum;
    for (int half_way = ITEMS / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) {
            shared[item] += shared[item + half_way];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = shared[0];
    for (int i = item; i < row; i += ITEMS) {
        const float distance = (load1(x + i) - largest) * beta;
        store1(LOG ? distance - log(sum) : exp(distance) / sum, y + i);
    }
}
