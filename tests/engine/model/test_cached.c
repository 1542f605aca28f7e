/* The name of a model's file in the cache depends on all that packed weights depend on. */
#include "engine/model/cached.h"

#include "tests/support/folder.h"
#include "tests/support/model.h"

#include "backends/cpuref/cpuref.h"
#include "tests/support/fake_backend.h"

#include <unistd.h>

static const char file[] = "a model file";

struct fixture {
    struct ifd_engine *engine;
    struct ifd_model *model;
};

static void set_up(struct fixture *f)
{
    static const struct ifd_backend *const backends[] = {&fake_backend, &ifd_backend_cpuref};
    struct ifd_err err = {0};
    folder_begin();
    const struct ifd_engine_options options = {
        .backends = backends, .backend_count = 2, .cache_folder = folder_path()};
    const struct ifd_model_options model = {.max_threads = 2};
    REQUIRE_OK(ifd_engine_create(&options, &f->engine, &err), &err);
    REQUIRE_OK(ifd_model_create(f->engine, &model, &f->model, &err), &err);
}

static void tear_down(struct fixture *f)
{
    ifd_model_destroy(f->model);
    ifd_engine_destroy(f->engine);
    EXPECT_INT(unlink(folder_at("key")), 0);
    folder_end();
}

static uint64_t name_of(struct fixture *f, size_t file_bytes)
{
    f->model->file = (struct ifd_bytes){(const uint8_t *)file, file_bytes};
    ifd_model_find_cached(f->model, &(struct ifd_model_options){0});
    EXPECT_INT(f->model->cache_note.code, IFD_NOT_FOUND);
    return f->model->cache_name;
}

/* ---- one part of the key each ---- */

static struct ifd_cpu *cpu(struct fixture *f)
{
    return &f->engine->registry.host.cpu;
}

static void cpu_flags(struct fixture *f)
{
    cpu(f)->flags ^= IFD_CPU_AVX512_VBMI;
}

static void l1_size(struct fixture *f)
{
    cpu(f)->l1d_bytes += 4096;
}

static void l2_size(struct fixture *f)
{
    cpu(f)->l2_bytes += 4096;
}

static void l3_size(struct fixture *f)
{
    cpu(f)->l3_bytes += 4096;
}

static void threads(struct fixture *f)
{
    f->model->max_threads++;
}

static void exact(struct fixture *f)
{
    f->engine->registry.host.exact = true;
}

static void fast(struct fixture *f)
{
    f->engine->registry.host.fast = true;
}

static void optimizer(struct fixture *f)
{
    f->model->no_optimize = true;
}

static void precision_bf16(struct fixture *f)
{
    f->model->precision = IFD_PRECISION_BF16;
}

static void precision_fp16(struct fixture *f)
{
    f->model->precision = IFD_PRECISION_FP16;
}

static void preference_order(struct fixture *f)
{
    f->model->preference[0] = 1;
    f->model->preference[1] = 0;
}

static void one_backend(struct fixture *f)
{
    f->model->preference_count = 1;
}

static void another_backend(struct fixture *f)
{
    f->model->preference_count = 1;
    f->model->preference[0] = 1;
}

static void each_part_of_the_key_gives_another_name(void)
{
    static const struct {
        const char *what;
        void (*change)(struct fixture *);
    } parts[] = {{"nothing", NULL},
                 {"CPU flags", cpu_flags},
                 {"L1", l1_size},
                 {"L2", l2_size},
                 {"L3", l3_size},
                 {"threads", threads},
                 {"exact", exact},
                 {"fast", fast},
                 {"optimizer", optimizer},
                 {"bf16", precision_bf16},
                 {"fp16", precision_fp16},
                 {"order of backends", preference_order},
                 {"one backend", one_backend},
                 {"another backend", another_backend}};
    enum { COUNT = sizeof(parts) / sizeof(parts[0]) };
    uint64_t name[COUNT];
    struct fixture f;
    set_up(&f);
    const struct ifd_host host = f.engine->registry.host;
    for (size_t i = 0; i < COUNT; i++) {
        f.engine->registry.host = host;
        f.model->max_threads = 2;
        f.model->no_optimize = false;
        f.model->precision = IFD_PRECISION_F32;
        f.model->preference[0] = 0;
        f.model->preference[1] = 1;
        f.model->preference_count = 2;
        if (parts[i].change) {
            parts[i].change(&f);
        }
        name[i] = name_of(&f, sizeof(file));
        EXPECT(name_of(&f, sizeof(file)) == name[i]);
        for (size_t k = 0; k < i; k++) {
            EXPECT_TEXT(name[k] == name[i] ? parts[k].what : "another name", "another name");
        }
    }
    f.engine->registry.host = host;
    tear_down(&f);
}

static void another_file_has_another_name(void)
{
    struct fixture f;
    set_up(&f);
    EXPECT(name_of(&f, sizeof(file)) != name_of(&f, sizeof(file) - 1));
    tear_down(&f);
}

/* Its build and its device decide what it packs, and no name tells them apart. */
static void what_a_plugin_packs_is_not_kept(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    const struct ifd_plugin plugin = {0};
    set_up(&f);
    (void)name_of(&f, sizeof(file));
    f.engine->registry.slot[0].plugin = &plugin;
    const uint32_t x = test_graph_f32(&f.model->graph, "x", SHAPE(1, 4));
    test_graph_io(&f.model->graph, x, test_graph_op1(&f.model->graph, IFD_OP_ABS, x, "y"));
    REQUIRE_OK(test_model_build(f.model, &err), &err);
    REQUIRE_OK(ifd_model_settle_cached(f.model, &err), &err);
    EXPECT_TEXT(ifd_model_info(f.model)->cache, "plans with plugins are not kept");
    EXPECT(!ifd_model_info(f.model)->is_from_cache);
    tear_down(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(each_part_of_the_key_gives_another_name),
        T(another_file_has_another_name),
        T(what_a_plugin_packs_is_not_kept),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
