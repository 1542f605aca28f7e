/* From file to graph: small models, and damaged, misaligned and oversized ones.
 * tests/fuzz/make_tflite.py writes the models; expected values come from there. */
#include "engine/parse/tflite/tflite.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/ir/verify.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/parse_file.h"
#include "tests/support/test.h"

#define CORPUS "tests/fuzz/corpus/tflite"

static void open_good(struct parse_file *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), CORPUS "/good_%s.tflite", name);
    parse_file_open(f, test_source(path));
    REQUIRE_OK(f->code, &f->err);
}

static struct ifd_bytes read_good(const char *name)
{
    char path[256];
    struct ifd_bytes file;
    struct ifd_err err = {0};
    snprintf(path, sizeof(path), CORPUS "/good_%s.tflite", name);
    REQUIRE_OK(ifd_file_read(test_source(path), 1 << 20, ifd_alloc_system(), &file, &err), &err);
    return file;
}

static void release(struct ifd_bytes file)
{
    ifd_release_tensor(ifd_alloc_system(), (void *)file.data, file.size);
}

/* ---- graphs of models ---- */

static void check_good(const char *path, const char *name)
{
    struct parse_file f;
    parse_file_open(&f, path);
    if (f.code != IFD_OK) {
        printf("     %s\n", name);
    }
    EXPECT_CODE(f.code, IFD_OK, &f.err);
    EXPECT_TEXT(f.parsed.format, "tflite");
    EXPECT_INT(f.parsed.format_version, 3);
    parse_file_close(&f);
}

static void every_operator_is_accepted(void)
{
    parse_each_file(test_source(CORPUS), "good_", check_good);
}

static void options_and_quantization_arrive(void)
{
    struct parse_file f;
    open_good(&f, "conv_s8_per_channel");
    EXPECT_INT(f.graph.node_count, 1);
    const struct ifd_node *node = &f.graph.node[0];
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    EXPECT_INT(node->op, IFD_OP_CONV2D);
    EXPECT_TEXT(node->source_name, "CONV_2D");
    EXPECT_INT(node->source_index, 0);
    EXPECT_INT(attrs->window.padding, IFD_PAD_SAME);
    EXPECT_INT(attrs->window.stride_h, 2);
    EXPECT_INT(attrs->window.dilation_w, 1);
    EXPECT_INT(attrs->activation, IFD_ACT_RELU6);
    const struct ifd_value *w = &f.graph.value[node->input[1]];
    EXPECT_TEXT(w->name, "w");
    EXPECT_INT(w->desc.quant.count, 4);
    EXPECT_INT(w->desc.quant.axis, 0);
    EXPECT_CLOSE(w->desc.quant.scale[3], 0.04, 1e-6);
    EXPECT_INT(w->data.data[107], 107);
    const struct ifd_value *y = &f.graph.value[f.graph.output[0]];
    EXPECT_INT(y->desc.dtype, IFD_S8);
    EXPECT_INT(y->desc.quant.zero_point[0], 10);
    EXPECT_INT(y->desc.shape.dim[1], 3);
    parse_file_close(&f);
}

static void constant_inputs_become_attributes(void)
{
    struct parse_file f;
    open_good(&f, "pad_v2");
    const struct ifd_pad_attrs *pad = f.graph.node[0].attrs;
    EXPECT_INT(f.graph.node[0].input_count, 1);
    EXPECT_INT(pad->before.count, 4);
    EXPECT_INT(pad->before.value[2], 2);
    EXPECT_INT(pad->after.value[1], 1);
    EXPECT(pad->has_value);
    EXPECT_CLOSE(pad->value, 7, 0);
    parse_file_close(&f);

    open_good(&f, "strided_slice");
    const struct ifd_strided_slice_attrs *slice = f.graph.node[0].attrs;
    EXPECT_INT(slice->begin.value[1], 3);
    EXPECT_INT(slice->strides.value[1], -1);
    EXPECT_INT(slice->end_mask, 2);
    parse_file_close(&f);

    open_good(&f, "split_v");
    const struct ifd_split_attrs *split = f.graph.node[0].attrs;
    EXPECT_INT(split->axis, -1);
    EXPECT_INT(split->sizes.value[1], -1);
    EXPECT_INT(f.graph.value[f.graph.output[1]].desc.shape.dim[1], 4);
    parse_file_close(&f);
}

