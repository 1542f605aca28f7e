/* What a step sees of a run. */
#include "backends/cpuacc/step.h"

const void *ifd_acc_in(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                       uint32_t index)
{
    return ifd_low_resolve(&step->in[index], frame->binding, frame->scratch);
}

void *ifd_acc_out(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    /* outputs are never constants */
    return (void *)(uintptr_t)ifd_low_resolve(&step->out, frame->binding, frame->scratch);
}

void *ifd_acc_more_out(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                       uint32_t index)
{
    return (void *)(uintptr_t)ifd_low_resolve(&step->more[index], frame->binding, frame->scratch);
}

void *ifd_acc_work(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    return frame->scratch + step->work + frame->thread * step->work_stride;
}

struct ifd_acc_range ifd_acc_share(const struct ifd_acc_frame *frame, size_t count, size_t unit)
{
    if (frame->threads == 1) {
        return (struct ifd_acc_range){0, count};
    }
    const size_t units = (count + unit - 1) / unit;
    size_t begin = units * frame->chunk.begin / frame->chunks * unit;
    size_t end = units * frame->chunk.end / frame->chunks * unit;
    begin = begin < count ? begin : count;
    end = end < count ? end : count;
    return (struct ifd_acc_range){begin, end};
}
