/* Any bytes as the body of a load request: its config and files go through the real loader. Must:
 * an answer; no memory and budget is kept; every file that is opened lies beneath the repository,
 * as realpath says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/builtin.h"
#include "engine/base/str.h"
#include "inferd/engine.h"
#include "server/repo/load_model.h"
#include "server/repo/load_version.h"
#include "server/repo/manifest.h"
#include "server/serve/served.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/loopback.h"

#define BODY_BYTES_MAX ((size_t)1 << 16)

static struct {
    char base[64], root[80];
    const char *dir[1];
    struct ifd_engine *engine;
    struct ifd_budget budget;
    atomic_bool is_stopping; /* never */
    struct ifd_repo_options options;
} world;

/* ---- a repository with links out of it and a secret outside ---- */

static const char *below(const char *name)
{
    static char path[200];
    (void)snprintf(path, sizeof(path), "%s/%s", world.base, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *out = fopen(below(name), "we");
    MUST(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void clean_up(void)
{
    static const char *const names[] = {"root/m/labels.txt",
                                        "root/m/config.pbtxt",
                                        "root/m/1/model.tflite",
                                        "root/m/up",
                                        "root/m/abs",
                                        "root/m/in",
                                        "root/m/1",
                                        "root/m",
                                        "root",
                                        "secret"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)remove(below(names[i]));
    }
    (void)rmdir(world.base);
    ifd_engine_destroy(world.engine);
}

static enum ifd_code start(void *context, struct ifd_version *version, struct ifd_err *err)
{
    (void)context;
    return ifd_describe(version, err); /* reads labels */
}

static void stop(void *context, struct ifd_version *version)
{
    (void)context;
    (void)version;
}

static void set_up(void)
{
    struct ifd_err err = {0};
    char target[100];
    (void)snprintf(world.base, sizeof(world.base), "/tmp/ifd_fuzz_XXXXXX");
    MUST(mkdtemp(world.base));
    (void)snprintf(world.root, sizeof(world.root), "%s/root", world.base);
    MUST(mkdir(below("root"), 0700) == 0 && mkdir(below("root/m"), 0700) == 0);
    MUST(mkdir(below("root/m/1"), 0700) == 0);
    put("secret", "SECRET");
    put("root/m/labels.txt", "a\nb\n");
    put("root/m/config.pbtxt", "backend: \"identity\"");
    put("root/m/1/model.tflite", "none");
    MUST(symlink("../../secret", below("root/m/up")) == 0);
    (void)snprintf(target, sizeof(target), "%s/secret", world.base);
    MUST(symlink(target, below("root/m/abs")) == 0);
    MUST(symlink("labels.txt", below("root/m/in")) == 0);
    struct ifd_engine_options engine = {.alloc = ifd_alloc_system()};
    engine.backends = ifd_backends_builtin(&engine.backend_count);
    MUST(ifd_engine_create(&engine, &world.engine, &err) == IFD_OK);
    world.dir[0] = world.root;
    world.budget.limit_bytes = (uint64_t)64 << 20;
    world.options = (struct ifd_repo_options){.alloc = ifd_alloc_system(),
                                              .engine = world.engine,
                                              .host = {.start = start, .stop = stop},
                                              .dir = world.dir,
                                              .dir_count = 1,
                                              .max_threads = 1,
                                              .max_model_bytes = BODY_BYTES_MAX,
                                              .budget = &world.budget,
                                              .is_stopping = &world.is_stopping};
    MUST(atexit(clean_up) == 0);
}

/* ---- the oracle ---- */

/* Opens path below the model's folder as the loader would. */
static void check_path(struct ifd_str path)
{
    char full[300], real[4096], real_root[4096];
    struct ifd_bytes file = {0};
    int root = -1;
    if (path.size > 200 ||
        !ifd_str_format(full, sizeof(full), "m/%.*s", (int)path.size, path.data)) {
        return;
    }
    MUST(ifd_folder_open(world.root, &root, NULL) == IFD_OK);
    enum ifd_code code =
        ifd_folder_read(root, full, BODY_BYTES_MAX, ifd_alloc_system(), &file, NULL);
    if (code == IFD_OK) {
        char again[500];
        MUST(ifd_path_is_inside(ifd_str(full)));
        MUST(file.size != 6 || memcmp(file.data, "SECRET", 6) != 0);
        MUST(ifd_str_format(again, sizeof(again), "%s/%s", world.root, full));
        MUST(realpath(again, real) && realpath(world.root, real_root));
        MUST(strncmp(real, real_root, strlen(real_root)) == 0 && real[strlen(real_root)] == '/');
        ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)file.data, file.size);
    }
    ifd_folder_close(root);
}

static void check_config(struct ifd_str config)
{
    struct ifd_arena arena;
    struct ifd_model_desc manifest;
    ifd_arena_init(&arena, ifd_alloc_system(), (size_t)64 << 20);
    if (ifd_manifest_read(config, "config", &arena, NULL, &manifest, NULL) == IFD_OK) {
        check_path(ifd_str(manifest.default_model_filename));
        for (uint32_t i = 0; i < manifest.output_count; i++) {
            check_path(ifd_str(manifest.output[i].label_filename));
        }
    }
    ifd_arena_finish(&arena);
}

/* ---- the request, as server/serve/service.c does it ---- */

static void load(struct ifd_service *fake, const struct ifd_load_request *request,
                 ifd_control_fn done, void *arg)
{
    struct ifd_source_file file[64];
    struct ifd_model_load load = {.options = &world.options, .name = "m"};
    struct ifd_err err = {0};
    enum ifd_code code = IFD_OK;
    (void)fake;
    for (uint32_t i = 0; i < request->file_count; i++) {
        check_path(request->file[i].path);
        file[i] = (struct ifd_source_file){.path = request->file[i].path,
                                           .content = request->file[i].content};
        if (!ifd_path_is_inside(file[i].path)) {
            code = ifd_fail(&err, IFD_INVALID, "file is not a path in its folder");
        }
    }
    if (request->config.data) {
        check_config(request->config);
    }
    if (!code) {
        load.request = (struct ifd_source){
            .file = file, .file_count = request->file_count, .config = request->config};
        ifd_load_model(&load);
        code = load.code;
        err = load.err;
        MUST(!code || err.text[0] != '\0');
        for (uint32_t i = 0; i < load.version_count; i++) {
            MUST(load.version[i].version);
            ifd_version_destroy(&world.options, load.version[i].version);
        }
        ifd_release(ifd_alloc_system(), load.version,
                    load.version_capacity * sizeof(*load.version));
        MUST(world.budget.used_bytes == 0);
    }
    done(arg, code, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct loopback loop;
    struct loopback_answer answer;
    struct ifd_service_ops ops = *fake_service_ops();
    if (size > BODY_BYTES_MAX) {
        return 0;
    }
    if (!world.engine) {
        set_up();
    }
    ops.load = load;
    MUST(loopback_init_with(&loop, ifd_alloc_system(), &ops, BODY_BYTES_MAX, true));
    loopback_ask(&loop, "POST", "/v2/repository/models/m/load", NULL, data, size, &answer);
    MUST(answer.status == 200 || (answer.status >= 400 && answer.status <= 413) ||
         answer.status == 500 || answer.status == 501 || answer.status == 503);
    loopback_release(&answer);
    MUST(loop.fake.job_count == 0);
    loopback_finish(&loop);
    return 0;
}
