/* What lstm takes: the shapes and types of its many inputs. */
#include "engine/ops/lstm_rule.h"

#include "engine/ops/ref_util.h"

struct ifd_lstm_sizes ifd_lstm_sizes_of(const struct ifd_lstm_attrs *attrs,
                                        const struct ifd_shape *x,
                                        const struct ifd_shape *recurrent)
{
    const uint32_t time = attrs->time_major ? 0 : 1;
    return (struct ifd_lstm_sizes){x->dim[1 - time], x->dim[time], x->dim[2], recurrent->dim[0],
                                   recurrent->dim[1]};
}

static enum ifd_code check_matrix(const struct ifd_infer *in, uint32_t i, int64_t rows,
                                  int64_t columns, struct ifd_err *err)
{
    const struct ifd_desc *desc = ifd_infer_input(in, i);
    if (!desc || desc->dtype != IFD_S8 || desc->shape.rank != 2 || desc->shape.dim[0] != rows ||
        desc->shape.dim[1] != columns) {
        return ifd_fail(err, IFD_INVALID, "lstm: input %u is %s %s, expected s8 [%lld,%lld]", i,
                        desc ? ifd_dtype_name(desc->dtype) : "absent",
                        desc ? ifd_shape_text(&desc->shape).s : "", (long long)rows,
                        (long long)columns);
    }
    return ifd_infer_any_scale(in->def, "weights", desc, err);
}

static enum ifd_code check_vector(const struct ifd_infer *in, uint32_t i, enum ifd_dtype dtype,
                                  int64_t count, struct ifd_err *err)
{
    const struct ifd_desc *desc = ifd_infer_input(in, i);
    if (!desc || desc->dtype != dtype || desc->shape.rank != 1 || desc->shape.dim[0] != count) {
        return ifd_fail(err, IFD_INVALID, "lstm: input %u is no %s [%lld]", i,
                        ifd_dtype_name(dtype), (long long)count);
    }
    return dtype == IFD_S16 ? ifd_infer_any_scale(in->def, "weights", desc, err) : IFD_OK;
}

static enum ifd_code check_gate(const struct ifd_infer *in, uint32_t gate,
                                const struct ifd_lstm_sizes *s, struct ifd_err *err)
{
    enum ifd_code code = check_matrix(in, IFD_LSTM_WEIGHTS(gate), s->cells, s->input, err);
    if (code == IFD_OK) {
        code = check_matrix(in, IFD_LSTM_RECURRENT(gate), s->cells, s->width, err);
    }
    if (code == IFD_OK) {
        code = check_vector(in, IFD_LSTM_BIAS(gate), IFD_S32, s->cells, err);
    }
    if (code == IFD_OK && gate != IFD_LSTM_CELL_GATE &&
        ifd_infer_input(in, IFD_LSTM_PEEPHOLE(gate))) {
        code = check_vector(in, IFD_LSTM_PEEPHOLE(gate), IFD_S16, s->cells, err);
    }
    if (code == IFD_OK && ifd_infer_input(in, IFD_LSTM_NORM(gate))) {
        code = check_vector(in, IFD_LSTM_NORM(gate), IFD_S16, s->cells, err);
    }
    return code;
}

/* What an absent input gate has: no weights of the state, no bias, no normalization. */
static enum ifd_code check_coupled(const struct ifd_infer *in, const struct ifd_lstm_sizes *s,
                                   struct ifd_err *err)
{
    static const uint32_t parts[] = {IFD_LSTM_RECURRENT(IFD_LSTM_INPUT_GATE),
                                     IFD_LSTM_BIAS(IFD_LSTM_INPUT_GATE),
                                     IFD_LSTM_NORM(IFD_LSTM_INPUT_GATE)};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (ifd_infer_input(in, parts[i])) {
            return ifd_fail(err, IFD_INVALID, "lstm: input %u of an absent input gate", parts[i]);
        }
    }
    return ifd_infer_input(in, IFD_LSTM_PEEPHOLE(IFD_LSTM_INPUT_GATE))
               ? check_vector(in, IFD_LSTM_PEEPHOLE(IFD_LSTM_INPUT_GATE), IFD_S16, s->cells, err)
               : IFD_OK;
}

static enum ifd_code check_projection(const struct ifd_infer *in, const struct ifd_lstm_sizes *s,
                                      struct ifd_err *err)
{
    if (!ifd_infer_input(in, IFD_LSTM_PROJECTION)) {
        if (ifd_infer_input(in, IFD_LSTM_PROJECTION_BIAS)) {
            return ifd_fail(err, IFD_INVALID, "lstm: a bias of no projection");
        }
        return s->width == s->cells
                   ? IFD_OK
                   : ifd_fail(err, IFD_INVALID, "lstm: a state of %lld for %lld cells",
                              (long long)s->width, (long long)s->cells);
    }
    if (s->cells == 0) {
        return ifd_fail(err, IFD_INVALID, "lstm: a projection of no cells");
    }
    const enum ifd_code code = check_matrix(in, IFD_LSTM_PROJECTION, s->width, s->cells, err);
    return code == IFD_OK && ifd_infer_input(in, IFD_LSTM_PROJECTION_BIAS)
               ? check_vector(in, IFD_LSTM_PROJECTION_BIAS, IFD_S32, s->width, err)
               : code;
}

