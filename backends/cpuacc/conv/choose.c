/* Chooses the algorithm of least cost and adds its step. */
#include "backends/cpuacc/conv/choose.h"

#include "backends/cpuacc/conv/pack.h"
#include "backends/cpuacc/conv/run.h"

#include <stdio.h>
#include <string.h>

static const struct ifd_acc_algorithm *const algorithms[] = {
#define ALGORITHM(symbol) &ifd_acc_conv_##symbol,
#include "backends/cpuacc/conv/algorithm_list.inc"
#undef ALGORITHM
};

enum { ALGORITHMS = sizeof(algorithms) / sizeof(algorithms[0]) };

/* Costs of those that fit, 0 for others. Returns the index of the cheapest, ALGORITHMS for none. */
static size_t choose(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                     double cost[ALGORITHMS])
{
    size_t best = ALGORITHMS;
    for (size_t i = 0; i < ALGORITHMS; i++) {
        const bool has_groups = algorithms[i] == &ifd_acc_conv_groups;
        const bool fits = has_groups == (layer->groups > 1) && algorithms[i]->fits(lowering, layer);
        cost[i] = fits ? algorithms[i]->cost(lowering, layer) : 0;
        if (cost[i] > 0 && (best == ALGORITHMS || cost[i] < cost[best])) {
            best = i;
        }
    }
    return best;
}

/* For `inspect`: name and cost of each algorithm that fits, relative to the most expensive one, the
 * chosen one first. NULL if only one fits. */
static const char *explain(struct ifd_acc_lowering *lowering, const double cost[ALGORITHMS],
                           size_t best)
{
    char text[96];
    double most = cost[best];
    for (size_t i = 0; i < ALGORITHMS; i++) {
        most = cost[i] > most ? cost[i] : most;
    }
    int length = snprintf(text, sizeof(text), "%s %.2f", algorithms[best]->name, cost[best] / most);
    const int alone = length;
    for (size_t i = 0; i < ALGORITHMS && (size_t)length < sizeof(text); i++) {
        if (i != best && cost[i] > 0) {
            length += snprintf(text + length, sizeof(text) - (size_t)length, ", %s %.2f",
                               algorithms[i]->name, cost[i] / most);
        }
    }
    return length > alone ? ifd_arena_text(lowering->base.arena, text, strlen(text)) : NULL;
}

/* Reports the precision of the layer, and why it is not the one that was asked for. */
static void note_precision(struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *conv)
{
    const enum ifd_precision asked = lowering->base.view->precision;
    const struct ifd_kernels *kernels = lowering->kernels;
    if (conv->layer.product.is_q8 || asked == IFD_PRECISION_F32) {
        return;
    }
    if (conv->plan.gemm != &kernels->gemm_f32) {
        lowering->precision = asked;
    } else if (!(asked == IFD_PRECISION_BF16 ? kernels->gemm_bf16 : kernels->gemm_f16).run) {
        lowering->precision_why_not = "the CPU has no instructions for it";
    }
}

static enum ifd_code add_strip(struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *conv,
                               struct ifd_err *err)
{
    struct ifd_acc_lines lines;
    if (!conv->algorithm->strip || !conv->algorithm->strip(conv, &lines)) {
        return IFD_OK;
    }
    struct ifd_acc_lines *kept = ifd_low_params(&lowering->base, 1, sizeof(*kept));
    if (!kept) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    *kept = lines;
    lowering->draft[lowering->draft_count - 1].lines = kept;
    return IFD_OK;
}

/* Packed weights, work memory and lines of the newest step. */
static enum ifd_code add_memory(struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *conv,
                                struct ifd_err *err)
{
    const struct ifd_acc_algorithm *algorithm = conv->algorithm;
    const size_t work = algorithm->work_bytes ? algorithm->work_bytes(conv, lowering->kernels) : 0;
    enum ifd_code code = IFD_OK;
    if (algorithm->pack) {
        code = ifd_acc_add_pack(lowering, conv->layer.product.weights,
                                algorithm->packed_bytes(conv, lowering->kernels),
                                algorithm->workspace_bytes(conv), algorithm->pack, conv, err);
    }
    if (code == IFD_OK && algorithm->pack == ifd_acc_direct_pack) {
        ifd_acc_compare_pack(lowering, ifd_acc_direct_same);
    }
    if (code == IFD_OK && work > 0) {
        code = ifd_acc_add_work(lowering, work, err);
    }
    return code == IFD_OK ? add_strip(lowering, conv, err) : code;
}

enum ifd_code ifd_acc_conv_add(struct ifd_acc_lowering *lowering, struct ifd_acc_conv *conv,
                               const uint32_t operands[IFD_ACC_STEP_INPUTS], uint32_t out,
                               const char *name, bool activates, struct ifd_err *err)
{
    const struct ifd_acc_layer *layer = &conv->layer;
    const struct ifd_low_window *w = &layer->window;
    double cost[ALGORITHMS];
    const size_t best = choose(lowering, layer, cost);
    if (best == ALGORITHMS) {
        return ifd_fail(err, IFD_INTERNAL, "no algorithm fits a window of %zux%zu", w->kh, w->kw);
    }
    conv->algorithm = algorithms[best];
    conv->algorithm->plan(lowering, layer, &conv->plan);
    lowering->spare_bytes -= conv->plan.spare_bytes;
    note_precision(lowering, conv);
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, conv->algorithm->run, conv, operands,
                                                IFD_ACC_STEP_INPUTS, out, &step, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_kern_gemm_f32 *gemm = conv->plan.gemm;
    step->is_gemm_f32 = conv->plan.is_gemm_f32;
    step->chunks = ifd_acc_conv_chunks(&conv->plan.load, lowering->base.view->max_threads);
    step->rate = layer->product.is_q8 ? 300.0f : gemm->speed ? 60.0f * gemm->speed() : 60.0f;
    ifd_acc_name_step(lowering, conv->plan.kernel,
                      (uint64_t)w->batch * w->out_h * w->out_w * layer->groups * layer->out_c *
                          w->kh * w->kw * w->in_c,
                      "%s %zux%zu/%zu%s%s%s%s", name, w->kh, w->kw, w->stride_y,
                      conv->algorithm->label, activates ? "+act" : "", layer->adds ? "+add" : "",
                      layer->tail.name);
    step->info.why = explain(lowering, cost, best);
    return add_memory(lowering, conv, err);
}
