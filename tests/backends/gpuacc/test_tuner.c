/* What the tuner learns, keeps and finds again. */
#include "backends/gpuacc/gpuacc.h"
#include "backends/gpuacc/partition.h"
#include "engine/base/file.h"
#include "inferd/op_attrs.h"
#include "tests/conformance/one_node.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 4096
#define DIRECT     "conv2d 1x4 0x0x0 0"
#define SLIM       "conv2d_slim 1x4 1x4x32 4"

/* What a start with these options does with a layer of 64 inputs and 8 outputs. */
struct start {
    enum ifd_gpu_kernel kernel; /* that it takes */
    int measured;               /* ways */
};

static void count_measurements(void *context, const char *text)
{
    int *count = context;
    *count += strstr(text, " takes ") != NULL;
}

static struct ifd_device *open_device(const char *level, const char *file, int *measured)
{
    static struct ifd_host host;
    static struct ifd_backend_option option[2];
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    option[0] = (struct ifd_backend_option){"tuning", level};
    option[1] = (struct ifd_backend_option){"tuning-file", file};
    host = (struct ifd_host){.bytes = sizeof(host),
                             .alloc = ifd_alloc_system(),
                             .op_def = ifd_op_def,
                             .fail = ifd_fail,
                             .debug = count_measurements,
                             .debug_context = measured,
                             .option = option,
                             .option_count = file ? 2 : 1};
    const enum ifd_code code = ifd_backend_gpuacc.open(&host, &device, &err);
    if (code == IFD_UNAVAILABLE) {
        test_skip(err.text);
    }
    REQUIRE_OK(code, &err);
    return device;
}

static void make_node(struct one_node *node, const struct ifd_fully_connected_attrs *attrs)
{
    static _Alignas(64) float ones[8 * 64];
    static const struct ifd_desc input = {.dtype = IFD_F32, .shape = {2, {1, 64}}};
    static const struct ifd_desc weights = {.dtype = IFD_F32, .shape = {2, {8, 64}}};
    static const struct ifd_desc output = {.dtype = IFD_F32, .shape = {2, {1, 8}}};
    one_node_init(node, "layer", IFD_OP_FULLY_CONNECTED, attrs);
    one_node_add_input(node, &input, ones, false);
    one_node_add_input(node, &weights, ones, true);
    one_node_add_output(node, &output);
}

static struct start start(const char *level, const char *file)
{
    static struct one_node node; /* large */
    const struct ifd_fully_connected_attrs attrs = {.activation = IFD_ACT_NONE};
    struct start start = {.measured = 0};
    struct ifd_device *device = open_device(level, file, &start.measured);
    struct ifd_partition *partition = NULL;
    struct ifd_partition_info info = {0};
    struct ifd_err err = {0};
    make_node(&node, &attrs);
    REQUIRE_OK(ifd_backend_gpuacc.compile(device, &node.view, NULL, &partition, &info, &err), &err);
    start.kernel = partition->step[0].kernel;
    ifd_backend_gpuacc.release(partition);
    ifd_backend_gpuacc.close(device);
    one_node_finish(&node);
    return start;
}

static const char *file_path(void)
{
    return folder_at("tuning");
}

static void read_text(char ret[FILE_BYTES])
{
    struct ifd_bytes content = {NULL, 0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_file_read(file_path(), FILE_BYTES - 1, ifd_alloc_system(), &content, &err),
               &err);
    memcpy(ret, content.data, content.size);
    ret[content.size] = '\0';
    ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)content.data, content.size);
}

static void write_text(const char *text)
{
    struct ifd_err err = {0};
    const struct ifd_bytes content = {(const uint8_t *)text, strlen(text)};
    REQUIRE_OK(ifd_file_write(file_path(), content, &err), &err);
}

