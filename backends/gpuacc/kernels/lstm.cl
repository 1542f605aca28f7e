// A layer of long short-term memory over a whole sequence, in 8-bit numbers with a 16-bit cell
// (engine/ops/lstm.c). Steps follow each other, so one call computes them all. Work group: a
// sample, whose cells its items share.
//
// ITEMS: work items of a group.
// COUPLED: the input gate is 1 - forget gate. HAS_STATE: state and cell before the first step are
// operands. KEEPS_STATE: those behind the last one are results. PEEPHOLES, NORMS: bit g: gate g
// sees the cell, is normalized. PROJECTS: the state is a product of the cells' results.

// In numbers: pairs of a factor's fraction and shift, as many as gates, and others.
#define X_FACTOR          0
#define STATE_FACTOR      8
#define CELL_FACTOR       16
#define NORM_FACTOR       24
#define NORM_LEAST        32 // the variance in place of one that is too small
#define HIDDEN_FACTOR     36
#define PROJECTION_FACTOR 38

#define FORGET_GATE 1
#define CELL_GATE   2
#define OUTPUT_GATE 3
#define ROOT_ONE    1024L // a deviation before it is normalized

// ---- fixed-point numbers ----

inline short saturate(long x)
{
    return convert_short_sat(x);
}

inline int scale_by(int x, global const int *factor)
{
    return scale_double(x, factor[0], factor[1]);
}

// 1 / sqrt(x) as a fraction and a shift, by Newton's steps (ifd_ref_inverse_root).
inline int2 inverse_root(int x)
{
    int shift = 11, left = 0;
    if (x <= 1) {
        return (int2)(INT_MAX, 0);
    }
    while (x >= 1 << 29) {
        x /= 4;
        shift++;
    }
    while ((x << (2 * left)) < 1 << 27) {
        left++;
    }
    shift -= left;
    x <<= 2 * left;
    const int half_x = shift_right(x >> 1, 1), half_three = (1 << 28) + (1 << 27);
    int root = 1 << 28;
    for (int i = 0; i < 5; i++) {
        const int square = mul_high(root, root);
        const int cube = convert_int_sat((long)mul_high(square, root) * (1 << 6));
        const int product = mul_high(half_three, root), correction = mul_high(half_x, cube);
        root = convert_int_sat(((long)product - correction) * (1 << 3));
    }
    root = mul_high(root, 1518500250); // sqrt(2) / 2
    if (shift < 0) {
        root = (int)((uint)root << -shift);
        shift = 0;
    }
    return (int2)(root, -shift);
}

// ---- gates ----

// sum of (x[k] - zero) times column c of a matrix of this many columns; it wraps
inline int product(global const char *w, int columns, int c, global const char *x, int depth,
                   int zero, int sum)
{
    uint total = (uint)sum;
    for (int k = 0; k < depth; k++) {
        total += (uint)(w[k * columns + c] * (x[k] - zero));
    }
    return (int)total;
}

struct lstm_step {
    global const char *x, *state; // state: only where sees_state
    global const short *cell;
    global short *gates; // results, gate by gate
    global const int *numbers;
    int input, width, cells, seen, zero_x, zero_y;
    bool sees_state;
    local long *sums;
};

// (x - mean) / deviation * weights + bias
inline void normalize(const struct lstm_step *s, int g, global const short *weights,
                      global const int *bias)
{
    const int item = (int)get_local_id(0);
    global short *x = s->gates + g * s->cells;
    global const int *factor = s->numbers + NORM_FACTOR + 2 * g;
    long sum = 0, squares = 0;
    for (int c = item; c < s->cells; c += ITEMS) {
        sum += x[c];
        squares += x[c] * x[c];
    }
    s->sums[item] = sum;
    s->sums[ITEMS + item] = squares;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    squares = 0;
    for (int i = 0; i < ITEMS; i++) {
        sum += s->sums[i];
        squares += s->sums[ITEMS + i];
    }
    barrier(CLK_LOCAL_MEM_FENCE); // before the next gate's
    const long mean = sum * ROOT_ONE / s->cells;
    const long variance =
        (squares * (ROOT_ONE * ROOT_ONE / s->cells) - mean * mean) / (ROOT_ONE * ROOT_ONE);
    const int2 root = inverse_root(variance < 1 ? s->numbers[NORM_LEAST + g] : (int)variance);
    for (int c = item; c < s->cells; c += ITEMS) {
        const int deviation = (int)(ROOT_ONE * x[c] - mean);
        const long real = (long)scale_double(deviation, root.x, root.y) * weights[c] + bias[c];
        const long half_step = real > 0 ? ROOT_ONE / 2 : -ROOT_ONE / 2;
        x[c] = saturate(scale_by((int)((real + half_step) / ROOT_ONE), factor));
    }
}

