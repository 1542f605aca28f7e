// Floats become 8-bit numbers. Work item: 4 elements.

kernel void quantize(global const real_in *x, const uint x_at, global Q *y, const uint y_at,
                     const int count, const float scale, const int zero)
{
    const int i = (int)get_global_id(0) * 4, n = count - i;
    if (n <= 0) {
        return;
    }
    const float4 v = ROUND(load4(x + x_at + i, n) / scale);
    // a clamp of floats first: not a number becomes the zero point
    const float4 limited = isnan(v) ? (float4)(0.0f) : clamp(v, -1024.0f, 1024.0f);
    const int4 stored = convert_int4(limited) + zero;
    store4_q(clamp(stored, (int4)(LOWEST), (int4)(LOWEST + 255)), y + y_at + i, n);
}
