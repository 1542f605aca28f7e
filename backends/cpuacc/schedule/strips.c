/* Chains: neighbouring steps run together, a strip of lines at a time, where the tensors between
 * them exceed the second-level cache. These tensors never exist as a whole. Each step computes the
 * lines that the next one has not seen yet. Lines that the next strip needs again move to the start
 * of the buffer, or stay, and lines go round the buffer. A thread computes its share of the last
 * step's lines and everything that these need: no barriers inside, at the price of a few lines that
 * two threads both compute.
 *
 * 8-bit steps are fast and their tensors small: one thread gains nothing. Several gain because
 * these tensors do not move between caches, which takes longer than computing them where cores are
 * far apart.
 *
 * Chains are found on drafts; binding makes the first step run them all. */
#include "backends/cpuacc/schedule/strips.h"

#include "backends/cpuacc/driver.h"
#include "backends/cpuacc/schedule/threads.h"

#include <string.h>

#define CHAIN_MAX 8

/* Strips whose window advances by fewer input lines copy and load more lines again than the cache
 * saves. */
#define WINDOW_STEP_MIN 4

/* Kernels do some lines in pairs. */
#define STRIP_STEP 2

#define CACHE_LINE 64

/* 8-bit steps: lines that each thread makes at least, beside the one or two that its neighbour
 * makes too. */
#define SHARED_LINES_MIN 6

/* Buffer for the input of a step after the first: where it is in the first step's work memory, and
 * how its lines lie there. */
struct buffer {
    size_t offset;
    size_t lines;    /* that it holds */
    bool goes_round; /* line y is at y modulo lines */
    struct ifd_acc_pitch pitch;
};

struct ifd_acc_chain {
    uint32_t count;
    size_t strip;    /* output lines of the last step at a time */
    size_t progress; /* struct progress of a thread: where in the first step's work memory */
    struct buffer buffer[CHAIN_MAX];
};

/* Lines [first, end) of a tensor. */
struct span {
    size_t first, end;
};

/* The input lines that a step needs for some of its output lines. */
static struct span input_span(const struct ifd_acc_lines *lines, struct span out)
{
    const size_t first = out.first * lines->stride;
    const size_t end = (out.end - 1) * lines->stride + lines->window;
    struct span in = {first > lines->pad ? first - lines->pad : 0,
                      end > lines->pad ? end - lines->pad : 0};
    in.end = in.end < lines->in_h ? in.end : lines->in_h;
    in.first = in.first < in.end ? in.first : in.end;
    return in;
}

/* ---- running ---- */

/* State of a chain's run: for the input of every step after the first, lines [held.first, held.end)
 * are in the buffer. */
struct progress {
    struct span held[CHAIN_MAX];
};

#define PROGRESS_BYTES ((size_t)128)
_Static_assert(sizeof(struct progress) <= PROGRESS_BYTES, "room for the progress");

/* Drops the lines before need and moves the rest to the start of the buffer. buffer: NULL if lines
 * go round it. */
static void advance(uint8_t *buffer, size_t line, struct span need, struct span *held)
{
    if (buffer && need.first > held->first && need.first < held->end) {
        memmove(buffer, buffer + (need.first - held->first) * line,
                (held->end - need.first) * line);
    }
    *held = (struct span){need.first, held->end > need.first ? held->end : need.first};
}

/* Makes lines [made.begin, made.end) of a step's input that go round its buffer: in two calls where
 * they pass its end. */
static void run_round(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                      const struct ifd_acc_strip *made, uint8_t *buffer, size_t lines)
{
    struct ifd_acc_strip strip = *made;
    for (size_t y = made->begin; y < made->end; y = strip.end) {
        const size_t at = y % lines, left = lines - at;
        strip.begin = y;
        strip.end = made->end - y < left ? made->end : y + left;
        strip.line = made->line + (y - made->begin);
        strip.out = buffer + at * made->out_pitch.line;
        step->lines->run(step, frame, &strip);
    }
}

