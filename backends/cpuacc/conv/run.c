/* Begins runs, shares them between threads, applies the tail. */
#include "backends/cpuacc/conv/run.h"

#include "backends/cpuacc/schedule/threads.h"

void ifd_acc_conv_begin(struct ifd_acc_conv_run *run, const struct ifd_acc_step *step,
                        const struct ifd_acc_frame *frame)
{
    const struct ifd_acc_conv *conv = step->params;
    const struct ifd_acc_conv_plan *plan = &conv->plan;
    /* all members are named: clearing the rest would take a small layer's time */
    *run = (struct ifd_acc_conv_run){
        .step = step,
        .frame = frame,
        .conv = conv,
        .in = ifd_acc_in(step, frame, 0),
        .out = ifd_acc_out(step, frame),
        .add = ifd_acc_in(step, frame, 1),
        .row = 0,
        .out_stride = plan->out_stride,
        .in_first = 0,
        .in_end = conv->layer.window.in_h,
        .is_strip = false,
        .work = step->work_stride ? ifd_acc_work(step, frame) : NULL,
        .args = {.packed = frame->packed ? frame->packed + step->packed : NULL,
                 .a = NULL,
                 .rows = NULL,
                 .out = NULL,
                 .m = 0,
                 .n_begin = 0,
                 .n_end = plan->n,
                 .row_len = 0,
                 .row_stride = 0,
                 .a_stride = plan->a_stride,
                 .tap_stride = 0,
                 .out_stride = plan->out_stride,
                 .row_add = NULL,
                 .add = NULL,
                 .add_stride = plan->n,
                 .min = conv->layer.product.min,
                 .max = conv->layer.product.max,
                 .next = NULL,
                 .next_bytes = 0,
                 .narrow_out = conv->layer.narrow_out,
                 .narrow_add = conv->layer.narrow_add,
                 .is_leaky = 0,
                 .slope = 0},
        .quantized = NULL,
        .image = 0,
    };
    if (conv->layer.product.is_dynamic) {
        run->quantized = (const struct ifd_acc_quantized *)(const void *)run->in;
        run->in += ifd_acc_quantized_bytes(conv->layer.window.batch);
    }
}

void ifd_acc_conv_tail(const struct ifd_acc_conv_run *run, size_t first_row, size_t rows)
{
    const struct ifd_acc_layer *layer = &run->conv->layer;
    if (layer->tail.count == 0 || layer->narrow_out) { /* done before it was narrowed */
        return;
    }
    const size_t group = run->conv->plan.group, column = run->args.n_begin;
    const size_t stride = run->out_stride;
    uint8_t *out = run->out + (first_row * stride + column) * layer->out_element;
    ifd_acc_run_tail(&layer->tail, run->step, run->frame,
                     &(struct ifd_acc_chunk){.in = out,
                                             .out = out,
                                             .rows = rows * group,
                                             .n = (run->args.n_end - column) / group,
                                             .stride = stride / group,
                                             .row = (run->row + first_row) * group,
                                             .column = column,
                                             .width = layer->out_c});
}

bool ifd_acc_conv_is_heavy(const struct ifd_acc_layer *layer, size_t weights, size_t values)
{
    return !layer->product.is_q8 && 2 * weights > 3 * values;
}

uint32_t ifd_acc_conv_chunks(const struct ifd_acc_load *load, uint32_t threads)
{
    const bool prepares_columns =
        load->prepares && (load->is_heavy || load->units < 2 * (size_t)threads);
    if (load->is_whole || prepares_columns || (load->is_far && !load->is_heavy)) {
        return 1;
    }
    return load->is_heavy ? IFD_ACC_CHUNKS_MAX /* of columns */
                          : ifd_acc_chunks_of(load->rows / threads, load->least);
}

struct ifd_acc_range ifd_acc_conv_share(struct ifd_acc_conv_run *run,
                                        const struct ifd_acc_frame *frame, size_t items,
                                        size_t unit)
{
    if (frame->threads == 1) {
        return (struct ifd_acc_range){0, items};
    }
    const struct ifd_acc_load *load = &run->conv->plan.load;
    const struct ifd_packed *packed = run->args.packed;
    const size_t units = (items + unit - 1) / unit, threads = frame->threads;
    if (load->has_columns &&
        (units < 2 * threads || (load->is_heavy && packed->blocks >= threads))) {
        const struct ifd_acc_range blocks = ifd_acc_share(frame, packed->blocks, 1);
        run->args.n_begin = ifd_packed_column(packed, blocks.begin);
        run->args.n_end = ifd_packed_column(packed, blocks.end);
        return (struct ifd_acc_range){0, blocks.begin < blocks.end ? items : 0};
    }
    return ifd_acc_share(frame, items, unit);
}

/* Rows of a chunk at least. */
#define CHUNK_ROWS    24
#define CHUNK_ROWS_Q8 48

size_t ifd_acc_conv_least_rows(const struct ifd_acc_layer *layer)
{
    return layer->product.is_q8 ? CHUNK_ROWS_Q8 : CHUNK_ROWS;
}
