/* Measures ways to compute a layer; reads and writes what it learned. */
#include "backends/gpuacc/tuner.h"

#include "backends/gpuacc/cache.h"
#include "backends/gpuacc/cost.h"
#include "backends/gpuacc/measure.h"
#include "engine/base/file.h"
#include "engine/base/str.h"

#include <stdio.h>
#include <string.h>

#define MAGIC      "inferd-gpu-tuning-1"
#define FILE_BYTES ((size_t)256 << 10)
#define LINE_BYTES 512
#define BETWEEN    " = "

/* What it knows of one layer. */
struct ifd_gpu_lesson {
    struct ifd_gpu_lesson *next;
    const char *way;
    size_t bytes; /* of this struct with both texts */
    char key[];   /* ends with NUL, as way behind it */
};

/* ---- lessons ---- */

static const char *find(const struct ifd_gpu_tuner *tuner, const char *key)
{
    const struct ifd_gpu_lesson *lesson = tuner->lessons;
    while (lesson && strcmp(lesson->key, key) != 0) {
        lesson = lesson->next;
    }
    return lesson ? lesson->way : NULL;
}

/* The newest lesson of a key counts. Without memory it is forgotten. */
static void learn(struct ifd_device *device, struct ifd_str key, struct ifd_str way)
{
    const size_t bytes = sizeof(struct ifd_gpu_lesson) + key.size + way.size + 2;
    struct ifd_gpu_lesson *lesson = ifd_acquire(device->host->alloc, bytes);
    if (!lesson) {
        return;
    }
    *lesson = (struct ifd_gpu_lesson){.next = device->tuner.lessons, .bytes = bytes};
    memcpy(lesson->key, key.data, key.size);
    lesson->key[key.size] = '\0';
    char *text = lesson->key + key.size + 1;
    memcpy(text, way.data, way.size);
    text[way.size] = '\0';
    lesson->way = text;
    device->tuner.lessons = lesson;
}

/* ---- the file ---- */

/* Device, driver and kernels. */
static void header_of(const struct ifd_device *device, char ret[LINE_BYTES])
{
    const char *const text[] = {ifd_gpu_file_common.text,
                                ifd_gpu_kernel_file(IFD_GPU_conv2d)->text,
                                ifd_gpu_kernel_file(IFD_GPU_conv2d_slim)->text,
                                ifd_gpu_kernel_file(IFD_GPU_conv2d_tile)->text,
                                ifd_gpu_kernel_file(IFD_GPU_conv2d_mma)->text,
                                ifd_gpu_kernel_file(IFD_GPU_winograd_in)->text,
                                ifd_gpu_kernel_file(IFD_GPU_winograd_out)->text};
    const struct ifd_gpu_key key = ifd_gpu_cache_key(device, text, sizeof(text) / sizeof(text[0]));
    (void)snprintf(ret, LINE_BYTES, "%s %016llx%016llx %s, %s", MAGIC,
                   (unsigned long long)key.half[0], (unsigned long long)key.half[1],
                   device->info.name, device->info.driver);
}

static struct ifd_str line_of(struct ifd_bytes content, size_t *at)
{
    const char *data = (const char *)content.data + *at;
    const char *end = memchr(data, '\n', content.size - *at);
    const size_t size = end ? (size_t)(end - data) : content.size - *at;
    *at += size + (end ? 1 : 0);
    return (struct ifd_str){data, size};
}

/* "KEY = WAY"; anything else teaches nothing. */
static void read_line(struct ifd_device *device, struct ifd_str line)
{
    const size_t gap = strlen(BETWEEN);
    for (size_t i = 1; i + gap < line.size && line.size < LINE_BYTES; i++) {
        if (memcmp(line.data + i, BETWEEN, gap) == 0) {
            learn(device, (struct ifd_str){line.data, i},
                  (struct ifd_str){line.data + i + gap, line.size - i - gap});
            return;
        }
    }
}

static void read_file(struct ifd_device *device)
{
    const struct ifd_alloc *alloc = device->host->alloc;
    struct ifd_bytes content = {NULL, 0};
    char header[LINE_BYTES];
    size_t at = 0;
    if (ifd_file_read(device->tuner.file, FILE_BYTES, alloc, &content, NULL) != IFD_OK) {
        return; /* there is none yet */
    }
    header_of(device, header);
    if (ifd_str_equal(line_of(content, &at), header) &&
        memchr(content.data, '\0', content.size) == NULL) {
        while (at < content.size) {
            read_line(device, line_of(content, &at));
        }
    }
    ifd_release_tensor(alloc, (void *)(uintptr_t)content.data, content.size);
}

/* Is there a newer lesson of the same key? */
static bool is_outdated(const struct ifd_gpu_tuner *tuner, const struct ifd_gpu_lesson *lesson)
{
    return find(tuner, lesson->key) != lesson->way;
}

static void write_file(struct ifd_device *device, char *text, size_t size)
{
    const struct ifd_gpu_tuner *tuner = &device->tuner;
    struct ifd_err err = {0};
    char header[LINE_BYTES];
    header_of(device, header);
    size_t used = (size_t)snprintf(text, size, "%s\n", header);
    for (const struct ifd_gpu_lesson *l = tuner->lessons; l; l = l->next) {
        if (!is_outdated(tuner, l)) {
            used += (size_t)snprintf(text + used, size - used, "%s" BETWEEN "%s\n", l->key, l->way);
        }
    }
    if (ifd_file_write(tuner->file, (struct ifd_bytes){(const uint8_t *)text, used}, &err) !=
            IFD_OK &&
        device->host->debug) {
        device->host->debug(device->host->debug_context, err.text);
    }
}

bool ifd_gpu_tuner_keeps_news(const struct ifd_device *device)
{
    return device->tuner.has_news && device->tuner.file;
}