/* Output lines `last` of the last step, of image b. */
static void run_strip(const struct ifd_acc_step *head, struct ifd_acc_frame *frame, size_t b,
                      struct span last, struct progress *progress)
{
    const struct ifd_acc_chain *chain = head->chain;
    uint8_t *work = ifd_acc_work(head, frame);
    struct span make[CHAIN_MAX]; /* output lines of every step */
    make[chain->count - 1] = last;
    for (uint32_t i = chain->count - 1; i > 0; i--) {
        const struct span need = input_span(head[i].lines, make[i]);
        const struct buffer *buffer = &chain->buffer[i];
        advance(buffer->goes_round ? NULL : work + buffer->offset, buffer->pitch.line, need,
                &progress->held[i]);
        make[i - 1].first = progress->held[i].end;
        make[i - 1].end = need.end > make[i - 1].first ? need.end : make[i - 1].first;
    }
    for (uint32_t i = 0; i < chain->count; i++) {
        const struct ifd_acc_step *step = &head[i];
        const struct ifd_acc_lines *lines = step->lines;
        if (make[i].first == make[i].end) {
            continue;
        }
        struct ifd_acc_strip strip = {.begin = make[i].first, .end = make[i].end};
        strip.in_pitch.line = lines->in_line;
        strip.out_pitch.line = lines->out_line;
        if (i == 0) {
            strip.in =
                (const uint8_t *)ifd_acc_in(step, frame, 0) + b * lines->in_h * lines->in_line;
            strip.in_end = lines->in_h;
        } else {
            strip.in = work + chain->buffer[i].offset;
            strip.in_pitch = chain->buffer[i].pitch;
            strip.in_first = progress->held[i].first;
            strip.in_end = progress->held[i].end;
            strip.in_round = chain->buffer[i].goes_round ? chain->buffer[i].lines : 0;
        }
        strip.line = b * lines->out_h + strip.begin;
        frame->packed = step->block;
        if (i + 1 == chain->count) {
            strip.out = (uint8_t *)ifd_acc_out(step, frame) + strip.line * lines->out_line;
            lines->run(step, frame, &strip);
            continue;
        }
        struct span *held = &progress->held[i + 1];
        const struct buffer *buffer = &chain->buffer[i + 1];
        strip.out_pitch = buffer->pitch;
        if (buffer->goes_round) {
            run_round(step, frame, &strip, work + buffer->offset, buffer->lines);
        } else {
            strip.out = work + buffer->offset + (held->end - held->first) * buffer->pitch.line;
            lines->run(step, frame, &strip);
        }
        held->end = strip.end;
    }
}

void ifd_acc_run_chain(const struct ifd_acc_step *head, const struct ifd_acc_frame *frame)
{
    const struct ifd_acc_chain *chain = head->chain;
    const struct ifd_acc_lines *last = head[chain->count - 1].lines;
    const struct ifd_acc_range range = ifd_acc_share(frame, last->batch * last->out_h, 1);
    struct ifd_acc_frame own = *frame;
    struct progress *progress =
        (struct progress *)(void *)((uint8_t *)ifd_acc_work(head, frame) + chain->progress);
    size_t count = 0;
    if (!frame->goes_on) {
        *progress = (struct progress){0};
    }
    for (size_t line = range.begin; line < range.end; line += count) {
        const size_t y = line % last->out_h;
        count = range.end - line < chain->strip ? range.end - line : chain->strip;
        count = last->out_h - y < count ? last->out_h - y : count;
        if (y == 0) {
            *progress = (struct progress){0};
        }
        run_strip(head, &own, line / last->out_h, (struct span){y, y + count}, progress);
    }
}

/* ---- compiling ---- */

static const struct ifd_low_storage *value_storage(const struct ifd_acc_lowering *lowering,
                                                   uint32_t value)
{
    return &lowering->base.storage[ifd_low_storage_of(&lowering->base, value)];
}

/* Is a value among the step's operands after the first, which are read as they lie in memory? */
static bool is_added(const struct ifd_acc_lowering *lowering, uint32_t step, uint32_t value)
{
    bool is = false;
    for (uint32_t k = 1; k < IFD_ACC_STEP_INPUTS; k++) {
        const uint32_t operand = lowering->draft[step].in[k];
        is |= operand != IFD_NO_VALUE && ifd_low_overlap(&lowering->base, operand, value);
    }
    return is;
}

/* 8-bit chains are a window and the layers before and after it: a block of a network. A second
 * window would cost more lines that are computed twice than moving its lines costs. */
static bool is_shared(const struct ifd_acc_lowering *lowering, uint32_t i, bool is_head)
{
    const struct ifd_acc_lines *from = lowering->draft[i].lines, *to = lowering->draft[i + 1].lines;
    const uint32_t threads = lowering->base.view->max_threads;
    const bool is_block =
        is_head ? from->window > 1 || to->window > 1 : from->window > 1 && to->window == 1;
    return is_block && !to->is_head && threads > 1 &&
           to->batch * to->out_h >= (size_t)threads * SHARED_LINES_MIN;
}

