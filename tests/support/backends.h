/** The backends that this build can test: the built-in ones, then plugins, linked. */
#ifndef INFERD_TESTS_SUPPORT_BACKENDS_H
#define INFERD_TESTS_SUPPORT_BACKENDS_H

#include "inferd/backend.h"

const struct ifd_backend *const *test_backends(uint32_t *ret_count);

#endif
