/* Replays files and folders of files through a fuzz target: `fuzz_x corpus/x crash-1234`. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

/* Each file in a block of just its size, so that AddressSanitizer sees every byte read too far. */
static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0) {
        perror(path);
        exit(1);
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int replay(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) {
        replay_file(path);
        return 1;
    }
    int count = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            char name[4096];
            snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
            count += replay(name);
        }
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        count += replay(argv[i]);
    }
    printf("%d files\n", count);
    return count > 0 ? 0 : 1;
}
