/* cast between f32, s32 and s64, and between f32 and 8-bit numbers. Conversions to integers
 * truncate and saturate; NaN becomes 0. */
#include "backends/cpuacc/driver.h"

/* zero: what 0 is in the native form of s8 or u8. */
typedef void cast_fn(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                     int32_t zero);

struct cast_params {
    cast_fn *run;
    size_t count, in_bytes, out_bytes;
    int32_t zero;
};

static void f32_to_s32(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                       int32_t zero)
{
    (void)kernels;
    (void)zero;
    const float *x = in;
    int32_t *y = out;
    for (size_t i = 0; i < count; i++) {
        y[i] = x[i] >= 0x1p31f    ? INT32_MAX
               : x[i] <= -0x1p31f ? INT32_MIN
               : x[i] == x[i]     ? (int32_t)x[i]
                                  : 0;
    }
}

static void s32_to_f32(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                       int32_t zero)
{
    (void)kernels;
    (void)zero;
    for (size_t i = 0; i < count; i++) {
        ((float *)out)[i] = (float)((const int32_t *)in)[i];
    }
}

static void s64_to_f32(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                       int32_t zero)
{
    (void)kernels;
    (void)zero;
    for (size_t i = 0; i < count; i++) {
        ((float *)out)[i] = (float)((const int64_t *)in)[i];
    }
}

static void s32_to_s64(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                       int32_t zero)
{
    (void)kernels;
    (void)zero;
    for (size_t i = 0; i < count; i++) {
        ((int64_t *)out)[i] = ((const int32_t *)in)[i];
    }
}

/* Keeps the low bits. */
static void s64_to_s32(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                       int32_t zero)
{
    (void)kernels;
    (void)zero;
    for (size_t i = 0; i < count; i++) {
        ((int32_t *)out)[i] = (int32_t)(uint32_t)(uint64_t)((const int64_t *)in)[i];
    }
}

static void q8_to_f32(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                      int32_t zero)
{
    kernels->quant.dequantize(count, in, 1, zero, out);
}

/* Elements whose digits behind the point go at a time. */
#define CHUNK 256

static void f32_to_q8(const struct ifd_kernels *kernels, size_t count, const void *in, void *out,
                      int32_t zero)
{
    float whole[CHUNK];
    for (size_t at = 0; at < count; at += CHUNK) {
        const size_t n = count - at < CHUNK ? count - at : CHUNK;
        kernels->eltwise.unary[IFD_UNARY_TRUNC](n, (const float *)in + at, whole, 0, 0);
        kernels->quant.quantize_by(n, whole, 1, zero, (ifd_q8 *)out + at);
    }
}

struct cast_row {
    enum ifd_dtype from, to;
    cast_fn *run;
};

static const struct cast_row *find(const struct ifd_node_view *node)
{
    static const struct cast_row rows[] = {
        {IFD_F32, IFD_S32, f32_to_s32}, {IFD_S32, IFD_F32, s32_to_f32},
        {IFD_S64, IFD_F32, s64_to_f32}, {IFD_S32, IFD_S64, s32_to_s64},
        {IFD_S64, IFD_S32, s64_to_s32}, {IFD_S8, IFD_F32, q8_to_f32},
        {IFD_U8, IFD_F32, q8_to_f32},   {IFD_F32, IFD_S8, f32_to_q8},
        {IFD_F32, IFD_U8, f32_to_q8},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].from == node->input[0].desc->dtype && rows[i].to == node->output[0].dtype) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool cast_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (!find(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "types %s to %s",
                 ifd_dtype_name(node->input[0].desc->dtype), ifd_dtype_name(node->output[0].dtype));
        return false;
    }
    return true;
}

static void run_cast(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct cast_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->count, 64);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    p->run(step->kernels, range.end - range.begin, in + range.begin * p->in_bytes,
           out + range.begin * p->out_bytes, p->zero);
}

static enum ifd_code cast_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const uint32_t out = node->output_value[0];
    struct cast_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code =
        ifd_acc_add_step(lowering, run_cast, p, node->input_value, 1, out, &step, err);
    if (code == IFD_OK) {
        p->run = find(&node->view)->run;
        p->in_bytes = ifd_dtype_bytes(node->view.input[0].desc->dtype);
        p->out_bytes = ifd_dtype_bytes(node->view.output[0].dtype);
        p->count = lowering->base.value[out].bytes / p->out_bytes;
        p->zero = node->view.input[0].desc->dtype == IFD_S8 || node->view.output[0].dtype == IFD_S8
                      ? IFD_Q8_SHIFT_S8
                      : IFD_Q8_SHIFT_U8;
        step->max_threads = (uint32_t)(p->count / 4096) + 1;
        ifd_acc_name_step(lowering, "", 0, "cast");
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_cast = {.takes = cast_takes, .lower = cast_lower};
