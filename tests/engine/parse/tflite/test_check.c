/* Every rule of the semantic check and of the rows of operators, each with a small model that
 * breaks it in one place (written by tests/fuzz/make_tflite.py). The FlatBuffers verifier
 * accepts all of them. */
#include <stdio.h>
#include <string.h>

#include "tests/support/parse_file.h"
#include "tests/support/test.h"

#define CORPUS "tests/fuzz/corpus/tflite"

static const struct expectation {
    const char *name;
    enum ifd_code code;
    const char *part;
} expectations[] = {
    {"activation", IFD_CORRUPT, "attribute \"activation\" is 77"},
    {"archive_checksum", IFD_CORRUPT, "metadata of \"s\": \"labels.txt\": archive: wrong checksum"},
    {"archive_labels_are_not_text", IFD_CORRUPT, "label file \"labels.txt\" is not text in UTF-8"},
    {"axis", IFD_CORRUPT, "axis 3 does not exist in shape [1,2,3]"},
    {"block_zero", IFD_CORRUPT, "attribute \"block\" is 0"},
    {"blocks_of_an_input", IFD_CORRUPT, "\"w\" is made by no operator before it"},
    {"blocks_of_few_scales", IFD_UNSUPPORTED, "are not 12 constant numbers of f16"},
    {"blocks_of_nothing", IFD_CORRUPT, "tensor \"w\" of [3,4] has blocks of 0"},
    {"blocks_of_unsigned", IFD_UNSUPPORTED, "\"w\" of type 20 has a quantization of blocks"},
    {"blocks_too_wide", IFD_CORRUPT, "tensor \"w\" of [3,4] has blocks of 3"},
    {"blocks_without_scales", IFD_UNSUPPORTED, "are not 6 constant numbers of f16"},
    {"bool_is_not_0_or_1", IFD_CORRUPT, "tensor 2 \"c\": bool 2 is 2"},
    {"buffer_in_two_places", IFD_CORRUPT, "buffer 1: 108 bytes at 64 of a file"},
    {"buffer_index", IFD_CORRUPT, "tensor 0 \"a\": buffer 12 of 1"},
    {"buffer_offset", IFD_CORRUPT, "buffer 1: 108 bytes at 1099511627776 of a file"},
    {"buffer_size", IFD_CORRUPT, "buffer 1: 18446744073709551584 bytes at 64 of a file"},
    {"buffers_overlap", IFD_CORRUPT, "buffers overlap: constants add up to more than the file"},
    {"buffer_too_short", IFD_CORRUPT, "tensor 1 \"w\": 107 bytes of content for u8 [4,3,3,3]"},
    {"call_index", IFD_CORRUPT, "subgraph 9 of 3"},
    {"call_itself", IFD_TOO_LARGE, "operator CALL (version 1, node 0"},
    {"call_operands", IFD_CORRUPT, "subgraph 1 has 1 inputs and 1 outputs, expected 2 and 1"},
    {"custom_name_of_two_lines", IFD_CORRUPT, "operator code 0: its name is not plain text"},
    {"custom_options", IFD_CORRUPT, "bytes of options are no FlexBuffer map"},
    {"custom_options_missing_key", IFD_CORRUPT, "option \"max_classes_per_detection\" is missing"},
    {"custom_quantization", IFD_UNSUPPORTED, "tensor \"x\" has a custom quantization"},
    {"custom_unknown", IFD_UNSUPPORTED,
     "operator Sinh (version 1, node 0, outputs \"boxes_out\", \"classes\", "},
    {"cut_behind_tables_of_a_call", IFD_UNSUPPORTED,
     "the size of its result depends on data, behind tables of a subgraph"},
    {"cycle", IFD_CORRUPT, "node 0 (ADD): input 1 \"y\" is made by no operator before it"},
    {"dilation_negative", IFD_CORRUPT, "attribute \"dilation_h\" is -1"},
    {"dimension_negative", IFD_CORRUPT, "tensor 0 \"a\": dimension 1 is -4"},
    {"filter_depth", IFD_CORRUPT, "CONV_2D (node 0, output \"y\"): conv2d: filter [6,3,3,2]"},
    {"filter_zero", IFD_CORRUPT, "attribute \"filter_h\" is 0"},
    {"format_version", IFD_UNSUPPORTED, "TFLite format version 4, expected 3"},
    {"graph_input_index", IFD_CORRUPT, "input 1 of the model is tensor 99 of 3"},
    {"graph_input_twice", IFD_CORRUPT, "input 2 \"a\" of the model is listed twice"},
    {"graph_output_index", IFD_CORRUPT, "output 0 of the model is tensor 99 of 3"},
    {"graph_output_made_by_nothing", IFD_CORRUPT,
     "output 0 \"z\" of the model is made by no operator"},
    {"hashtable_keys", IFD_UNSUPPORTED, "2 keys of str and 3 values"},
    {"hashtable_of_no_handle", IFD_UNSUPPORTED, "input 0 is no handle that the file decides"},
    {"hlo_case_of_nothing", IFD_CORRUPT, "2 inputs, 0 branches"},
    {"hlo_clamp_by_a_row", IFD_UNSUPPORTED, "input 2 of f32 [6] beside f32 [2,3]"},
    {"hlo_gather_indices", IFD_CORRUPT, "indices [2,1], whose dimension -1 names 1 others"},
    {"hlo_gather_of_a_dimension_twice", IFD_CORRUPT, "windows that do not fit [3,4]"},
    {"hlo_gather_of_many_rows", IFD_TOO_LARGE, "windows of more than 16777216 rows"},
    {"hlo_gather_of_too_much", IFD_CORRUPT, "windows that do not fit [3,4]"},
    {"hlo_pad_of_too_much", IFD_CORRUPT, "a padding of 9223372036854775807 and 0 for dimension 0"},
    {"hlo_pad_to_nothing", IFD_CORRUPT, "a padding of -9 and 0 for dimension 0 of [3,3]"},
    {"hlo_reduce_window_body", IFD_UNSUPPORTED, "a body of more than one operator"},
    {"hlo_scatter_body", IFD_CORRUPT, "subgraph 7 of 2"},
    {"hlo_scatter_dimension", IFD_CORRUPT, "windows [2,2] that do not fit [3,4]"},
    {"hlo_scatter_order", IFD_CORRUPT, "dimensions of windows that do not rise"},
    {"if_condition", IFD_CORRUPT, "node 0, outputs \"y\"): no condition"},
    {"input_absent", IFD_CORRUPT, "input 1 is missing"},
    {"input_count", IFD_CORRUPT, "3 inputs, expected 2"},
    {"input_index", IFD_CORRUPT, "node 0 (ADD): input 1 is tensor 99 of 3"},
    {"input_index_negative", IFD_CORRUPT, "node 0 (ADD): input 1 is tensor -2 of 3"},
    {"input_empty_and_too_large", IFD_TOO_LARGE,
     "tensor \"a\" of f32 [65536,0,65536] has more than 2147483647 bytes"},
    {"input_too_large", IFD_TOO_LARGE,
     "tensor \"a\" of f32 [65536,65536] has more than 2147483647 bytes"},
    {"intermediate_index", IFD_CORRUPT, "intermediate 1 is tensor 99 of 3"},
    {"lstm_bias_of_no_gate", IFD_CORRUPT, "lstm: input 9 of an absent input gate"},
    {"lstm_bias_of_no_projection", IFD_CORRUPT, "lstm: a bias of no projection"},
    {"metadata_buffer", IFD_CORRUPT, "metadata \"TFLITE_METADATA\": buffer 42 of 1"},
    {"metadata_damaged", IFD_CORRUPT, "the metadata of 32 bytes is damaged"},
    {"metadata_normalization", IFD_CORRUPT, "metadata of \"x\": mean 1, deviation 0"},
    {"name_not_utf8", IFD_CORRUPT, "tensor 0: its name is not plain text"},
    {"name_of_two_lines", IFD_CORRUPT, "tensor 2: its name is not plain text"},
    {"no_outputs", IFD_UNSUPPORTED, "the model has no outputs"},
    {"no_subgraph", IFD_CORRUPT, "the model has no subgraph"},
    {"one_tensor_listed_often", IFD_TOO_LARGE, "lists the same content more than 4 times"},
    {"opcode_hash", IFD_UNSUPPORTED, "is not supported: its hash of bytes is that of one library"},
    {"opcode_index", IFD_CORRUPT, "node 0 has operator code 7 of 1"},
    {"opcode_random", IFD_UNSUPPORTED,
     "operator RANDOM_UNIFORM (version 1, node 0, outputs \"y\") is not supported: each run of it "
     "has other results"},
    {"opcode_unknown", IFD_UNSUPPORTED,
     "operator SKIP_GRAM (version 1, node 0, outputs \"y\") is not supported"},
    {"opcode_version_negative", IFD_CORRUPT, "operator code 0: operator 0, version -1"},
    {"opcode_version_new", IFD_UNSUPPORTED,
     "operator ADD (version 99, node 0, outputs \"y\") is newer than version 6"},
    {"options_of_another_operator", IFD_CORRUPT, "options of type 17, expected 11"},
    {"order", IFD_CORRUPT, "node 0 (DEQUANTIZE): input 0 \"q\" is made by no operator before it"},
    {"output_count", IFD_CORRUPT, "no outputs"},
    {"output_index", IFD_CORRUPT, "node 0 (ADD): output 0 is tensor -1 of 3"},
    {"output_is_a_constant", IFD_CORRUPT, "output 0 \"c\" is a constant"},
    {"output_is_the_input", IFD_CORRUPT, "output 0 \"a\" is an input of the model"},
    {"pack_count", IFD_CORRUPT, "2 inputs, its options say 3"},
    {"pad_negative", IFD_CORRUPT, "attribute \"before\" is -1"},
    {"padding", IFD_CORRUPT, "padding is 2"},
    {"perm_duplicate", IFD_CORRUPT, "axis 1 appears twice"},
    {"rank", IFD_UNSUPPORTED, "tensor \"a\" has more than 8 dimensions"},
    {"reduce_window_outside", IFD_UNSUPPORTED, "a window of 9 in dimension 0 of [3,4]"},
    {"reshape_elements", IFD_CORRUPT, "RESHAPE (node 1, output \"r\")"},
    {"resize_to_nothing", IFD_CORRUPT, "attribute \"height\" is 0"},
    {"scale_axis", IFD_CORRUPT, "tensor 1 \"w\": 4 scales along dimension 4 of 4"},
    {"scale_count", IFD_CORRUPT, "tensor 1 \"w\": 3 scales along dimension 0 of 4"},
    {"scale_infinite", IFD_CORRUPT,
     "tensor 0 \"x\": scale 0 is inf, expected a finite number from 0"},
    {"scale_negative", IFD_CORRUPT,
     "tensor 1 \"w\": scale 0 is -0.1, expected a finite number from 0"},
    {"shape_overflow", IFD_CORRUPT,
     "12 bytes of content for f32 [2147483647,2147483647,2147483647,3]"},
    {"signature_rank", IFD_CORRUPT, "tensor 0 \"a\": shape has 4 dimensions, its signature 2"},
    {"signature_subgraph", IFD_CORRUPT, "signature 0 \"serve\": subgraph 1 of 1"},
    {"signature_tensor", IFD_CORRUPT, "signature 0: \"in\" is tensor 99 of 7"},
    {"slice_outside", IFD_CORRUPT, "SLICE (node 0, output \"y\")"},
    {"sparse", IFD_CORRUPT, "sparse tensor \"c\": its dimensions do not fit its shape"},
    {"sparse_block", IFD_CORRUPT, "sparse tensor \"w\": its dimensions do not fit its shape"},
    {"sparse_content", IFD_CORRUPT, "sparse tensor \"w\": its indices do not fit its shape"},
    {"sparse_index", IFD_CORRUPT, "sparse tensor \"w\": its indices do not fit its shape"},
    {"sparse_segments", IFD_CORRUPT, "sparse tensor \"w\": its indices do not fit its shape"},
    {"split_count", IFD_CORRUPT, "3 outputs, its options say 2"},
    {"step_zero", IFD_CORRUPT, "STRIDED_SLICE (node 0, output \"y\")"},
    {"stride_zero", IFD_CORRUPT, "attribute \"stride_w\" is 0"},
    {"subgraph_output", IFD_CORRUPT, "subgraph 1: output 0 of the model is tensor 7 of 2"},
    {"text_outside", IFD_CORRUPT, "tensor \"keys\": text 1 lies outside"},
    {"two_inputs_of_one_name", IFD_UNSUPPORTED, "inputs 0 and 1 of the model share the name \"a\""},
    {"two_producers", IFD_CORRUPT, "node 1 (UNPACK): output 0 \"p\" is another operator's output"},
    {"type_string", IFD_UNSUPPORTED, "input 0 of type str is not supported"},
    {"type_string_of_a_constant", IFD_CORRUPT, "tensor \"c\" is no list of"},
    {"type_unknown", IFD_UNSUPPORTED, "tensor \"a\" has type 13"},
    {"variable_never_assigned", IFD_UNSUPPORTED, "variable \"v\" is read before anything is"},
    {"variable_of_no_handle", IFD_UNSUPPORTED, "input 0 is no handle that the file decides"},
    {"while_condition", IFD_CORRUPT, "a condition of type s32, expected bool"},
    {"zero_point_count", IFD_CORRUPT, "tensor 1 \"w\": 4 scales and 3 zero points"},
    {"zero_point_range", IFD_CORRUPT, "tensor 0 \"x\": zero point 0 is 256"},
};

static void check_bad(const char *path, const char *name)
{
    for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
        const struct expectation *e = &expectations[i];
        if (strncmp(name + strlen("bad_"), e->name, strlen(e->name)) != 0 ||
            strcmp(name + strlen("bad_") + strlen(e->name), ".tflite") != 0) {
            continue;
        }
        struct parse_file f;
        parse_file_open(&f, path);
        EXPECT_CODE(f.code, e->code, &f.err);
        EXPECT_INT(f.err.code, e->code);
        EXPECT_HAS(f.err.text, e->part);
        parse_file_close(&f);
        return;
    }
    printf("     %s\n", name);
    EXPECT(false && "no expectation for this file");
}

static void broken_models_are_refused_with_what_is_broken(void)
{
    parse_each_file(test_source(CORPUS), "bad_", check_bad);
}

static void every_expectation_has_its_model(void)
{
    for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
        char path[256];
        struct parse_file f;
        snprintf(path, sizeof(path), CORPUS "/bad_%s.tflite", expectations[i].name);
        parse_file_open(&f, test_source(path));
        parse_file_close(&f);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(broken_models_are_refused_with_what_is_broken),
        T(every_expectation_has_its_model),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
