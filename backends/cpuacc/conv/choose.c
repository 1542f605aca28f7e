/* conv2d and fully_connected: nodes become products of rows (conv.h). */
#include "backends/cpuacc/conv/layer.h"

/* Says how the newest step is run strip by strip. height: of the output, before pixels were grouped. */
static enum ifd_code add_lines(struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p,
                               size_t batch, size_t height, struct ifd_err *err)
{
    /* narrow windows of several lines are so fast that lines made twice cost more than the cache saves */
    const bool is_fast = p->narrow_c && p->window.kh > 1;
    if (is_fast || p->product.is_dynamic || p->mode > IFD_ACC_CONV_LINES || p->line_rows == 0) {
        return IFD_OK;
    }
    struct ifd_acc_lines *lines = ifd_acc_params(lowering, 1, sizeof(*lines));
    if (!lines) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    const bool has_pixels = p->group == 1 && !p->is_slice;
    const bool reads_pixels =
        has_pixels && p->mode == IFD_ACC_CONV_PLAIN && !p->narrow_c && !p->is_part;
    *lines = (struct ifd_acc_lines){
        .batch = batch,
        .in_h = p->window.in_h,
        .out_h = height,
        .in_line = p->window.in_w * (p->is_part ? p->in_stride : p->window.in_c) * p->element,
        .out_line = p->line_rows * p->out_stride * p->element,
        .in_pixel = reads_pixels ? p->k * p->element : 0,
        .out_pixel = has_pixels ? p->out_c * p->element : 0,
        .window = p->window.kh,
        .stride = p->window.stride_y,
        .pad = p->window.pad_top,
        .is_q8 = p->product.is_q8,
        .is_head = p->product.is_q8 && p->window.kh > 1, /* too many products to make any twice */
        .run = p->mode == IFD_ACC_CONV_PLAIN ? ifd_acc_conv_strip_plain : ifd_acc_conv_strip_lines};
    lowering->step[lowering->step_count - 1].lines = lines;
    return IFD_OK;
}

/* Rows of 32-bit sums that are kept until they are rounded. */
#define EXACT_ROWS_MAX 48

static enum ifd_code add_work(struct ifd_acc_lowering *lowering, struct ifd_acc_conv *p, bool adds,
                              struct ifd_err *err)
{
    size_t bytes = 0;
    if (p->product.real && p->tile_rows > EXACT_ROWS_MAX) {
        p->tile_rows = EXACT_ROWS_MAX;
    }
    if (p->has_row_add &&
        !ifd_size_align(2 * p->tile_rows * sizeof(int32_t), IFD_TENSOR_ALIGN, &p->sums_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "work memory overflows");
    }
    if (p->product.is_dynamic) { /* offsets and scales */
        p->sums_bytes = 2 * ifd_acc_conv_padded(p->out_c) * sizeof(float);
    }
    bytes = p->sums_bytes;
    if (p->product.real) { /* sums of fully connected rows */
        bytes += p->tile_rows * ifd_acc_conv_padded(p->out_c) * sizeof(int32_t);
    } else if (p->is_strassen) {
        bytes += ifd_acc_strassen_work_bytes(p, adds);
    } else if (p->mode == IFD_ACC_CONV_LINES && (p->window.is_padded || p->narrow_c)) {
        bytes += ((p->tile_lines - 1) * p->window.stride_y + p->window.kh) * p->line *
                 (p->narrow_c ? sizeof(uint16_t) : p->element);
    } else if (p->mode == IFD_ACC_CONV_PLAIN && p->narrow_c) {
        bytes += p->tile_rows * p->narrow_c * sizeof(uint16_t);
    } else if (p->mode == IFD_ACC_CONV_TILES_Q8) {
        bytes += lowering->kernels->wino_q8.scratch_bytes(p->out_c, p->window.in_c, p->tile_rows);
    } else if (p->mode == IFD_ACC_CONV_TILES) {
        bytes += ifd_acc_winograd_work_bytes(p);
    } else if (p->mode == IFD_ACC_CONV_ROWS) {
        bytes +=
            p->tile_rows * p->taps * sizeof(void *) + p->window.in_c * p->element + IFD_TENSOR_PAD;
    }
    return bytes ? ifd_acc_add_work(lowering, bytes, err) : IFD_OK;
}

/* The add that alone reads a convolution's result and adds a tensor of the same shape that is there already: it can be
 * done while the sums are stored. */
