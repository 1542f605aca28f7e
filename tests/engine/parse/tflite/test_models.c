/* Real models by others are accepted. */
#include <stdio.h>
#include <string.h>

#include "engine/ir/verify.h"
#include "tests/support/parse_file.h"
#include "tests/support/test.h"

static void check_model(const char *path, const char *name)
{
    struct parse_file f;
    parse_file_open(&f, path);
    if (f.code != IFD_OK) {
        printf("     %s\n", name);
    }
    EXPECT_CODE(f.code, IFD_OK, &f.err);
    EXPECT_CODE(ifd_graph_verify(&f.graph, IFD_INTERNAL, &f.err), IFD_OK, &f.err);
    parse_file_close(&f);
}

static void check_accepted(const char *path, const char *name)
{
    if (strstr(name, ".tflite")) {
        check_model(path, name);
    }
}

static void models_are_accepted(void)
{
    parse_each_file(test_shared("models/tflite"), "", check_model);
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
        T(int16_operator_models_are_accepted),
        T(shapes_computed_from_shapes_are_known),
        T(metadata_gives_normalization_and_labels),
        T(detections_have_their_outputs_and_labels),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
