/* Table of settings and its parser. */
#include "server/config/config_impl.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/str.h"

/* Two columns of the table hold numbers, enums or nothing, by the type of the row. */
#define NUMBER_U32(x)    (x)
#define NUMBER_U64(x)    (x)
#define NUMBER_BOOL(x)   (x)
#define NUMBER_TEXT(x)   0
#define NUMBER_LIST(x)   0
#define NUMBER_CHOICE(x) 0
#define CHOICES_U32(x)   NULL
#define CHOICES_U64(x)   NULL
#define CHOICES_BOOL(x)  NULL
#define CHOICES_TEXT(x)  NULL
#define CHOICES_LIST(x)  NULL
#define WORD(id, word_)  {.word = word_, .value = (unsigned)(id)},
#define CHOICES_CHOICE(x)                                                                          \
    (const struct ifd_choice[])                                                                    \
    {                                                                                              \
        x(WORD)                                                                                    \
        {                                                                                          \
            .word = NULL                                                                           \
        }                                                                                          \
    }
#define FALLBACK_U32(x)    #x
#define FALLBACK_U64(x)    #x
#define FALLBACK_BOOL(x)   (x)
#define FALLBACK_TEXT(x)   (x)
#define FALLBACK_LIST(x)   (x)
#define FALLBACK_CHOICE(x) (x)
/* No texts: they would point into settings that are released. */
#define LIVE_U32  true
#define LIVE_U64  true
#define LIVE_BOOL true

