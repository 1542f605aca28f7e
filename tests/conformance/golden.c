/* Reads golden cases and compares results with them. */
#include "tests/conformance/golden.h"

#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "inferd/alloc.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void *take(size_t count, size_t size)
{
    void *memory = ifd_acquire_zeroed(ifd_alloc_system(), count > 0 ? count : 1, size);
    REQUIRE(memory);
    return memory;
}

static void give_back(void *memory, size_t count, size_t size)
{
    ifd_release(ifd_alloc_system(), memory, (count > 0 ? count : 1) * size);
}

static enum ifd_dtype dtype_of(const char *name)
{
    for (int i = 0; i < IFD_DTYPE_COUNT; i++) {
        if (name && strcmp(ifd_dtype_name((enum ifd_dtype)i), name) == 0) {
            return (enum ifd_dtype)i;
        }
    }
    REQUIRE(false && "a known dtype");
    return IFD_F32;
}

static double real_of(const json_t *value)
{
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        return strcmp(text, "nan") == 0 ? (double)NAN : text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    }
    REQUIRE(json_is_number(value));
    return json_number_value(value);
}

static void store(enum ifd_dtype dtype, void *data, size_t i, const json_t *value)
{
    if (dtype == IFD_F32 || dtype == IFD_C64) {
        ((float *)data)[i] = (float)real_of(value);
        return;
    }
    if (dtype == IFD_F64) {
        ((double *)data)[i] = real_of(value);
        return;
    }
    if (dtype == IFD_STR) {
        const size_t size = json_string_length(value);
        char *text = take(size, 1);
        memcpy(text, json_string_value(value), size);
        ((struct ifd_str *)data)[i] = (struct ifd_str){.data = text, .size = size};
        return;
    }
    REQUIRE(json_is_integer(value));
    const json_int_t integer = json_integer_value(value);
    const size_t bytes = ifd_dtype_bytes(dtype);
    memcpy((char *)data + i * bytes, &integer,
           bytes); /* little-endian, like every supported machine */
}

static void load_quant(struct golden_tensor *tensor, const json_t *json)
{
    const json_t *scale = json_object_get(json, "scale");
    const json_t *zero_point = json_object_get(json, "zero_point");
    const size_t count = json_array_size(scale);
    if (count == 0) {
        return;
    }
    REQUIRE(json_array_size(zero_point) == count);
    tensor->scale = take(count, sizeof(float));
    tensor->zero_point = take(count, sizeof(int32_t));
    for (size_t i = 0; i < count; i++) {
        tensor->scale[i] = (float)real_of(json_array_get(scale, i));
        tensor->zero_point[i] = (int32_t)json_integer_value(json_array_get(zero_point, i));
    }
    tensor->desc.quant = (struct ifd_quant){
        .scale = tensor->scale,
        .zero_point = tensor->zero_point,
        .count = (uint32_t)count,
        .axis = (uint32_t)json_integer_value(json_object_get(json, "axis")),
    };
}

static void load_tensor(struct golden_tensor *tensor, const json_t *json)
{
    tensor->is_absent = json_is_null(json);
    if (tensor->is_absent) {
        return;
    }
    tensor->desc.dtype = dtype_of(json_string_value(json_object_get(json, "dtype")));
    const json_t *shape = json_object_get(json, "shape");
    tensor->desc.shape.rank = (uint32_t)json_array_size(shape);
    REQUIRE(tensor->desc.shape.rank <= IFD_MAX_RANK);
    for (uint32_t d = 0; d < tensor->desc.shape.rank; d++) {
        tensor->desc.shape.dim[d] = json_integer_value(json_array_get(shape, d));
    }
    tensor->is_constant = json_is_true(json_object_get(json, "constant"));
    load_quant(tensor, json);
    REQUIRE(ifd_desc_bytes(&tensor->desc, &tensor->bytes));
    tensor->data = ifd_acquire_tensor(ifd_alloc_system(), tensor->bytes);
    REQUIRE(tensor->data);
    const json_t *data = json_object_get(json, "data");
    const size_t element =
        tensor->desc.dtype == IFD_C64 ? sizeof(float) : ifd_dtype_bytes(tensor->desc.dtype);
    REQUIRE(json_array_size(data) * element == tensor->bytes);
    for (size_t i = 0; i < json_array_size(data); i++) {
        store(tensor->desc.dtype, tensor->data, i, json_array_get(data, i));
    }
}