// table: its activation, of all numbers from the least
inline void compute_gate(const struct lstm_step *s, int g, global const char *w,
                         global const char *r, global const int *bias,
                         global const short *peephole, global const short *norm,
                         global const short *table)
{
    global short *y = s->gates + g * s->cells;
    global const int *n = s->numbers;
    const bool is_normalized = (NORMS >> g & 1) != 0;
    for (int c = (int)get_local_id(0); c < s->cells; c += ITEMS) {
        const int own =
            product(w, s->cells, c, s->x, s->input, s->zero_x, is_normalized ? 0 : bias[c]);
        short sum = saturate(scale_by(own, n + X_FACTOR + 2 * g));
        if (s->sees_state) {
            const int old = product(r, s->cells, c, s->state, s->width, s->zero_y, 0);
            sum = saturate((long)sum + scale_by(old, n + STATE_FACTOR + 2 * g));
        }
        if ((PEEPHOLES >> g & 1) != 0 && c < s->seen) {
            const int seen = peephole[c] * s->cell[c];
            sum = saturate((long)sum + scale_by(seen, n + CELL_FACTOR + 2 * g));
        }
        y[c] = sum;
    }
    if (is_normalized) {
        normalize(s, g, norm, bias);
    }
    for (int c = (int)get_local_id(0); c < s->cells; c += ITEMS) {
        y[c] = table[y[c] - SHRT_MIN];
    }
}

inline void update_cells(const struct lstm_step *s, global short *cell, int shift, int clip)
{
    for (int c = (int)get_local_id(0); c < s->cells; c += ITEMS) {
        const short forget = s->gates[FORGET_GATE * s->cells + c];
#ifdef COUPLED
        const short in = SHRT_MAX - forget;
#else
        const short in = s->gates[c];
#endif
        const short kept = (short)shift_right(forget * cell[c], 15);
        const short added = (short)shift_right(in * s->gates[CELL_GATE * s->cells + c], shift);
        const short sum = saturate((long)kept + added);
        cell[c] = (short)clamp((int)sum, -clip, clip);
    }
}

inline char store(int x, int zero)
{
    return convert_char_sat(add_sat(x, zero));
}

// Matrices are packed [depth][columns]. Work items: ITEMS for each sample.
kernel void lstm(global const char *x, const uint x_at, global const char *state_in,
                 const uint state_in_at, global const short *cell_in, const uint cell_in_at,
                 global const char *w0, global const char *w1, global const char *w2,
                 global const char *w3, global const char *r0, global const char *r1,
                 global const char *r2, global const char *r3, global const int *bias0,
                 global const int *bias1, global const int *bias2, global const int *bias3,
                 global const short *peephole0, global const short *peephole1,
                 global const short *peephole3, global const short *norm0,
                 global const short *norm1, global const short *norm2, global const short *norm3,
                 global const char *projection, global const int *projection_bias,
                 global const int *numbers, global const short *logistic, global const short *tanh3,
                 global const short *tanh_cell, global short *work, const uint work_at,
                 global char *hidden, const uint hidden_at, global char *y, const uint y_at,
                 global char *state_out, const uint state_out_at, global short *cell_out,
                 const uint cell_out_at, const int steps, const int input, const int cells,
                 const int width, const int x_step, const int x_sample, const int y_step,
                 const int y_sample, const int zero_x, const int zero_y, const int hidden_zero,
                 const int shift, const int clip, const int projection_clip)
{
    const int item = (int)get_local_id(0), n = (int)get_group_id(0);
    local long sums[2 * ITEMS];
    global short *cell = work + work_at + n * 5 * cells;
    struct lstm_step s = {.x = x + x_at + n * x_sample,
                     .cell = cell,
                     .gates = cell + cells,
                     .numbers = numbers,
                     .input = input,
                     .width = width,
                     .cells = cells,
                     .seen = min(width, cells),
                     .zero_x = zero_x,
                     .zero_y = zero_y,
                     .sums = sums};
    y += y_at + n * y_sample;
#ifdef HAS_STATE
    s.state = state_in + state_in_at + n * width;
    s.sees_state = true;
#else
    s.state = y;
    s.sees_state = false;
#endif
    for (int c = item; c < cells; c += ITEMS) {
#ifdef HAS_STATE
        cell[c] = cell_in[cell_in_at + n * cells + c];
#else
        cell[c] = 0;
#endif
    }
    for (int t = 0; t < steps; t++) {
#ifndef COUPLED
        compute_gate(&s, 0, w0, r0, bias0, peephole0, norm0, logistic);
#endif
        compute_gate(&s, FORGET_GATE, w1, r1, bias1, peephole1, norm1, logistic);
        compute_gate(&s, CELL_GATE, w2, r2, bias2, norm2, norm2, tanh3);
        update_cells(&s, cell, shift, clip);
        compute_gate(&s, OUTPUT_GATE, w3, r3, bias3, peephole3, norm3, logistic);
#ifdef PROJECTS
        global char *results = hidden + hidden_at + n * cells;
#else
        global char *results = y;
#endif
        for (int c = item; c < cells; c += ITEMS) {
            const int open = s.gates[OUTPUT_GATE * cells + c] * tanh_cell[cell[c] - SHRT_MIN];
            results[c] = store(scale_by(open, numbers + HIDDEN_FACTOR), hidden_zero);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
#ifdef PROJECTS
        for (int i = item; i < width; i += ITEMS) {
            const int sum = product(projection, width, i, results, cells, hidden_zero,
                                    projection_bias[i]);
            const int state = store(scale_by(sum, numbers + PROJECTION_FACTOR), zero_y);
            y[i] = (char)clamp(state, -projection_clip, projection_clip);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
#endif
        s.state = y;
        s.sees_state = true;
        s.x += x_step;
        y += y_step;
    }
#ifdef KEEPS_STATE
    for (int i = item; i < width; i += ITEMS) {
        state_out[state_out_at + n * width + i] = s.state[i];
    }
    for (int c = item; c < cells; c += ITEMS) {
        cell_out[cell_out_at + n * cells + c] = cell[c];
    }
#endif
}
