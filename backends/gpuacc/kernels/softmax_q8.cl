// Softmax of 8-bit numbers along rows, in the fixed-point arithmetic of the reference
// (engine/tensor/softmax8.c). The tables hold exponentials of the distance to the row's maximum,
// and these rounded for the sum. Work item: one row, as rows are short.

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
