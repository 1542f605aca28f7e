// One step of an LSTM layer in 8-bit numbers around 128, with a cell of 16 bits
// (engine/ops/basic_lstm.c). Work item: a cell of a sample.
//
// Weights are packed [column][row], rows gate by gate; columns see x, then the state. Tables are of
// all numbers from the least.

#define CELL_GATE   1
#define FORGET_GATE 2
#define OUTPUT_GATE 3
#define MIDDLE      128

// Numbers of 16 bits with fraction digits (ifd_fixed16_mul, ifd_fixed16_down).
inline int multiply(int a, int b)
{
    const int product = a * b, sign = product >> 31;
    const int rounded = ((product ^ sign) - sign + (1 << 14) + sign) >> 15;
    return (min(rounded, SHRT_MAX) ^ sign) - sign;
}

inline int divide_by_power(int x, int exponent)
{
    return (x + (1 << (exponent - 1)) + (x >> 31)) >> exponent;
}

// Rounded twice, halves upwards.
inline short scale_sum(int sum, int fraction, int shift)
{
    const int down = max(-shift, 0);
    const long high = mul_high((int)((uint)sum << max(shift, 0)), fraction);
    return convert_short_sat((high + ((1L << down) >> 1)) >> down);
}

kernel void basic_lstm(global const uchar *x, const uint x_at, global const uchar *state,
                       const uint state_at, global const short *cell, const uint cell_at,
                       global const uchar *w, global const int *bias,
                       global const short *logistic, global const short *tanh3,
                       global uchar *new_state, const uint new_state_at, global short *new_cell,
                       const uint new_cell_at, global uchar *both, const uint both_at,
                       global short *sums, const uint sums_at, const int batch, const int input,
                       const int cells, const int zero, const int fraction, const int shift)
{
    const int i = (int)get_global_id(0), n = (int)get_global_id(1), columns = input + cells;
    int gate[4];
    if (i >= cells || n >= batch) {
        return;
    }
    x += x_at + n * input;
    state += state_at + n * cells;
    for (int k = i; k < columns; k += cells) {
        both[both_at + n * columns + k] = k < input ? x[k] : state[k - input];
    }
    for (int g = 0; g < 4; g++) {
        const int row = g * cells + i;
        uint sum = (uint)bias[row];
        for (int k = 0; k < columns; k++) {
            const int seen = k < input ? x[k] : state[k - input];
            sum += (uint)((seen - MIDDLE) * (w[k * 4 * cells + row] - zero));
        }
        const short scaled = scale_sum((int)sum, fraction, shift);
        sums[sums_at + n * 4 * cells + row] = scaled;
        gate[g] = (g == CELL_GATE ? tanh3 : logistic)[scaled - SHRT_MIN];
    }
    const int at = n * cells + i;
    const int added = divide_by_power(multiply(gate[0], gate[CELL_GATE]), 4);
    const int kept = multiply(gate[FORGET_GATE], cell[cell_at + at]);
    const short sum = convert_short_sat(added + kept);
    const int seen = tanh3[convert_short_sat(sum * 2) - SHRT_MIN]; // in the scale of sums
    const int y = divide_by_power(multiply(gate[OUTPUT_GATE], seen), 8);
    new_cell[new_cell_at + at] = sum;
    new_state[new_state_at + at] = (uchar)(MIDDLE + convert_char_sat(y));
}
