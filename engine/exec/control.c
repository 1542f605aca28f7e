/* Runs branches and loops. */
#include "engine/exec/control.h"

#include "engine/base/team.h"
#include "engine/exec/executable.h"

#include <string.h>

/* Where an input comes from: a constant (an aligned copy), or a slot of the binding. */
struct source {
    const void *constant;
    uint32_t slot;
};

/* A graph with its place in the scratch memory. */
struct inner {
    struct ifd_executable executable;
    size_t table_at, arena_at;
};

struct ifd_partition {
    struct ifd_arena arena;
    const struct ifd_alloc *alloc;
    bool is_loop;
    struct inner graph[2]; /* then, else; or condition, body */
    struct source *input;
    uint32_t *output; /* slots */
    uint32_t input_count, output_count;
    /* In scratch: pointers to inputs and outputs, the flag of a condition, and for each carried
     * value two places that take turns. */
    size_t ports_at, flag_at;
    size_t *carried_at;
};

/* ---- compile ---- */

/* Turns are too short for trips to a device: backends with memory of their own are left out. */
static enum ifd_code stay_on_host(struct ifd_plan_options *options, struct ifd_arena *scratch,
                                  struct ifd_err *err)
{
    uint32_t *preference =
        ifd_arena_take_array(scratch, options->preference_count, sizeof(*preference));
    uint32_t count = 0;
    if (!preference) {
        return ifd_arena_fail(scratch, options->preference_count * sizeof(*preference), err);
    }
    for (uint32_t i = 0; i < options->preference_count; i++) {
        if (!options->registry->slot[options->preference[i]].backend->memory) {
            preference[count++] = options->preference[i];
        }
    }
    options->preference = preference;
    options->preference_count = count;
    return IFD_OK;
}

static enum ifd_code compile_graph(struct ifd_partition *self, const struct ifd_graph *graph,
                                   const struct ifd_plan_options *outer, size_t limit_bytes,
                                   struct ifd_executable *ret, struct ifd_err *err)
{
    struct ifd_plan_options options = *outer;
    struct ifd_arena scratch;
    struct ifd_plan plan;
    options.share_with = NULL;
    options.release_constant = NULL;
    ifd_arena_init(&scratch, self->alloc, 0);
    enum ifd_code code = stay_on_host(&options, &scratch, err);
    if (code == IFD_OK) {
        code = ifd_plan_partition(graph, &options, &self->arena, &scratch, &plan, err);
    }
    if (code == IFD_OK) {
        code = ifd_executable_init(ret, &plan, 1, &options, NULL, limit_bytes, &self->arena, err);
    }
    ifd_arena_finish(&scratch);
    return code;
}

static enum ifd_code compile_graphs(struct ifd_partition *self, const struct ifd_node_view *node,
                                    const struct ifd_plan_options *options, size_t limit_bytes,
                                    struct ifd_err *err)
{
    const struct ifd_loop_attrs *loop = node->attrs;
    const struct ifd_cond_attrs *cond = node->attrs;
    const struct ifd_graph *graph[2] = {self->is_loop ? loop->condition : cond->branch[0],
                                        self->is_loop ? loop->body : cond->branch[1]};
    enum ifd_code code = IFD_OK;
    for (int k = 0; code == IFD_OK && k < 2; k++) {
        code = compile_graph(self, graph[k], options, limit_bytes, &self->graph[k].executable, err);
    }
    return code;
}

/* Backends read inputs that are aligned and padded; constants of a graph need not be. */
static enum ifd_code take_operands(struct ifd_partition *self,
                                   const struct ifd_partition_view *view, struct ifd_err *err)
{
    const struct ifd_partition_node *node = &view->node[0];
    self->input_count = node->view.input_count;
    self->output_count = node->view.output_count;
    self->input = ifd_arena_take_array(&self->arena, self->input_count, sizeof(*self->input));
    self->output = ifd_arena_take_array(&self->arena, self->output_count, sizeof(*self->output));
    if (!self->input || !self->output) {
        return ifd_arena_fail(&self->arena, self->input_count * sizeof(*self->input), err);
    }
    for (uint32_t i = 0; i < self->input_count; i++) {
        const struct ifd_partition_value *value = &view->value[node->input_value[i]];
        self->input[i].slot = value->slot;
        if (value->role != IFD_VALUE_CONSTANT) {
            continue;
        }
        void *copy = ifd_arena_take_tensor(&self->arena, value->data.size);
        if (!copy) {
            return ifd_arena_fail(&self->arena, value->data.size, err);
        }
        memcpy(copy, value->data.data, value->data.size);
        self->input[i].constant = copy;
    }
    for (uint32_t i = 0; i < self->output_count; i++) {
        self->output[i] = view->value[node->output_value[i]].slot;
    }
    return IFD_OK;
}

