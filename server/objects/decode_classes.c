/* Classification: one score for each class. */
#include "server/objects/decoder_impl.h"

struct plan {
    struct ifd_plan common; /* first */
    uint32_t activation;
};

/* Scores are 0 … 1. What a quantized output may store tells whether it has them or logits. */
static bool are_logits(const struct ifd_tensor_info *output)
{
    const float low = output->dtype == IFD_S8 ? -128 : 0, zero = (float)output->zero_point;
    const bool is_quantized =
        (output->dtype == IFD_S8 || output->dtype == IFD_U8) && output->scale > 0;
    return is_quantized &&
           (output->scale * (low - zero) < -0.5f || output->scale * (low + 255 - zero) > 1.5f);
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    ifd_setup_one_role(setup);
    const struct ifd_tensor_info *output = &setup->desc->output[setup->role[0]];
    made.activation = are_logits(output) ? IFD_ACTIVATION_SOFTMAX : IFD_ACTIVATION_NONE;
    enum ifd_code code = ifd_setup_activation(setup, "activation", true, &made.activation, err);
    code = code ? code : ifd_setup_classes(setup, ifd_setup_count(setup, setup->role[0]), err);
    return code ? code : ifd_setup_plan(setup, &made, sizeof(made), ret, err);
}

/* What softmax subtracts and divides by. */
struct range {
    float most, sum;
};

static struct range measure(const struct ifd_values *values)
{
    struct range range = {.most = -INFINITY};
    for (size_t i = 0; i < values->count; i++) {
        range.most = fmaxf(range.most, ifd_value(values, i));
    }
    for (size_t i = 0; i < values->count; i++) {
        range.sum += expf(ifd_value(values, i) - range.most);
    }
    return range;
}

/* Puts an object into its place among those that are better; the worst of top falls out. */
static void insert(struct ifd_objects *ret, uint32_t top, struct ifd_object object)
{
    uint32_t at = ret->object_count < top ? ret->object_count++ : top;
    if (at == top && !(object.score > ret->object[top - 1].score)) {
        return;
    }
    at = at == top ? top - 1 : at;
    while (at > 0 && object.score > ret->object[at - 1].score) {
        ret->object[at] = ret->object[at - 1];
        at--;
    }
    ret->object[at] = object;
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *values = &decoding->value[0];
    const struct ifd_object_options *options = decoding->options;
    struct ifd_objects *ret = decoding->ret;
    const bool is_softmax = plan->activation == IFD_ACTIVATION_SOFTMAX;
    const struct range range = is_softmax ? measure(values) : (struct range){0};
    const uint32_t top = options->top_k < values->count ? options->top_k : (uint32_t)values->count;
    ret->object = ifd_arena_take_array(decoding->arena, top, sizeof(*ret->object));
    if (!ret->object) {
        return ifd_arena_fail(decoding->arena, top * sizeof(*ret->object), err);
    }
    for (uint32_t i = 0; i < values->count; i++) {
        const float stored = ifd_value(values, i);
        const float score = is_softmax ? expf(stored - range.most) / range.sum
                                       : ifd_score((enum ifd_activation)plan->activation, stored);
        if (score >= options->threshold && isfinite(score) && ifd_options_want(options, i)) {
            insert(ret, top, (struct ifd_object){.index = i, .score = score});
        }
    }
    return IFD_OK;
}

const struct ifd_decoder ifd_decoder_classes = {
    .name = "classes", .task = IFD_TASK_CLASSIFICATION, .prepare = prepare, .decode = decode};
