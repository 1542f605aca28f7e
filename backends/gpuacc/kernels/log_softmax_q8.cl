// Logarithm of the softmax of 8-bit numbers along rows, in the integers of the reference
// (engine/tensor/log_softmax8.c). Work item: one row, as rows are short.

kernel void log_softmax_q8(global const Q *x, const uint x_at, global const uint *exponential,
                           global const int *steps, global Q *y, const uint y_at, const int row,
                           const int rows, const int y_zero, const int lowest, const int highest,
                           const int fraction, const int shift)
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
    ulong sum = 0;
    for (int i = 0; i < row; i++) {
        sum += exponential[largest - x[i]];
    }
    const int exponent = 63 - (int)clz(sum);
    ulong rest = sum << (63 - exponent) >> 32, log2_sum = (ulong)(exponent - 30) << 24;
    for (int bit = 23; bit >= 0; bit--) {
        const ulong square = rest * rest, is_large = square >> 63;
        log2_sum |= is_large << bit;
        rest = square >> (31 + is_large);
    }
    const int log_sum = (int)min(log2_sum * (ulong)fraction >> shift, (ulong)(1024 << 16));
    for (int i = 0; i < row; i++) {
        const int below = (steps[largest - x[i]] + log_sum + (1 << 15)) >> 16;
        y[i] = (Q)clamp(y_zero - below, lowest, highest);
    }
}