static void a_shape_computed_from_a_shape_becomes_an_attribute(void)
{
    struct parse_file f;
    open_good(&f, "shape_chain");
    EXPECT_INT(f.graph.node_count, 1);
    const struct ifd_reshape_attrs *attrs = f.graph.node[0].attrs;
    EXPECT_INT(attrs->shape.count, 2);
    EXPECT_INT(attrs->shape.value[0], 1);
    EXPECT_INT(attrs->shape.value[1], -1);
    EXPECT_INT(f.graph.value[f.graph.output[0]].desc.shape.dim[1], 32);
    parse_file_close(&f);
}

static void squeeze_and_expand_dims_become_reshapes(void)
{
    struct parse_file f;
    open_good(&f, "squeeze");
    const struct ifd_reshape_attrs *attrs = f.graph.node[0].attrs;
    EXPECT_INT(f.graph.node[0].op, IFD_OP_RESHAPE);
    EXPECT_INT(attrs->shape.count, 2);
    EXPECT_INT(attrs->shape.value[0], 4);
    parse_file_close(&f);
    open_good(&f, "expand_dims");
    attrs = f.graph.node[0].attrs;
    EXPECT_INT(attrs->shape.count, 5);
    EXPECT_INT(attrs->shape.value[4], 1);
    parse_file_close(&f);
}

static void detection_options_are_read_from_a_flexbuffer(void)
{
    struct parse_file f;
    open_good(&f, "detection");
    const struct ifd_detection_attrs *attrs = f.graph.node[0].attrs;
    EXPECT_INT(attrs->max_detections, 3);
    EXPECT_INT(attrs->num_classes, 2);
    EXPECT_CLOSE(attrs->nms_iou_threshold, 0.5, 0);
    EXPECT_CLOSE(attrs->h_scale, 5, 0);
    EXPECT(!attrs->use_regular_nms);
    EXPECT_INT(f.graph.value[f.graph.output[0]].desc.shape.dim[1], 3);
    parse_file_close(&f);
}

static void an_input_with_content_is_a_constant(void)
{
    struct parse_file f;
    open_good(&f, "constant_input");
    REQUIRE(f.graph.input_count == 2);
    EXPECT_TEXT(f.parsed.input[0].name, "a");
    EXPECT_TEXT(f.parsed.input[0].description, "about a");
    EXPECT_TEXT(f.parsed.input[1].name, "b");
    EXPECT_TEXT(f.parsed.input[1].description, "about b");
    EXPECT_INT(f.parsed.input[1].desc.shape.dim[1], 4);
    const struct ifd_value *c = &f.graph.value[f.graph.node[0].input[2]];
    EXPECT(c->is_constant);
    EXPECT_BYTES(c->data.data, ((const float[]){1, 2, 3}), 12);
    parse_file_close(&f);
}

