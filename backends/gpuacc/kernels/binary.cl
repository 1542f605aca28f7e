// A binary operator whose operands repeat along any dimensions. Work item: one element of the
// result, whose place in each operand is counted from the innermost dimension outwards. At most 6
// dimensions are left when neighbours are merged.

kernel void binary(global const real_in *a, const uint a_at, global const real_b *b,
                   const uint b_at, global real_out *z, const uint z_at, const int count,
                   BROADCAST_PARAMS, const float p, const float q, const float lo, const float hi)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    BROADCAST(i)
    const float4 x = (float4)(load1(a + a_at + a_i)), y = (float4)(load1_b(b + b_at + b_i));
    store1(clamp4(OPERATOR(x, y), lo, hi).s0, z + z_at + i);
}