/* ---- scratch ---- */

/* Takes bytes off scratch, aligned and padded as tensors are. */
static bool take(size_t bytes, size_t *total, size_t *ret_at)
{
    *ret_at = *total;
    return ifd_size_add(*total, bytes, total) && ifd_size_add(*total, IFD_TENSOR_PAD, total) &&
           ifd_size_align(*total, IFD_TENSOR_ALIGN, total);
}

static size_t carried_bytes(const struct ifd_partition *self, uint32_t i)
{
    const struct ifd_plan *plan = &self->graph[1].executable.plan;
    return plan->value[plan->output[i].value].bytes;
}

/* Branches take turns in one place; condition and body have places of their own. */
static bool lay_out_graphs(struct ifd_partition *self, size_t *total)
{
    size_t end = *total;
    for (int k = 0; k < 2; k++) {
        const struct ifd_executable *executable = &self->graph[k].executable;
        size_t at = self->is_loop ? end : *total;
        if (!take(executable->table_count * sizeof(void *), &at, &self->graph[k].table_at) ||
            !take(executable->plan.arena_bytes, &at, &self->graph[k].arena_at)) {
            return false;
        }
        end = at > end ? at : end;
    }
    *total = end;
    return true;
}

static enum ifd_code lay_out(struct ifd_partition *self, size_t limit_bytes, size_t *ret_bytes,
                             struct ifd_err *err)
{
    const size_t carried = self->is_loop ? self->output_count : 0;
    size_t total = 0;
    self->carried_at = ifd_arena_take_array(&self->arena, carried * 2, sizeof(*self->carried_at));
    if (!self->carried_at) {
        return ifd_arena_fail(&self->arena, carried * 2 * sizeof(*self->carried_at), err);
    }
    bool fits = take(((size_t)self->input_count + self->output_count) * sizeof(void *), &total,
                     &self->ports_at) &&
                take(sizeof(bool), &total, &self->flag_at) && lay_out_graphs(self, &total);
    for (uint32_t i = 0; fits && i < carried * 2; i++) {
        fits = take(carried_bytes(self, i / 2), &total, &self->carried_at[i]);
    }
    if (!fits || total > limit_bytes) {
        return ifd_fail(err, IFD_TOO_LARGE, "its graphs need more than the limit of %zu bytes",
                        limit_bytes);
    }
    *ret_bytes = total;
    return IFD_OK;
}

/* ---- life ---- */

static void control_release(struct ifd_partition *self)
{
    if (self) {
        const struct ifd_alloc *alloc = self->alloc;
        ifd_executable_finish(&self->graph[1].executable);
        ifd_executable_finish(&self->graph[0].executable);
        ifd_arena_finish(&self->arena);
        ifd_release(alloc, self, sizeof(*self));
    }
}

static void describe_parts(const struct ifd_executable *executable, struct ifd_partition_info *info)
{
    info->constant_bytes += executable->constant_bytes;
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        info->exact = info->exact && executable->part[p].info.exact;
    }
}

enum ifd_code ifd_control_compile(const struct ifd_partition_view *view,
                                  const struct ifd_plan_options *options, size_t limit_bytes,
                                  struct ifd_partition **ret_partition,
                                  struct ifd_partition_info *ret_info, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = options->registry->alloc;
    const struct ifd_node_view *node = &view->node[0].view;
    struct ifd_partition_info info = {.step_count = 1, .exact = true};
    struct ifd_partition *self = ifd_acquire_zeroed(alloc, 1, sizeof(*self));
    if (!self) {
        return ifd_fail(err, IFD_NOMEM, "no memory for control flow");
    }
    self->alloc = alloc;
    self->is_loop = node->op == IFD_OP_LOOP;
    ifd_arena_init(&self->arena, alloc, 0);
    enum ifd_code code = take_operands(self, view, err);
    if (code == IFD_OK) {
        code = compile_graphs(self, node, options, limit_bytes, err);
    }
    if (code == IFD_OK) {
        code = lay_out(self, limit_bytes, &info.scratch_bytes, err);
    }
    if (code != IFD_OK) {
        control_release(self);
        return code;
    }
    describe_parts(&self->graph[0].executable, &info);
    describe_parts(&self->graph[1].executable, &info);
    *ret_partition = self;
    *ret_info = info;
    return IFD_OK;
}

/* ---- run ---- */

