/** Options for backends, as a user gives them: "NAME:KEY=VALUE". Thread: one at a time. */
#ifndef INFERD_ENGINE_BACKEND_OPTIONS_H
#define INFERD_ENGINE_BACKEND_OPTIONS_H

#include "engine/base/arena.h"
#include "inferd/backend.h"

/** Those of one backend are neighbours, in the order given. */
struct ifd_backend_options {
    struct ifd_arena arena;
    const char **backend;              /* per option: the backend's name */
    struct ifd_backend_option *option; /* copies: live until ifd_backend_options_finish */
    uint32_t count;
};

/** Errors: INVALID (a text of another form), NOMEM. Nothing is left on error. */
IFD_NODISCARD enum ifd_code ifd_backend_options_init(struct ifd_backend_options *options,
                                                     const char *const *texts, uint32_t count,
                                                     const struct ifd_alloc *alloc,
                                                     struct ifd_err *err);
/** Zeroed options are fine. */
void ifd_backend_options_finish(struct ifd_backend_options *options);

/** Position of the first option of a backend, and how many it has. */
uint32_t ifd_backend_options_find(const struct ifd_backend_options *options, const char *backend,
                                  uint32_t *ret_count);

#endif
