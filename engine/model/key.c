/* Keys of variants: all that a reading depends on, besides the file. */
#include "engine/model/shapes_impl.h"

#include <string.h>

/* Larger constants are told apart by a sum. */
#define VERBATIM_BYTES IFD_CUT_BYTES

static bool is_in(struct ifd_bytes file, const uint8_t *data)
{
    const uintptr_t at = (uintptr_t)data, begin = (uintptr_t)file.data;
    return at >= begin && at - begin < file.size;
}

/* Content of a file, and of the first reading of it, stays where it is. */
static bool stays(const struct ifd_model *model, struct ifd_bytes content)
{
    size_t readable = 0;
    bool is = is_in(model->file, content.data);
    for (uint32_t i = 0; !is && i < model->external_count; i++) {
        is = is_in(model->external[i].content, content.data);
    }
    return is || ifd_parse_is_kept(&model->kept, content, &readable);
}

void ifd_link_sum(const struct ifd_shapes_of *shapes, struct ifd_link *link)
{
    const struct ifd_cut *cut = &link->model->cut;
    for (uint32_t i = 0; i < cut->value_count; i++) {
        const struct ifd_cut_value *value = &cut->value[i];
        if (value->source == IFD_CUT_CONSTANT && value->data.size > VERBATIM_BYTES &&
            !stays(shapes->model, value->data)) {
            struct ifd_mac mac;
            ifd_mac_start(&mac, shapes->mac_key);
            ifd_mac_add(&mac, value->data.data, value->data.size);
            link->sum[i] = ifd_mac_sum(&mac);
        }
    }
}

static void add_texts(struct ifd_buf *key, struct ifd_bytes texts)
{
    for (size_t at = 0; at + sizeof(struct ifd_str) <= texts.size; at += sizeof(struct ifd_str)) {
        struct ifd_str text;
        memcpy(&text, texts.data + at, sizeof(text));
        ifd_buf_add(key, &text.size, sizeof(text.size));
        ifd_buf_add(key, text.data, text.size);
    }
}

/* sum: of a large constant that the link had already. */
static void add_content(const struct ifd_shapes_of *shapes, struct ifd_buf *key,
                        const struct ifd_resume_value *value, uint64_t sum)
{
    ifd_buf_add(key, &value->data.size, sizeof(value->data.size));
    if (value->desc.dtype == IFD_STR) {
        add_texts(key, value->data);
    } else if (stays(shapes->model, value->data)) {
        ifd_buf_add(key, &value->data.data, sizeof(value->data.data));
    } else if (value->data.size > VERBATIM_BYTES) {
        ifd_buf_add(key, &sum, sizeof(sum));
    } else {
        ifd_buf_add(key, value->data.data, value->data.size);
    }
}

static void add_value(const struct ifd_shapes_of *shapes, struct ifd_buf *key,
                      const struct ifd_resume_value *value, uint64_t sum)
{
    const struct ifd_desc *desc = &value->desc;
    const uint64_t head[6] = {value->id,          value->alias,     (uint64_t)desc->dtype,
                              value->is_constant, desc->shape.rank, desc->quant.count};
    ifd_buf_add(key, head, sizeof(head));
    ifd_buf_add(key, desc->shape.dim, desc->shape.rank * sizeof(desc->shape.dim[0]));
    if (desc->quant.count > 0) {
        ifd_buf_add(key, &desc->quant.axis, sizeof(desc->quant.axis));
        ifd_buf_add(key, desc->quant.scale, desc->quant.count * sizeof(desc->quant.scale[0]));
        ifd_buf_add(key, desc->quant.zero_point,
                    desc->quant.count * sizeof(desc->quant.zero_point[0]));
    }
    if (value->is_constant) {
        add_content(shapes, key, value, sum);
    }
}

enum ifd_code ifd_key_resume(struct ifd_shapes_of *shapes, const struct ifd_resume *resume,
                             struct ifd_err *err)
{
    const struct ifd_link *link = &shapes->present;
    struct ifd_buf *key = &shapes->key;
    key->size = shapes->shapes_bytes;
    ifd_buf_add(key, &resume->node, sizeof(resume->node));
    for (uint32_t i = 0, from = 0; i < resume->value_count; i++, from++) {
        while (link->model->cut.value[from].id != resume->value[i].id) {
            from++; /* an element of a list that is not whole */
        }
        add_value(shapes, key, &resume->value[i], link->sum[from]);
    }
    return ifd_buf_check(key, err);
}

/* Samples of the reading for a variant that several requests share: with one, what depends on the
 * samples may look independent. */
#define SHARED_SAMPLES 2

enum ifd_code ifd_key_begin(struct ifd_shapes_of *shapes, const struct ifd_io *io,
                            struct ifd_err *err)
{
    shapes->key.size = 0;
    ifd_buf_add(&shapes->key, &shapes->is_shared, sizeof(shapes->is_shared));
    for (uint32_t i = 0; i < shapes->model->info.input_count; i++) {
        struct ifd_shape *shape = &shapes->asked[i].shape;
        *shape = io->input[i].shape;
        if (shapes->is_shared) {
            shape->dim[0] = SHARED_SAMPLES;
        }
        ifd_buf_add(&shapes->key, shape->dim, shape->rank * sizeof(shape->dim[0]));
    }
    shapes->shapes_bytes = shapes->key.size;
    return ifd_buf_check(&shapes->key, err);
}
