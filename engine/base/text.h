/** Formatted text through a sink, in chunks; dumps are written with it. Thread: any, on
 *  different sinks. */
#ifndef INFERD_ENGINE_BASE_TEXT_H
#define INFERD_ENGINE_BASE_TEXT_H

#include "inferd/types.h"

struct ifd_writer {
    ifd_sink_fn sink;
    void *context;
};

/** printf; cut to IFD_WRITE_BYTES - 1 characters. */
#define IFD_WRITE_BYTES 768
void ifd_write(const struct ifd_writer *writer, const char *format, ...) IFD_PRINTF(2, 3);

/** Text of any length between double quotes, escaped as in JSON (engine/base/escape.h), so that
 *  a hostile name cannot forge lines. */
void ifd_write_quoted(const struct ifd_writer *writer, const char *text);

#endif
