/** Bearer tokens (RFC 6750): the file says what each token permits. It holds the SHA-256 of tokens,
 *  never a token.
 *
 *      # NAME CLASS[,CLASS] sha256:SUM [models=GLOB[,GLOB]]
 *      camera1 data sha256:5994471abb…64 digits…c173cacfc5 models=digits,cam_*
 *
 *  Classes are data, observe and admin (api/core/guard.h). A name may have several tokens, so that
 *  a new one works before the old one is removed. A set never changes; reading the file again makes
 *  another set. Errors name the line, but quote nothing of it. Thread: any. */
#ifndef INFERD_SERVER_AUTH_TOKENS_H
#define INFERD_SERVER_AUTH_TOKENS_H

#include "api/core/guard.h"
#include "inferd/status.h"
#include "inferd/alloc.h"

#define IFD_TOKENS_FILE_BYTES_MAX ((size_t)64 << 10)
#define IFD_TOKENS_LINES_MAX      1024
/** Each request is compared with all of them. */
#define IFD_TOKENS_MAX           256
#define IFD_TOKEN_NAME_BYTES_MAX 32

struct ifd_tokens;

/** Errors: INVALID (a bad line, or no token at all, as in a file that is being written), TOO_LARGE,
 *  NOMEM. */
IFD_NODISCARD enum ifd_code ifd_tokens_parse(struct ifd_str text, const struct ifd_alloc *alloc,
                                             struct ifd_tokens **ret_tokens, struct ifd_err *err);

/** Reads a regular file that belongs to this process's user or to root and that nobody else may
 *  read or write. A group may read root's file if this process is not root. Errors: also IO;
 *  INVALID for any other file. */
IFD_NODISCARD enum ifd_code ifd_tokens_read(const char *path, const struct ifd_alloc *alloc,
                                            struct ifd_tokens **ret_tokens, struct ifd_err *err);
void ifd_tokens_destroy(struct ifd_tokens *tokens); /* NULL is fine */

uint32_t ifd_tokens_count(const struct ifd_tokens *tokens);

/** As in struct ifd_guard. Takes the same time for every token, known or not. A token for certain
 *  models is granted requests that name one of them, and requests of class data that name no model,
 *  because those tell nothing about models. */
enum ifd_verdict ifd_tokens_judge(const struct ifd_tokens *tokens, struct ifd_str authorization,
                                  enum ifd_access_class access, struct ifd_str model,
                                  struct ifd_str *ret_caller);

#endif
