/* Writes log lines to a descriptor. */
#include "server/obs/log_stderr.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/escape.h"
#include "engine/base/str.h"

/* Enough for a slow reader; a reader that stopped reading must not delay the loop longer. */
#define WAIT_MS 10
/* Values are escaped already; escapes make at most six bytes of one in sentences and keys. */
#define LINE_BYTES 8192

struct line {
    char text[LINE_BYTES];
    size_t used;
};

static void add(struct line *line, const char *text, size_t size)
{
    size_t room = LINE_BYTES - 1 - line->used; /* the line feed always fits */
    size = size < room ? size : room;
    memcpy(line->text + line->used, text, size);
    line->used += size;
}

static void add_text(struct line *line, const char *text)
{
    add(line, text, strlen(text));
}

static void add_time(struct line *line)
{
    char stamp[32], all[48];
    struct timespec now = {0};
    struct tm utc = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(all, sizeof(all), "%s.%03ldZ", stamp, now.tv_nsec / 1000000);
    add_text(line, all);
}

/* ---- JSON ---- */

static void add_string(struct line *line, struct ifd_str text)
{
    char escaped[IFD_ESCAPE_BYTES];
    add_text(line, "\"");
    while (text.size > 0) {
        const size_t size = ifd_escape_next(&text, escaped);
        add(line, escaped, size);
    }
    add_text(line, "\"");
}

/* Bytes of the quoted value at text, its quotes included. */
static size_t quoted_bytes(const char *text)
{
    size_t size = 1;
    while (text[size] != '\0' && text[size] != '"') {
        size += text[size] == '\\' && text[size + 1] != '\0' ? 2 : 1;
    }
    return size + (text[size] == '"');
}

static bool is_number(struct ifd_str text)
{
    int64_t value = 0;
    bool is_plain = text.size == 1 || (text.size > 0 && text.data[0] != '0' && text.data[0] != '+');
    return is_plain && ifd_str_s64(text, &value);
}

/* "key=value key=\"value\"" as members; values that log.c quoted are JSON strings already. */
static void add_members(struct line *line, const char *fields)
{
    while (*fields != '\0') {
        const size_t key = strcspn(fields, "= ");
        add_text(line, ",");
        add_string(line, (struct ifd_str){.data = fields, .size = key});
        add_text(line, ":");
        fields += key;
        fields += *fields == '=';
        const bool is_quoted = *fields == '"';
        const struct ifd_str value = {
            .data = fields, .size = is_quoted ? quoted_bytes(fields) : strcspn(fields, " ")};
        if (is_quoted || is_number(value)) {
            add(line, value.data, value.size);
        } else {
            add_string(line, value);
        }
        fields += value.size;
        fields += strspn(fields, " ");
    }
}

static void format_json(struct line *line, enum ifd_log_level level, const char *sentence,
                        const char *fields)
{
    add_text(line, "{\"time\":\"");
    add_time(line);
    add_text(line, "\",\"level\":\"");
    add_text(line, ifd_log_level_name(level));
    add_text(line, "\",\"event\":");
    add_string(line, ifd_str(sentence));
    add_members(line, fields);
    add_text(line, "}");
}

/* ---- text ---- */

static void format_text(struct line *line, bool is_journal, enum ifd_log_level level,
                        const char *sentence, const char *fields)
{
    static const char *const priority[] = {"<3>", "<4>", "<6>", "<7>"}; /* syslog's levels */
    if (is_journal) {
        add_text(line, priority[level]);
    } else {
        add_time(line);
        add_text(line, " ");
        add_text(line, ifd_log_level_name(level));
        add_text(line, " ");
    }
    add_text(line, sentence);
    if (*fields != '\0') {
        add_text(line, " ");
        add_text(line, fields);
    }
}

/* ---- the sink; its context is descriptor + 256 * format ---- */

static void write_line(void *context, enum ifd_log_level level, const char *sentence,
                       const char *fields)
{
    struct line line;
    line.used = 0;
    enum ifd_log_format format = (enum ifd_log_format)((uintptr_t)context / 256);
    if (format == IFD_LOG_JSON) {
        format_json(&line, level, sentence, fields);
    } else {
        format_text(&line, format == IFD_LOG_JOURNAL, level, sentence, fields);
    }
    line.text[line.used++] = '\n';
    /* A log that cannot be written must not stop the server, so the result is ignored. */
    struct pollfd sink = {.fd = (int)((uintptr_t)context % 256), .events = POLLOUT};
    if (poll(&sink, 1, WAIT_MS) != 0) {
        ssize_t written = write(sink.fd, line.text, line.used);
        (void)written;
    }
}

struct ifd_log ifd_log_to_fd(int fd, enum ifd_log_format format, unsigned levels)
{
    return (struct ifd_log){.levels = levels,
                            .context = (void *)((uintptr_t)fd + 256 * (uintptr_t)format),
                            .write = write_line};
}

bool ifd_log_is_journal(int fd, const char *journal_stream)
{
    struct stat info;
    char own[64];
    if (!journal_stream || fstat(fd, &info) != 0) {
        return false;
    }
    (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)info.st_dev, (uintmax_t)info.st_ino);
    return strcmp(own, journal_stream) == 0;
}