/* Does the result of step i go to step i+1 alone, line by line, and is it worth not writing it
 * out? */
static bool can_join(const struct ifd_acc_lowering *lowering, uint32_t i, bool is_head,
                     size_t cache)
{
    const struct ifd_acc_lines *from = lowering->draft[i].lines, *to = lowering->draft[i + 1].lines;
    if (!from || !to) {
        return false;
    }
    const uint32_t value = lowering->draft[i].out;
    const struct ifd_low_storage *storage = value_storage(lowering, value);
    const size_t weights = to->is_q8 ? cache / 2 : storage->bytes > cache ? cache / 3 : cache / 4;
    return lowering->draft[i + 1].in[0] == value && !is_added(lowering, i + 1, value) &&
           storage->place.where == IFD_LOW_SCRATCH && ifd_low_is_whole(&lowering->base, value) &&
           storage->first == i && storage->last == i + 1 && from->batch == to->batch &&
           from->out_h == to->in_h && from->out_line == to->in_line &&
           (to->is_q8 ? is_shared(lowering, i, is_head) : storage->bytes >= cache / 8) &&
           lowering->draft[i].packed_bytes <= weights &&
           lowering->draft[i + 1].packed_bytes <= weights;
}

/* How the lines between two steps lie. A depthwise kernel reads and writes several lines at once,
 * at the same pixel. Lines that are (nearly) a multiple of 4 KB apart share a few sets of the
 * first-level cache, and loads wait for stores whose addresses look like theirs. Pixels of an odd
 * number of cache lines avoid that. */
static struct ifd_acc_pitch choose_pitch(const struct ifd_acc_lines *from,
                                         const struct ifd_acc_lines *to)
{
    const size_t pixel = to->in_pixel;
    const bool is_even = pixel > 0 && pixel % (2 * CACHE_LINE) == 0;
    if (!is_even || pixel != from->out_pixel || (from->window == 1 && to->window == 1)) {
        return (struct ifd_acc_pitch){.line = to->in_line};
    }
    return (struct ifd_acc_pitch){.line = to->in_line / pixel * (pixel + CACHE_LINE),
                                  .gap = CACHE_LINE};
}

/* Bytes of the buffers of steps first+1 … first+count-1 for strips of `strip` lines; their offsets
 * through ret_chain. */
static size_t lay_out_buffers(const struct ifd_acc_draft *head, uint32_t count, size_t strip,
                              size_t start, struct ifd_acc_chain *ret_chain)
{
    *ret_chain = (struct ifd_acc_chain){.count = count, .strip = strip, .progress = start};
    size_t at = start + PROGRESS_BYTES, lines = strip;
    for (uint32_t i = count - 1; i > 0; i--) {
        lines = (lines - 1) * head[i].lines->stride + head[i].lines->window;
        lines = lines < head[i].lines->in_h ? lines : head[i].lines->in_h;
        const struct ifd_acc_pitch pitch = choose_pitch(head[i - 1].lines, head[i].lines);
        ret_chain->buffer[i] = (struct buffer){.offset = at, .lines = lines, .pitch = pitch};
        at += (lines * pitch.line + IFD_TENSOR_PAD + IFD_TENSOR_ALIGN - 1) / IFD_TENSOR_ALIGN *
              IFD_TENSOR_ALIGN;
    }
    return at - start;
}

/* Strips may be lower where a stride follows: the window advances by several input lines for
 * each. */
static size_t lowest_strip(const struct ifd_acc_draft *head, uint32_t count)
{
    size_t lines = STRIP_STEP;
    for (uint32_t i = count; i-- > 0;) {
        lines *= head[i].lines->stride;
        if (head[i].lines->window > 1 && lines < WINDOW_STEP_MIN) {
            return WINDOW_STEP_MIN;
        }
    }
    return STRIP_STEP;
}

/* The tallest strips whose buffers fill at most five eighths of the cache; false if those are too
 * low. */
