/* Prints the settings as manual pages: inferd(1), inferd.conf(5). */
#include "server/config/config_impl.h"

#include <string.h>

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

/* dashes: before the name of each setting. */
static void print_settings(FILE *out, const char *heading, const char *dashes)
{
    const char *section = "";
    for (size_t i = 0; i < ifd_setting_count; i++) {
        const struct ifd_setting *s = &ifd_settings[i];
        if (strcmp(section, s->section) != 0) {
            section = s->section;
            (void)fprintf(out, ".SH %s: %s\n", heading, section);
        }
        (void)fprintf(out, ".TP\n\\fB%s", dashes);
        print_troff(out, s->flag);
        (void)fprintf(out, "\\fR=\\fI%s\\fR", s->unit);
        if (s->fallback[0] != '\0') {
            (void)fprintf(out, " (default %s)", s->fallback);
        }
        (void)fputs(s->is_live ? ", live\n\\&" : "\n\\&", out);
        print_troff(out, s->text);
        (void)fputc('\n', out);
    }
}

void ifd_config_man(FILE *out)
{
    static const char head[] =
        ".TH INFERD 1 \"\" \"inferd\" \"User Commands\"\n"
        ".SH NAME\ninferd \\- inference server for TensorFlow Lite and ONNX models\n"
        ".SH SYNOPSIS\n.B inferd serve\n[\\fIDIR\\fR|\\fIMODEL\\fR] [\\fIoptions\\fR]\n.br\n"
        ".B inferd init | run | check | inspect | compare | bench\n\\fIarguments\\fR\n"
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
        "be loaded with\n.BR \\-\\-exit\\-on\\-error ,\n2 for a wrong command line.\n"
        ".SH SEE ALSO\n.BR inferctl (1),\n.BR inferd.conf (5)\n";
    (void)fputs(head, out);
    print_settings(out, "OPTIONS", "\\-\\-");
    (void)fputs(tail, out);
}

void ifd_config_man_file(FILE *out)
{
    static const char head[] =
        ".TH INFERD.CONF 5 \"\" \"inferd\" \"File Formats\"\n"
        ".SH NAME\ninferd.conf \\- settings of the inference server inferd\n"
        ".SH SYNOPSIS\n.I /etc/inferd/inferd.conf\n"
        ".SH DESCRIPTION\nThe file that\n.B inferd serve \\-\\-config\nreads. A line is\n"
        ".IR \"NAME = VALUE\" ;\nlines that begin with # are comments. The command line wins; "
        "lists are joined. After SIGHUP\n.RB ( \"systemctl reload inferd\" )\nthe file is read "
        "again: settings marked live change, the others wait for the next start.\n";
    static const char tail[] = ".SH SEE ALSO\n.BR inferd (1)\n";
    (void)fputs(head, out);
    print_settings(out, "SETTINGS", "");
    (void)fputs(tail, out);
}
