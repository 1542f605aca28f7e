/* Real models by others, and LiteRT's odd ones: each is accepted, or refused with one line that
 * says why.
 *
 * inferd accepts the models that LiteRT 2.3.0 accepts, except those with operators, types or
 * states that inferd lacks. */
#include <stdio.h>
#include <string.h>

#include "engine/ir/verify.h"
#include "tests/support/parse_file.h"
#include "tests/support/test.h"

struct expectation {
    const char *name;
    enum ifd_code code;
    const char *part; /* of the error, NULL if it is accepted */
};

static const struct expectation odd_models[] = {
    {"0_subgraphs.tflite", IFD_CORRUPT, "the model has no subgraph"},
    {"2_subgraphs.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"2_subgraphs_dont_delegate_name.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"add.tflite", IFD_OK, NULL},
    /* their middle tensors are declared f32 between 8-bit ones; LiteRT overwrites the type */
    {"add_quantized.tflite", IFD_OK, NULL},
    {"add_quantized_int8.tflite", IFD_OK, NULL},
    {"add_shared_tensors.tflite", IFD_CORRUPT, "output 0 \"input\" is an input of the model"},
    {"call_once_mul.tflite", IFD_OK, NULL},
    {"conv3d_huge_im2col.tflite", IFD_OK, NULL},
    {"conv_huge_im2col.tflite", IFD_OK, NULL},
    {"custom_lstm.tflite", IFD_OK, NULL},
    {"custom_sinh.tflite", IFD_UNSUPPORTED,
     "operator Sinh (version 1, node 0, outputs \"Identity\") is not supported"},
    {"double_flex.tflite", IFD_UNSUPPORTED, "operator FlexDouble"},
    {"dynamic_shapes.tflite", IFD_OK, NULL},
    {"empty_model.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"lstm.tflite", IFD_OK, NULL},
    {"multi_add.tflite", IFD_OK, NULL},
    {"multi_add_flex.tflite", IFD_UNSUPPORTED, "operator FlexAddV2"},
    {"multi_signatures.tflite", IFD_OK,
     NULL}, /* its first subgraph, as LiteRT without a signature's name */
    {"multi_subgraphs_while.tflite", IFD_OK, NULL},
    {"nested_while.tflite", IFD_OK, NULL},
    {"no_signatures.tflite", IFD_OK, NULL},
    {"no_signatures_no_tensor_names.tflite", IFD_OK, NULL},
    {"no_subgraphs.tflite", IFD_CORRUPT, "the model has no subgraph"},
    {"reverse_signature_model.tflite", IFD_OK, NULL},
    {"segment_sum_invalid_buffer.tflite", IFD_CORRUPT,
     "input 1 \"pyx/y\" is made by no operator before it"},
    {"softplus_flex.tflite", IFD_UNSUPPORTED, "operator FlexSoftplus"},
    {"sparse_tensor.tflite", IFD_UNSUPPORTED, "input \"sparse_tensor\" of the model is a constant"},
    {"string_input_model.tflite", IFD_UNSUPPORTED, "tensor \"input_52\" has type string"},
    {"string_input_model_with_signature.tflite", IFD_UNSUPPORTED, "has type string"},
    {"sub.tflite", IFD_OK, NULL},
    {"tensor_string_data_type.tflite", IFD_UNSUPPORTED, "tensor \"a\" has type string"},
    {"test_custom_node_with_init_data.tflite", IFD_UNSUPPORTED,
     "input \"b\" of the model is a constant"},
    {"test_min_runtime.tflite", IFD_OK, NULL},
    {"test_model.tflite", IFD_UNSUPPORTED, "input \"input0\" of the model is a constant"},
    {"test_model_broken.tflite", IFD_CORRUPT, "unknown model format"},
    {"test_model_redux_precision.tflite", IFD_OK, NULL},
    {"test_model_versioned_ops.tflite", IFD_UNSUPPORTED,
     "input \"input0\" of the model is a constant"},
    {"two_subgraphs.tflite", IFD_UNSUPPORTED, "the model has no outputs"},
    {"unidirectional_sequence_lstm.tflite", IFD_OK, NULL},
    {"while_op_with_forwarding_input.tflite", IFD_UNSUPPORTED,
     "tensor \"increment_value\" has type string"},
    {"with_metadata.tflite", IFD_UNSUPPORTED, "operator NPU_OP"},
    {"zero_size_constant.tflite", IFD_OK, NULL},
};

static const struct expectation *find(const struct expectation *list, size_t count,
                                      const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

static void check(const char *path, const char *name, enum ifd_code code, const char *part)
{
    struct parse_file f;
    parse_file_open(&f, path);
    if (f.code != code || (part && !strstr(f.err.text, part))) {
        printf("     %s\n", name);
    }
    EXPECT_CODE(f.code, code, &f.err);
    if (part) {
        EXPECT_HAS(f.err.text, part);
        EXPECT(strchr(f.err.text, '\n') == NULL);
    } else {
        EXPECT_CODE(ifd_graph_verify(&f.graph, IFD_INTERNAL, &f.err), IFD_OK, &f.err);
    }
    parse_file_close(&f);
}

static void check_model(const char *path, const char *name)
{
    check(path, name, IFD_OK, NULL);
}

static void check_odd(const char *path, const char *name)
{
    const struct expectation *e =
        find(odd_models, sizeof(odd_models) / sizeof(odd_models[0]), name);
    REQUIRE(e != NULL);
    check(path, name, e->code, e->part);
}

static void check_accepted(const char *path, const char *name)
{
    if (strstr(name, ".tflite")) {
        check(path, name, IFD_OK, NULL);
    }
}

static void models_are_accepted(void)
{
    parse_each_file(test_shared("models/tflite"), "", check_model);
}

static void odd_models_are_accepted_or_refused_in_one_line(void)
{
    parse_each_file(test_shared("models/odd_tflite"), "", check_odd);
}

static void int16_operator_models_are_accepted(void)
{
    static const char *const folders[] = {
        "add", "conv", "leaky_relu", "pad", "quantize", "strided_slice", "sub", "transpose_conv"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        char path[64];
        snprintf(path, sizeof(path), "golden/seanet_int16/%s", folders[i]);
        parse_each_file(test_shared(path), "", check_accepted);
    }
}

static void shapes_computed_from_shapes_are_known(void)
{
    struct parse_file f;
    parse_file_open(&f, test_shared("models/tflite/ultraface_rfb_320.tflite"));
    REQUIRE_OK(f.code, &f.err);
    for (uint32_t i = 0; i < f.graph.node_count; i++) {
        EXPECT(f.graph.node[i].op != IFD_OP_SHAPE && f.graph.node[i].op != IFD_OP_PACK);
    }
    /* the golden outputs have 4420 boxes; the file declares [1,1,4] */
    EXPECT_INT(f.graph.value[f.graph.output[0]].desc.shape.dim[1], 4420);
    parse_file_close(&f);
}

static void metadata_gives_normalization_and_labels(void)
{
    struct parse_file f;
    parse_file_open(&f, test_shared("models/tflite/mobilenet_v2_1.0_224_quant.tflite"));
    REQUIRE_OK(f.code, &f.err);
    EXPECT_TEXT(f.parsed.input[0].name, "input");
    EXPECT(f.parsed.input[0].has_normalization);
    EXPECT_INT(f.parsed.output[0].label_count, 1001);
    EXPECT_TEXT(f.parsed.output[0].labels[0], "background");
    EXPECT_TEXT(f.parsed.output[0].labels[286], "Egyptian cat");
    EXPECT_HAS(f.parsed.description, "image");
    parse_file_close(&f);
}

static void detections_have_their_outputs_and_labels(void)
{
    struct parse_file f;
    parse_file_open(&f, test_shared("models/tflite/coco_ssd_mobilenet_v1_1.0_quant.tflite"));
    REQUIRE_OK(f.code, &f.err);
    EXPECT_INT(f.graph.output_count, 4);
    EXPECT_INT(f.graph.value[f.graph.output[0]].desc.shape.dim[1], 10);
    EXPECT_TEXT(f.parsed.output[1].labels[0], "person");
    parse_file_close(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(models_are_accepted),
        T(odd_models_are_accepted_or_refused_in_one_line),
        T(int16_operator_models_are_accepted),
        T(shapes_computed_from_shapes_are_known),
        T(metadata_gives_normalization_and_labels),
        T(detections_have_their_outputs_and_labels),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