static bool find_residual(const struct ifd_acc_lowering *lowering,
                          const struct ifd_partition_node *node, uint32_t *ret_add,
                          uint32_t *ret_other, float *ret_min, float *ret_max)
{
    const uint32_t made = node->output_value[0];
    const struct ifd_partition_node *add = ifd_acc_sole_reader(lowering, made, ret_add);
    if (!add || add->view.op != IFD_OP_ADD) {
        return false;
    }
    const struct ifd_binary_attrs *attrs = add->view.attrs;
    *ret_other = add->input_value[add->input_value[0] == made ? 1 : 0];
    const struct ifd_shape *shape = &node->view.output[0].shape;
    const struct ifd_shape *other = &lowering->value[*ret_other].view->desc.shape;
    return *ret_other != made && ifd_shape_equal(shape, other) &&
           ifd_acc_is_ready(lowering, *ret_other) &&
           ifd_acc_clamp_f32(attrs->activation, ret_min, ret_max);
}

/* What follows the product and is done by its step: fuses the nodes, and returns the value that the step makes. operands
 * gets what is added. */
static uint32_t fuse_followers(struct ifd_acc_lowering *lowering,
                               const struct ifd_partition_node *node, struct ifd_acc_conv *p,
                               int32_t activation, uint32_t operands[IFD_ACC_STEP_INPUTS])
{
    uint32_t out = node->output_value[0], add = 0, other = 0;
    const bool fuses =
        !p->product.is_q8 && activation == IFD_ACT_NONE &&
        find_residual(lowering, node, &add, &other, &p->product.min, &p->product.max);
    if (fuses) {
        operands[1] = other;
        out = lowering->view->node[add].output_value[0];
        ifd_acc_fuse_node(lowering, add);
    }
    out = ifd_acc_take_tail(lowering, out, 2, operands, &p->tail);
    if (fuses && p->out_c >= lowering->kernels->gemm_f32.lanes()) {
        /* else pixels may be grouped, and then what is added is needed twice */
        (void)ifd_acc_in_place(lowering, other, out);
    }
    p->out_stride = p->out_c;
    p->is_slice = ifd_acc_take_slice(lowering, out, &p->out_stride);
    return out;
}

/* How the rows are found and how many pixels are one: from here on p may describe another layer than the node does. */
static void choose_mode(struct ifd_acc_lowering *lowering, bool adds, struct ifd_acc_conv *p)
{
    ifd_acc_conv_choose_precision(lowering, p);
    if (!p->product.is_q8 && !lowering->view->exact && !(adds && p->is_slice)) {
        p->tile_size = ifd_acc_winograd_size(lowering, p);
        p->mode = p->tile_size ? IFD_ACC_CONV_TILES : p->mode;
    }
    ifd_acc_conv_settle_precision(lowering, p);
    if (ifd_acc_conv_stays_in_place(p, lowering->kernels, lowering->host)) {
        p->mode = IFD_ACC_CONV_IN_PLACE;
    }
    p->is_strassen = !lowering->view->exact && ifd_acc_strassen_pays(lowering, p, adds);
    p->pixel_n = p->out_c;
    p->pixel_k = p->k;
    p->pixel_step = p->window.stride_x * p->window.in_c;
    const bool groups = !p->product.is_q8 && !p->narrow_c && !p->is_slice && !p->is_part &&
                        p->mode < IFD_ACC_CONV_ROWS;
    ifd_acc_conv_group_pixels(p, groups ? ifd_acc_conv_choose_group(p) : 1);
    p->in_stride = p->is_part ? p->in_stride : p->k;
    if (ifd_acc_winograd_q8_pays(lowering, p)) {
        p->mode = IFD_ACC_CONV_TILES_Q8;
        p->tile_size = 4;
        ifd_acc_winograd_q8_choose_tiles(lowering->kernels, lowering->host, p);
    } else {
        ifd_acc_conv_choose_tiles(p, lowering->host);
    }
}

static enum ifd_code add_weights(struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p,
                                 struct ifd_err *err)
{
    if (p->mode == IFD_ACC_CONV_IN_PLACE) {
        return IFD_OK;
    }
    if (p->mode == IFD_ACC_CONV_TILES) {
        return ifd_acc_add_pack(lowering, p->product.weights,
                                ifd_acc_winograd_pack_bytes(p, lowering->kernels),
                                ifd_acc_winograd_pack_workspace(p), ifd_acc_winograd_pack, p, err);
    }
    if (p->mode == IFD_ACC_CONV_TILES_Q8) {
        return ifd_acc_add_pack(lowering, p->product.weights,
                                lowering->kernels->wino_q8.packed_bytes(p->out_c, p->window.in_c),
                                ifd_acc_product_workspace(&p->product), ifd_acc_winograd_q8_pack, p,
                                err);
    }
    if (p->is_strassen) {
        return ifd_acc_add_pack(lowering, p->product.weights,
                                ifd_acc_strassen_pack_bytes(p, lowering->kernels),
                                ifd_acc_strassen_pack_workspace(p), ifd_acc_strassen_pack, p, err);
    }
    return ifd_acc_add_pack(lowering, p->product.weights,
                            ifd_acc_conv_pack_bytes(p, lowering->kernels),
                            ifd_acc_conv_pack_workspace(p), ifd_acc_conv_pack, p, err);
}

