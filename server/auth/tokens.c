/* The token file: its lines, its permissions, and finding a token in it. */
#include "server/auth/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/name.h"
#include "engine/base/str.h"
#include "server/hash/sha256.h"

#define SUM_PREFIX    "sha256:"
#define MODELS_PREFIX "models="

struct token {
    uint8_t sum[IFD_SHA256_BYTES];
    struct ifd_str name, models; /* point into the copied text; models {NULL,0}: all models */
    uint32_t classes;            /* IFD_BIT(IFD_ACCESS_DATA) … */
    uint32_t line;
};

struct ifd_tokens {
    const struct ifd_alloc *alloc;
    size_t memory_bytes;
    uint32_t count;
    struct token token[]; /* room for one per line; the copied text follows */
};

/* ---- a line ---- */

static enum ifd_code fail_line(uint32_t line, const char *wanted, struct ifd_err *err)
{
    return ifd_fail(err, IFD_INVALID, "line %u: %s", line, wanted);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts the next word off rest; empty at the end. */
static struct ifd_str next_word(struct ifd_str *rest)
{
    size_t from = 0;
    while (from < rest->size && is_blank(rest->data[from])) {
        from++;
    }
    size_t to = from;
    while (to < rest->size && !is_blank(rest->data[to])) {
        to++;
    }
    const struct ifd_str word = {.data = rest->data + from, .size = to - from};
    *rest = (struct ifd_str){.data = rest->data + to, .size = rest->size - to};
    return word;
}

static bool read_classes(struct ifd_str list, uint32_t *ret_classes)
{
    static const struct {
        const char *name;
        enum ifd_access_class access;
    } classes[] = {
        {"data", IFD_ACCESS_DATA}, {"observe", IFD_ACCESS_OBSERVE}, {"admin", IFD_ACCESS_ADMIN}};
    while (list.data) {
        const struct ifd_str name = ifd_str_part(&list, ',');
        size_t i = 0, count = sizeof(classes) / sizeof(classes[0]);
        while (i < count && !ifd_str_equal(name, classes[i].name)) {
            i++;
        }
        if (i == count) {
            return false;
        }
        *ret_classes |= IFD_BIT(classes[i].access);
    }
    return true;
}

static bool read_sum(struct ifd_str word, uint8_t *ret_sum)
{
    const size_t prefix = strlen(SUM_PREFIX);
    return ifd_str_starts(word, SUM_PREFIX) && word.size == prefix + IFD_SHA256_DIGITS &&
           ifd_sha256_read((struct ifd_str){.data = word.data + prefix, .size = word.size - prefix},
                           ret_sum);
}

static bool is_glob(struct ifd_str glob)
{
    for (size_t i = 0; i < glob.size; i++) {
        const char c = glob.data[i];
        const bool is_alnum =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alnum && (c == '\0' || !strchr("._-+*?", c))) {
            return false;
        }
    }
    return glob.size > 0;
}

static bool read_models(struct ifd_str word, struct ifd_str *ret_models)
{
    if (!ifd_str_starts(word, MODELS_PREFIX)) {
        return false;
    }
    const size_t prefix = strlen(MODELS_PREFIX);
    const struct ifd_str models = {.data = word.data + prefix, .size = word.size - prefix};
    for (struct ifd_str rest = models; rest.data;) {
        if (!is_glob(ifd_str_part(&rest, ','))) {
            return false;
        }
    }
    *ret_models = models;
    return true;
}

static enum ifd_code read_line(struct ifd_str line, struct token *token, struct ifd_err *err)
{
    struct ifd_str rest = line;
    struct ifd_sha256 nothing;
    uint8_t of_nothing[IFD_SHA256_BYTES];
    token->name = next_word(&rest);
    const struct ifd_str classes = next_word(&rest), sum = next_word(&rest),
                         models = next_word(&rest);
    if (sum.size == 0 || next_word(&rest).size > 0) {
        return fail_line(token->line, "not \"NAME CLASS[,CLASS] sha256:SUM [models=GLOB[,GLOB]]\"",
                         err);
    }
    if (!ifd_name_is_valid(token->name) || token->name.size > IFD_TOKEN_NAME_BYTES_MAX) {
        return fail_line(token->line,
                         "the name is not 1 … 32 letters, digits or . _ - + (no dot in front)",
                         err);
    }
    if (!read_classes(classes, &token->classes)) {
        return fail_line(token->line, "a class is not data, observe or admin", err);
    }
    if (!read_sum(sum, token->sum)) {
        return fail_line(token->line,
                         "the third word is not \"sha256:\" and the 64 hexadecimal digits that "
                         "sha256sum prints for the token",
                         err);
    }
    ifd_sha256_begin(&nothing);
    ifd_sha256_end(&nothing, of_nothing);
    if (ifd_sha256_is_same(token->sum, of_nothing)) {
        return fail_line(token->line, "this is the sum of an empty file, not of a token", err);
    }
    if (models.size > 0 && !read_models(models, &token->models)) {
        return fail_line(token->line,
                         "the fourth word is not \"models=\" and model names or globs (* and ?), "
                         "separated by commas",
                         err);
    }
    return IFD_OK;
}

