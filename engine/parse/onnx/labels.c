/* Numbers and texts for others, by tables: labels and categories of ai.onnx.ml. */
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

/* Keys of a table; each is compared with each element. */
#define KEYS_MAX 65536

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static int64_t count_of(const struct ifd_builder *b, uint32_t list)
{
    size_t count = 0;
    const struct ifd_shape shape = shape_of(b, list);
    return list != IFD_NONE && ifd_shape_elements(&shape, &count) ? (int64_t)count : 0;
}

/* The one of these attributes that is there, as a list; IFD_NONE: none. Names may be NULL. */
static uint32_t list_of(struct ifd_onnx_call *call, const char *ints, const char *reals,
                        const char *texts, const char *tensor)
{
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *i = ints ? ifd_onnx_attr(call, ints) : NULL;
    const struct ifd_onnx_attr *r = reals ? ifd_onnx_attr(call, reals) : NULL;
    const struct ifd_onnx_attr *s = texts ? ifd_onnx_attr(call, texts) : NULL;
    const struct ifd_onnx_attr *t = tensor ? ifd_onnx_attr(call, tensor) : NULL;
    if (i && i->int_count > 0) {
        return ifd_build_list(b, i->ints, i->int_count);
    }
    if (r && r->float_count > 0) {
        return ifd_onnx_floats(b, r->floats, (const int64_t[]){r->float_count}, 1);
    }
    if (s && s->string_count > 0) {
        const struct ifd_shape shape = {.rank = 1, .dim = {s->string_count}};
        return ifd_onnx_texts(b, s->strings, &shape);
    }
    return t && t->tensor
               ? ifd_build_reshape(b, ifd_onnx_constant(b, t->tensor), (const int64_t[]){-1}, 1)
               : IFD_NONE;
}

/* Which of the keys each element is, in one more dimension, behind the others. NaN is itself. */
static uint32_t matches(struct ifd_builder *b, uint32_t x, uint32_t keys)
{
    struct ifd_shape shape = shape_of(b, x);
    const enum ifd_dtype dtype = ifd_build_desc(b, keys)->dtype;
    if (b->code != IFD_OK || shape.rank == IFD_MAX_RANK) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "elements of shape %s", ifd_shape_text(&shape).s);
    }
    shape.dim[shape.rank++] = 1;
    x = dtype == IFD_STR ? x : ifd_build_cast(b, x, dtype);
    const uint32_t column = ifd_build_reshape(b, x, shape.dim, shape.rank);
    const uint32_t is_it = ifd_onnx_compared(b, IFD_OP_EQUAL, column, keys);
    if (dtype != IFD_F32) {
        return is_it;
    }
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    const uint32_t nans[2] = {ifd_onnx_compared(b, IFD_OP_NOT_EQUAL, column, column),
                              ifd_onnx_compared(b, IFD_OP_NOT_EQUAL, keys, keys)};
    const uint32_t either[2] = {is_it, ifd_build_node(b, IFD_OP_LOGICAL_AND, nans, 2, &flag, NULL)};
    return ifd_build_node(b, IFD_OP_LOGICAL_OR, either, 2, &flag, NULL);
}

static uint32_t taken(struct ifd_builder *b, uint32_t table, uint32_t at)
{
    return ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){table, at}, 2, NULL, NULL);
}

/* The value of the first key that each element is; what is none gets the one value of others. */
static uint32_t translated(struct ifd_onnx_call *call, uint32_t keys, uint32_t values,
                           uint32_t others)
{
    struct ifd_builder *b = call->b;
    const int64_t count = count_of(b, keys);
    if (b->code != IFD_OK || count < 1 || count > KEYS_MAX || count_of(b, values) != count) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "%lld keys and %lld values, limit %d",
                              (long long)count, (long long)count_of(b, values), KEYS_MAX);
    }
    return ifd_build_first(b, matches(b, call->input[0], keys), values, others);
}

/* A list of one text: of the attribute, or what it is without one. */
static uint32_t text_of(struct ifd_onnx_call *call, const char *name, const char *otherwise)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    const struct ifd_shape one = {.rank = 1, .dim = {1}};
    struct ifd_str text = {.data = otherwise, .size = 0};
    while (text.data[text.size] != '\0') {
        text.size++;
    }
    return ifd_onnx_texts(call->b, attr ? &attr->s : &text, &one);
}

