// Softmax of 8-bit numbers along rows, in the fixed-point arithmetic of the reference
// (engine/tensor/softmax8.c). The tables hold exponentials of the distance to the row's maximum,
// and these rounded for the sum. Work item: one row, as rows are short.

// 1 / (1 + a) for a in [0, 1), 31 fraction bits.
inline int reciprocal_of_1_plus(int a)
{
    const int half_denominator = (int)(((long)a + INT_MAX + 1L) / 2);
    int v = 1515870810 + mul_high(half_denominator, -1010580540);
    for (int step = 0; step < 3; step++) {
        const int error = (1 << 29) - mul_high(half_denominator, v);
        v += convert_int_sat((long)mul_high(v, error) * 4);
    }
    return convert_int_sat((long)v * 2);
}

kernel void softmax_q8(global const Q *x, const uint x_at, global const int *exponential,
                       global const int *rounded, global Q *y, const uint y_at, const int row,
                       const int rows, const int y_zero)
{
    const int r = (int)get_global_id(0);
    if (r >= rows) {
        return;
    }
    x += x_at + r * row;
    y += y_at + r * row;
    int largest = x[0];
    for (int i = 1; i < row; i++) {
        largest = max(largest, (int)x[i]);
    }
    long sum = 0;
    for (int i = 0; i < row; i++) {
        sum += rounded[largest - x[i]];
    }
    const uint limited = (uint)convert_int_sat(sum);
    const int headroom = (int)clz(limited);
    const int reciprocal = reciprocal_of_1_plus((int)((limited << headroom) - (1U << 31)));
    const int exponent = 12 - headroom + 31 - 8;
    for (int i = 0; i < row; i++) {
        const int share = mul_high(reciprocal, exponential[largest - x[i]]);
        const int steps = exponent > 31 ? 0 : shift_right4((int4)(share), (int4)(exponent)).s0;
        y[i] = (Q)(clamp(steps, 0, 255) + y_zero);
    }
}
