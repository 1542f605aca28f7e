/** An OpenCL library for tests: "libOpenCL.so.1" of tests/fake_opencl in the build folder, found by
 *  LD_LIBRARY_PATH. It has a GPU ("Fake GPU") and a CPU ("Fake CPU"). Buffers are host memory, and
 *  kernels do nothing: what they make stays 0. Queues work at once.
 *
 *  It fails on demand. A rule is a line of text, in the file that IFD_FAKE_OPENCL names (read at
 *  every call) or given to fake_opencl_set:
 *
 *      clFinish 3 -5 1     the third call of clFinish from now on returns -5; 1: only that one;
 *                          0: and all later ones
 *      any 1 -36 0         every call that can fail, but those that release
 *      kernel 2 -5 1       the second kernel fails while it computes: its queue's events say so
 *      hang                no kernel ends until there is another rule. Whoever waits for one
 *                          without limit waits until then
 *
 *  With IFD_FAKE_OPENCL_SHARED=1 its devices share memory with the host, with
 *  IFD_FAKE_OPENCL_RECORDS=1 they have cl_khr_command_buffer. Thread: any. */
#ifndef INFERD_TESTS_SUPPORT_FAKE_OPENCL_H
#define INFERD_TESTS_SUPPORT_FAKE_OPENCL_H

#include "inferd/backend.h"

/** What a test asks the library for, by dlsym. */
struct fake_opencl {
    /** Replaces the rule; "": none. Counts begin anew. */
    void (*set)(const char *rule);
    /** Calls of a function since the rule was set. */
    unsigned (*calls)(const char *function);
    /** Has the rule made a call fail? */
    bool (*has_failed)(void);
    /** Objects that exist. */
    int (*alive)(void);
    /** Kernels launched on device number index, in all. */
    unsigned (*launches)(unsigned index);
};

#define FAKE_OPENCL_TABLE "fake_opencl_table"

#endif
