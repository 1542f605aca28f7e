// Products of matrices of 8-bit numbers: sums of 32 bits, rounded twice as the reference does. Work
// item: 4 columns of a row. Matrices of an operand lie a_matrix (b_matrix) elements apart: 0 for
// one that is used again. Q: char, the only type of 8 bits that batch_matmul has.

kernel void matmul_q8(global const Q *a, const uint a_at, global const Q *b, const uint b_at,
                      global Q *y, const uint y_at, const int rows, const int columns,
                      const int depth, const int a_matrix, const int b_matrix, const int a_row,
                      const int a_step, const int b_column, const int b_step, const int a_zero,
                      const int b_zero, const int y_zero, const int multiplier, const int shift,
                      const int lo, const int hi)
{
    const int c = (int)get_global_id(0) * 4, n = columns - c;
    const int row = (int)get_global_id(1), matrix = (int)get_global_id(2);
    if (c >= columns || row >= rows) {
        return;
    }
    a += a_at + matrix * a_matrix + row * a_row;
    b += b_at + matrix * b_matrix + c * b_column;
    int4 sum = (int4)(0);
    for (int d = 0; d < depth; d++) {
        global const Q *from = b + d * b_step;
        const int4 in = b_column == 1 ? load4_q(from, n)
                                      : (int4)(from[0], n > 1 ? from[b_column] : 0,
                                               n > 2 ? from[2 * b_column] : 0,
                                               n > 3 ? from[3 * b_column] : 0);
        sum += (a[d * a_step] - a_zero) * (in - b_zero);
    }
    const int4 v = add_sat(scale_double4(sum, (int4)(multiplier), (int4)(shift)), (int4)(y_zero));
    store4_q(clamp(v, (int4)(lo), (int4)(hi)), y + y_at + (matrix * rows + row) * columns + c, n);
}