/* ---- the text ---- */

static enum ifd_code add_token(struct ifd_tokens *tokens, const struct token *token,
                               struct ifd_err *err)
{
    if (tokens->count == IFD_TOKENS_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "line %u: more than %d tokens", token->line,
                        IFD_TOKENS_MAX);
    }
    for (uint32_t i = 0; i < tokens->count; i++) {
        if (ifd_sha256_is_same(tokens->token[i].sum, token->sum)) {
            return ifd_fail(err, IFD_INVALID, "line %u: the same token as in line %u", token->line,
                            tokens->token[i].line);
        }
    }
    tokens->token[tokens->count++] = *token;
    return IFD_OK;
}

static enum ifd_code read_lines(struct ifd_tokens *tokens, struct ifd_str text, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t number = 1; text.data && !code; number++) {
        const struct ifd_str line = ifd_str_part(&text, '\n');
        struct ifd_str rest = line;
        const struct ifd_str first = next_word(&rest);
        struct token token = {.line = number};
        if (first.size == 0 || first.data[0] == '#') {
            continue;
        }
        code = read_line(line, &token, err);
        code = code ? code : add_token(tokens, &token, err);
    }
    if (!code && tokens->count == 0) {
        return ifd_fail(err, IFD_INVALID, "it holds no token, so every request would be refused");
    }
    return code;
}

enum ifd_code ifd_tokens_parse(struct ifd_str text, const struct ifd_alloc *alloc,
                               struct ifd_tokens **ret_tokens, struct ifd_err *err)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.size; i++) {
        lines += text.data[i] == '\n';
    }
    if (text.size > IFD_TOKENS_FILE_BYTES_MAX || lines > IFD_TOKENS_LINES_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "%zu bytes in %zu lines, at most %zu bytes in %d lines are read", text.size,
                        lines, IFD_TOKENS_FILE_BYTES_MAX, IFD_TOKENS_LINES_MAX);
    }
    const size_t before_text = sizeof(struct ifd_tokens) + lines * sizeof(struct token);
    struct ifd_tokens *tokens = ifd_acquire_zeroed(alloc, 1, before_text + text.size + 1);
    if (!tokens) {
        return ifd_fail(err, IFD_NOMEM, "no memory for tokens");
    }
    char *copy = (char *)tokens + before_text;
    tokens->alloc = alloc;
    tokens->memory_bytes = before_text + text.size + 1;
    if (text.size > 0) {
        memcpy(copy, text.data, text.size);
    }
    enum ifd_code code = read_lines(tokens, (struct ifd_str){.data = copy, .size = text.size}, err);
    if (code) {
        ifd_tokens_destroy(tokens);
        return code;
    }
    *ret_tokens = tokens;
    return IFD_OK;
}

void ifd_tokens_destroy(struct ifd_tokens *tokens)
{
    if (tokens) {
        ifd_release(tokens->alloc, tokens, tokens->memory_bytes);
    }
}

uint32_t ifd_tokens_count(const struct ifd_tokens *tokens)
{
    return tokens->count;
}

/* ---- the file ---- */

static enum ifd_code check_file(const struct stat *info, struct ifd_err *err)
{
    const bool is_roots = info->st_uid == 0, am_root = geteuid() == 0;
    const unsigned wanted = is_roots && !am_root ? 0640 : 0600;
    if (!S_ISREG(info->st_mode)) {
        return ifd_fail(err, IFD_INVALID, "not a regular file");
    }
    if (!is_roots && info->st_uid != geteuid()) {
        return ifd_fail(err, IFD_INVALID, "it belongs to user %u, expected user %u or root",
                        (unsigned)info->st_uid, (unsigned)geteuid());
    }
    if ((info->st_mode & 077 & ~wanted) != 0) {
        return ifd_fail(err, IFD_INVALID,
                        "its mode is %04o, which lets others read or write it; expected %04o",
                        (unsigned)info->st_mode & 0777, wanted);
    }
    if (info->st_size > (off_t)IFD_TOKENS_FILE_BYTES_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "%lld bytes, at most %zu are read",
                        (long long)info->st_size, IFD_TOKENS_FILE_BYTES_MAX);
    }
    return IFD_OK;
}