const struct ifd_setting ifd_settings[] = {
#define ROW(section_, member_, flag_, type_, default_, min_, max_, unit_, text_, live_, applier_)  \
    {.section = section_,                                                                          \
     .flag = flag_,                                                                                \
     .unit = unit_,                                                                                \
     .text = text_,                                                                                \
     .fallback = FALLBACK_##type_(default_),                                                       \
     .choices = CHOICES_##type_(max_),                                                             \
     .type = IFD_SETTING_##type_,                                                                  \
     .applier = IFD_APPLIER_##applier_,                                                            \
     .offset = offsetof(struct ifd_config, member_),                                               \
     .min = NUMBER_##type_(min_),                                                                  \
     .max = NUMBER_##type_(max_),                                                                  \
     .is_live = live_},
#define SETTING(section_, member_, flag_, type_, default_, min_, max_, unit_, text_)               \
    ROW(section_, member_, flag_, type_, default_, min_, max_, unit_, text_, false, USE)
#define LIVE(applier_, section_, member_, flag_, type_, default_, min_, max_, unit_, text_)        \
    ROW(section_, member_, flag_, type_, default_, min_, max_, unit_, text_, LIVE_##type_, applier_)
#include "server/config/config_list.inc"
#undef LIVE
#undef SETTING
#undef ROW
};
#define SETTING_COUNT (sizeof(ifd_settings) / sizeof(ifd_settings[0]))
const size_t ifd_setting_count = SETTING_COUNT;

/* ---- the nearest flag ---- */

static unsigned distance(const char *flag, const char *known)
{
    return ifd_str_distance((struct ifd_str){flag, strcspn(flag, "=")}, known);
}

static enum ifd_code fail_unknown(const char *flag, struct ifd_err *err)
{
    const struct ifd_setting *nearest = &ifd_settings[0];
    for (size_t i = 1; i < SETTING_COUNT; i++) {
        if (distance(flag, ifd_settings[i].flag) < distance(flag, nearest->flag)) {
            nearest = &ifd_settings[i];
        }
    }
    /* Suggest a name only if at most half of its characters differ. */
    if (distance(flag, nearest->flag) > 1 + strcspn(flag, "=") / 2) {
        return ifd_fail(err, IFD_INVALID, "unknown option \"--%s\"; inferd serve --help lists them",
                        flag);
    }
    return ifd_fail(err, IFD_INVALID, "unknown option \"--%s\"; did you mean \"--%s\"?", flag,
                    nearest->flag);
}

/* ---- values ---- */

#define CHOICE_BYTES sizeof(unsigned)
_Static_assert(sizeof(enum ifd_control_mode) == CHOICE_BYTES &&
                   sizeof(enum ifd_performance_hint) == CHOICE_BYTES &&
                   sizeof(enum ifd_line_format) == CHOICE_BYTES &&
                   sizeof(enum ifd_precision) == CHOICE_BYTES,
               "an enum is stored as unsigned");

static enum ifd_code set_number(const struct ifd_setting *s, const char *value, void *at,
                                struct ifd_err *err)
{
    uint64_t number = 0;
    if (!ifd_str_u64(ifd_str(value), &number) || number < s->min || number > s->max) {
        return ifd_fail(err, IFD_INVALID, "--%s: \"%s\" is not a number between %llu and %llu",
                        s->flag, value, (unsigned long long)s->min, (unsigned long long)s->max);
    }
    if (s->type == IFD_SETTING_U32) {
        *(uint32_t *)at = (uint32_t)number;
    } else {
        *(uint64_t *)at = number;
    }
    return IFD_OK;
}

static enum ifd_code set_bool(const struct ifd_setting *s, const char *value, void *at,
                              struct ifd_err *err)
{
    bool is_true = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
    if (!is_true && strcmp(value, "false") != 0 && strcmp(value, "0") != 0) {
        return ifd_fail(err, IFD_INVALID, "--%s: \"%s\" is neither true nor false", s->flag, value);
    }
    *(bool *)at = is_true;
    return IFD_OK;
}

static enum ifd_code fail_choice(const struct ifd_setting *s, const char *value,
                                 struct ifd_err *err)
{
    char words[100] = "";
    for (const struct ifd_choice *choice = s->choices; choice->word; choice++) {
        const size_t used = strlen(words);
        (void)snprintf(words + used, sizeof(words) - used, "%s%s", used > 0 ? "|" : "",
                       choice->word);
    }
    return ifd_fail(err, IFD_INVALID, "--%s: \"%s\" is none of %s", s->flag, value, words);
}

static enum ifd_code set_choice(const struct ifd_setting *s, const char *value, void *at,
                                struct ifd_err *err)
{
    for (const struct ifd_choice *choice = s->choices; choice->word; choice++) {
        if (strcmp(choice->word, value) == 0) {
            memcpy(at, &choice->value, CHOICE_BYTES);
            return IFD_OK;
        }
    }
    return fail_choice(s, value, err);
}

static enum ifd_code add_items(struct ifd_config *config, const struct ifd_setting *s,
                               const char *value, struct ifd_config_list *list, struct ifd_err *err)
{
    struct ifd_str rest = ifd_str(value);
    while (rest.size > 0) {
        struct ifd_str part = ifd_str_trim(ifd_str_part(&rest, ','));
        if (part.size == 0) {
            continue;
        }
        if (list->count == IFD_CONFIG_LIST_MAX ||
            part.size >= sizeof(config->list_text) - config->list_text_used) {
            return ifd_fail(err, IFD_TOO_LARGE, "--%s: more than %d values", s->flag,
                            IFD_CONFIG_LIST_MAX);
        }
        char *copy = config->list_text + config->list_text_used;
        memcpy(copy, part.data, part.size);
        copy[part.size] = '\0';
        config->list_text_used += part.size + 1;
        list->item[list->count++] = copy;
    }
    return IFD_OK;
}

static enum ifd_code set(struct ifd_config *config, const struct ifd_setting *s, const char *value,
                         struct ifd_err *err)
{
    void *at = (char *)config + s->offset;
    switch (s->type) {
    case IFD_SETTING_U32:
    case IFD_SETTING_U64:
        return set_number(s, value, at, err);
    case IFD_SETTING_BOOL:
        return set_bool(s, value, at, err);
    case IFD_SETTING_CHOICE:
        return set_choice(s, value, at, err);
    case IFD_SETTING_TEXT:
        *(const char **)at = value;
        return IFD_OK;
    case IFD_SETTING_LIST:
        return add_items(config, s, value, at, err);
    }
    return ifd_fail(err, IFD_INTERNAL, "setting \"%s\" has no type", s->flag);
}

/* ---- the command line ---- */

static const struct ifd_setting *find(const char *name, size_t size)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (ifd_str_equal((struct ifd_str){.data = name, .size = size}, ifd_settings[i].flag)) {
            return &ifd_settings[i];
        }
    }
    return NULL;
}

