/* Any text as a model config, alone and against a model: read, or refused with a reason, both times
 * alike, in bounded memory. */
#include <string.h>

#include "server/repo/complete.h"
#include "server/repo/manifest.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES ((size_t)64 << 20)

static const struct ifd_port input = {
    .name = "image",
    .desc = {.dtype = IFD_U8, .shape = {.rank = 4, .dim = {1, 32, 32, 3}}},
    .batched = true};
static const struct ifd_port output = {
    .name = "score",
    .desc = {.dtype = IFD_F32, .shape = {.rank = 2, .dim = {1, IFD_DIM_ANY}}},
    .batched = true};
static const struct ifd_model_info info = {
    .input = &input, .input_count = 1, .output = &output, .output_count = 1};

static void check_texts(const struct ifd_model_desc *m)
{
    MUST(m->name && m->platform && m->backend && m->default_model_filename);
    for (uint32_t i = 0; i < m->input_count; i++) {
        MUST(m->input[i].name[0] != '\0' && m->input[i].shape.rank <= IFD_MAX_RANK);
    }
    for (uint32_t i = 1; i < m->preferred_batch_size_count; i++) {
        MUST(m->preferred_batch_size[i - 1] <= m->preferred_batch_size[i]);
    }
}

static enum ifd_code read_once(struct ifd_str text)
{
    struct ifd_arena arena;
    struct ifd_model_desc manifest, twin;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), ARENA_BYTES);
    enum ifd_code code = ifd_manifest_read(text, "config", &arena, NULL, &manifest, &err);
    if (!code) {
        check_texts(&manifest);
        twin = manifest;
        code = ifd_manifest_complete_identity(&twin, &err);
        MUST(!code || err.text[0] != '\0');
        code = ifd_manifest_complete(&manifest, &info, &arena, &err);
        if (!code) {
            MUST(manifest.input_count == 1 && manifest.output_count == 1);
            MUST(manifest.input[0].shape.rank == (manifest.max_batch_size > 0 ? 3 : 4));
        }
    }
    MUST(!code || err.text[0] != '\0');
    ifd_arena_finish(&arena);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ifd_str text = {.data = (const char *)data, .size = size};
    enum ifd_code code = read_once(text);
    MUST(read_once(text) == code);
    return 0;
}
