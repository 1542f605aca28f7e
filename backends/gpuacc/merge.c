/* Finds the names of a kernel file, and lets them end with a number. */
#include "backends/gpuacc/merge.h"

#include "backends/gpuacc/kernels.h"
#include "engine/base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static struct ifd_str name_at(const char *at)
{
    size_t size = 0;
    while (is_name(at[size])) {
        size++;
    }
    return (struct ifd_str){at, size};
}

/* The name that ends before end; empty if it is pasted together there. */
static struct ifd_str name_before(const char *begin, const char *end)
{
    const char *at = end;
    while (at > begin && is_name(at[-1])) {
        at--;
    }
    const bool is_pasted = at > begin && at[-1] == '#';
    return (struct ifd_str){at, is_pasted ? 0 : (size_t)(end - at)};
}

static bool starts_with(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

enum kind { MACRO, OTHER };

/* The name that a line makes, and of which kind; empty: none. */
static struct ifd_str name_of(const char *line, const char *end, enum kind *ret_kind)
{
    const char *at = line + strspn(line, " ");
    const char *until = NULL;
    *ret_kind = OTHER;
    if (starts_with(at, "#define ")) {
        *ret_kind = MACRO;
        return name_at(at + strlen("#define "));
    }
    if (starts_with(line, "struct ")) {
        return name_at(line + strlen("struct "));
    }
    if (starts_with(at, "inline ") || starts_with(at, "kernel void ")) {
        until = memchr(at, '(', (size_t)(end - at));
    } else if (starts_with(at, "typedef ")) {
        until = memchr(at, ';', (size_t)(end - at));
    }
    return until ? name_before(at, until) : (struct ifd_str){at, 0};
}

/* Of all names in a text, those of a kind. */
struct names {
    const char *at;
    enum kind kind;
};

static struct ifd_str next_name(struct names *names)
{
    while (*names->at) {
        const char *line = names->at, *end = line + strcspn(line, "\n");
        enum kind kind = OTHER;
        const struct ifd_str name = name_of(line, end, &kind);
        names->at = *end ? end + 1 : end;
        if (name.size > 0 && kind == names->kind) {
            return name;
        }
    }
    return (struct ifd_str){names->at, 0};
}

#define TEXTS 3 /* of a program: definitions, what stands in front of each file, the file */

static void add_renames(struct ifd_buf *merged, const char *const text[TEXTS], uint32_t number)
{
    for (int i = 0; i < TEXTS; i++) {
        struct names names = {text[i], OTHER};
        for (struct ifd_str name = next_name(&names); name.size > 0; name = next_name(&names)) {
            ifd_buf_addf(merged, "#define %.*s %.*s_%u\n", (int)name.size, name.data,
                         (int)name.size, name.data, number);
        }
    }
}

static void add_ends(struct ifd_buf *merged, const char *const text[TEXTS])
{
    for (int i = 0; i < 2 * TEXTS; i++) {
        struct names names = {text[i / 2], i % 2 ? MACRO : OTHER};
        for (struct ifd_str name = next_name(&names); name.size > 0; name = next_name(&names)) {
            ifd_buf_addf(merged, "#undef %.*s\n", (int)name.size, name.data);
        }
    }
}

void ifd_gpu_merge(struct ifd_buf *merged, const struct ifd_gpu_program *program, uint32_t number)
{
    const char *const text[TEXTS] = {program->defines, ifd_gpu_file_common.text,
                                     program->file->text};
    /* a file may have switched it off */
    ifd_buf_add_text(merged, "#pragma OPENCL FP_CONTRACT ON\n");
    add_renames(merged, text, number);
    for (int i = 0; i < TEXTS; i++) {
        ifd_buf_add_text(merged, text[i]);
        ifd_buf_add_text(merged, "\n");
    }
    add_ends(merged, text);
}

void ifd_gpu_merged_name(const char *kernel, uint32_t number, char ret[IFD_GPU_KERNEL_NAME])
{
    (void)snprintf(ret, IFD_GPU_KERNEL_NAME, "%s_%u", kernel, number);
}
