/* Text by connectionist temporal classification: [steps, classes]. The best class of each step;
 * repetitions count once, the blank separates them. */
#include <string.h>

#include "server/objects/decoder_impl.h"

struct plan {
    struct ifd_plan common; /* first */
    uint32_t blank;         /* class; the labels are the other ones, in order */
    uint32_t activation;
};

/* Classes are the blank and the dictionary; a class behind it is a space, as PaddleOCR adds it. */
static enum ifd_code check_dictionary(const struct ifd_setup *setup, const struct plan *plan,
                                      struct ifd_err *err)
{
    const struct ifd_shape shape = ifd_setup_shape(setup, setup->role[0]);
    const int64_t labels = setup->meaning->label_count;
    const int64_t classes = shape.rank == 2 ? shape.dim[1] : 0;
    if (shape.rank != 2) {
        return ifd_fail(err, IFD_INVALID, "output '%s' has rank %u, expected [steps, classes]",
                        ifd_setup_name(setup, 0), shape.rank);
    }
    if (classes >= 0 && classes != labels + 1 && classes != labels + 2) {
        return ifd_fail(err, IFD_INVALID,
                        "a dictionary of %lld labels, and a blank, for %lld classes",
                        (long long)labels, (long long)classes);
    }
    if (classes >= 0 && plan->blank >= classes) {
        return ifd_fail(err, IFD_INVALID, "blank %u of %lld classes", plan->blank,
                        (long long)classes);
    }
    return IFD_OK;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    ifd_setup_one_role(setup);
    enum ifd_code code = ifd_setup_activation(setup, "activation", true, &made.activation, err);
    code = code ? code : ifd_parameter_count(setup->desc, "blank", 0, 100000, &made.blank, err);
    code = code ? code : check_dictionary(setup, &made, err);
    code = code ? code : ifd_setup_plan(setup, &made, sizeof(made), ret, err);
    return code;
}

/* The best class of a step and its score. */
static size_t best_class(const struct ifd_decoding *decoding, size_t step, size_t classes,
                         float *ret_score)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *values = &decoding->value[0];
    float most = ifd_value(values, step * classes), sum = 0;
    size_t best = 0;
    for (size_t c = 1; c < classes; c++) {
        const float value = ifd_value(values, step * classes + c);
        best = value > most ? c : best;
        most = value > most ? value : most;
    }
    for (size_t c = 0; c < classes && plan->activation == IFD_ACTIVATION_SOFTMAX; c++) {
        sum += expf(ifd_value(values, step * classes + c) - most);
    }
    *ret_score = plan->activation == IFD_ACTIVATION_SOFTMAX
                     ? 1 / sum
                     : ifd_score((enum ifd_activation)plan->activation, most);
    return best;
}

/* Label of a class that is not the blank. */
static const char *label_of(const struct ifd_decoding *decoding, size_t index)
{
    const struct plan *plan = decoding->plan;
    const size_t at = index > plan->blank ? index - 1 : index;
    return at < decoding->meaning->label_count ? decoding->meaning->label[at] : " ";
}

/* Walks the steps: writes the text where there is room for it, and returns its size. */
static size_t read_text(const struct ifd_decoding *decoding, size_t steps, size_t classes,
                        char *text, float *ret_score)
{
    const struct plan *plan = decoding->plan;
    size_t before = plan->blank, size = 0, letters = 0;
    float sum = 0;
    for (size_t step = 0; step < steps; step++) {
        float score = 0;
        const size_t best = best_class(decoding, step, classes, &score);
        if (best != plan->blank && best != before) {
            const char *label = label_of(decoding, best);
            const size_t bytes = strlen(label);
            if (text) {
                memcpy(text + size, label, bytes);
            }
            size += bytes;
            sum += score;
            letters++;
        }
        before = best;
    }
    *ret_score = letters > 0 ? sum / (float)letters : 0;
    return size;
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct ifd_shape *shape = &decoding->value[0].shape;
    struct ifd_objects *ret = decoding->ret;
    float score = 0;
    if (shape->rank != 2 || shape->dim[1] < 1) {
        return ifd_fail(err, IFD_INVALID, "an output of rank %u, expected [steps, classes]",
                        shape->rank);
    }
    const size_t steps = (size_t)shape->dim[0], classes = (size_t)shape->dim[1];
    const size_t size = read_text(decoding, steps, classes, NULL, &score);
    char *text = ifd_arena_take_room(decoding->arena, size + 1);
    if (!text) {
        return ifd_arena_fail(decoding->arena, size + 1, err);
    }
    (void)read_text(decoding, steps, classes, text, &score);
    if (score >= decoding->options->threshold && size > 0) {
        ret->text = (struct ifd_str){.data = text, .size = size};
        ret->text_score = score;
    }
    return IFD_OK;
}

const struct ifd_decoder ifd_decoder_ctc = {
    .name = "ctc", .task = IFD_TASK_TEXT, .prepare = prepare, .decode = decode};