static bool is_bool_word(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

static enum ifd_code parse_flag(int argc, char **argv, int *at, struct ifd_config *config,
                                struct ifd_err *err)
{
    const char *flag = argv[*at] + 2;
    size_t size = strcspn(flag, "=");
    const struct ifd_setting *s = find(flag, size);
    if (!s) {
        return fail_unknown(flag, err);
    }
    const char *value = NULL;
    if (flag[size] == '=') {
        value = flag + size + 1;
    } else if (s->type == IFD_SETTING_BOOL && (*at + 1 >= argc || !is_bool_word(argv[*at + 1]))) {
        value = "true";
    } else if (*at + 1 < argc) {
        value = argv[++*at];
    } else {
        return ifd_fail(err, IFD_INVALID, "--%s needs a value (%s)", s->flag, s->unit);
    }
    return set(config, s, value, err);
}

/* ---- the file ---- */

static enum ifd_code read_text(const char *path, char *text, size_t size, struct ifd_err *err)
{
    FILE *in = fopen(path, "re");
    size_t used = in ? fread(text, 1, size, in) : 0;
    bool is_read = in && !ferror(in);
    enum ifd_code code = IFD_OK;
    if (!is_read) {
        code = ifd_fail(err, IFD_IO, "cannot read \"%s\": %s", path, strerror(errno));
    } else if (used == size) {
        code = ifd_fail(err, IFD_TOO_LARGE, "\"%s\" has more than %zu bytes", path, size - 1);
    } else if (memchr(text, '\0', used)) {
        code = ifd_fail(err, IFD_INVALID, "\"%s\" is no text", path);
    } else {
        text[used] = '\0';
    }
    if (in) {
        (void)fclose(in);
    }
    return code;
}

/* "name = value" or "name value"; text lies in ret->file_text, which ends with a NUL. */
static enum ifd_code parse_line(struct ifd_str line, struct ifd_config *ret, struct ifd_err *err)
{
    size_t name = 0, gap = 0;
    while (name < line.size && !strchr(" \t=", line.data[name])) {
        name++;
    }
    while (name + gap < line.size && strchr(" \t=", line.data[name + gap])) {
        gap++;
    }
    const struct ifd_setting *s = find(line.data, name);
    char *value = ret->file_text + (line.data - ret->file_text) + name + gap;
    value[line.size - name - gap] = '\0';
    if (!s) {
        char unknown[80];
        (void)ifd_str_format(unknown, sizeof(unknown), "%.*s", (int)name, line.data);
        return fail_unknown(unknown, err);
    }
    if (strcmp(s->flag, "config") == 0) {
        return ifd_fail(err, IFD_INVALID, "a file cannot name another one");
    }
    return set(ret, s, gap == 0 && s->type == IFD_SETTING_BOOL ? "true" : value, err);
}

static enum ifd_code parse_file(const char *path, struct ifd_config *ret, struct ifd_err *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    enum ifd_code code = read_text(path, ret->file_text, sizeof(ret->file_text), err);
    if (code) {
        ifd_err_prefix(err, "--config");
    }
    struct ifd_str rest = code ? (struct ifd_str){0} : ifd_str(ret->file_text);
    if (ifd_str_starts(rest, byte_order_mark)) { /* editors of Windows write it */
        rest = ifd_str(rest.data + strlen(byte_order_mark));
    }
    for (unsigned number = 1; rest.data && !code; number++) {
        struct ifd_str line = ifd_str_part(&rest, '\n');
        line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
        line = ifd_str_trim(line);
        code = line.size > 0 && line.data[0] != '#' ? parse_line(line, ret, err) : IFD_OK;
        if (code) {
            ifd_err_prefix(err, "%s:%u", path, number);
        }
    }
    return code;
}

/* The last --config of the command line; "" if there is none. */
static enum ifd_code find_file(int argc, char **argv, const char **ret_path, struct ifd_err *err)
{
    *ret_path = "";
    for (int i = 0; i < argc; i++) {
        bool is_flag = strncmp(argv[i], "--config", 8) == 0;
        if (is_flag && argv[i][8] == '=') {
            *ret_path = argv[i] + 9;
        } else if (is_flag && argv[i][8] == '\0') {
            if (i + 1 == argc) {
                return ifd_fail(err, IFD_INVALID, "--config needs a value (FILE)");
            }
            *ret_path = argv[++i];
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_config_parse(int argc, char **argv, struct ifd_config *ret, struct ifd_err *err)
{
    const char *file = "";
    *ret = (struct ifd_config){0};
    enum ifd_code code = find_file(argc, argv, &file, err);
    for (size_t i = 0; i < SETTING_COUNT && !code; i++) {
        code = set(ret, &ifd_settings[i], ifd_settings[i].fallback, err);
    }
    if (!code && file[0] != '\0') {
        code = parse_file(file, ret, err);
    }
    for (int i = 0; i < argc && !code; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            code = parse_flag(argc, argv, &i, ret, err);
        } else if (argv[i][0] == '-') {
            code = ifd_fail(err, IFD_INVALID, "unknown option \"%s\"; options begin with \"--\"",
                            argv[i]);
        } else {
            code = set(ret, find("model-repository", strlen("model-repository")), argv[i], err);
        }
    }
    return code;
}

/* ---- changes ---- */

static bool is_same_list(const struct ifd_config_list *a, const struct ifd_config_list *b)
{
    bool is_same = a->count == b->count;
    for (uint32_t i = 0; i < a->count && is_same; i++) {
        is_same = strcmp(a->item[i], b->item[i]) == 0;
    }
    return is_same;
}

static size_t value_bytes(const struct ifd_setting *s)
{
    return s->type == IFD_SETTING_U32      ? sizeof(uint32_t)
           : s->type == IFD_SETTING_U64    ? sizeof(uint64_t)
           : s->type == IFD_SETTING_CHOICE ? CHOICE_BYTES
                                           : sizeof(bool);
}

static bool is_same(const struct ifd_setting *s, const struct ifd_config *a,
                    const struct ifd_config *b)
{
    const void *at = (const char *)a + s->offset, *other = (const char *)b + s->offset;
    switch (s->type) {
    case IFD_SETTING_U32:
    case IFD_SETTING_U64:
    case IFD_SETTING_BOOL:
    case IFD_SETTING_CHOICE:
        return memcmp(at, other, value_bytes(s)) == 0;
    case IFD_SETTING_TEXT:
        return strcmp(*(const char *const *)at, *(const char *const *)other) == 0;
    case IFD_SETTING_LIST:
        return is_same_list(at, other);
    }
    return true;
}

unsigned ifd_config_update(struct ifd_config *config, const struct ifd_config *next,
                           void (*changed)(void *arg, const char *flag, bool is_live), void *arg)
{
    unsigned appliers = 0;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct ifd_setting *s = &ifd_settings[i];
        if (is_same(s, config, next)) {
            continue;
        }
        if (s->is_live) {
            memcpy((char *)config + s->offset, (const char *)next + s->offset, value_bytes(s));
            appliers |= 1u << s->applier;
        }
        changed(arg, s->flag, s->is_live);
    }
    return appliers;
}

/* ---- the environment ---- */

struct ifd_environment ifd_config_environment(void)
{
    struct ifd_environment all = {.notify_socket = getenv("NOTIFY_SOCKET"),
                                  .journal_stream = getenv("JOURNAL_STREAM")};
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t own = 0;
    bool is_ours = !pid || (ifd_str_u64(ifd_str(pid), &own) && own == (uint64_t)getpid());
    if (!usec || !is_ours || !ifd_str_u64(ifd_str(usec), &all.watchdog_us)) {
        all.watchdog_us = 0;
    }
    return all;
}