static uint32_t load_tensors(struct golden_tensor *tensors, const json_t *json)
{
    REQUIRE(json_is_array(json) && json_array_size(json) <= GOLDEN_OPERANDS);
    for (size_t i = 0; i < json_array_size(json); i++) {
        load_tensor(&tensors[i], json_array_get(json, i));
    }
    return (uint32_t)json_array_size(json);
}

static void load_attr(const struct ifd_op_def *def, void *attrs, const char *name,
                      const json_t *value)
{
    struct ifd_err err = {0};
    if (json_is_array(value)) {
        int64_t list[IFD_MAX_RANK] = {0};
        const size_t count = json_array_size(value);
        REQUIRE(count <= IFD_MAX_RANK);
        for (size_t i = 0; i < count; i++) {
            list[i] = json_integer_value(json_array_get(value, i));
        }
        REQUIRE_OK(ifd_attrs_set_ints(def, attrs, name, list, count, &err), &err);
    } else if (json_is_integer(value)) {
        REQUIRE_OK(ifd_attrs_set_int(def, attrs, name, json_integer_value(value), &err), &err);
    } else if (json_is_boolean(value)) {
        REQUIRE_OK(ifd_attrs_set_int(def, attrs, name, json_is_true(value), &err), &err);
    } else {
        REQUIRE_OK(ifd_attrs_set_f32(def, attrs, name, real_of(value), &err), &err);
    }
}

static enum ifd_op op_of(const char *name)
{
    for (int i = 0; i < IFD_OP_COUNT; i++) {
        if (name && strcmp(ifd_op_def((enum ifd_op)i)->name, name) == 0) {
            return (enum ifd_op)i;
        }
    }
    REQUIRE(false && "a known operator");
    return IFD_OP_COUNT;
}

static void load_case(struct golden_case *golden, enum ifd_op op, const json_t *json)
{
    const struct ifd_op_def *def = ifd_op_def(op);
    *golden = (struct golden_case){.op = op};
    (void)snprintf(golden->name, sizeof(golden->name), "%s: %s", def->name,
                   json_string_value(json_object_get(json, "name")));
    golden->attrs = take(def->attrs_bytes, 1);
    ifd_attrs_defaults(def, golden->attrs);
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(json, "attrs"), name, value)
    {
        load_attr(def, golden->attrs, name, value);
    }
    golden->relative = json_number_value(json_object_get(json, "relative"));
    golden->absolute = json_number_value(json_object_get(json, "absolute"));
    golden->input_count = load_tensors(golden->input, json_object_get(json, "inputs"));
    golden->output_count = load_tensors(golden->output, json_object_get(json, "outputs"));
}

static void free_tensors(struct golden_tensor *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ifd_str *text = tensors[i].data;
        for (size_t k = 0; tensors[i].desc.dtype == IFD_STR && k < tensors[i].bytes / sizeof(*text);
             k++) {
            give_back((char *)(uintptr_t)text[k].data, text[k].size, 1);
        }
        ifd_release_tensor(ifd_alloc_system(), tensors[i].data, tensors[i].bytes);
        give_back(tensors[i].scale, tensors[i].desc.quant.count, sizeof(float));
        give_back(tensors[i].zero_point, tensors[i].desc.quant.count, sizeof(int32_t));
    }
}