static void ports_have_names_labels_and_normalization(void)
{
    static const char *const models[] = {"metadata_deflated", "metadata_stored",
                                         "metadata_without_archive"};
    static const char *const labels[] = {"cat", "dog", "bird", "fish"};
    for (size_t i = 0; i < 3; i++) {
        struct parse_file f;
        open_good(&f, models[i]);
        EXPECT_TEXT(f.parsed.description, "a model with everything");
        EXPECT_TEXT(f.parsed.input[0].name, "x");
        EXPECT_TEXT(f.parsed.input[0].description, "a picture");
        EXPECT(f.parsed.input[0].has_normalization);
        EXPECT_INT(f.parsed.input[0].normalization_count, 1);
        EXPECT_CLOSE(f.parsed.input[0].mean[0], 127.5, 0);
        EXPECT_CLOSE(f.parsed.input[0].std[0], 128, 0);
        EXPECT_INT(f.parsed.output[0].label_count, i == 2 ? 0 : 4);
        for (uint32_t k = 0; k < f.parsed.output[0].label_count; k++) {
            EXPECT_TEXT(f.parsed.output[0].labels[k], labels[k]);
        }
        parse_file_close(&f);
    }
    struct parse_file f;
    open_good(&f, "nameless");
    EXPECT_TEXT(f.parsed.input[1].name, "input_1");
    EXPECT_TEXT(f.parsed.output[0].name, "output_0");
    EXPECT(f.parsed.input[0].description == NULL);
    parse_file_close(&f);
    open_good(&f, "output_listed_twice");
    EXPECT_TEXT(f.parsed.output[0].name, "y");
    EXPECT_TEXT(f.parsed.output[1].name, "output_1");
    parse_file_close(&f);
}

static void content_behind_the_flatbuffer_is_found(void)
{
    struct parse_file inside;
    struct parse_file behind;
    open_good(&inside, "conv_u8");
    open_good(&behind, "buffer_behind_the_flatbuffer");
    EXPECT_BYTES(behind.graph.value[1].data.data, inside.graph.value[1].data.data, 108);
    parse_file_close(&inside);
    parse_file_close(&behind);
}

static void tensors_of_one_buffer_share_one_copy(void)
{
    struct parse_file f;
    const uint8_t *data[2] = {NULL, NULL};
    open_good(&f, "shared_buffer");
    int found = 0;
    for (uint32_t i = 0; i < f.graph.value_count; i++) {
        if (f.graph.value[i].is_constant && f.graph.value[i].data.size == 16) {
            REQUIRE(found < 2);
            data[found++] = f.graph.value[i].data.data;
        }
    }
    EXPECT_INT(found, 2);
    EXPECT(data[0] == data[1]);
    parse_file_close(&f);
}

/* ---- damaged models ---- */

static void truncate_everywhere(const char *path, const char *name)
{
    struct ifd_bytes file;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_file_read(path, 1 << 20, ifd_alloc_system(), &file, &err), &err);
    for (size_t size = 0; size < file.size; size++) {
        enum ifd_code code = parse_bytes((struct ifd_bytes){.data = file.data, .size = size}, &err);
        /* the missing end may be padding or the archive: then only labels are lost */
        if (code != IFD_OK && code != IFD_CORRUPT) {
            printf("     %s cut to %zu bytes\n", name, size);
            EXPECT_CODE(code, IFD_CORRUPT, &err);
        }
    }
    release(file);
}

static void truncated_models_are_corrupt_wherever_they_end(void)
{
    parse_each_file(test_source(CORPUS), "good_", truncate_everywhere);
}

static void flip_bits(const char *path, const char *name)
{
    struct ifd_bytes file;
    struct ifd_err err = {0};
    struct test_random random = {.state = 1};
    (void)name;
    REQUIRE_OK(ifd_file_read(path, 1 << 20, ifd_alloc_system(), &file, &err), &err);
    uint8_t *bytes = (uint8_t *)file.data;
    for (int round = 0; round < 300; round++) {
        size_t at = (size_t)test_random_int(&random, 0, (long long)file.size - 1);
        uint8_t before = bytes[at];
        bytes[at] ^= (uint8_t)(1 << test_random_int(&random, 0, 7));
        enum ifd_code code = parse_bytes(file, &err);
        EXPECT(code != IFD_INTERNAL && code != IFD_INVALID && code != IFD_NOMEM);
        bytes[at] = before;
    }
    release(file);
}

static void flipped_bits_are_refused_or_make_another_good_model(void)
{
    parse_each_file(test_source(CORPUS), "good_", flip_bits);
}

