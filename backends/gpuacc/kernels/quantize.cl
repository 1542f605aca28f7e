// Floats become numbers of 8 or 16 bits. Work item: 4 elements.
//
// Q: char, uchar or short; LOWEST, HIGHEST: its range. EVEN: halves go to the even number, beyond
// the range it saturates, and not a number is the lowest one; else halves go away from zero,
// and what 32 bits do not hold is INT_MIN before the zero point is added. (engine/ops/quantize.c)

kernel void quantize(global const real_in *x, const uint x_at, global Q *y, const uint y_at,
                     const int count, const float scale, const int zero)
{
    const int i = (int)get_global_id(0) * 4, n = count - i;
    if (n <= 0) {
        return;
    }
    const float4 v = load4(x + x_at + i, n) / scale;
#ifdef EVEN
    const float4 whole = isnan(v) ? (float4)(-1e6f) : clamp(rint(v), -1e6f, 1e6f);
    const int4 steps = convert_int4(whole);
#else
    const float4 whole = round(v);
    const int4 fits = whole >= -2147483648.0f && whole < 2147483648.0f;
    const int4 steps = fits ? convert_int4(fits ? whole : (float4)(0.0f)) : (int4)(INT_MIN);
#endif
    const int4 stored = as_int4(as_uint4(steps) + (uint)zero); // wraps, as in CpuRef
    store4_q(clamp(stored, (int4)(LOWEST), (int4)(HIGHEST)), y + y_at + i, n);
}
