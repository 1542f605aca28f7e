/* Runs the passes of pass_list.inc to a fixed point and verifies after each. */
#include "engine/opt/opt.h"

#include "engine/ir/verify.h"
#include "engine/opt/pass_impl.h"

struct pass {
    const char *name;
    enum ifd_pass_level level;
    ifd_pass_fn run;
};

static const struct pass passes[] = {
#define PASS(symbol, pass_level)                                                                   \
    {.name = #symbol, .level = IFD_PASS_##pass_level, .run = ifd_pass_##symbol},
#include "engine/opt/pass_list.inc"
#undef PASS
};

#define PASS_COUNT (sizeof(passes) / sizeof(passes[0]))

/* Passes only remove or simplify, so few rounds suffice. A graph that still changes is correct,
 * too. */
#define MAX_ROUNDS 16

uint32_t ifd_pass_count(void)
{
    return (uint32_t)PASS_COUNT;
}

static void count_ops(const struct ifd_graph *graph, int32_t sign, int32_t *ret_nodes_of)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        ret_nodes_of[graph->node[n].op] += sign;
    }
}

/* Runs a pass with a scratch arena. */
static enum ifd_code run(ifd_pass_fn pass, struct ifd_graph *graph, const struct ifd_alloc *alloc,
                         uint32_t *ret_changes, struct ifd_err *err)
{
    struct ifd_arena scratch;
    ifd_arena_init(&scratch, alloc, 0);
    *ret_changes = 0;
    const enum ifd_code code = pass(graph, &scratch, ret_changes, err);
    ifd_arena_finish(&scratch);
    return code;
}

static enum ifd_code run_pass(const struct pass *pass, struct ifd_graph *graph,
                              const struct ifd_alloc *alloc, struct ifd_pass_report *report,
                              uint32_t *ret_changes, struct ifd_err *err)
{
    struct ifd_pass_report before = {.nodes_before = graph->node_count};
    uint32_t changes = 0, dead = 0;
    count_ops(graph, -1, before.nodes_of);
    enum ifd_code code = run(pass->run, graph, alloc, &changes, err);
    if (code == IFD_OK && changes > 0) {
        code = run(ifd_pass_drop_dead, graph, alloc, &dead, err);
    }
    if (code == IFD_OK && changes > 0) {
        code = ifd_graph_verify(graph, IFD_INTERNAL, err);
    }
    if (code != IFD_OK) {
        ifd_err_prefix(err, "pass %s", pass->name);
        return code;
    }
    if (report && changes > 0) {
        if (report->changes == 0) {
            report->nodes_before = report->nodes_after = before.nodes_before;
        }
        report->changes += changes;
        report->nodes_after -= before.nodes_before - graph->node_count;
        for (uint32_t op = 0; op < IFD_OP_COUNT; op++) {
            report->nodes_of[op] += before.nodes_of[op];
        }
        count_ops(graph, 1, report->nodes_of);
    }
    *ret_changes += changes;
    return IFD_OK;
}

enum ifd_code ifd_optimize(struct ifd_graph *graph, enum ifd_pass_level max_level,
                           const struct ifd_alloc *alloc, struct ifd_pass_report *ret_report,
                           struct ifd_err *err)
{
    for (size_t i = 0; ret_report && i < PASS_COUNT; i++) {
        ret_report[i] = (struct ifd_pass_report){.name = passes[i].name,
                                                 .nodes_before = graph->node_count,
                                                 .nodes_after = graph->node_count};
    }
    uint32_t changes = 1;
    for (int round = 0; round < MAX_ROUNDS && changes > 0; round++) {
        changes = 0;
        for (size_t i = 0; i < PASS_COUNT; i++) {
            if (passes[i].level > max_level) {
                continue;
            }
            const enum ifd_code code = run_pass(&passes[i], graph, alloc,
                                                ret_report ? &ret_report[i] : NULL, &changes, err);
            if (code != IFD_OK) {
                return code;
            }
        }
    }
    return IFD_OK;
}