static void a_file_in_odd_memory_is_read(void)
{
    struct ifd_bytes file = read_good("metadata_deflated");
    uint8_t *moved = ifd_acquire(ifd_alloc_system(), file.size + 1);
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_parsed parsed;
    struct ifd_err err = {0};
    REQUIRE(moved != NULL);
    memcpy(moved + 1, file.data, file.size);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    REQUIRE_OK(ifd_parse((struct ifd_bytes){.data = moved + 1, .size = file.size}, &parse_options,
                         &graph, &parsed, &err),
               &err);
    EXPECT_INT(parsed.output[0].label_count, 4);
    ifd_arena_finish(&arena);
    ifd_release(ifd_alloc_system(), moved, file.size + 1);
    release(file);
}

/* ---- limits and memory ---- */

static void expect_limit(const struct ifd_limits *limits, const char *model, const char *part)
{
    struct ifd_bytes file = read_good(model);
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_parsed parsed;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    const struct ifd_parse_options options = {.limits = limits};
    EXPECT_CODE(ifd_parse(file, &options, &graph, &parsed, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, part);
    ifd_arena_finish(&arena);
    release(file);
}

static void limits_are_named_when_they_are_exceeded(void)
{
    struct ifd_limits limits = parse_limits;
    limits.nodes = 2;
    expect_limit(&limits, "fully_connected_reshape_softmax", "3, limit 2");
    limits = parse_limits;
    limits.values = 6;
    expect_limit(&limits, "fully_connected_reshape_softmax", "tensors: 7, limit 6");
    limits = parse_limits;
    limits.node_inputs = 2;
    expect_limit(&limits, "concatenation", "operands of one operator: 3, limit 2");
    limits = parse_limits;
    limits.tensor_bytes = 127;
    expect_limit(&limits, "relu", "tensor \"x\" of f32 [1,4,4,2] has more than 127 bytes");
    limits = parse_limits;
    limits.tensor_bytes = 107;
    expect_limit(&limits, "conv_u8", "tensor 1 \"w\": u8 [4,3,3,3], limit 107 bytes");
}

static enum ifd_code parse_with(const struct ifd_alloc *alloc, struct ifd_bytes file,
                                struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_parsed parsed;
    ifd_arena_init(&arena, alloc, 0);
    ifd_graph_init(&graph, &arena);
    enum ifd_code code = ifd_parse(file, &parse_options, &graph, &parsed, err);
    ifd_arena_finish(&arena);
    return code;
}

static void every_failed_allocation_is_reported(void)
{
    static const char *const models[] = {"metadata_deflated", "shape_chain", "detection",
                                         "conv_s8_per_channel"};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct ifd_bytes file = read_good(models[i]);
        long k = 1;
        for (bool failed = true; failed; k++) {
            struct fail_alloc fail;
            struct ifd_err err = {0};
            fail_alloc_init(&fail, k);
            enum ifd_code code = parse_with(&fail.alloc, file, &err);
            failed = fail.failed;
            EXPECT_CODE(code, failed ? IFD_NOMEM : IFD_OK, &err);
            fail_alloc_finish(&fail);
        }
        EXPECT(k > 4);
        release(file);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_operator_is_accepted),
        T(options_and_quantization_arrive),
        T(constant_inputs_become_attributes),
        T(a_shape_computed_from_a_shape_becomes_an_attribute),
        T(squeeze_and_expand_dims_become_reshapes),
        T(detection_options_are_read_from_a_flexbuffer),
        T(an_input_with_content_is_a_constant),
        T(ports_have_names_labels_and_normalization),
        T(content_behind_the_flatbuffer_is_found),
        T(tensors_of_one_buffer_share_one_copy),
        T(truncated_models_are_corrupt_wherever_they_end),
        T(flipped_bits_are_refused_or_make_another_good_model),
        T(a_file_in_odd_memory_is_read),
        T(limits_are_named_when_they_are_exceeded),
        T(every_failed_allocation_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
