// Pairs of numbers whose operands repeat along any dimensions: comparisons, arithmetic of integers
// and of quantized numbers of 16 bits.
// IN, OUT: types of the operands and of the result. COMBINE(a, b): a result. Work item: one element
// of the result, whose place in each operand is counted from the innermost dimension outwards.

#define BEYOND (1 << 20) // of a quotient by 0: more than any type holds

// x / 2^n, rounded; n counts modulo the number of bits (ifd_fixed_shift_any)
inline int shift_any(int x, int n)
{
    const int mask = (int)(uint)((1UL << (n & 63)) - 1);
    const int up = (x & mask) > (mask >> 1) + (x < 0) ? 1 : 0;
    return (x >> (n & 31)) + up;
}

// a / b times fraction * 2^(shift - 31) (ifd_quotient)
inline int quotient(int a, int b, int fraction, int shift)
{
    if (b == 0) {
        return a > 0 ? BEYOND : a < 0 ? -BEYOND : 0;
    }
    const int sign = b < 0 ? -a : a, zeros = (int)clz(abs(b)); // of the dividend, with b's sign
    const int room = (int)clz((uint)(sign < 0 ? ~sign : sign)) - 1;
    const int behind = (int)(abs(b) << zeros & INT_MAX); // the divisor's first 1
    const int whole = mul_high((int)((uint)sign << room), reciprocal_of_1_plus(behind));
    return shift_any(mul_high(whole, fraction), 31 - zeros + room - shift);
}

kernel void pairs(global const IN *a, const uint a_at, global const IN *b, const uint b_at,
                  global OUT *z, const uint z_at, const int count, BROADCAST_PARAMS)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    BROADCAST(i)
    z[z_at + i] = (OUT)COMBINE(a[a_at + a_i], b[b_at + b_i]);
}
