// Sums and means of 8-bit numbers along a range of dimensions: [outer][row][inner] becomes
// [outer][inner]. Work item: 4 results. The multiplier includes a mean's division.

kernel void reduce_q8(global const Q *x, const uint x_at, global Q *y, const uint y_at,
                      const int count, const int row, const int inner, const int x_zero,
                      const int multiplier, const int shift, const int y_zero, const int lo,
                      const int hi)
{
    const int i = (int)get_global_id(0) * 4, n = inner - i;
    const int outer = (int)get_global_id(1);
    if (i >= inner || outer >= count) {
        return;
    }
    x += x_at + outer * row * inner + i;
    int4 sum = (int4)(0);
    for (int k = 0; k < row; k++) {
        sum += load4_q(x + k * inner, n) - x_zero;
    }
    const int4 v = add_sat(scale_double4(sum, (int4)(multiplier), (int4)(shift)), (int4)(y_zero));
    store4_q(clamp(v, (int4)(lo), (int4)(hi)), y + y_at + outer * inner + i, n);
}
