/* `inferd run`: runs a model on files. */
#include "engine/tools/npy.h"
#include "engine/tools/session.h"

#include "engine/base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct run_options {
    const struct ifd_tool_host *host;
    struct ifd_session_options session;
    const char *output_dir;
};

static enum ifd_code write_outputs(const struct ifd_session *session, const char *dir,
                                   struct ifd_err *err)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return ifd_fail(err, IFD_IO, "cannot create folder \"%s\": %s", dir, strerror(errno));
    }
    for (uint32_t i = 0; i < session->info->output_count; i++) {
        char path[PATH_MAX];
        if (!ifd_str_format(path, sizeof(path), "%s/out%u.npy", dir, i)) {
            return ifd_fail(err, IFD_TOO_LARGE, "the path of the output folder is too long");
        }
        enum ifd_code code = ifd_npy_write(path, &session->output[i], session->alloc, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

static void print_outputs(const struct ifd_session *session)
{
    for (uint32_t i = 0; i < session->info->output_count; i++) {
        const struct ifd_tensor *tensor = &session->output[i];
        printf("out%u %s %s [", i, session->info->output[i].name, ifd_dtype_name(tensor->dtype));
        for (uint32_t k = 0; k < tensor->shape.rank; k++) {
            printf("%s%lld", k ? "," : "", (long long)tensor->shape.dim[k]);
        }
        printf("]\n");
    }
}

static enum ifd_code check(void *arg, struct ifd_err *err)
{
    const struct run_options *options = arg;
    return ifd_session_check(options->host, &options->session, err);
}

static enum ifd_code run(void *arg, struct ifd_err *err)
{
    const struct run_options *options = arg;
    struct ifd_session session;
    enum ifd_code code = ifd_session_open(options->host, &options->session, &session, err);
    if (code != IFD_OK) {
        return code;
    }
    code = ifd_session_run(&session, err);
    if (code == IFD_OK && options->output_dir) {
        code = write_outputs(&session, options->output_dir, err);
    }
    if (code == IFD_OK) {
        print_outputs(&session);
    }
    ifd_session_close(&session);
    return code;
}

int ifd_tool_run(const struct ifd_tool_host *host, int argc, char **argv)
{
    struct run_options options = {.host = host, .session = {.needs_inputs = true}};
    const struct ifd_arg args[] = {
        IFD_SESSION_ARGS(options.session),
        {"input", IFD_ARG_LIST, &options.session.inputs, 0, 0, "[NAME=]FILE",
         "an input: .npy, a picture or raw bytes; once per input"},
        {"output-dir", IFD_ARG_TEXT, &options.output_dir, 0, 0, "DIR", "write out<i>.npy there"},
        {"batch", IFD_ARG_NUMBER, &options.session.batch, 1, IFD_MAX_BATCH, "N",
         "samples per inference (default: as in the input files)"},
        {"no-optimize", IFD_ARG_SWITCH, &options.session.no_optimize, 0, 0, NULL,
         "run the graph without optimization"},
    };
    const struct ifd_command command = {"run",
                                        "MODEL",
                                        "Runs a model on files and prints or writes its outputs.",
                                        args,
                                        sizeof(args) / sizeof(args[0]),
                                        check,
                                        run};
    return ifd_command_main(&command, argc, argv, &options.session.path, &options);
}
