/* `inferd run | inspect | compare | bench` without the server, for machines that its libraries are
 * not built for. */
#include "backends/builtin.h"
#include "engine/tools/tools.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct ifd_tool_host *, int, char **);
    } commands[] = {
        {"run", ifd_tool_run},
        {"inspect", ifd_tool_inspect},
        {"compare", ifd_tool_compare},
        {"bench", ifd_tool_bench},
    };
    struct ifd_tool_host host = {0};
    host.backends = ifd_backends_builtin(&host.backend_count);
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(&host, argc - 1, argv + 1);
        }
    }
    (void)fprintf(stderr, "usage: engine_tools run|inspect|compare|bench …\n");
    return 2;
}