static enum ifd_code run_graph(const struct ifd_partition *self, int k,
                               const struct ifd_binding *binding, void *const *input,
                               void *const *output, struct ifd_err *err)
{
    uint8_t *scratch = binding->scratch;
    const struct inner *graph = &self->graph[k];
    const struct ifd_executable *executable = &graph->executable;
    void **pointer = (void **)(scratch + graph->table_at);
    uint8_t *arena = scratch + graph->arena_at;
    ifd_executable_place(executable, pointer, arena);
    ifd_executable_bind(executable, pointer, input, output);
    for (uint32_t p = 0; p < executable->plan.partition_count; p++) {
        const struct ifd_executable_part *part = &executable->part[p];
        const struct ifd_binding inner = {
            .input = (const void *const *)(pointer + part->input_at),
            .output = pointer + part->output_at,
            .scratch = arena + executable->plan.partition[p].scratch_offset,
            .team = binding->team,
            .now_ns = binding->now_ns,
            .deadline_ns = binding->deadline_ns,
            .texts = binding->texts,
            .is_over = binding->is_over,
            .is_over_context = binding->is_over_context,
        };
        const enum ifd_code code = part->backend->run(part->compiled, &inner, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    ifd_executable_copy_outputs(executable, input, output);
    return IFD_OK;
}

/* Fills the pointers to the node's inputs; those to outputs follow. */
static void **gather_ports(const struct ifd_partition *self, const struct ifd_binding *binding)
{
    void **port = (void **)((uint8_t *)binding->scratch + self->ports_at);
    for (uint32_t i = 0; i < self->input_count; i++) {
        const struct source *source = &self->input[i];
        const void *data = source->constant ? source->constant : binding->input[source->slot];
        port[i] = (void *)(uintptr_t)data;
    }
    return port;
}

static enum ifd_code run_cond(const struct ifd_partition *self, const struct ifd_binding *binding,
                              struct ifd_err *err)
{
    void **input = gather_ports(self, binding);
    void **output = input + self->input_count;
    for (uint32_t i = 0; i < self->output_count; i++) {
        output[i] = binding->output[self->output[i]];
    }
    return run_graph(self, *(const bool *)input[0] ? 0 : 1, binding, input + 1, output, err);
}

static enum ifd_code goes_on(const struct ifd_partition *self, const struct ifd_binding *binding,
                             void *const *input, bool *ret, struct ifd_err *err)
{
    void *flag = (uint8_t *)binding->scratch + self->flag_at;
    const enum ifd_code code = run_graph(self, 0, binding, input, &flag, err);
    *ret = code == IFD_OK && *(const bool *)flag;
    return code;
}

/* The body writes the places that the values of the turn before do not have. */
static enum ifd_code turn(const struct ifd_partition *self, const struct ifd_binding *binding,
                          void **input, uint32_t side, struct ifd_err *err)
{
    void **output = input + self->input_count;
    for (uint32_t i = 0; i < self->output_count; i++) {
        output[i] = (uint8_t *)binding->scratch + self->carried_at[2 * i + side];
    }
    const enum ifd_code code = run_graph(self, 1, binding, input, output, err);
    memcpy(input, output, self->output_count * sizeof(*input));
    return code;
}

static enum ifd_code run_loop(const struct ifd_partition *self, const struct ifd_binding *outer,
                              struct ifd_err *err)
{
    struct ifd_binding binding = *outer;
    void **input = gather_ports(self, outer);
    bool more = true;
    if (binding.deadline_ns == 0) {
        binding.deadline_ns = outer->now_ns() + IFD_LOOP_NS;
    }
    enum ifd_code code = goes_on(self, &binding, input, &more, err);
    for (uint64_t turns = 0; code == IFD_OK && more; turns++) {
        if (outer->is_over && outer->is_over(outer->is_over_context)) {
            return ifd_fail(err, IFD_CANCELLED, "nobody waits for a loop, after %llu turns",
                            (unsigned long long)turns);
        }
        if (outer->now_ns() >= binding.deadline_ns) {
            return ifd_fail(err, IFD_DEADLINE, "a loop has made %llu turns when its time is over",
                            (unsigned long long)turns);
        }
        code = turn(self, &binding, input, turns % 2, err);
        if (code == IFD_OK) {
            code = goes_on(self, &binding, input, &more, err);
        }
    }
    for (uint32_t i = 0; code == IFD_OK && i < self->output_count; i++) {
        memcpy(outer->output[self->output[i]], input[i], carried_bytes(self, i));
    }
    return code;
}

static enum ifd_code control_run(struct ifd_partition *self, const struct ifd_binding *binding,
                                 struct ifd_err *err)
{
    return self->is_loop ? run_loop(self, binding, err) : run_cond(self, binding, err);
}

const struct ifd_backend ifd_control_backend = {.abi = IFD_BACKEND_ABI,
                                                .bytes = sizeof(struct ifd_backend),
                                                .name = "Control",
                                                .per_node = true,
                                                .run = control_run,
                                                .release = control_release};
