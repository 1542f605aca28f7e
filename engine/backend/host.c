/* Host services: the options of an engine, limited by what the processor has. */
#include "engine/backend/host.h"

#include "engine/base/cpu.h"

static uint32_t allowed_flags(const struct ifd_engine_options *options)
{
    if (options->cpu_mask != 0) {
        return options->cpu_mask;
    }
    return options->no_cpu_features ? 0 : UINT32_MAX;
}

void ifd_host_init(struct ifd_host *host, const struct ifd_engine_options *options)
{
    *host = (struct ifd_host){
        .bytes = sizeof(*host),
        .alloc = options->alloc ? options->alloc : ifd_alloc_system(),
        .exact = options->exact,
        .fast = options->fast,
        .debug = options->debug,
        .debug_context = options->debug_context,
        .op_def = ifd_op_def,
        .fail = ifd_fail,
    };
    ifd_cpu_detect(&host->cpu);
    host->cpu.flags &= allowed_flags(options);
}