static bool choose_strip(const struct ifd_acc_draft *head, uint32_t count, size_t cache,
                         struct ifd_acc_chain *ret_chain, size_t *ret_bytes)
{
    const size_t start = head->work_stride, most = head[count - 1].lines->out_h;
    const size_t room = cache / 8 * 5;
    size_t strip = lowest_strip(head, count);
    struct ifd_acc_chain longer;
    if (lay_out_buffers(head, count, strip, start, ret_chain) > room) {
        return false;
    }
    while (strip + STRIP_STEP <= most &&
           lay_out_buffers(head, count, strip + STRIP_STEP, start, &longer) <= room) {
        strip += STRIP_STEP;
    }
    *ret_bytes = lay_out_buffers(head, count, strip, start, ret_chain);
    return true;
}

/* The chain's result must not overwrite input that another thread's lines still need. Values made
 * from its last step on, and their sub-tensors, move to separate memory. */
static enum ifd_code part_result(struct ifd_acc_lowering *lowering, uint32_t first, uint32_t last,
                                 struct ifd_err *err)
{
    const uint32_t made = lowering->draft[last].out;
    const uint32_t shared = ifd_low_storage_of(&lowering->base, made);
    bool is_read = false;
    for (uint32_t i = first; i <= last; i++) {
        is_read |= ifd_low_overlap(&lowering->base, lowering->draft[i].in[0], made);
        is_read |= i < last && is_added(lowering, i, made);
    }
    if (!is_read || !ifd_low_is_whole(&lowering->base, made)) { /* a part is in place of nothing */
        return IFD_OK;
    }
    uint32_t own = 0;
    const enum ifd_code code =
        ifd_low_add_storage(&lowering->base, lowering->base.storage[shared].bytes, last,
                            lowering->base.storage[shared].last, &own, err);
    for (uint32_t i = last; code == IFD_OK && i < lowering->draft_count; i++) {
        const uint32_t out = lowering->draft[i].out;
        if (ifd_low_storage_of(&lowering->base, out) == shared) {
            lowering->base.value[out].storage = own;
        }
    }
    for (uint32_t n = 0; code == IFD_OK && n < lowering->base.view->node_count; n++) {
        const struct ifd_partition_node *node = &lowering->base.view->node[n];
        const bool moves = ifd_acc_driver_of(lowering, node) == &ifd_acc_moves;
        for (uint32_t k = 0; moves && k < node->view.output_count; k++) {
            if (ifd_low_storage_of(&lowering->base, node->input_value[0]) == own &&
                ifd_low_storage_of(&lowering->base, node->output_value[k]) == shared) {
                lowering->base.value[node->output_value[k]].storage = own;
            }
        }
    }
    return code;
}

/* Lines go round the buffer of step i where that costs less than moving the lines that two windows
 * share. The step that makes them then often runs as two calls, so its weights are read twice. */
static bool should_go_round(const struct ifd_acc_lowering *lowering, uint32_t i,
                            const struct buffer *buffer)
{
    const struct ifd_acc_lines *lines = lowering->draft[i].lines;
    return lines->goes_round && lines->window > lines->stride &&
           lowering->draft[i - 1].packed_bytes <=
               (lines->window - lines->stride) * buffer->pitch.line;
}

/* All storages that a chain touches are alive from its first to its last step. Values inside of it
 * lie in the buffers and need no memory. */
static void hold(struct ifd_acc_lowering *lowering, uint32_t first, uint32_t last)
{
    struct ifd_lowering *base = &lowering->base;
    for (uint32_t i = first; i <= last; i++) {
        const struct ifd_acc_draft *draft = &lowering->draft[i];
        for (uint32_t k = 0; k < IFD_ACC_STEP_INPUTS; k++) {
            if (draft->in[k] != IFD_NO_VALUE) {
                ifd_low_stretch(base, ifd_low_storage_of(base, draft->in[k]), first, last);
            }
        }
        ifd_low_stretch(base, ifd_low_storage_of(base, draft->out), first, last);
        if (draft->work != IFD_NO_VALUE) {
            ifd_low_stretch(base, draft->work, first, last);
        }
        if (i < last) {
            base->storage[ifd_low_storage_of(base, draft->out)].bytes = 0;
        }
    }
}

