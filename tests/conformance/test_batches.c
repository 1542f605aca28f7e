/* A batch of several samples against runs of one sample each, of a network on one backend.
 *
 *     test_conformance_batches a_batch_equals_its_samples GpuAcc models/tflite/selfie_….tflite */
#include "tests/support/backends.h"
#include "tests/support/model_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 3 };
/* Blocks of a larger matrix add up in another order: a share of the output's largest number. */
#define ANOTHER_ORDER 1e-4

/* Fills ret with the backend of that name and CpuRef behind it. */
static uint32_t choose(const char *name, const struct ifd_backend *ret[2])
{
    uint32_t count = 0, chosen = 0;
    const struct ifd_backend *const *all = test_backends(&count);
    for (int is_reference = 0; is_reference < 2; is_reference++) {
        for (uint32_t i = 0; i < count; i++) {
            const bool is_wanted = strcmp(all[i]->name, is_reference ? "CpuRef" : name) == 0;
            if (is_wanted && (chosen == 0 || ret[0] != all[i])) {
                ret[chosen++] = all[i];
            }
        }
    }
    REQUIRE(chosen > 0 && strcmp(ret[0]->name, name) == 0);
    return chosen;
}

static void skip_without_device(struct model_file *f)
{
    struct ifd_backend_info info;
    ifd_engine_backend_info(f->engine, 0, &info);
    if (!info.available) {
        char reason[IFD_ERR_TEXT_BYTES];
        (void)snprintf(reason, sizeof(reason), "%s", info.reason);
        model_file_end(f);
        test_skip(reason);
    }
}

static void fill_random(struct model_file *f)
{
    struct test_random random = {7};
    model_file_fill(f);
    for (uint32_t i = 0; i < f->info->input_count; i++) {
        const bool is_float = f->in[i].dtype == IFD_F32;
        float *real = f->in[i].data;
        uint8_t *byte = f->in[i].data;
        for (size_t k = 0; is_float && k < f->in[i].bytes / sizeof(*real); k++) {
            real[k] = test_random_f32(&random, -1, 1);
        }
        for (size_t k = 0; !is_float && k < f->in[i].bytes; k++) {
            byte[k] = (uint8_t)test_random_int(&random, 0, UINT8_MAX);
        }
    }
}

/* Integers are equal on every backend. */
static void expect_close(const void *got_data, const struct ifd_tensor *want_tensor, bool is_exact)
{
    const float *got = got_data, *want = want_tensor->data;
    const size_t count = want_tensor->bytes / sizeof(*want);
    double largest = 0, off = 0;
    if (want_tensor->dtype != IFD_F32) {
        EXPECT(memcmp(got, want, want_tensor->bytes) == 0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        off = fmax(off, fabs((double)got[i] - (double)want[i]));
    }
    REQUIRE(largest > 0 && isfinite(largest));
    EXPECT(off <= (is_exact ? 0 : ANOTHER_ORDER * largest));
}

/* Runs sample n alone. */
static void run_sample(struct model_file *f, uint32_t n, struct ifd_tensor out[MODEL_FILE_PORTS])
{
    struct ifd_tensor in[MODEL_FILE_PORTS];
    memset(out, 0, MODEL_FILE_PORTS * sizeof(*out));
    for (uint32_t i = 0; i < f->info->input_count; i++) {
        in[i] = f->in[i];
        in[i].shape.dim[0] = 1;
        in[i].bytes = in[i].capacity = f->in[i].bytes / SAMPLES;
        in[i].data = (char *)f->in[i].data + n * in[i].bytes;
    }
    const struct ifd_io io = {.input = in, .output = out, .batch = 1};
    REQUIRE_OK(ifd_instance_run(f->instance, &io, 1, &f->err), &f->err);
}

static void a_batch_equals_its_samples(void)
{
    const struct ifd_backend *backends[2];
    const char *name = test_arg(0);
    const uint32_t count = choose(name, backends);
    const struct model_file_options options = {
        .engine = {.backends = backends, .backend_count = count}, .batch = SAMPLES};
    struct model_file f;
    model_file_begin(&f, test_shared(test_arg(1)), &options);
    skip_without_device(&f);
    EXPECT(f.info->batch_is_free);
    fill_random(&f);
    REQUIRE_OK(model_file_run(&f), &f.err);
    char *together[MODEL_FILE_PORTS] = {0};
    for (uint32_t o = 0; o < f.info->output_count; o++) {
        REQUIRE(f.out[o].shape.dim[0] == SAMPLES);
        together[o] = malloc(f.out[o].bytes);
        REQUIRE(together[o] != NULL);
        memcpy(together[o], f.out[o].data, f.out[o].bytes);
    }
    for (uint32_t n = 0; n < SAMPLES; n++) {
        struct ifd_tensor out[MODEL_FILE_PORTS];
        run_sample(&f, n, out);
        for (uint32_t o = 0; o < f.info->output_count; o++) {
            expect_close(together[o] + n * out[o].bytes, &out[o], strcmp(name, "CpuRef") == 0);
        }
    }
    REQUIRE_OK(ifd_engine_check_health(f.engine, &f.err), &f.err);
    for (uint32_t o = 0; o < f.info->output_count; o++) {
        free(together[o]);
    }
    model_file_end(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {T(a_batch_equals_its_samples)};
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
