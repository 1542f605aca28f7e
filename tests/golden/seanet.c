/* One-operator models with numbers in text: golden/seanet_int16. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden/judge.h"
#include "tests/golden/loaded.h"

#define SEANET_MODELS 127

/* Comma-separated whole numbers; false if there are more or fewer than count. */
static bool read_numbers(const char *path, int64_t *ret_numbers, size_t count)
{
    FILE *file = fopen(path, "r");
    size_t found = 0;
    while (file && found <= count) {
        char text[32];
        size_t size = 0;
        int c = fgetc(file);
        for (; c != EOF && c != ',' && size + 1 < sizeof(text); c = fgetc(file)) {
            text[size++] = (char)c;
        }
        text[size] = '\0';
        char *end = NULL;
        const long long n = strtoll(text, &end, 10);
        if (end != text && found < count) {
            ret_numbers[found] = n;
        }
        found += end != text ? 1 : 0;
        if (c == EOF) {
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return file && found == count;
}

static size_t element_count(const struct ifd_port *port)
{
    size_t count = 1;
    for (uint32_t i = 0; i < port->desc.shape.rank; i++) {
        count *= (size_t)port->desc.shape.dim[i];
    }
    return count;
}

static void store(struct ifd_tensor *tensor, size_t i, int64_t value)
{
    if (tensor->dtype == IFD_S16) {
        ((int16_t *)tensor->data)[i] = (int16_t)value;
    } else if (tensor->dtype == IFD_S32) {
        ((int32_t *)tensor->data)[i] = (int32_t)value;
    } else {
        ((int8_t *)tensor->data)[i] = (int8_t)value;
    }
}

static const char *type_of(const struct ifd_port *port)
{
    return port->desc.dtype == IFD_S32 ? "int32" : "int16";
}

static bool read_csv_input(const char *stem, uint32_t i, const struct ifd_port *port,
                           struct ifd_tensor *ret)
{
    char path[1200];
    const size_t count = element_count(port);
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    snprintf(path, sizeof(path), "%s_input%u_%s.csv", stem, i, type_of(port));
    *ret = (struct ifd_tensor){.dtype = port->desc.dtype,
                               .shape = port->desc.shape,
                               .bytes = count * ifd_dtype_bytes(port->desc.dtype)};
    ret->capacity = ret->bytes;
    ret->data = calloc(count + 1, ifd_dtype_bytes(port->desc.dtype));
    const bool ok = numbers && ret->data && read_numbers(path, numbers, count);
    for (size_t k = 0; ok && k < count; k++) {
        store(ret, k, numbers[k]);
    }
    free(numbers);
    return ok;
}

static bool equals_csv(const char *stem, const struct ifd_port *port, const struct ifd_tensor *got)
{
    char path[1200];
    const size_t count = element_count(port);
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    snprintf(path, sizeof(path), "%s_golden_%s.csv", stem, type_of(port));
    bool ok =
        count > 0 && numbers && read_numbers(path, numbers, count) && golden_count(got) == count;
    for (size_t k = 0; ok && k < count; k++) {
        double value = 0;
        ok = golden_number(got, k, &value) && value == (double)numbers[k];
    }
    free(numbers);
    return ok;
}

static bool run_seanet_model(const struct golden_options *options, const char *stem,
                             struct ifd_err *err)
{
    char path[1200];
    struct golden_loaded l = {0};
    struct ifd_tensor in[PORTS_MAX] = {0}, out[PORTS_MAX] = {0};
    snprintf(path, sizeof(path), "%s.tflite", stem);
    bool ok = golden_load(options, path, &l, err) == IFD_OK &&
              golden_instantiate(options, &l, 1, err) == IFD_OK;
    const uint32_t inputs = ok ? l.info.input_count : 0;
    for (uint32_t i = 0; ok && i < inputs; i++) {
        ok = read_csv_input(stem, i, &l.info.input[i], &in[i]);
    }
    const struct ifd_io io = {.input = in, .output = out, .batch = 1};
    /* each of these models has one output, and there is one file for it */
    ok = ok && l.info.output_count == 1 && ifd_instance_run(l.instance, &io, 1, err) == IFD_OK &&
         equals_csv(stem, &l.info.output[0], &out[0]);
    for (uint32_t i = 0; i < inputs; i++) {
        free(in[i].data);
    }
    golden_unload(&l);
    return ok;
}

static void run_seanet_folder(const struct golden_options *options, const char *folder,
                              uint32_t *run, uint32_t *failed)
{
    char path[1024], stem[1100];
    snprintf(path, sizeof(path), "%s/golden/seanet_int16/%s", options->shared, folder);
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".tflite") != 0) {
            continue;
        }
        struct ifd_err err = {0};
        snprintf(stem, sizeof(stem), "%s/%.*s", path, (int)(dot - entry->d_name), entry->d_name);
        (*run)++;
        if (!run_seanet_model(options, stem, &err)) {
            (*failed)++;
            printf("FAIL %s: %s\n", entry->d_name,
                   err.text[0] != '\0' ? err.text : "numbers differ");
        }
    }
    if (dir) {
        closedir(dir);
    }
}

int golden_run_seanet(const struct golden_options *options)
{
    static const char *const folders[] = {
        "add", "conv", "leaky_relu", "pad", "quantize", "strided_slice", "sub", "transpose_conv"};
    char path[1024];
    uint32_t run = 0, failed = 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        run_seanet_folder(options, folders[i], &run, &failed);
    }
    if (run == 0) {
        snprintf(path, sizeof(path), "%s/golden/seanet_int16", options->shared);
        return golden_skip(path);
    }
    printf("seanet_int16: %u of %u models equal in every number, expected %d\n", run - failed, run,
           SEANET_MODELS);
    return failed == 0 && run == SEANET_MODELS ? 0 : 1;
}
