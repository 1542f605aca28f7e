#include "tests/support/model_file.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpuref/cpuref.h"
#include "engine/base/file.h"

void model_file_read(struct model_file *f, const char *path)
{
    *f = (struct model_file){0};
    REQUIRE_OK(ifd_file_read(path, INT32_MAX, ifd_alloc_system(), &f->content, &f->err), &f->err);
    fail_alloc_init(&f->fail, 0);
}

void model_file_forget(struct model_file *f)
{
    ifd_release_tensor(ifd_alloc_system(), (void *)f->content.data, f->content.size);
}

static enum ifd_code make_instance(struct model_file *f, const struct model_file_options *options)
{
    f->info = ifd_model_info(f->model);
    if (f->info->input_count > MODEL_FILE_PORTS || f->info->output_count > MODEL_FILE_PORTS) {
        return ifd_fail(&f->err, IFD_UNSUPPORTED, "too many ports for this test");
    }
    const bool has_batch = f->info->input_count > 0 && f->info->input[0].batched;
    f->batch = has_batch && options->batch > 0 ? options->batch : 1;
    const struct ifd_instance_options instance = {.threads = options->threads,
                                                  .max_batch = (uint32_t)f->batch};
    return ifd_instance_create(f->model, &instance, &f->instance, &f->err);
}

enum ifd_code model_file_open(struct model_file *f, const struct model_file_options *options)
{
    static const struct ifd_backend *const reference = &ifd_backend_cpuref;
    struct ifd_engine_options engine = options->engine;
    engine.alloc = &f->fail.alloc;
    if (engine.backend_count == 0) {
        engine.backends = &reference;
        engine.backend_count = 1;
    }
    enum ifd_code code = ifd_engine_create(&engine, &f->engine, &f->err);
    if (code == IFD_OK) {
        code = ifd_model_load(f->engine, f->content, &options->model, &f->model, &f->err);
    }
    return code == IFD_OK ? make_instance(f, options) : code;
}

void model_file_close(struct model_file *f)
{
    for (size_t i = 0; i < MODEL_FILE_PORTS; i++) {
        free(f->zeros[i]);
        f->zeros[i] = NULL;
    }
    ifd_instance_destroy(f->instance);
    ifd_model_destroy(f->model);
    ifd_engine_destroy(f->engine);
    f->instance = NULL;
    f->model = NULL;
    f->engine = NULL;
    f->info = NULL;
    fail_alloc_finish(&f->fail);
}

void model_file_begin(struct model_file *f, const char *path,
                      const struct model_file_options *options)
{
    model_file_read(f, path);
    REQUIRE_OK(model_file_open(f, options ? options : &(struct model_file_options){0}), &f->err);
}

void model_file_end(struct model_file *f)
{
    model_file_close(f);
    model_file_forget(f);
}

void model_file_fill(struct model_file *f)
{
    for (uint32_t i = 0; i < f->info->input_count; i++) {
        const struct ifd_port *port = &f->info->input[i];
        struct ifd_tensor *in = &f->in[i];
        *in = (struct ifd_tensor){.dtype = port->desc.dtype, .shape = port->example};
        if (port->batched) {
            in->shape.dim[0] = f->batch;
        }
        in->bytes = ifd_dtype_bytes(in->dtype);
        for (uint32_t d = 0; d < in->shape.rank; d++) {
            in->bytes *= (size_t)in->shape.dim[d];
        }
        in->capacity = in->bytes;
        free(f->zeros[i]);
        f->zeros[i] = calloc(in->bytes + 1, 1);
        REQUIRE(f->zeros[i] != NULL);
        in->data = f->zeros[i];
    }
}

enum ifd_code model_file_run(struct model_file *f)
{
    memset(f->out, 0, sizeof(f->out));
    const struct ifd_io io = {
        .input = f->in, .output = f->out, .batch = f->batch, .deadline_ns = f->deadline_ns};
    return ifd_instance_run(f->instance, &io, 1, &f->err);
}

void model_file_torture(const struct model_file_torture *how)
{
    struct model_file f;
    long k = 0;
    bool failed = true;
    model_file_read(&f, how->path);
    while (failed) {
        fail_alloc_init(&f.fail, ++k);
        atomic_store(&f.fail.goes_on, how->goes_on);
        enum ifd_code code = model_file_open(&f, &how->options);
        if (code == IFD_OK) {
            code = how->run(&f);
        }
        failed = f.fail.failed;
        if (!(how->may_do_without && code == IFD_OK)) {
            EXPECT_CODE(code, failed ? IFD_NOMEM : IFD_OK, &f.err);
        }
        model_file_close(&f);
    }
    EXPECT(k >= how->rounds_at_least);
    model_file_forget(&f);
}