static enum ifd_code finish(struct ifd_acc_lowering *lowering,
                            const struct ifd_partition_node *node, struct ifd_acc_conv *p,
                            int32_t activation, const char *name, struct ifd_err *err)
{
    static const ifd_acc_step_fn run[] = {[IFD_ACC_CONV_PLAIN] = ifd_acc_conv_run_plain,
                                          [IFD_ACC_CONV_LINES] = ifd_acc_conv_run_lines,
                                          [IFD_ACC_CONV_ROWS] = ifd_acc_conv_run_rows,
                                          [IFD_ACC_CONV_TILES] = ifd_acc_winograd_run,
                                          [IFD_ACC_CONV_TILES_Q8] = ifd_acc_winograd_q8_run,
                                          [IFD_ACC_CONV_IN_PLACE] = ifd_acc_conv_run_in_place};
    const struct ifd_low_window window = p->window; /* of the node */
    const uint64_t macs =
        (uint64_t)window.batch * window.out_h * window.out_w * p->out_c * p->taps * p->k;
    uint32_t operands[IFD_ACC_STEP_INPUTS] = {node->input_value[0], IFD_NO_VALUE, IFD_NO_VALUE,
                                              IFD_NO_VALUE};
    const size_t pitch = lowering->value[operands[0]].pitch;
    p->is_part = pitch > 0;
    p->in_stride = pitch / p->element;
    const uint32_t out = fuse_followers(lowering, node, p, activation, operands);
    const bool adds = operands[1] != IFD_NO_VALUE;
    choose_mode(lowering, adds, p);
    struct ifd_acc_step *step = NULL;
    enum ifd_code code = IFD_OK;
    if (p->product.is_dynamic) {
        code = ifd_acc_add_images(lowering, operands[0], window.batch,
                                  window.in_h * window.in_w * window.in_c, false, &p->product,
                                  &operands[0], err);
    }
    if (code == IFD_OK) {
        code = ifd_acc_add_step(lowering, run[p->mode], p, operands, IFD_ACC_STEP_INPUTS, out,
                                &step, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    step->is_gemm_f32 =
        !p->product.is_q8 && p->mode < IFD_ACC_CONV_TILES && p->gemm == &step->kernels->gemm_f32;
    step->pieces = ifd_acc_conv_pieces(lowering, p);
    step->rate = p->product.is_q8 ? 300.0f : p->gemm->speed ? 60.0f * p->gemm->speed() : 60.0f;
    ifd_acc_name_step(lowering,
                      p->mode == IFD_ACC_CONV_TILES_Q8       ? "wino_q8"
                      : p->product.is_q8                     ? "gemm_q8"
                      : p->mode == IFD_ACC_CONV_TILES        ? "wino"
                      : p->gemm == &step->kernels->gemm_bf16 ? "gemm_bf16"
                      : p->gemm == &step->kernels->gemm_f16  ? "gemm_f16"
                      : p->mode == IFD_ACC_CONV_IN_PLACE     ? "dense"
                                                             : "gemm_f32",
                      macs, "%s %zux%zu/%zu%s%s%s%s", name, window.kh, window.kw, window.stride_y,
                      p->is_strassen ? " strassen" : "", activation == IFD_ACT_NONE ? "" : "+act",
                      adds ? "+add" : "", p->tail.name);
    code = add_weights(lowering, p, err);
    code = code == IFD_OK ? add_work(lowering, p, adds, err) : code;
    return code == IFD_OK ? add_lines(lowering, p, window.batch, window.out_h, err) : code;
}

static enum ifd_code no_memory(struct ifd_err *err)
{
    return ifd_fail(err, IFD_NOMEM, "no memory for a step");
}

/* ---- conv2d ---- */

static bool conv2d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    if (node->input[0].desc->shape.dim[3] != node->input[1].desc->shape.dim[3]) {
        ifd_fail(reason, IFD_UNSUPPORTED, "groups");
        return false;
    }
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

static enum ifd_acc_conv_mode window_mode(const struct ifd_low_window *w)
{
    if ((w->dilation_y > 1 && w->kh > 1) || (w->dilation_x > 1 && w->kw > 1)) {
        return IFD_ACC_CONV_ROWS;
    }
    const bool is_pixel = w->kh * w->kw == 1 && w->stride_y * w->stride_x == 1 && !w->is_padded;
    return is_pixel ? IFD_ACC_CONV_PLAIN : IFD_ACC_CONV_LINES;
}

static enum ifd_code conv2d_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    const size_t out_c = (size_t)node->view.output[0].shape.dim[3];
    struct ifd_acc_conv *p = ifd_acc_params(lowering, 1, sizeof(*p));
    if (!p) {
        return no_memory(err);
    }
    struct ifd_low_window w;
    enum ifd_code code = ifd_low_window_init(&node->view, &attrs->window, &w, err);
    struct ifd_acc_product product;
    if (code == IFD_OK) {
        code = ifd_acc_product_init(lowering, &node->view, attrs->activation, out_c,
                                    IFD_ROUND_DOUBLE, &product, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const enum ifd_acc_conv_mode mode = window_mode(&w);
    *p = (struct ifd_acc_conv){
        .product = product,
        .window = w,
        .mode = mode,
        .element = product.is_q8 ? 1 : sizeof(float),
        .out_element = product.is_q8 && !product.is_dynamic ? 1 : sizeof(float),
        .out_c = out_c,
        .taps = mode == IFD_ACC_CONV_ROWS    ? w.kh * w.kw
                : mode == IFD_ACC_CONV_LINES ? w.kh
                                             : 1,
        .k = mode == IFD_ACC_CONV_LINES ? w.kw * w.in_c : w.in_c,
        .line = (w.is_padded ? (w.out_w - 1) * w.stride_x + w.kw : w.in_w) * w.in_c,
        .has_row_add = product.is_q8 && product.requant.weight_zero != 0,
    };
    return finish(lowering, node, p, attrs->activation, "conv2d", err);
}

/* Rows of a part of the channels: not where floats are brought to 8 bits first. */
static bool product_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    return i == 0 && node->input[0].desc->dtype == node->input[1].desc->dtype;
}

static bool conv2d_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    struct ifd_low_window w;
    return product_reads_apart(node, i) &&
           ifd_low_window_init(node, &attrs->window, &w, NULL) == IFD_OK &&
           window_mode(&w) == IFD_ACC_CONV_PLAIN;
}

const struct ifd_acc_driver ifd_acc_conv2d = {
    .takes = conv2d_takes, .lower = conv2d_lower, .reads_apart = conv2d_reads_apart};

/* ---- fully_connected ---- */

static bool fully_connected_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_fully_connected_attrs *attrs = node->attrs;
    return ifd_acc_product_takes(node, attrs->activation, reason);
}

