/* A queue in host memory that works when it is waited for. */
#include "tests/support/fake_device.h"

#include "tests/support/fake_backend.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define COMMANDS_MAX 1024
#define SLOTS_MAX    512

struct fake_device_state fake_device_state;

struct ifd_bound {
    struct ifd_partition *partition;
    size_t input[SLOTS_MAX], output[SLOTS_MAX], scratch;
};

struct command {
    struct ifd_bound *bound; /* NULL: a copy */
    uint64_t *step_ns;
    void *to;
    const void *from;
    void *staged; /* NULL, or from: a copy that the queue owns */
    size_t bytes;
};

struct ifd_context {
    uint8_t *memory;
    size_t bytes;
    struct command command[COMMANDS_MAX];
    uint32_t done, count;
    uint64_t base; /* commands before command[0] */
    bool is_dead;
};

void fake_device_takes_all(uint32_t cost_ns)
{
    static const enum ifd_op ops[] = {IFD_OP_ADD, IFD_OP_SUB, IFD_OP_ABS, IFD_OP_RELU, IFD_OP_TANH};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        fake_device_state.cost_ns[0][ops[i]] = cost_ns;
    }
}

static uint32_t cost_on(uint32_t number, struct ifd_device *device,
                        const struct ifd_node_view *node, struct ifd_err *reason)
{
    const uint32_t cost = fake_device_state.cost_ns[number][node->op];
    if (cost == 0) {
        ifd_fail(reason, IFD_UNSUPPORTED, "no kernel for %s", ifd_op_def(node->op)->name);
        return 0;
    }
    return fake_backend.cost(device, node, reason) > 0 ? cost : 0;
}

static uint32_t cost_on_dev(struct ifd_device *device, const struct ifd_node_view *node,
                            struct ifd_err *reason)
{
    return cost_on(0, device, node, reason);
}

static uint32_t cost_on_dev2(struct ifd_device *device, const struct ifd_node_view *node,
                             struct ifd_err *reason)
{
    return cost_on(1, device, node, reason);
}

static uint64_t device_transfer_ns(struct ifd_device *device, size_t bytes)
{
    (void)device;
    (void)bytes;
    return fake_device_state.transfer_ns;
}

/* ---- failures on demand ---- */

static enum ifd_code check(struct ifd_context *context, const char *what, struct ifd_err *err)
{
    struct fake_device_state *state = &fake_device_state;
    state->calls++;
    const bool fails_now =
        atomic_load(&state->fails_at) > 0 && atomic_fetch_sub(&state->fails_at, 1) == 1;
    if (fails_now && context) {
        context->is_dead = state->fails_with == IFD_UNAVAILABLE;
    }
    if (fails_now || (context && context->is_dead)) {
        return ifd_fail(err, state->fails_with, "%s failed on demand", what);
    }
    return IFD_OK;
}

/* ---- contexts ---- */

