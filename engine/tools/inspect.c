/* `inferd inspect`: a model's graph and plan. */
#include "engine/tools/session.h"

#include "engine/base/cpu.h"

#include <stdio.h>
#include <string.h>

struct inspect_options {
    const struct ifd_tool_host *host;
    struct ifd_session_options session;
    const char *format;
    bool passes;
    enum ifd_dump_format dump; /* set by check from format and passes */
};

static void print_backends(struct ifd_engine *engine)
{
    char features[256];
    const struct ifd_cpu *cpu = ifd_engine_cpu(engine);
    ifd_cpu_text(cpu->flags, features, sizeof(features));
    printf("cpu: %u cores, %s\n", cpu->cores, features);
    for (uint32_t i = 0; i < ifd_engine_backend_count(engine); i++) {
        struct ifd_backend_info info;
        ifd_engine_backend_info(engine, i, &info);
        if (info.is_untried) { /* why it is absent is worth knowing, even if nobody uses it */
            ifd_engine_open_backend(engine, info.name, NULL);
            ifd_engine_backend_info(engine, i, &info);
        }
        const char *state = info.available  ? "available"
                            : info.is_taken ? "not available: "
                                            : "not taken: ";
        printf("backend: %s %s%s%s%s\n", info.name, state, info.reason,
               info.file[0] != '\0' ? ", from " : "", info.file);
    }
}

static enum ifd_code check(void *arg, struct ifd_err *err)
{
    struct inspect_options *options = arg;
    const char *format = options->format ? options->format : "text";
    if (options->passes && options->format) {
        return ifd_fail(err, IFD_INVALID, "--passes and --format %s exclude each other",
                        options->format);
    }
    if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0 && strcmp(format, "dot") != 0) {
        return ifd_fail(err, IFD_INVALID, "--format: got \"%s\", expected text, json or dot",
                        format);
    }
    options->dump = options->passes               ? IFD_DUMP_PASSES
                    : strcmp(format, "json") == 0 ? IFD_DUMP_JSON
                    : strcmp(format, "dot") == 0  ? IFD_DUMP_DOT
                                                  : IFD_DUMP_TEXT;
    return ifd_session_check(options->host, &options->session, err);
}

static enum ifd_code inspect(void *arg, struct ifd_err *err)
{
    const struct inspect_options *options = arg;
    struct ifd_session session;
    enum ifd_code code = ifd_session_open(options->host, &options->session, &session, err);
    if (code != IFD_OK) {
        return code;
    }
    if (options->dump == IFD_DUMP_TEXT) {
        print_backends(session.engine);
    }
    code = ifd_model_dump(session.model, options->dump, ifd_session_print, NULL, err);
    ifd_session_close(&session);
    return code;
}

int ifd_tool_inspect(const struct ifd_tool_host *host, int argc, char **argv)
{
    struct inspect_options options = {.host = host, .session = {.keeps_weights = true, .batch = 1}};
    const struct ifd_arg args[] = {
        IFD_SESSION_ARGS(options.session),
        {"format", IFD_ARG_TEXT, &options.format, 0, 0, "FORMAT", "text (default), json or dot"},
        {"passes", IFD_ARG_SWITCH, &options.passes, 0, 0, NULL,
         "print only what each pass of the optimizer did"},
        {"no-optimize", IFD_ARG_SWITCH, &options.session.no_optimize, 0, 0, NULL,
         "show the graph without optimization"},
    };
    const struct ifd_command command = {"inspect",
                                        "MODEL",
                                        "Prints a model's graph, plan, memory and backends.",
                                        args,
                                        sizeof(args) / sizeof(args[0]),
                                        check,
                                        inspect};
    return ifd_command_main(&command, argc, argv, &options.session.path, &options);
}
