/** `inferd init DIR MODEL`: makes a repository, or a model in it, with a config that says what the
 *  server found out about the file. Prints to stdout, an error to stderr in one line; returns an
 *  exit status: 0 done, 1 failed, 2 wrong usage. */
#ifndef INFERD_SERVER_INIT_H
#define INFERD_SERVER_INIT_H

#include "engine/tools/tools.h"

int ifd_init(const struct ifd_tool_host *host, int argc, char **argv);

#endif
