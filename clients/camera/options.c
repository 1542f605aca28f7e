/* Reads the command line; prints help and manual page from the same table. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, TEXT_COLUMN = 26, TEXT_WIDTH = 70 };

struct row {
    const char *name, *value, *text;
};

static const struct row rows[] = {
#define OPTION(letter, name_, value_, text_) {.name = name_, .value = value_, .text = text_},
#include "camera_list.inc"
#undef OPTION
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* ---- texts ---- */

static void print_row(FILE *out, const struct row *row)
{
    const char *text = row->text;
    int used = fprintf(out, "  --%s %s", row->name, row->value);
    while (*text != '\0') {
        int size = (int)strlen(text);
        if (size > TEXT_WIDTH) {
            for (size = TEXT_WIDTH; size > 0 && text[size] != ' '; size--) {
            }
        }
        fprintf(out, "%*s%.*s\n", used < TEXT_COLUMN ? TEXT_COLUMN - used : 1, "", size, text);
        text += size;
        text += *text == ' ';
        used = 0;
    }
}

static void print_usage(FILE *out)
{
    fputs("usage: inferd-camera [options] MODEL FOLDER|PICTURE|DEVICE\n\n"
          "Sends pictures as cameras do: at a rate, without waiting for answers.\n\n",
          out);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        print_row(out, &rows[i]);
    }
    fputs("\nexit status: 0 every frame was answered, skipped or refused for load, 1 others "
          "failed, 2 wrong\nusage or files, 3 no frame was answered\n"
          "inferd-camera --version | --man\n",
          out);
}

static void print_troff(const char *text)
{
    for (; *text != '\0'; text++) {
        fputs(*text == '\\' ? "\\e" : *text == '-' ? "\\-" : (const char[]){*text, '\0'}, stdout);
    }
}

static void print_man(void)
{
    printf(".TH INFERD\\-CAMERA 1 \"\" \"inferd\" \"User Commands\"\n"
           ".SH NAME\ninferd\\-camera \\- sends pictures to an inference server as cameras do\n"
           ".SH SYNOPSIS\n.B inferd\\-camera\n[\\fIoptions\\fR] \\fIMODEL\\fR "
           "\\fIFOLDER\\fR|\\fIPICTURE\\fR|\\fIDEVICE\\fR\n"
           ".SH DESCRIPTION\nSends the pictures of a folder, or the frames of a camera of this\n"
           "machine (/dev/video0), to\n.BR inferd (1)\n"
           "as one camera or many, each a source of its own, at a rate and without waiting for\n"
           "answers. At the end it prints what became of the frames: sent; answered; skipped,\n"
           "because a newer frame of the camera came (409); refused for load or lateness (503);\n"
           "failed otherwise; lost, because all connections were busy when it was time to send.\n"
           "Ages are counted from the moment when a frame was due (of a device: taken) to the end\n"
           "of its answer.\n.SH OPTIONS\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        printf(".TP\n\\fB\\-\\-");
        print_troff(rows[i].name);
        printf("\\fR ");
        print_troff(rows[i].value);
        printf("\n\\&");
        print_troff(rows[i].text);
        printf("\n");
    }
    printf(".SH EXIT STATUS\n0 every frame was answered, skipped or refused for load, 1 others "
           "failed,\n2 wrong usage or files, 3 no frame was answered\n"
           ".SH SEE ALSO\n.BR inferd (1),\n.BR inferctl (1)\n");
}

/* ---- values ---- */

static bool read_number(const char *name, const char *text, double least, double most, double *ret)
{
    char *end = NULL;
    errno = 0;
    const double number = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(number >= least && number <= most)) {
        fprintf(stderr, "inferd-camera: --%s: \"%s\" is not a number from %g to %g\n", name, text,
                least, most);
        return false;
    }
    *ret = number;
    return true;
}

static bool read_count(const char *name, const char *text, unsigned most, unsigned *ret)
{
    double number = 0;
    if (!read_number(name, text, 1, most, &number)) {
        return false;
    }
    if (number != (double)(unsigned)number) {
        fprintf(stderr, "inferd-camera: --%s: \"%s\" is not a whole number\n", name, text);
        return false;
    }
    *ret = (unsigned)number;
    return true;
}

static bool read_size(const char *text, struct ifd_camera_options *ret)
{
    char *end = NULL, *last = NULL;
    const unsigned long width = strtoul(text, &end, 10);
    const unsigned long height = *end == 'x' ? strtoul(end + 1, &last, 10) : 0;
    ret->width = width < 65536 ? (unsigned)width : 0;
    ret->height = height < 65536 ? (unsigned)height : 0;
    if (ret->width == 0 || ret->height == 0 || *last != '\0') {
        fprintf(stderr, "inferd-camera: --size: \"%s\" is not as 1280x720\n", text);
        return false;
    }
    return true;
}

static bool apply(int letter, const char *value, struct ifd_camera_options *ret)
{
    double seconds = 0;
    switch (letter) {
    case 'u':
        ret->url = value;
        return true;
    case 's':
        ret->token_file = value;
        return true;
    case 'v':
        ret->version = value;
        return true;
    case 'p':
        ret->prefix = value;
        return true;
    case 'e':
        ret->prints_each = true;
        return true;
    case 'n':
        return read_count("cameras", value, IFD_CAMERAS_MAX, &ret->cameras);
    case 'c':
        return read_count("connections", value, IFD_CONNECTIONS_MAX, &ret->connections);
    case 'r':
        return read_number("rate", value, 0.01, 1000, &ret->rate);
    case 'd':
        return read_number("seconds", value, 0.1, 1e7, &ret->seconds);
    case 't':
        if (!read_number("timeout", value, 0.001, 86400, &seconds)) {
            return false;
        }
        ret->timeout_ms = (long)(seconds * 1000);
        return true;
    case 'z':
        return read_size(value, ret);
    default: /* getopt has printed the reason */
        return false;
    }
}

static bool print_text(const char *argument)
{
    const bool is_version = strcmp(argument, "--version") == 0;
    if (is_version) {
        printf("inferd-camera " IFD_VERSION "\n");
    } else if (strcmp(argument, "--man") == 0) {
        print_man();
    } else {
        return false;
    }
    return true;
}

bool ifd_camera_options(int argc, char **argv, struct ifd_camera_options *ret, int *ret_status)
{
    static const struct option table[] = {
#define OPTION(letter, name_, value, text)                                                         \
    {.name = name_, .has_arg = (value)[0] != '\0' ? required_argument : no_argument, .val = letter},
#include "camera_list.inc"
#undef OPTION
        {NULL, 0, NULL, 0},
    };
    *ret = (struct ifd_camera_options){.url = "http://127.0.0.1:8000",
                                       .prefix = "camera",
                                       .cameras = 1,
                                       .connections = 3,
                                       .width = 1280,
                                       .height = 720,
                                       .rate = 10,
                                       .timeout_ms = 10000};
    *ret_status = EXIT_USAGE;
    if (argc == 2 && print_text(argv[1])) {
        *ret_status = fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_USAGE;
        return false;
    }
    for (int letter = 0; (letter = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        if (letter == 'h') {
            print_usage(stdout);
            *ret_status = EXIT_SUCCESS;
            return false;
        }
        if (!apply(letter, optarg, ret)) {
            return false;
        }
    }
    if (argc - optind != 2) {
        print_usage(stderr);
        return false;
    }
    ret->model = argv[optind];
    ret->path = argv[optind + 1];
    return true;
}