size_t golden_for_each(const char *path, void (*run)(struct golden_case *golden, void *context),
                       void *context)
{
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error);
    if (!file) {
        (void)fprintf(stderr, "%s:%d: %s\n", path, error.line, error.text);
    }
    REQUIRE(file);
    REQUIRE(json_string_length(json_object_get(file, "source")) > 0);
    const enum ifd_op op = op_of(json_string_value(json_object_get(file, "op")));
    const json_t *cases = json_object_get(file, "cases");
    const size_t count = json_array_size(cases);
    for (size_t i = 0; i < count; i++) {
        struct golden_case golden;
        load_case(&golden, op, json_array_get(cases, i));
        run(&golden, context);
        free_tensors(golden.input, golden.input_count);
        free_tensors(golden.output, golden.output_count);
        give_back(golden.attrs, ifd_op_def(op)->attrs_bytes, 1);
    }
    json_decref(file);
    return count;
}

/** Element i of any type as a double; exact for everything but s64 and u64 beyond 2^53. */
static double element(enum ifd_dtype dtype, const void *data, size_t i)
{
    switch ((unsigned)dtype) {
    case IFD_F32:
    case IFD_C64:
        return (double)((const float *)data)[i];
    case IFD_F64:
        return ((const double *)data)[i];
    case IFD_S8:
        return ((const int8_t *)data)[i];
    case IFD_U8:
    case IFD_BOOL:
        return ((const uint8_t *)data)[i];
    case IFD_S16:
        return ((const int16_t *)data)[i];
    case IFD_F16:
    case IFD_BF16:
    case IFD_U16:
        return ((const uint16_t *)data)[i];
    case IFD_S32:
        return ((const int32_t *)data)[i];
    case IFD_U32:
        return ((const uint32_t *)data)[i];
    default:
        return (double)((const int64_t *)data)[i];
    }
}

static bool is_close(double got, double want, const struct golden_case *golden)
{
    if (isnan(want) || isinf(want)) {
        return isnan(want) ? isnan(got) : got == want;
    }
    return fabs(got - want) <= golden->absolute + golden->relative * fabs(want);
}

static size_t count_wrong_texts(const struct golden_case *golden, uint32_t output, const void *got)
{
    const struct ifd_str *w = golden->output[output].data, *g = got;
    size_t wrong = 0;
    for (size_t i = 0; i < golden->output[output].bytes / sizeof(*w); i++) {
        const bool ok = g[i].size == w[i].size &&
                        (w[i].size == 0 || memcmp(g[i].data, w[i].data, w[i].size) == 0);
        if (!ok && wrong++ == 0) {
            (void)fprintf(stderr, "%s: output %u, element %zu: got \"%.*s\", expected \"%.*s\"\n",
                          golden->name, output, i, (int)g[i].size, g[i].data, (int)w[i].size,
                          w[i].data);
        }
    }
    return wrong;
}

void golden_compare(const struct golden_case *golden, uint32_t output, const void *got)
{
    const struct golden_tensor *want = &golden->output[output];
    const enum ifd_dtype dtype = want->desc.dtype;
    const size_t bytes = dtype == IFD_C64 ? sizeof(float) : ifd_dtype_bytes(dtype);
    const size_t count = want->bytes / bytes;
    size_t wrong = dtype == IFD_STR ? count_wrong_texts(golden, output, got) : 0;
    for (size_t i = 0; dtype != IFD_STR && i < count; i++) {
        const double g = element(dtype, got, i);
        const double w = element(dtype, want->data, i);
        const bool is_wide = dtype == IFD_S64 || dtype == IFD_U64;
        const bool ok = is_wide ? ((const int64_t *)got)[i] == ((const int64_t *)want->data)[i]
                                : is_close(g, w, golden);
        if (!ok && wrong++ == 0) {
            (void)fprintf(stderr, "%s: output %u, element %zu: got %.9g, expected %.9g\n",
                          golden->name, output, i, g, w);
        }
    }
    if (wrong > 0) {
        (void)fprintf(stderr, "%s: output %u: %zu of %zu elements differ\n", golden->name, output,
                      wrong, count);
    }
    EXPECT_INT(wrong, 0);
}
