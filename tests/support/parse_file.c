/* Reading and parsing model files in tests. */
#include "tests/support/parse_file.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/ir/verify.h"
#include "tests/support/test.h"

const struct ifd_limits parse_limits = {.file_bytes = INT32_MAX,
                                        .nodes = 100000,
                                        .values = 400000,
                                        .node_inputs = 4096,
                                        .tensor_bytes = INT32_MAX,
                                        .arena_bytes = UINT32_MAX};
const struct ifd_parse_options parse_options = {.limits = &parse_limits};

void parse_file_open(struct parse_file *f, const char *path)
{
    *f = (struct parse_file){0};
    REQUIRE_OK(ifd_file_read(path, parse_limits.file_bytes, ifd_alloc_system(), &f->file, &f->err),
               &f->err);
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
    f->code = ifd_parse(f->file, &parse_options, &f->graph, &f->parsed, &f->err);
}

void parse_file_close(struct parse_file *f)
{
    ifd_arena_finish(&f->arena);
    ifd_release_tensor(ifd_alloc_system(), (void *)f->file.data, f->file.size);
}

enum ifd_code parse_bytes(struct ifd_bytes bytes, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_parsed parsed = {0};
    uint8_t *copy = ifd_acquire(ifd_alloc_system(), bytes.size > 0 ? bytes.size : 1);
    REQUIRE(copy != NULL);
    memcpy(copy, bytes.data, bytes.size);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    enum ifd_code code = ifd_parse((struct ifd_bytes){.data = copy, .size = bytes.size},
                                   &parse_options, &graph, &parsed, err);
    if (code == IFD_OK) {
        EXPECT_CODE(ifd_graph_verify(&graph, IFD_INTERNAL, err), IFD_OK, err);
    }
    ifd_arena_finish(&arena);
    ifd_release(ifd_alloc_system(), copy, bytes.size > 0 ? bytes.size : 1);
    return code;
}

void parse_each_file(const char *folder, const char *prefix,
                     void (*fn)(const char *path, const char *name))
{
    DIR *dir = opendir(folder);
    REQUIRE(dir != NULL);
    int count = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        fn(path, entry->d_name);
        count++;
    }
    closedir(dir);
    EXPECT(count > 0);
}
