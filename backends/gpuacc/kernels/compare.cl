// Comparisons of numbers whose operands repeat along any dimensions. IN: type of the operands.
// COMPARE(a, b): a comparison. Work item: one element of the result, whose place in each operand is
// counted from the innermost dimension outwards.

kernel void compare(global const IN *a, const uint a_at, global const IN *b, const uint b_at,
                    global uchar *z, const uint z_at, const int count, BROADCAST_PARAMS)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    BROADCAST(i)
    z[z_at + i] = COMPARE(a[a_at + a_i], b[b_at + b_i]) ? 1 : 0;
}
