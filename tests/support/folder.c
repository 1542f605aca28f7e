#include "tests/support/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/test.h"

static char folder[32];

void folder_begin(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/inferd-test-XXXXXX");
    REQUIRE(mkdtemp(folder) != NULL);
}

void folder_end(void)
{
    EXPECT(rmdir(folder) == 0);
}

const char *folder_path(void)
{
    return folder;
}

const char *folder_at(const char *name)
{
    static char path[8][200];
    static unsigned turn;
    char *text = path[turn++ % 8];
    (void)snprintf(text, sizeof(path[0]), "%s/%s", folder, name);
    return text;
}

void folder_put(const char *name, const char *text)
{
    FILE *out = fopen(folder_at(name), "we");
    REQUIRE(out != NULL);
    REQUIRE(fputs(text, out) >= 0);
    REQUIRE(fclose(out) == 0);
}
