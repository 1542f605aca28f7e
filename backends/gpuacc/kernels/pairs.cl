// Pairs of numbers whose operands repeat along any dimensions: comparisons, arithmetic of integers
// and of quantized numbers of 16 bits.
// IN, OUT: types of the operands and of the result. COMBINE(a, b): a result. Work item: one element
// of the result, whose place in each operand is counted from the innermost dimension outwards.

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
