// Normalization along rows of f32.

// Every row divided by the root of the sum of its squares. Work group: one row; its ITEMS items
// share the row's elements.
kernel void l2_norm(global const real_in *x, const uint x_at, global real_out *y, const uint y_at,
                    const int row)
{
    local float shared[ITEMS];
    const int item = (int)get_local_id(0);
    const int first = (int)get_group_id(0) * row;
    x += x_at + first;
    y += y_at + first;
    float sum = 0.0f;
    for (int i = item; i < row; i += ITEMS) {
        const float v = load1(x + i);
        sum += v * v;
    }
    shared[item] = sum;
    for (int half_way = ITEMS / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) {
            shared[item] += shared[item + half_way];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float root = sqrt(shared[0]), least = 1e-6f;
    const float norm = root > least ? root : least;
    for (int i = item; i < row; i += ITEMS) {
        store1(load1(x + i) / norm, y + i);
    }
}

// Every element by a power of its neighbours' squares in the row: radius before it, itself, and
// radius - 1 behind it. Work item: one element.
kernel void local_response(global const real_in *x, const uint x_at, global real_out *y,
                           const uint y_at, const int count, const int row, const int radius,
                           const float bias, const float alpha, const float beta)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    const int c = i % row;
    const int first = c > radius ? c - radius : 0, end = row - c > radius ? c + radius : row;
    float sum = 0.0f;
    for (int k = first; k < end; k++) {
        const float v = load1(x + x_at + i - c + k);
        sum += v * v;
    }
    store1(load1(x + x_at + i) * pow(bias + alpha * sum, -beta), y + y_at + i);
}
