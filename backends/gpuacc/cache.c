/* Files of the program cache: a header, then the driver's binary. */
#include "backends/gpuacc/cache.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <string.h>

#define MAGIC        "inferd-cl-1"
#define BINARY_BYTES ((size_t)256 << 20)

struct header {
    char magic[16];
    struct ifd_gpu_key key;
    uint64_t bytes, checksum; /* of the binary */
};

/* ---- names and sums ---- */

#define FNV_BASIS 14695981039346656037u
#define FNV_PRIME 1099511628211u

static uint64_t fnv(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ byte[i]) * FNV_PRIME;
    }
    return hash;
}

/* With its final NUL, so that texts do not run into each other. */
static void add_text(struct ifd_gpu_key *key, const char *text)
{
    for (int i = 0; i < 2; i++) {
        key->half[i] = fnv(key->half[i], text, strlen(text) + 1);
    }
}

struct ifd_gpu_key ifd_gpu_cache_key(const struct ifd_device *device, const char *const *text,
                                     uint32_t count)
{
    struct ifd_gpu_key key = {{FNV_BASIS, ~FNV_BASIS}};
    add_text(&key, MAGIC);
    add_text(&key, device->info.platform);
    add_text(&key, device->info.name);
    add_text(&key, device->info.driver);
    for (uint32_t i = 0; i < count; i++) {
        add_text(&key, text[i]);
    }
    return key;
}

static bool path_of(const struct ifd_device *device, const struct ifd_gpu_key *key, char *ret,
                    size_t size)
{
    const int written =
        snprintf(ret, size, "%s/%016llx%016llx.clbin", device->cache,
                 (unsigned long long)key->half[0], (unsigned long long)key->half[1]);
    return written > 0 && (size_t)written < size;
}

/* ---- reading ---- */

/* The binary in a file's content; empty if it is damaged or another program's. */
static struct ifd_bytes find_binary(struct ifd_bytes content, const struct ifd_gpu_key *key)
{
    struct header header;
    const struct ifd_bytes none = {NULL, 0};
    if (content.size < sizeof(header)) {
        return none;
    }
    memcpy(&header, content.data, sizeof(header));
    const struct ifd_bytes binary = {content.data + sizeof(header), content.size - sizeof(header)};
    const bool is_mine = memcmp(header.magic, MAGIC, sizeof(MAGIC)) == 0 &&
                         memcmp(&header.key, key, sizeof(*key)) == 0;
    return is_mine && header.bytes == binary.size && binary.size > 0 &&
                   header.checksum == fnv(FNV_BASIS, binary.data, binary.size)
               ? binary
               : none;
}

static cl_program make_program(const struct ifd_device *device, struct ifd_bytes binary,
                               const char *options)
{
    const unsigned char *data = binary.data;
    cl_int status = CL_SUCCESS, error = CL_SUCCESS;
    cl_program program = device->cl.CreateProgramWithBinary(device->context, 1, &device->id,
                                                            &binary.size, &data, &status, &error);
    if (program &&
        (error != CL_SUCCESS || status != CL_SUCCESS ||
         device->cl.BuildProgram(program, 1, &device->id, options, NULL, NULL) != CL_SUCCESS)) {
        (void)device->cl.ReleaseProgram(program);
        program = NULL;
    }
    return program;
}

cl_program ifd_gpu_cache_load(const struct ifd_device *device, const struct ifd_gpu_key *key,
                              const char *options)
{
    const struct ifd_alloc *alloc = device->host->alloc;
    struct ifd_bytes content = {NULL, 0};
    char path[4096];
    cl_program program = NULL;
    if (!device->cache || !path_of(device, key, path, sizeof(path)) ||
        ifd_file_read(path, BINARY_BYTES, alloc, &content, NULL) != IFD_OK) {
        return NULL;
    }
    const struct ifd_bytes binary = find_binary(content, key);
    if (binary.size > 0) {
        program = make_program(device, binary, options);
    }
    ifd_release_tensor(alloc, (void *)(uintptr_t)content.data, content.size);
    return program;
}

/* ---- writing ---- */

static void write_file(const struct ifd_device *device, const struct ifd_gpu_key *key,
                       struct ifd_bytes content)
{
    char path[4096];
    struct ifd_err err = {0};
    if (path_of(device, key, path, sizeof(path)) && ifd_file_write(path, content, &err) != IFD_OK &&
        device->host->debug) {
        device->host->debug(device->host->debug_context, err.text);
    }
}

void ifd_gpu_cache_store(const struct ifd_device *device, const struct ifd_gpu_key *key,
                         cl_program program)
{
    const struct ifd_alloc *alloc = device->host->alloc;
    struct header header = {.magic = MAGIC, .key = *key};
    size_t bytes = 0;
    if (!device->cache ||
        device->cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0 || bytes > BINARY_BYTES - sizeof(header)) {
        return;
    }
    uint8_t *content = ifd_acquire(alloc, sizeof(header) + bytes);
    if (!content) {
        return;
    }
    unsigned char *binary = content + sizeof(header);
    if (device->cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL) ==
        CL_SUCCESS) {
        header.bytes = bytes;
        header.checksum = fnv(FNV_BASIS, binary, bytes);
        memcpy(content, &header, sizeof(header));
        write_file(device, key, (struct ifd_bytes){content, sizeof(header) + bytes});
    }
    ifd_release(alloc, content, sizeof(header) + bytes);
}
