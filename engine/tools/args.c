/* Arguments of the engine's commands. */
#include "engine/tools/args.h"

#include "engine/base/escape.h"
#include "engine/base/str.h"

#include <stdio.h>
#include <string.h>

static void print_help(const struct ifd_command *command)
{
    printf("usage: inferd %s %s [options]\n\n%s\n\n", command->name, command->positional,
           command->doc);
    for (uint32_t i = 0; i < command->arg_count; i++) {
        const struct ifd_arg *arg = &command->arg[i];
        char left[64];
        (void)snprintf(left, sizeof(left), "--%s %s", arg->name, arg->value ? arg->value : "");
        printf("  %-26s %s\n", left, arg->doc);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static const struct ifd_arg *find(const struct ifd_command *command, struct ifd_str name)
{
    for (uint32_t i = 0; i < command->arg_count; i++) {
        if (ifd_str_equal(name, command->arg[i].name)) {
            return &command->arg[i];
        }
    }
    return NULL;
}

static enum ifd_code store(const struct ifd_arg *arg, const char *value, struct ifd_err *err)
{
    uint64_t number = 0;
    struct ifd_arg_list *list = arg->target;
    switch (arg->kind) {
    case IFD_ARG_SWITCH:
        *(bool *)arg->target = true;
        return IFD_OK;
    case IFD_ARG_TEXT:
        *(const char **)arg->target = value;
        return IFD_OK;
    case IFD_ARG_NUMBER:
        if (!ifd_str_u64(ifd_str(value), &number) || number < arg->min || number > arg->max) {
            return ifd_fail(err, IFD_INVALID, "--%s: got \"%s\", expected a number from %u to %u",
                            arg->name, value, arg->min, arg->max);
        }
        *(uint32_t *)arg->target = (uint32_t)number;
        return IFD_OK;
    case IFD_ARG_LIST:
        if (list->count == IFD_ARGS_REPEAT_MAX) {
            return ifd_fail(err, IFD_INVALID, "--%s: more than %d times", arg->name,
                            IFD_ARGS_REPEAT_MAX);
        }
        list->item[list->count++] = value;
        return IFD_OK;
    }
    return ifd_fail(err, IFD_INTERNAL, "--%s: unknown kind", arg->name);
}

static enum ifd_code parse(const struct ifd_command *command, int argc, char **argv,
                           const char **ret_positional, bool *ret_help, struct ifd_err *err)
{
    const char *positional = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command);
            *ret_help = true;
            return IFD_OK;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            if (argv[i][0] == '-') {
                return ifd_fail(err, IFD_INVALID, "no option %s; see inferd %s --help", argv[i],
                                command->name);
            }
            if (positional) {
                return ifd_fail(err, IFD_INVALID,
                                "unexpected argument \"%s\"; see inferd %s --help", argv[i],
                                command->name);
            }
            positional = argv[i];
            continue;
        }
        struct ifd_str rest = ifd_str(argv[i] + 2);
        struct ifd_str name = ifd_str_part(&rest, '=');
        const struct ifd_arg *arg = find(command, name);
        if (!arg) {
            return ifd_fail(err, IFD_INVALID, "no option --%.*s; see inferd %s --help",
                            (int)name.size, name.data, command->name);
        }
        const char *value = rest.data;
        if (arg->kind == IFD_ARG_SWITCH && value) {
            return ifd_fail(err, IFD_INVALID, "--%s takes no value", arg->name);
        }
        if (arg->kind != IFD_ARG_SWITCH && !value) {
            if (++i == argc) {
                return ifd_fail(err, IFD_INVALID, "--%s: no value, expected %s", arg->name,
                                arg->value);
            }
            value = argv[i];
        }
        enum ifd_code code = store(arg, value, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    if (!positional) {
        return ifd_fail(err, IFD_INVALID, "no %s given; see inferd %s --help", command->positional,
                        command->name);
    }
    *ret_positional = positional;
    *ret_help = false;
    return IFD_OK;
}

int ifd_command_main(const struct ifd_command *command, int argc, char **argv,
                     const char **ret_positional, void *arg)
{
    struct ifd_err err = {0};
    bool help = false;
    enum ifd_code code = parse(command, argc, argv, ret_positional, &help, &err);
    if (code == IFD_OK && !help) {
        code = command->check(arg, &err);
    }
    int status = code == IFD_OK ? 0 : 2;
    if (code == IFD_OK && !help) {
        code = command->body(arg, &err);
        status = code == IFD_OK ? 0 : 1;
    }
    if (code != IFD_OK) {
        char line[2 * IFD_ERR_TEXT_BYTES];
        fprintf(stderr, "inferd %s: %s\n", command->name,
                ifd_escape_line(err.text, line, sizeof(line)));
    }
    return status;
}
