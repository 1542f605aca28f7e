/* Runs a partition's steps with the threads that the instance lends. */
#include "backends/cpuacc/run.h"

#include "backends/cpuacc/schedule/team.h"

/* What the threads of one run are told. */
struct task {
    const struct ifd_partition *partition;
    const struct ifd_binding *binding;
    struct ifd_acc_team *team; /* at the start of the run's scratch, */
    uint8_t *scratch;          /* which goes on here */
    struct ifd_acc_outcome outcome;
};

static void run_steps(void *arg, uint32_t index, uint32_t count)
{
    struct task *task = arg;
    const struct ifd_partition *partition = task->partition;
    const struct ifd_binding *binding = task->binding;
    struct ifd_acc_worker worker = ifd_acc_worker_init(task->team, index, count);
    struct ifd_acc_frame frame = {
        .binding = binding, .scratch = task->scratch, .outcome = &task->outcome};
    uint64_t *step_ns = index == 0 ? binding->step_ns : NULL;
    uint64_t before = step_ns ? binding->now_ns() : 0;
    for (uint32_t i = 0; i < partition->step_count; i++) {
        const struct ifd_acc_step *step = &partition->step[i];
        if (!step->run) {
            continue; /* the chain before it has done it */
        }
        frame.packed = step->block;
        ifd_acc_worker_step(&worker, step, &frame);
        if (step_ns) {
            const uint64_t now = binding->now_ns();
            step_ns[i] += now - before;
            before = now;
        }
    }
}

enum ifd_code ifd_acc_run(struct ifd_partition *partition, const struct ifd_binding *binding,
                          struct ifd_err *err)
{
    const uint32_t threads = partition->is_parallel ? binding->team->count : 1;
    struct task task = {.partition = partition,
                        .binding = binding,
                        .team = ifd_acc_team_init(binding->scratch, threads),
                        .scratch = (uint8_t *)binding->scratch + partition->team_bytes,
                        .outcome = {IFD_OK, err}};
    if (threads == 1) {
        run_steps(&task, 0, 1);
    } else {
        binding->team->run(binding->team, run_steps, &task);
    }
    return task.outcome.code;
}
