// Operators of one operand of 8 or 16 bits, or of two of 8 bits, as tables of all their results,
// which the reference kernel made. Work item of table1: 4 elements; of table2: one element, whose
// place in each operand is counted from the innermost dimension outwards.
//
// OPERAND: uchar or ushort. RESULT: type of a result.

kernel void table1(global const OPERAND *x, const uint x_at, global const RESULT *table,
                   global RESULT *y, const uint y_at, const int count)
{
    const int i = (int)get_global_id(0) * 4;
    for (int k = i; k < i + 4 && k < count; k++) {
        y[y_at + k] = table[x[x_at + k]];
    }
}

kernel void table2(global const OPERAND *a, const uint a_at, global const OPERAND *b,
                   const uint b_at, global const RESULT *table, global RESULT *y, const uint y_at,
                   const int count, BROADCAST_PARAMS)
{
    const int i = (int)get_global_id(0);
    if (i >= count) {
        return;
    }
    BROADCAST(i)
    y[y_at + i] = table[a[a_at + a_i] * 256 + b[b_at + b_i]];
}