/* The first draft of a chain stands for all of them. */
static void describe(struct ifd_acc_lowering *lowering, uint32_t first,
                     const struct ifd_acc_chain *chain)
{
    struct ifd_acc_draft *head = &lowering->draft[first];
    size_t window = head->lines->window;
    bool is_whole = head->chunks == 1;
    for (uint32_t i = 1; i < chain->count; i++) {
        struct ifd_acc_draft *next = &head[i];
        next->is_chained = true;
        head->info.macs += next->info.macs;
        next->info.macs = 0;
        next->info.kernel = "strips"; /* its time is the first step's */
        window = window > next->lines->window ? window : next->lines->window;
        is_whole |= next->chunks == 1;
        head->max_threads =
            head->max_threads > next->max_threads ? head->max_threads : next->max_threads;
    }
    const struct ifd_acc_lines *lines = head[chain->count - 1].lines;
    head->chunks =
        is_whole ? 1 : ifd_acc_chunks_of_lines(lowering, lines->batch * lines->out_h, window);
    head->chain = chain;
}

/* Work memory of the first step: what it needs itself, then bytes of buffers. */
static enum ifd_code add_buffers(struct ifd_acc_lowering *lowering, uint32_t first, uint32_t last,
                                 size_t bytes, struct ifd_err *err)
{
    struct ifd_acc_draft *head = &lowering->draft[first];
    enum ifd_code code = IFD_OK;
    if (head->work == IFD_NO_VALUE) {
        code = ifd_low_add_storage(&lowering->base, 0, first, last, &head->work, err);
    }
    if (code == IFD_OK) {
        head->work_stride += bytes;
        lowering->base.storage[head->work].bytes =
            head->work_stride * lowering->base.view->max_threads;
    }
    return code;
}

static enum ifd_code join(struct ifd_acc_lowering *lowering, uint32_t first,
                          const struct ifd_acc_chain *chain, size_t bytes, struct ifd_err *err)
{
    const uint32_t last = first + chain->count - 1;
    struct ifd_acc_chain *copy = ifd_low_params(&lowering->base, 1, sizeof(*copy));
    if (!copy) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a chain");
    }
    *copy = *chain;
    for (uint32_t i = 1; i < chain->count; i++) {
        copy->buffer[i].goes_round = should_go_round(lowering, first + i, &copy->buffer[i]);
    }
    enum ifd_code code = part_result(lowering, first, last, err);
    if (code == IFD_OK) {
        code = add_buffers(lowering, first, last, bytes, err);
    }
    if (code == IFD_OK) {
        hold(lowering, first, last);
        describe(lowering, first, copy);
    }
    return code;
}

/* All chains share one place for their buffers, one for each thread: a chain writes again what the
 * chain before left in the core's cache, and nothing that another core wrote. */
static enum ifd_code share_buffers(struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    struct ifd_low_storage all = {.first = lowering->draft_count};
    size_t stride = 0;
    for (uint32_t i = 0; i < lowering->draft_count; i++) {
        const struct ifd_acc_draft *step = &lowering->draft[i];
        if (step->chain) {
            all.first = i < all.first ? i : all.first;
            all.last = i + step->chain->count - 1;
            stride = step->work_stride > stride ? step->work_stride : stride;
        }
    }
    uint32_t shared = 0;
    const enum ifd_code code =
        stride == 0
            ? IFD_OK
            : ifd_low_add_storage(&lowering->base, stride * lowering->base.view->max_threads,
                                  all.first, all.last, &shared, err);
    for (uint32_t i = 0; code == IFD_OK && i < lowering->draft_count; i++) {
        if (lowering->draft[i].chain) {
            lowering->base.storage[lowering->draft[i].work].bytes = 0;
            lowering->draft[i].work = shared;
            lowering->draft[i].work_stride = stride;
        }
    }
    return code;
}

enum ifd_code ifd_acc_join_strips(struct ifd_acc_lowering *lowering, struct ifd_err *err)
{
    const size_t cache = ifd_acc_cache_bytes(lowering->host);
    for (uint32_t first = 0; first + 1 < lowering->draft_count;) {
        struct ifd_acc_chain chain, longer;
        size_t bytes = 0, more = 0;
        uint32_t count = 1;
        while (count < CHAIN_MAX && first + count < lowering->draft_count &&
               can_join(lowering, first + count - 1, count == 1, cache) &&
               choose_strip(&lowering->draft[first], count + 1, cache, &longer, &more)) {
            chain = longer;
            bytes = more;
            count++;
        }
        if (count > 1) {
            const enum ifd_code code = join(lowering, first, &chain, bytes, err);
            if (code != IFD_OK) {
                return code;
            }
        }
        first += count;
    }
    return share_buffers(lowering, err);
}
