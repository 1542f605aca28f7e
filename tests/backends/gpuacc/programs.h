/** Which programs a device built, for check_memory.py. */
#ifndef INFERD_TESTS_BACKENDS_GPUACC_PROGRAMS_H
#define INFERD_TESTS_BACKENDS_GPUACC_PROGRAMS_H

#include "backends/gpuacc/program.h"

#include <stdio.h>
#include <stdlib.h>

/* For check_memory.py, if INFERD_TEST_PROGRAMS is set: a line with a file and definitions. */
static inline void print_definitions(const char *what, const struct ifd_gpu_file *file,
                                     const char *defines)
{
    if (!getenv("INFERD_TEST_PROGRAMS")) {
        return;
    }
    (void)printf("%s %s\t", what, file->name);
    for (const char *line = defines; *line; line++) {
        (void)putchar(*line == '\n' ? '\t' : *line == '\t' ? ' ' : *line);
    }
    (void)putchar('\n');
}

static inline void print_programs(const struct ifd_device *device)
{
    for (const struct ifd_gpu_program *p = device->programs; p; p = p->next) {
        if (p->is_used) {
            print_definitions("program", p->file, p->defines);
        }
    }
}

#endif