/* Reads one byte more than the file's size, to see whether it grew. */
static enum ifd_code read_descriptor(int fd, const struct ifd_alloc *alloc,
                                     struct ifd_tokens **ret_tokens, struct ifd_err *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return ifd_fail(err, IFD_IO, "%s", strerror(errno));
    }
    enum ifd_code code = check_file(&info, err);
    if (code) {
        return code;
    }
    const size_t size = (size_t)info.st_size;
    char *text = ifd_acquire(alloc, size + 1);
    if (!text) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu bytes", size);
    }
    const ssize_t got = read(fd, text, size + 1);
    if (got < 0) {
        code = ifd_fail(err, IFD_IO, "%s", strerror(errno));
    } else if ((size_t)got != size) {
        code = ifd_fail(err, IFD_INVALID, "its size changed while it was read");
    } else {
        code =
            ifd_tokens_parse((struct ifd_str){.data = text, .size = size}, alloc, ret_tokens, err);
    }
    ifd_release(alloc, text, size + 1);
    return code;
}

enum ifd_code ifd_tokens_read(const char *path, const struct ifd_alloc *alloc,
                              struct ifd_tokens **ret_tokens, struct ifd_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    enum ifd_code code = fd >= 0 ? read_descriptor(fd, alloc, ret_tokens, err)
                                 : ifd_fail(err, IFD_IO, "%s", strerror(errno));
    if (fd >= 0) {
        (void)close(fd);
    }
    if (code) {
        ifd_err_prefix(err, "--token-file \"%.120s\"", path);
    }
    return code;
}

/* ---- judging a request ---- */

/* The token of an Authorization header; {NULL,0}: there is none. */
static struct ifd_str token_of(struct ifd_str authorization)
{
    struct ifd_str rest = authorization;
    const struct ifd_str scheme = ifd_str_part(&rest, ' ');
    rest = ifd_str_trim(rest);
    const bool is_there = rest.size > 0 && ifd_str_equal_nocase(scheme, "Bearer");
    return is_there ? rest : (struct ifd_str){0};
}

/* Compares with every token, so that the time tells nothing. */
static const struct token *find(const struct ifd_tokens *tokens, struct ifd_str text)
{
    uint8_t got[IFD_SHA256_BYTES];
    struct ifd_sha256 sum;
    const struct token *found = NULL;
    ifd_sha256_begin(&sum);
    ifd_sha256_add(&sum, text.data, text.size);
    ifd_sha256_end(&sum, got);
    for (uint32_t i = 0; i < tokens->count; i++) {
        found = ifd_sha256_is_same(tokens->token[i].sum, got) ? &tokens->token[i] : found;
    }
    return found;
}

static bool fits_glob(struct ifd_str name, struct ifd_str glob)
{
    size_t n = 0, g = 0, after_star = 0, star_end = 0; /* after_star 0: no star yet */
    while (n < name.size) {
        if (g < glob.size && glob.data[g] == '*') {
            after_star = ++g;
            star_end = n;
        } else if (g < glob.size && (glob.data[g] == '?' || glob.data[g] == name.data[n])) {
            g++;
            n++;
        } else if (after_star > 0) { /* the last star matches one character more */
            g = after_star;
            n = ++star_end;
        } else {
            return false;
        }
    }
    while (g < glob.size && glob.data[g] == '*') {
        g++;
    }
    return g == glob.size;
}

static bool is_for_model(const struct token *token, enum ifd_access_class access,
                         struct ifd_str model)
{
    if (!token->models.data || access == IFD_ACCESS_KNOWN) {
        return true;
    }
    if (!model.data) {
        return access == IFD_ACCESS_DATA;
    }
    for (struct ifd_str rest = token->models; rest.data;) {
        if (fits_glob(model, ifd_str_part(&rest, ','))) {
            return true;
        }
    }
    return false;
}

enum ifd_verdict ifd_tokens_judge(const struct ifd_tokens *tokens, struct ifd_str authorization,
                                  enum ifd_access_class access, struct ifd_str model,
                                  struct ifd_str *ret_caller)
{
    const struct ifd_str text = token_of(authorization);
    if (!text.data) {
        return IFD_VERDICT_NO_TOKEN;
    }
    const struct token *token = find(tokens, text);
    if (!token) {
        return IFD_VERDICT_UNKNOWN_TOKEN;
    }
    *ret_caller = token->name;
    if (access != IFD_ACCESS_KNOWN && (token->classes & IFD_BIT(access)) == 0) {
        return IFD_VERDICT_OTHER_CLASS;
    }
    return is_for_model(token, access, model) ? IFD_VERDICT_GRANTED : IFD_VERDICT_OTHER_MODEL;
}
