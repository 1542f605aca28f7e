/* Prints the settings as --help and as the tables of docs/config.md. */
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

/* Prints text for a cell of a Markdown table. */
static void print_cell(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        (void)fprintf(out, strchr("|<*_", *text) ? "\\%c" : "%c", *text);
    }
}

/* What the setting takes: words, a range, or its unit. */
static void print_values(FILE *out, const struct ifd_setting *s)
{
    const char *between = "";
    switch (s->type) {
    case IFD_SETTING_CHOICE:
        for (const struct ifd_choice *c = s->choices; c->word; c++) {
            (void)fprintf(out, "%s`%s`", between, c->word);
            between = ", ";
        }
        break;
    case IFD_SETTING_U32:
    case IFD_SETTING_U64:
        (void)fprintf(out, "%s, %llu to %llu", s->unit, (unsigned long long)s->min,
                      (unsigned long long)s->max);
        break;
    case IFD_SETTING_BOOL:
        (void)fputs("`true`, `false`", out);
        break;
    default:
        (void)fprintf(out, s->type == IFD_SETTING_LIST ? "%s, several" : "%s", s->unit);
    }
}

static void print_row(FILE *out, const struct ifd_setting *s)
{
    (void)fprintf(out, "| `%s` | ", s->flag);
    print_values(out, s);
    (void)fprintf(out, s->fallback[0] != '\0' ? " | `%s` | " : " | %s | ", s->fallback);
    (void)fputs(s->is_live ? "live | " : "| ", out);
    print_cell(out, s->text);
    (void)fputs(" |\n", out);
}

void ifd_config_markdown(FILE *out)
{
    const char *section = "";
    (void)fputs("# Settings\n\n"
                "Made by `inferd --markdown` from the table of settings; a test compares. Each is "
                "an option\nof `inferd serve` (`--http-port=8000`) and a line of its "
                "configuration file (`http-port = 8000`).\nSIGHUP changes those that are live in a "
                "running server.\n",
                out);
    for (size_t i = 0; i < ifd_setting_count; i++) {
        if (strcmp(section, ifd_settings[i].section) != 0) {
            section = ifd_settings[i].section;
            (void)fprintf(out,
                          "\n## %s\n\n| setting | value | default | | meaning |\n"
                          "|---|---|---|---|---|\n",
                          section);
        }
        print_row(out, &ifd_settings[i]);
    }
}
