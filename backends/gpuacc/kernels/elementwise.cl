// A chain of element-wise operators. Work item: 4 channels of a row.

kernel void elementwise(global const real_in *x, const uint x_at, global real_out *y,
                        const uint y_at, const int row, const int rows TAIL_PARAMS)
{
    const int c = (int)get_global_id(0) * 4;
    const int e = (int)get_global_id(1) * row + c;
    const int n = row - c;
    if (c >= row || (int)get_global_id(1) >= rows) {
        return;
    }
    float4 v = load4(x + x_at + e, n);
    TAIL(v, e, c, n)
    store4(v, y + y_at + e, n);
}
