/* The tail of an image whose patches are made, line by line. */
#include "backends/cpuacc/conv/patches.h"

void ifd_acc_patches_tail(const struct ifd_acc_conv_run *run, size_t image, size_t begin,
                          size_t count)
{
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_low_window *w = &layer->window;
    const size_t size = run->conv->plan.patches.size, line = ifd_acc_patches_of(w->out_w, size);
    for (size_t end = begin + count, next = 0; layer->tail.count && begin < end; begin = next) {
        const size_t y = begin / line * size, x = begin % line * size;
        next = begin - begin % line + line < end ? begin - begin % line + line : end;
        const size_t lines = w->out_h - y < size ? w->out_h - y : size;
        const size_t all = (next - begin) * size, pixels = w->out_w - x < all ? w->out_w - x : all;
        for (size_t i = 0; i < lines; i++) {
            ifd_acc_conv_tail(run, (image * w->out_h + y + i) * w->out_w + x, pixels);
        }
    }
}
