#include "tests/conformance/one_node.h"

#include "engine/ir/shape.h"
#include "tests/support/test.h"

#include <string.h>

#define GUARD 0xA5

struct ifd_device *one_node_open(const struct ifd_backend *backend)
{
    static struct ifd_host host = {.bytes = sizeof(host), .op_def = ifd_op_def, .fail = ifd_fail};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    host.alloc = ifd_alloc_system();
    const enum ifd_code code = backend->open(&host, &device, &err);
    if (code == IFD_UNAVAILABLE) {
        test_skip(err.text);
    }
    REQUIRE_OK(code, &err);
    return device;
}

void one_node_init(struct one_node *node, const char *name, enum ifd_op op, const void *attrs)
{
    *node = (struct one_node){.view = {.node_count = 1}};
    ifd_text_store_init(&node->texts, ifd_alloc_system());
    node->node.view = (struct ifd_node_view){
        .name = name, .op = op, .attrs = attrs, .input = node->operand, .output = node->out_desc};
    node->node.input_value = node->input_value;
    node->node.output_value = node->output_value;
    node->view.node = &node->node;
    node->view.value = node->value;
}

void one_node_add_input(struct one_node *node, const struct ifd_desc *desc, const void *data,
                        bool is_constant)
{
    const uint32_t i = node->node.view.input_count++;
    REQUIRE(i < ONE_NODE_OPERANDS);
    node->input_value[i] = IFD_NO_VALUE;
    if (!desc) {
        return;
    }
    struct ifd_partition_value *value = &node->value[node->view.value_count];
    *value = (struct ifd_partition_value){.desc = *desc, .role = IFD_VALUE_INPUT};
    node->operand[i].desc = &value->desc;
    if (is_constant) {
        size_t bytes = 0;
        REQUIRE(ifd_desc_bytes(desc, &bytes));
        value->role = IFD_VALUE_CONSTANT;
        value->data = (struct ifd_bytes){data, bytes};
        node->operand[i].data = value->data;
    } else {
        value->slot = node->view.input_count++;
        node->input[value->slot] = data;
    }
    node->input_value[i] = node->view.value_count++;
}

void one_node_add_output(struct one_node *node, const struct ifd_desc *desc)
{
    const uint32_t i = node->node.view.output_count++;
    REQUIRE(i < ONE_NODE_OPERANDS && ifd_desc_bytes(desc, &node->output_bytes[i]));
    node->out_desc[i] = *desc;
    node->value[node->view.value_count] = (struct ifd_partition_value){
        .desc = *desc, .role = IFD_VALUE_OUTPUT, .slot = node->view.output_count++};
    node->output[i] = ifd_acquire_tensor(ifd_alloc_system(), node->output_bytes[i]);
    REQUIRE(node->output[i]);
    node->output_value[i] = node->view.value_count++;
}

/* ---- in host memory ---- */

static void run_on_host(struct one_node *node, const struct ifd_backend *backend,
                        const struct ifd_team *team, struct ifd_partition *partition,
                        size_t scratch_bytes)
{
    struct ifd_err err = {0};
    void *scratch = ifd_acquire_tensor(ifd_alloc_system(), scratch_bytes);
    REQUIRE(scratch);
    const struct ifd_binding binding = {.input = node->input,
                                        .output = (void *const *)node->output,
                                        .scratch = scratch,
                                        .team = team,
                                        .texts = &node->texts.base};
    EXPECT_CODE(backend->run(partition, &binding, &err), IFD_OK, &err);
    ifd_release_tensor(ifd_alloc_system(), scratch, scratch_bytes);
}

/* ---- in the device's memory ---- */

/* One tensor behind the other, each followed by its padding. */
static size_t place(size_t *end, size_t bytes)
{
    const size_t at = *end;
    REQUIRE(ifd_size_align(at + bytes + IFD_TENSOR_PAD, IFD_TENSOR_ALIGN, end));
    return at;
}

/* Bytes of an input slot. */
static size_t input_bytes(const struct one_node *node, uint32_t slot)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < node->view.value_count; i++) {
        const struct ifd_partition_value *value = &node->value[i];
        if (value->role == IFD_VALUE_INPUT && value->slot == slot) {
            REQUIRE(ifd_desc_bytes(&value->desc, &bytes));
        }
    }
    return bytes;
}