/* Replaces the way of the only lesson. */
static void teach(const char *way)
{
    char text[FILE_BYTES];
    read_text(text);
    char *found = strstr(text, " = ");
    REQUIRE(found);
    (void)snprintf(found, (size_t)(text + FILE_BYTES - found), " = %s\n", way);
    write_text(text);
}

static void higher_levels_measure_more(void)
{
    const int none = start("0", NULL).measured, few = start("1", NULL).measured;
    const int more = start("2", NULL).measured, all = start("3", NULL).measured;
    EXPECT_INT(none, 0);
    EXPECT_INT(few, 4);
    EXPECT_INT(more, 12);
    EXPECT(all > more);
}

static void what_was_learned_is_used_again_and_not_measured(void)
{
    folder_begin();
    const struct start first = start("1", file_path()), second = start("1", file_path());
    EXPECT_INT(first.measured, 4);
    EXPECT_INT(second.measured, 0);
    EXPECT_INT(second.kernel, first.kernel);
    /* without a level, too, and whatever the lesson says */
    teach(SLIM);
    EXPECT_INT(start("0", file_path()).kernel, IFD_GPU_conv2d_slim);
    teach(DIRECT);
    EXPECT_INT(start("3", file_path()).kernel, IFD_GPU_conv2d);
    REQUIRE(unlink(file_path()) == 0);
    EXPECT_INT(start("1", file_path()).measured, 4);
    REQUIRE(unlink(file_path()) == 0);
    folder_end();
}

static void a_file_of_another_device_is_ignored_and_replaced(void)
{
    folder_begin();
    char text[FILE_BYTES], mine[FILE_BYTES];
    (void)start("1", file_path());
    read_text(mine);
    memcpy(text, mine, sizeof(text));
    char *key = strchr(text, ' ') + 1; /* of device, driver and kernels */
    *key = *key == '0' ? '1' : '0';
    write_text(text);
    EXPECT_INT(start("0", file_path()).measured, 0);
    EXPECT_INT(start("1", file_path()).measured, 4);
    read_text(text);
    EXPECT(strncmp(text, mine, strcspn(mine, "\n")) == 0);
    REQUIRE(unlink(file_path()) == 0);
    folder_end();
}

static void damaged_files_teach_nothing(void)
{
    static const char *const ways[] = {"", "no_such_kernel 1x4 0x0x0 0", "conv2d 3x4 0x0x0 0"};
    folder_begin();
    char text[FILE_BYTES];
    (void)start("1", file_path());
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        teach(ways[i]);
        EXPECT_INT(start("1", file_path()).measured, 4);
    }
    read_text(text);
    text[strlen(text) / 2] = '\0';
    write_text(text);
    EXPECT_INT(start("1", file_path()).measured, 4);
    write_text("");
    EXPECT_INT(start("1", file_path()).measured, 4);
    REQUIRE(unlink(file_path()) == 0);
    folder_end();
}

static void a_file_that_cannot_be_written_is_no_error(void)
{
    EXPECT_INT(start("1", "/there/is/none").measured, 4);
}

static void levels_are_numbers_from_0_to_3(void)
{
    static const char *const wrong[] = {"", "4", "-1", "10", "x"};
    struct ifd_host host = {.bytes = sizeof(host), .alloc = ifd_alloc_system()};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct ifd_backend_option option = {"tuning", wrong[i]};
        struct ifd_device *device = NULL;
        struct ifd_err err = {0};
        host.option = &option;
        host.option_count = 1;
        EXPECT_CODE(ifd_backend_gpuacc.open(&host, &device, &err), IFD_INVALID, &err);
        EXPECT(strstr(err.text, "expected 0 to 3") != NULL);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(higher_levels_measure_more),
        T(what_was_learned_is_used_again_and_not_measured),
        T(a_file_of_another_device_is_ignored_and_replaced),
        T(damaged_files_teach_nothing),
        T(a_file_that_cannot_be_written_is_no_error),
        T(levels_are_numbers_from_0_to_3),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