void ifd_gpu_tuner_save(struct ifd_device *device)
{
    struct ifd_gpu_tuner *tuner = &device->tuner;
    size_t size = LINE_BYTES;
    ifd_gpu_measure_finish(&tuner->measure, &device->cl);
    if (!ifd_gpu_tuner_keeps_news(device)) {
        return;
    }
    for (const struct ifd_gpu_lesson *l = tuner->lessons; l; l = l->next) {
        size += l->bytes + strlen(BETWEEN);
    }
    char *text = ifd_acquire(device->host->alloc, size);
    if (text) {
        write_file(device, text, size);
        ifd_release(device->host->alloc, text, size);
        tuner->has_news = false;
    }
}

/* ---- choosing ---- */

/* The way with this name; count: there is none. */
static uint32_t named(const struct ifd_gpu_ways *ways, const char *name)
{
    uint32_t way = 0;
    for (; way < ways->count; way++) {
        char text[IFD_GPU_WAY_TEXT];
        ways->name(ways->context, way, text);
        if (strcmp(text, name) == 0) {
            break;
        }
    }
    return way;
}

static void tell(const struct ifd_device *device, const char *key, const char *way, uint64_t ns)
{
    char line[LINE_BYTES];
    if (device->host->debug) {
        (void)snprintf(line, sizeof(line), "GpuAcc: %s: %s takes %llu ns", key, way,
                       (unsigned long long)ns);
        device->host->debug(device->host->debug_context, line);
    }
}

/* All calls of a way; the device's clock does not see what lies between them. */
static enum ifd_code measure_way(struct ifd_gpu_lowering *lowering, const struct ifd_gpu_ways *ways,
                                 uint32_t way, uint64_t *ret_ns)
{
    const uint32_t calls = ways->calls(ways->context, way);
    enum ifd_code code = IFD_OK;
    *ret_ns = (uint64_t)(calls - 1) * IFD_GPU_LAUNCH_NS;
    for (uint32_t i = 0; code == IFD_OK && i < calls; i++) {
        struct ifd_gpu_call call;
        uint64_t ns = 0;
        code = ways->describe(ways->context, way, i, &call, NULL);
        if (code == IFD_OK) {
            code = ifd_gpu_measure(&lowering->device->tuner.measure, lowering, &call, &ns, NULL);
        }
        *ret_ns += ns;
    }
    return code;
}

static uint32_t measure(struct ifd_gpu_lowering *lowering, const char *key,
                        const struct ifd_gpu_ways *ways, uint32_t count)
{
    struct ifd_device *device = lowering->device;
    uint64_t best_ns = UINT64_MAX;
    uint32_t best = 0;
    for (uint32_t way = 0; way < count; way++) {
        char name[IFD_GPU_WAY_TEXT];
        uint64_t ns = 0;
        if (measure_way(lowering, ways, way, &ns) != IFD_OK) {
            continue;
        }
        ways->name(ways->context, way, name);
        tell(device, key, name, ns);
        if (ns < best_ns) {
            best = way;
            best_ns = ns;
        }
    }
    return best;
}

/* Is a way clearly faster than that which is estimated best? They are measured in turn, since
 * clocks change: what was fastest of many, each measured once, may have been lucky. */
static bool is_faster(struct ifd_gpu_lowering *lowering, const struct ifd_gpu_ways *ways,
                      uint32_t way)
{
    enum { PAIRS = 5, WINS = 4 };
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
    int wins = 0;
    for (int i = 0; i < PAIRS; i++) {
        uint64_t ns[2] = {0, 0};
        if (measure_way(lowering, ways, 0, &ns[0]) != IFD_OK) {
            return true; /* that does not run at all */
        }
        if (measure_way(lowering, ways, way, &ns[1]) != IFD_OK) {
            return false;
        }
        wins += ns[1] < ns[0];
        for (int k = 0; k < 2; k++) {
            least[k] = ns[k] < least[k] ? ns[k] : least[k];
        }
    }
    return wins >= WINS && least[1] < least[0] - least[0] / 32;
}

uint32_t ifd_gpu_tune(struct ifd_gpu_lowering *lowering, const char *key,
                      const struct ifd_gpu_ways *ways)
{
    static const uint32_t measured[IFD_GPU_TUNING_MAX + 1] = {0, 4, 12, UINT32_MAX};
    struct ifd_device *device = lowering->device;
    const uint32_t limit = measured[device->tuner.level];
    const char *only = device->tuner.only;
    const char *known = only ? only : find(&device->tuner, key);
    const uint32_t way = known ? named(ways, known) : ways->count;
    if (way < ways->count || limit == 0) {
        return way < ways->count ? way : 0;
    }
    uint32_t best = measure(lowering, key, ways, ways->count < limit ? ways->count : limit);
    if (best != 0 && !is_faster(lowering, ways, best)) {
        best = 0;
    }
    char name[IFD_GPU_WAY_TEXT];
    ways->name(ways->context, best, name);
    learn(device, ifd_str(key), ifd_str(name));
    device->tuner.has_news = true;
    return best;
}

/* ---- life ---- */

void ifd_gpu_tuner_open(struct ifd_device *device, const struct ifd_gpu_options *options)
{
    device->tuner = (struct ifd_gpu_tuner){.level = options->tuning, .file = options->tuning_file};
    if (device->tuner.file) {
        read_file(device);
    }
}

void ifd_gpu_tuner_close(struct ifd_device *device)
{
    ifd_gpu_measure_finish(&device->tuner.measure, &device->cl);
    while (device->tuner.lessons) {
        struct ifd_gpu_lesson *lesson = device->tuner.lessons;
        device->tuner.lessons = lesson->next;
        ifd_release(device->host->alloc, lesson, lesson->bytes);
    }
}
