/* Prints the settings as --help and as a manual page. */
#include "server/config/config_impl.h"

#include <string.h>

/* Prints text in lines of at most width characters, indented. */
static void print_wrapped(FILE *out, const char *text, int indent, int width)
{
    while (*text != '\0') {
        int size = (int)strlen(text);
        if (size > width) {
            for (size = width; size > 0 && text[size] != ' '; size--) {
            }
            size = size > 0 ? size : width;
        }
        (void)fprintf(out, "%*s%.*s\n", indent, "", size, text);
        text += size;
        text += *text == ' ';
    }
}

static void print_default(FILE *out, const struct ifd_setting *s)
{
    if (s->fallback[0] != '\0') {
        (void)fprintf(out, " (default %s)", s->fallback);
    }
}

void ifd_config_help(FILE *out)
{
    const char *section = "";
    (void)fprintf(out,
                  "usage: inferd serve [DIR] [options]\n\n"
                  "Serves the models of a folder over HTTP (Open Inference Protocol, as Triton "
                  "speaks it).\n");
    for (size_t i = 0; i < ifd_setting_count; i++) {
        const struct ifd_setting *s = &ifd_settings[i];
        if (strcmp(section, s->section) != 0) {
            section = s->section;
            (void)fprintf(out, "\n%s\n", section);
        }
        (void)fprintf(out, "  --%s=%s", s->flag, s->unit);
        print_default(out, s);
        (void)fprintf(out, s->is_live ? ", live\n" : "\n");
        print_wrapped(out, s->text, 6, 90);
    }
    (void)fprintf(
        out, "\nSIGTERM and SIGINT answer what was accepted, then end the program.\n"
             "SIGHUP reads --config (options marked \"live\" change) and --token-file again, opens "
             "the access log\nanew, and with --model-control-mode=poll looks at the folders at "
             "once.\n");
}

/* Prints text for troff: escapes '-' and '\'. */
static void print_troff(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\') {
            (void)fputs("\\e", out);
        } else if (*text == '-') {
            (void)fputs("\\-", out);
        } else {
            (void)fputc(*text, out);
        }
    }
}

static void print_man_setting(FILE *out, const struct ifd_setting *s)
{
    (void)fputs(".TP\n\\fB\\-\\-", out);
    print_troff(out, s->flag);
    (void)fprintf(out, "\\fR=\\fI%s\\fR", s->unit);
    print_default(out, s);
    (void)fputs(s->is_live ? ", live\n\\&" : "\n\\&", out);
    print_troff(out, s->text);
    (void)fputc('\n', out);
}

void ifd_config_man(FILE *out)
{
    static const char head[] =
        ".TH INFERD 1 \"\" \"inferd\" \"User Commands\"\n"
        ".SH NAME\ninferd \\- inference server for TFLite models\n"
        ".SH SYNOPSIS\n.B inferd serve\n[\\fIDIR\\fR] [\\fIoptions\\fR]\n.br\n"
        ".B inferd run | inspect | compare | bench\n\\fIarguments\\fR\n"
        ".SH DESCRIPTION\n.B inferd serve\nserves the models of a folder over HTTP in the dialect "
        "of the Open Inference Protocol that Triton speaks.\n"
        "The other commands work on model files; each explains itself with\n.BR \\-\\-help .\n";
    static const char tail[] =
        ".SH SIGNALS\nSIGTERM and SIGINT: no new connection is accepted, accepted requests are "
        "answered, then the program ends.\n.PP\n"
        "SIGHUP: the file of\n.B \\-\\-config\nis read again and options marked live change, and "
        "that of\n.BR \\-\\-token\\-file ;\nthe access log is opened anew; with\n.B "
        "\\-\\-model\\-control\\-mode=poll\nthe folders are "
        "looked at. What is wrong with a file is logged, and everything stays as it is.\n"
        ".SH EXIT STATUS\n0 after a signal, 1 if the server could not start or a model could not "
        "be loaded with\n.BR \\-\\-exit\\-on\\-error ,\n2 for a wrong command line.\n";
    const char *section = "";
    (void)fputs(head, out);
    for (size_t i = 0; i < ifd_setting_count; i++) {
        if (strcmp(section, ifd_settings[i].section) != 0) {
            section = ifd_settings[i].section;
            (void)fprintf(out, ".SH OPTIONS: %s\n", section);
        }
        print_man_setting(out, &ifd_settings[i]);
    }
    (void)fputs(tail, out);
}