static enum ifd_code context_create(struct ifd_device *device, size_t bytes,
                                    struct ifd_context **ret_context, struct ifd_err *err)
{
    (void)device;
    const enum ifd_code code = check(NULL, "context_create", err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_context *context = calloc(1, sizeof(*context));
    void *memory = NULL;
    REQUIRE(context && posix_memalign(&memory, IFD_TENSOR_ALIGN, bytes + IFD_TENSOR_PAD) == 0);
    memset(memory, 0xa5, bytes + IFD_TENSOR_PAD);
    context->memory = memory;
    context->bytes = bytes;
    fake_device_state.contexts++;
    *ret_context = context;
    return IFD_OK;
}

static void drop_queue(struct ifd_context *context)
{
    for (uint32_t i = context->done; i < context->count; i++) {
        free(context->command[i].staged);
    }
    context->done = context->count;
}

static void context_destroy(struct ifd_context *context)
{
    if (context) {
        drop_queue(context);
        free(context->memory);
        free(context);
        fake_device_state.contexts--;
    }
}

static enum ifd_code bind(struct ifd_context *context, struct ifd_partition *partition,
                          const struct ifd_places *places, struct ifd_bound **ret_bound,
                          struct ifd_err *err)
{
    const enum ifd_code code = check(context, "bind", err);
    if (code != IFD_OK) {
        return code;
    }
    uint32_t inputs = 0, outputs = 0;
    fake_partition_slots(partition, &inputs, &outputs);
    REQUIRE(inputs <= SLOTS_MAX && outputs <= SLOTS_MAX);
    struct ifd_bound *bound = calloc(1, sizeof(*bound));
    REQUIRE(bound);
    bound->partition = partition;
    bound->scratch = places->scratch;
    memcpy(bound->input, places->input, inputs * sizeof(size_t));
    memcpy(bound->output, places->output, outputs * sizeof(size_t));
    fake_device_state.bound++;
    *ret_bound = bound;
    return IFD_OK;
}

static void unbind(struct ifd_context *context, struct ifd_bound *bound)
{
    (void)context;
    if (bound) {
        free(bound);
        fake_device_state.bound--;
    }
}

/* ---- the queue ---- */

static uint64_t put(struct ifd_context *context, struct command command)
{
    if (context->done == context->count) {
        context->base += context->count;
        context->done = context->count = 0;
    }
    REQUIRE(context->count < COMMANDS_MAX);
    context->command[context->count++] = command;
    return context->base + context->count;
}

static enum ifd_code device_write(struct ifd_context *context, size_t offset, const void *from,
                                  size_t bytes, struct ifd_err *err)
{
    const enum ifd_code code = check(context, "write", err);
    if (code != IFD_OK) {
        return code;
    }
    REQUIRE(offset % IFD_TENSOR_ALIGN == 0 && offset + bytes <= context->bytes);
    void *staged = malloc(bytes + 1);
    REQUIRE(staged);
    memcpy(staged, from, bytes);
    fake_device_state.writes++;
    put(context,
        (struct command){
            .to = context->memory + offset, .from = staged, .staged = staged, .bytes = bytes});
    return IFD_OK;
}

static enum ifd_code device_submit(struct ifd_context *context, struct ifd_bound *bound,
                                   uint64_t *step_ns, struct ifd_err *err)
{
    const enum ifd_code code = check(context, "submit", err);
    if (code == IFD_OK) {
        fake_device_state.submits++;
        put(context, (struct command){.bound = bound, .step_ns = step_ns});
    }
    return code;
}

static enum ifd_code device_read(struct ifd_context *context, size_t offset, void *to, size_t bytes,
                                 uint64_t *ret_fence, struct ifd_err *err)
{
    const enum ifd_code code = check(context, "read", err);
    if (code == IFD_OK) {
        REQUIRE(offset % IFD_TENSOR_ALIGN == 0 && offset + bytes <= context->bytes);
        fake_device_state.reads++;
        *ret_fence = put(
            context, (struct command){.to = to, .from = context->memory + offset, .bytes = bytes});
    }
    return code;
}

static void run_alone(const struct ifd_team *team, ifd_team_fn fn, void *arg)
{
    (void)team;
    fn(arg, 0, 1);
}

static enum ifd_code compute(struct ifd_context *context, const struct command *command,
                             struct ifd_err *err)
{
    static const struct ifd_team team = {.count = 1, .run = run_alone};
    const struct ifd_bound *bound = command->bound;
    const void *input[SLOTS_MAX];
    void *output[SLOTS_MAX];
    uint32_t inputs = 0, outputs = 0;
    fake_partition_slots(bound->partition, &inputs, &outputs);
    for (uint32_t i = 0; i < inputs; i++) {
        input[i] = context->memory + bound->input[i];
    }
    for (uint32_t i = 0; i < outputs; i++) {
        output[i] = context->memory + bound->output[i];
    }
    const struct ifd_binding binding = {.input = input,
                                        .output = output,
                                        .scratch = context->memory + bound->scratch,
                                        .team = &team,
                                        .step_ns = command->step_ns};
    return fake_backend.run(bound->partition, &binding, err);
}

static enum ifd_code device_wait(struct ifd_context *context, uint64_t fence, struct ifd_err *err)
{
    enum ifd_code code = check(context, "wait", err);
    fake_device_state.waits++;
    for (;
         code == IFD_OK && context->done < context->count && context->base + context->done < fence;
         context->done++) {
        struct command *command = &context->command[context->done];
        if (command->bound) {
            code = compute(context, command, err);
        } else {
            memcpy(command->to, command->from, command->bytes);
        }
        free(command->staged);
        command->staged = NULL;
    }
    if (code != IFD_OK) {
        drop_queue(context);
    }
    return code;
}

/* ---- descriptors ---- */

static const struct ifd_memory_ops memory_ops = {
    .bytes = sizeof(struct ifd_memory_ops),
    .kind = "dev",
    .transfer_ns = device_transfer_ns,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .bind = bind,
    .unbind = unbind,
    .write = device_write,
    .submit = device_submit,
    .read = device_read,
    .wait = device_wait,
};

static enum ifd_code device_open(const struct ifd_host *host, struct ifd_device **ret_device,
                                 struct ifd_err *err)
{
    return fake_backend.open(host, ret_device, err);
}

static enum ifd_code device_compile(struct ifd_device *device,
                                    const struct ifd_partition_view *view,
                                    struct ifd_partition *share_with,
                                    struct ifd_partition **ret_partition,
                                    struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    fake_device_state.may_release |= view->release_constant != NULL;
    const enum ifd_code code =
        fake_backend.compile(device, view, share_with, ret_partition, ret_info, err);
    if (code == IFD_OK && share_with && fake_device_state.merges_in_batches) {
        ret_info->step_count = 1;
    }
    return code;
}

static void device_release(struct ifd_partition *partition)
{
    fake_backend.release(partition);
}

static void device_close(struct ifd_device *device)
{
    fake_backend.close(device);
}

#define DEVICE(name_, cost_)                                                                       \
    {                                                                                              \
        .abi = IFD_BACKEND_ABI, .bytes = sizeof(struct ifd_backend), .name = name_,                \
        .open = device_open, .cost = cost_, .compile = device_compile, .release = device_release,  \
        .close = device_close, .memory = &memory_ops                                               \
    }

const struct ifd_backend fake_device = DEVICE("Dev", cost_on_dev);
const struct ifd_backend fake_device2 = DEVICE("Dev2", cost_on_dev2);