/* A list of one whole number, of all 64 bits. */
static uint32_t whole_of(struct ifd_onnx_call *call, const char *name, int64_t otherwise)
{
    const int64_t number = ifd_onnx_int(call, name, otherwise);
    return ifd_build_list(call->b, &number, 1);
}

static uint32_t real_of(struct ifd_onnx_call *call, const char *name, double otherwise)
{
    const float number = (float)ifd_onnx_f32(call, name, otherwise);
    return ifd_onnx_floats(call->b, &number, (const int64_t[]){1}, 1);
}

void ifd_onnx_label_encoder(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_onnx_attr *given = ifd_onnx_attr(call, "default_tensor");
    uint32_t keys = list_of(call, "keys_int64s", "keys_floats", "keys_strings", "keys_tensor");
    uint32_t values =
        list_of(call, "values_int64s", "values_floats", "values_strings", "values_tensor");
    const uint32_t classes = list_of(call, NULL, NULL, "classes_strings", NULL);
    if (classes != IFD_NONE) { /* version 1: texts and their places */
        const bool is_text = ifd_build_desc(b, call->input[0])->dtype == IFD_STR;
        const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                    ifd_build_number(b, IFD_S64, (double)count_of(b, classes)),
                                    ifd_build_number(b, IFD_S64, 1)};
        const uint32_t places = ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL);
        keys = is_text ? classes : places;
        values = is_text ? places : classes;
    }
    if (keys == IFD_NONE || values == IFD_NONE) {
        ifd_build_fail(b, IFD_INVALID, "no keys or no values");
        return;
    }
    const enum ifd_dtype to = ifd_build_desc(b, values)->dtype;
    uint32_t others =
        given && given->tensor
            ? ifd_build_reshape(b, ifd_onnx_constant(b, given->tensor), (const int64_t[]){1}, 1)
        : to == IFD_STR ? text_of(call, "default_string", "_Unused")
        : to == IFD_F32 ? real_of(call, "default_float", -0.0)
                        : ifd_build_cast(b, whole_of(call, "default_int64", -1), to);
    call->output[0] = translated(call, keys, values, others);
}

void ifd_onnx_category_mapper(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    const uint32_t numbers = list_of(call, "cats_int64s", NULL, NULL, NULL);
    const uint32_t texts = list_of(call, NULL, NULL, "cats_strings", NULL);
    const bool is_text = ifd_build_desc(call->b, call->input[0])->dtype == IFD_STR;
    const uint32_t others =
        is_text ? whole_of(call, "default_int64", -1) : text_of(call, "default_string", "_Unused");
    call->output[0] =
        translated(call, is_text ? texts : numbers, is_text ? numbers : texts, others);
}

/* 1 for the category of each element, in one more dimension. An unknown one has none, also where
 * attribute "zeros" says that it is an error: whether it is, only a run knows. */
void ifd_onnx_one_hot_encoder(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const bool is_text = ifd_build_desc(b, call->input[0])->dtype == IFD_STR;
    const uint32_t keys = is_text ? list_of(call, NULL, NULL, "cats_strings", NULL)
                                  : list_of(call, "cats_int64s", NULL, NULL, NULL);
    if (count_of(b, keys) < 1 || count_of(b, keys) > KEYS_MAX) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "%lld categories, limit %d",
                       (long long)count_of(b, keys), KEYS_MAX);
        return;
    }
    call->output[0] = ifd_build_cast(b, matches(b, call->input[0], keys), IFD_F32);
}

/* ---- labels of classes ---- */

uint32_t ifd_onnx_class_labels(struct ifd_onnx_call *call, const char *ints)
{
    return list_of(call, ints, NULL, "classlabels_strings", NULL);
}

uint32_t ifd_onnx_label_of(struct ifd_builder *b, uint32_t labels, uint32_t scores)
{
    const struct ifd_arg_attrs attrs = {.axis = 1};
    const struct ifd_desc index = {.dtype = IFD_S64};
    return taken(b, labels, ifd_build_node(b, IFD_OP_ARG_MAX, &scores, 1, &index, &attrs));
}
