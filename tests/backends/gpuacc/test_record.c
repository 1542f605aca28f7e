/* On a device that has cl_khr_command_buffer, as PoCL: are a partition's kernels really put into
 * the queue as one? Counts what is called. */
#include "backends/gpuacc/device.h"
#include "backends/gpuacc/gpuacc.h"
#include "engine/engine.h"
#include "tests/support/model.h"

#include <string.h>

enum { LAYERS = 5, WIDTH = 8, RUNS = 3 };

/* The driver's functions, and how often each is called; a test's thread at a time. */
static struct {
    clEnqueueCommandBufferKHR_fn enqueue;
    __typeof__(((struct ifd_cl *)NULL)->EnqueueNDRangeKernel) launch;
    unsigned enqueued, launched;
} driver;

static cl_int CL_API_CALL enqueue(cl_uint queue_count, cl_command_queue *queues,
                                  cl_command_buffer_khr buffer, cl_uint waits, const cl_event *wait,
                                  cl_event *event)
{
    driver.enqueued++;
    return driver.enqueue(queue_count, queues, buffer, waits, wait, event);
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                 const size_t *offset, const size_t *items, const size_t *group,
                                 cl_uint waits, const cl_event *wait, cl_event *event)
{
    driver.launched++;
    return driver.launch(queue, kernel, dimensions, offset, items, group, waits, wait, event);
}

static bool has_extension(const struct ifd_device *device)
{
    char text[16384] = "";
    REQUIRE(device->cl.GetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, sizeof(text) - 1, text,
                                     NULL) == CL_SUCCESS);
    return strstr(text, "cl_khr_command_buffer") != NULL;
}

/* Layers that nothing fuses: their weights are not those of one tail. */
static uint32_t dense(struct ifd_graph *g, uint32_t in)
{
    static float content[WIDTH * WIDTH];
    for (size_t i = 0; i < WIDTH * WIDTH; i++) {
        content[i] = (float)(i % 5) / 8 - 0.25f;
    }
    const uint32_t operand[] = {in,
                                test_graph_constant(g, "weights", SHAPE(WIDTH, WIDTH), content)};
    const uint32_t out = test_graph_f32(g, "y", SHAPE(0));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_FULLY_CONNECTED, operand, 2, &out, 1, &node, NULL),
               NULL);
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, NULL), NULL);
    return out;
}

/* Runs the layers with this option. */
static void run_layers(const char *option, bool *ret_has)
{
    const struct test_run_options options = {
        .backend = &ifd_backend_gpuacc,
        .engine = {.backend_options = &option, .backend_option_count = 1},
        .model = {.no_optimize = true}};
    struct test_run t = test_run_open_device(&options);
    struct ifd_device *device = t.engine->registry.slot[0].device;
    float want[WIDTH];
    *ret_has = has_extension(device);
    driver.enqueue = device->recording.enqueue;
    driver.launch = device->cl.EnqueueNDRangeKernel;
    driver.enqueued = driver.launched = 0;
    device->recording.enqueue = driver.enqueue ? enqueue : NULL;
    device->cl.EnqueueNDRangeKernel = launch;
    struct ifd_graph *g = &t.model->graph;
    const uint32_t in = test_graph_f32(g, "x", SHAPE(1, WIDTH));
    uint32_t value = in;
    for (int i = 0; i < LAYERS; i++) {
        value = dense(g, value);
    }
    test_graph_io(g, in, value);
    test_run_input(&t, 0);
    for (size_t i = 0; i < WIDTH; i++) {
        ((float *)t.in.data)[i] = (float)i - 3;
    }
    test_graph_interpret(g, (const void *[]){t.in.data}, (void *[]){want});
    test_run_plan(&t, 0);
    for (int i = 0; i < RUNS; i++) {
        test_run_once(&t);
        for (size_t k = 0; k < WIDTH; k++) {
            EXPECT_CLOSE(((const float *)t.out[0].data)[k], want[k], 1e-5);
        }
    }
    test_run_close(&t);
}

static void a_partition_is_one_command_where_the_device_records(void)
{
    bool has = false;
    run_layers("GpuAcc:record=always", &has);
    EXPECT_INT(driver.enqueued, has ? RUNS : 0);
    EXPECT_INT(driver.launched, has ? 0 : RUNS * LAYERS);
}

static void a_partition_is_launched_kernel_by_kernel_if_told(void)
{
    bool has = false;
    run_layers("GpuAcc:record=never", &has);
    EXPECT_INT(driver.enqueued, 0);
    EXPECT_INT(driver.launched, RUNS * LAYERS);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_partition_is_one_command_where_the_device_records),
        T(a_partition_is_launched_kernel_by_kernel_if_told),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