/* State [batch, width] and cell [batch, cells]. */
static void shapes_of(const struct ifd_lstm_sizes *s, struct ifd_shape *shape)
{
    shape[0] = (struct ifd_shape){.rank = 2, .dim = {s->batch, s->width}};
    shape[1] = (struct ifd_shape){.rank = 2, .dim = {s->batch, s->cells}};
}

/* Both or none; the state is quantized as the output is. */
static enum ifd_code check_states(const struct ifd_infer *in, const struct ifd_desc *output,
                                  const struct ifd_shape *shape, struct ifd_err *err)
{
    const struct ifd_desc *state = ifd_infer_input(in, IFD_LSTM_STATE),
                          *cell = ifd_infer_input(in, IFD_LSTM_CELL);
    if (!state && !cell) {
        return IFD_OK;
    }
    if (!state || !cell || state->dtype != IFD_S8 || cell->dtype != IFD_S16 ||
        !ifd_shape_equal(&state->shape, &shape[0]) || !ifd_shape_equal(&cell->shape, &shape[1]) ||
        !ifd_quant_equal(state, &output[0])) {
        return ifd_fail(err, IFD_INVALID, "lstm: no state s8 %s like the output and cell s16 %s",
                        ifd_shape_text(&shape[0]).s, ifd_shape_text(&shape[1]).s);
    }
    return IFD_OK;
}

static enum ifd_code infer_states(const struct ifd_infer *in, struct ifd_desc *output,
                                  const struct ifd_shape *shape, struct ifd_err *err)
{
    static const enum ifd_dtype dtypes[] = {[1] = IFD_S8, [2] = IFD_S16};
    enum ifd_code code = IFD_OK;
    if (in->output_count != 1 && in->output_count != 3) {
        return ifd_fail(err, IFD_INVALID, "lstm: %u outputs, expected 1 or 3", in->output_count);
    }
    for (uint32_t i = 1; code == IFD_OK && i < in->output_count; i++) {
        code = ifd_infer_output_dtype(in->def, output, i, dtypes[i], err);
        if (code == IFD_OK) {
            code = ifd_infer_output(in->def, output, i, &shape[i - 1], err);
        }
    }
    if (code == IFD_OK && in->output_count == 3 && !ifd_quant_equal(&output[1], &output[0])) {
        code = ifd_fail(err, IFD_INVALID, "lstm: output 1 is not quantized as output 0");
    }
    return code;
}

static bool has_input_gate(const struct ifd_infer *in)
{
    return ifd_infer_input(in, IFD_LSTM_WEIGHTS(IFD_LSTM_INPUT_GATE)) != NULL;
}

enum ifd_code ifd_lstm_infer(const struct ifd_infer *in, struct ifd_desc *output,
                             struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    const struct ifd_desc *recurrent =
        ifd_infer_input(in, IFD_LSTM_RECURRENT(IFD_LSTM_OUTPUT_GATE));
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 0, 3, err);
    }
    if (code == IFD_OK && (!recurrent || recurrent->shape.rank != 2)) {
        code = ifd_fail(err, IFD_INVALID, "lstm: input %u is no matrix",
                        IFD_LSTM_RECURRENT(IFD_LSTM_OUTPUT_GATE));
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_S8, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "input 0", in->input[0].desc, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "output 0", &output[0], err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *x = &in->input[0].desc->shape;
    const struct ifd_lstm_sizes s = ifd_lstm_sizes_of(in->attrs, x, &recurrent->shape);
    for (uint32_t gate = has_input_gate(in) ? IFD_LSTM_INPUT_GATE : IFD_LSTM_FORGET_GATE;
         code == IFD_OK && gate < IFD_LSTM_GATES; gate++) {
        code = check_gate(in, gate, &s, err);
    }
    if (code == IFD_OK && !has_input_gate(in)) {
        code = check_coupled(in, &s, err);
    }
    const struct ifd_shape shape = {.rank = 3, .dim = {x->dim[0], x->dim[1], s.width}};
    struct ifd_shape states[2];
    shapes_of(&s, states);
    if (code == IFD_OK) {
        code = check_projection(in, &s, err);
    }
    if (code == IFD_OK) {
        code = check_states(in, output, states, err);
    }
    if (code == IFD_OK) {
        code = infer_states(in, output, states, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

enum ifd_code ifd_lstm_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                               size_t *ret_bytes, struct ifd_err *err)
{
    const struct ifd_lstm_sizes s =
        ifd_lstm_sizes_of(in->attrs, &in->input[0].desc->shape,
                          &ifd_infer_input(in, IFD_LSTM_RECURRENT(IFD_LSTM_OUTPUT_GATE))->shape);
    (void)output;
    if (!ifd_size_mul((size_t)s.batch * ((IFD_LSTM_GATES + 1) * sizeof(int16_t) + 1),
                      (size_t)s.cells, ret_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "lstm: %lld cells", (long long)s.cells);
    }
    return IFD_OK;
}