static enum ifd_code fully_connected_lower(struct ifd_acc_lowering *lowering,
                                           const struct ifd_partition_node *node,
                                           struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    const struct ifd_shape *weights = &node->view.input[1].desc->shape;
    const struct ifd_shape *out = &node->view.output[0].shape;
    struct ifd_acc_conv *p = ifd_acc_params(lowering, 1, sizeof(*p));
    if (!p) {
        return no_memory(err);
    }
    struct ifd_acc_product product;
    const enum ifd_code code =
        ifd_acc_product_init(lowering, &node->view, attrs->activation, (size_t)weights->dim[0],
                             IFD_ROUND_SINGLE, &product, err);
    if (code != IFD_OK) {
        return code;
    }
    size_t rows = 1; /* of one sample */
    for (uint32_t i = 1; i + 1 < out->rank; i++) {
        rows *= (size_t)out->dim[i];
    }
    *p = (struct ifd_acc_conv){
        .product = product,
        .mode = IFD_ACC_CONV_PLAIN,
        .is_dense = true,
        .element = product.is_q8 ? 1 : sizeof(float),
        .out_element = product.is_q8 && !product.is_dynamic ? 1 : sizeof(float),
        .window = {.batch = out->rank > 1 ? (size_t)out->dim[0] : 1,
                   .in_h = rows,
                   .in_w = 1,
                   .in_c = (size_t)weights->dim[1],
                   .out_h = rows,
                   .out_w = 1,
                   .kh = 1,
                   .kw = 1,
                   .stride_y = 1,
                   .stride_x = 1},
        .out_c = (size_t)weights->dim[0],
        .taps = 1,
        .k = (size_t)weights->dim[1],
        .has_row_add = product.is_q8 && product.requant.weight_zero != 0,
    };
    return finish(lowering, node, p, attrs->activation, "fully_connected", err);
}

static bool fully_connected_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    const struct ifd_shape *in = &node->input[0].desc->shape;
    return product_reads_apart(node, i) && in->rank > 0 &&
           in->dim[in->rank - 1] == node->input[1].desc->shape.dim[1];
}

const struct ifd_acc_driver ifd_acc_fully_connected = {.takes = fully_connected_takes,
                                                       .lower = fully_connected_lower,
                                                       .reads_apart = fully_connected_reads_apart};
