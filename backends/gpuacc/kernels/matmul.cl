// Products of matrices of f32. Work item: 4 columns of a row. Matrices of an operand lie a_matrix
// (b_matrix) elements apart: 0 for one that is used again.

kernel void matmul(global const real_in *a, const uint a_at, global const real_b *b,
                   const uint b_at, global real_out *y, const uint y_at, const int rows,
                   const int columns, const int depth, const int a_matrix, const int b_matrix,
                   const int a_row, const int a_step, const int b_column, const int b_step)
{
    const int c = (int)get_global_id(0) * 4, n = columns - c;
    const int row = (int)get_global_id(1), matrix = (int)get_global_id(2);
    if (c >= columns || row >= rows) {
        return;
    }
    a += a_at + matrix * a_matrix + row * a_row;
    b += b_at + matrix * b_matrix + c * b_column;
    float4 sum = (float4)(0.0f);
    for (int d = 0; d < depth; d++) {
        global const real_b *from = b + d * b_step;
        float4 in = (float4)(0.0f);
        if (b_column == 1) {
            in = load4_b(from, n);
        } else {
            in.s0 = load1_b(from);
            in.s1 = n > 1 ? load1_b(from + b_column) : 0.0f;
            in.s2 = n > 2 ? load1_b(from + 2 * b_column) : 0.0f;
            in.s3 = n > 3 ? load1_b(from + 3 * b_column) : 0.0f;
        }
        sum = mad((float4)(load1(a + d * a_step)), in, sum);
    }
    store4(sum, y + y_at + (matrix * rows + row) * columns + c, n);
}
