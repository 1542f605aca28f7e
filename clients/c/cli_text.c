/* Prints the command line of inferctl: as help, manual page, and completions of two shells. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

struct row {
    const char *name, *value, *text;
};

static const struct row commands[] = {
#define COMMAND(name_, model, function, arguments, text_)                                          \
    {.name = #name_, .value = arguments, .text = text_},
#define OPTION(letter, name, value, text)
#include "cli_list.inc"
#undef OPTION
#undef COMMAND
};

static const struct row options[] = {
#define COMMAND(name, model, function, arguments, text)
#define OPTION(letter, name_, value_, text_) {.name = name_, .value = value_, .text = text_},
#include "cli_list.inc"
#undef OPTION
#undef COMMAND
};

enum {
    COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]),
    OPTION_COUNT = sizeof(options) / sizeof(options[0]),
    TEXT_COLUMN = 29, /* where the help's texts begin */
    TEXT_WIDTH = 70,
};

/* The text in lines from TEXT_COLUMN on; used: columns of the line that are taken. */
static void print_text(FILE *out, const char *text, int used)
{
    if (used >= TEXT_COLUMN) {
        fputc('\n', out);
        used = 0;
    }
    while (*text != '\0') {
        int size = (int)strlen(text);
        if (size > TEXT_WIDTH) {
            for (size = TEXT_WIDTH; size > 0 && text[size] != ' '; size--) {
            }
            size = size > 0 ? size : TEXT_WIDTH;
        }
        fprintf(out, "%*s%.*s\n", TEXT_COLUMN - used, "", size, text);
        used = 0;
        text += size;
        text += *text == ' ';
    }
}

static void print_row(FILE *out, const char *dashes, const struct row *row)
{
    const char *gap = row->value[0] != '\0' ? " " : "";
    int used = fprintf(out, "  %s%s%s%s", dashes, row->name, gap, row->value);
    print_text(out, row->text, used > 0 ? used : 0);
}

void ifd_cli_usage(FILE *out)
{
    fputs("usage: inferctl [options] COMMAND\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        print_row(out, "", &commands[i]);
    }
    fputs("\noptions\n", out);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        print_row(out, "--", &options[i]);
    }
    fputs("\nexit status: 0 done, 1 the server refused, 2 wrong usage or files, 3 no answer\n"
          "inferctl --version | --man | --bash-completion | --zsh-completion\n",
          out);
}

static void print_troff(const char *text)
{
    for (; *text != '\0'; text++) {
        fputs(*text == '\\' ? "\\e" : *text == '-' ? "\\-" : (const char[]){*text, '\0'}, stdout);
    }
}

static void print_man_rows(const char *dashes, const struct row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf(".TP\n\\fB%s", dashes);
        print_troff(row[i].name);
        printf("\\fR ");
        print_troff(row[i].value);
        printf("\n\\&");
        print_troff(row[i].text);
        printf("\n");
    }
}

static void print_man(void)
{
    printf(".TH INFERCTL 1 \"\" \"inferd\" \"User Commands\"\n"
           ".SH NAME\ninferctl \\- asks an inference server\n"
           ".SH SYNOPSIS\n.B inferctl\n[\\fIoptions\\fR] \\fICOMMAND\\fR\n"
           ".SH DESCRIPTION\nSpeaks the Open Inference Protocol over HTTP with\n.BR inferd (1)\n"
           "or another server of this protocol.\n.SH COMMANDS\n");
    print_man_rows("", commands, COMMAND_COUNT);
    printf(".SH OPTIONS\n");
    print_man_rows("\\-\\-", options, OPTION_COUNT);
    printf(".SH EXIT STATUS\n0 done, 1 the server refused, 2 wrong usage or files, 3 no answer\n"
           ".SH SEE ALSO\n.BR inferd (1)\n");
}

static bool is_path(const struct row *row)
{
    return strstr(row->value, "FILE") || strcmp(row->value, "DIR") == 0;
}

static void print_bash(void)
{
    printf("# bash completion for inferctl(1), made by inferctl --bash-completion\n"
           "_inferctl()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    COMPREPLY=()\n"
           "    case $prev in\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (options[i].value[0] != '\0') {
            printf("        --%s) %sreturn ;;\n", options[i].name,
                   is_path(&options[i]) ? "COMPREPLY=($(compgen -f -- \"$cur\")); " : "");
        }
    }
    printf("    esac\n    COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        printf("%s ", commands[i].name);
    }
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        printf("--%s ", options[i].name);
    }
    printf("' -- \"$cur\"))\n}\ncomplete -o filenames -F _inferctl inferctl\n");
}

/* Text within single quotes and the brackets of _arguments. */
static void print_zsh_text(const char *text)
{
    for (; *text != '\0'; text++) {
        printf(strchr("[]:\\", *text) ? "\\" : "");
        fputs(*text == '\'' ? "'\\''" : (const char[]){*text, '\0'}, stdout);
    }
}

static void print_zsh(void)
{
    printf("#compdef inferctl\n"
           "# zsh completion for inferctl(1), made by inferctl --zsh-completion\n"
           "_arguments \\\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        bool has_value = options[i].value[0] != '\0';
        printf("    '%s--%s%s[", strcmp(options[i].name, "input") == 0 ? "*" : "", options[i].name,
               has_value ? "=" : "");
        print_zsh_text(options[i].text);
        printf("]%s%s' \\\n", has_value ? ":value:" : "", is_path(&options[i]) ? "_files" : "");
    }
    printf("    '1:command:((");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        printf("%s\\:\"", commands[i].name);
        print_zsh_text(commands[i].text);
        printf("\" ");
    }
    printf("))' '2:model:'\n");
}

static void print_version(void)
{
    printf("inferctl " IFD_VERSION "\n");
}

bool ifd_cli_print(const char *argument)
{
    static const struct {
        const char *flag;
        void (*print)(void);
    } texts[] = {{"--version", print_version},
                 {"--man", print_man},
                 {"--bash-completion", print_bash},
                 {"--zsh-completion", print_zsh}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(argument, texts[i].flag) == 0) {
            texts[i].print();
            return true;
        }
    }
    return false;
}