/* Fills the memory with bytes that are no number as floats, so that reading beside a tensor or
 * before something is written shows. */
static void poison(const struct ifd_memory_ops *ops, struct ifd_context *context, size_t bytes)
{
    struct ifd_err err = {0};
    void *image = ifd_acquire(ifd_alloc_system(), bytes);
    REQUIRE(image);
    memset(image, 0xff, bytes);
    REQUIRE_OK(ops->write(context, 0, image, bytes, &err), &err);
    ifd_release(ifd_alloc_system(), image, bytes);
}

static void queue_run(struct one_node *node, const struct ifd_memory_ops *ops,
                      struct ifd_context *context, struct ifd_bound *bound,
                      const struct ifd_places *places)
{
    struct ifd_err err = {0};
    uint64_t fence = 0;
    for (uint32_t i = 0; i < node->view.input_count; i++) {
        REQUIRE_OK(
            ops->write(context, places->input[i], node->input[i], input_bytes(node, i), &err),
            &err);
    }
    for (uint32_t i = 0; i < node->view.output_count; i++) { /* guards, too */
        REQUIRE_OK(ops->write(context, places->output[i], node->output[i],
                              node->output_bytes[i] + IFD_TENSOR_PAD, &err),
                   &err);
    }
    EXPECT_CODE(ops->submit(context, bound, NULL, &err), IFD_OK, &err);
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        REQUIRE_OK(ops->read(context, places->output[i], node->output[i],
                             node->output_bytes[i] + IFD_TENSOR_PAD, &fence, &err),
                   &err);
    }
    EXPECT_CODE(ops->wait(context, fence, &err), IFD_OK, &err);
}

static void run_on_device(struct one_node *node, const struct ifd_memory_ops *ops,
                          struct ifd_device *device, struct ifd_partition *partition,
                          size_t scratch_bytes)
{
    struct ifd_err err = {0};
    struct ifd_context *context = NULL;
    struct ifd_bound *bound = NULL;
    size_t input[ONE_NODE_OPERANDS], output[ONE_NODE_OPERANDS], end = 0;
    for (uint32_t i = 0; i < node->view.input_count; i++) {
        input[i] = place(&end, input_bytes(node, i));
    }
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        output[i] = place(&end, node->output_bytes[i]);
    }
    const struct ifd_places places = {
        .input = input, .output = output, .scratch = place(&end, scratch_bytes)};
    REQUIRE_OK(ops->context_create(device, end, &context, &err), &err);
    REQUIRE_OK(ops->bind(context, partition, &places, &bound, &err), &err);
    poison(ops, context, end);
    queue_run(node, ops, context, bound, &places);
    ops->unbind(context, bound);
    ops->context_destroy(context);
}

/* ---- both ---- */

static void run(struct one_node *node, const struct ifd_backend *backend, struct ifd_device *device,
                const struct ifd_team *team, struct ifd_partition *partition, size_t scratch_bytes)
{
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        memset(node->output[i], GUARD, node->output_bytes[i] + IFD_TENSOR_PAD);
    }
    if (backend->memory) {
        run_on_device(node, backend->memory, device, partition, scratch_bytes);
    } else {
        run_on_host(node, backend, team, partition, scratch_bytes);
    }
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        for (size_t k = 0; k < IFD_TENSOR_PAD; k++) {
            EXPECT_INT(node->output[i][node->output_bytes[i] + k], GUARD);
        }
    }
}

enum ifd_code one_node_run(struct one_node *node, const struct ifd_backend *backend,
                           struct ifd_device *device, const struct ifd_team *team, bool exact,
                           struct ifd_err *err)
{
    struct ifd_partition *partition = NULL;
    struct ifd_partition_info info = {0};
    node->view.max_threads = team->count;
    node->view.exact = exact;
    const enum ifd_code code = backend->compile(device, &node->view, NULL, &partition, &info, err);
    if (code == IFD_OK) {
        run(node, backend, device, team, partition, info.scratch_bytes);
    }
    backend->release(partition);
    return code;
}

void one_node_finish(struct one_node *node)
{
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        ifd_release_tensor(ifd_alloc_system(), node->output[i], node->output_bytes[i]);
    }
    ifd_text_store_finish(&node->texts);
}
