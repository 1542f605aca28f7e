/** Bearer tokens (RFC 6750): the file that says whose token is for what. It holds their SHA-256, never a token.
 *
 *      # NAME  CLASS[,CLASS]  sha256:SUM  [models=GLOB[,GLOB]]
 *      camera1 data           sha256:5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5 models=digits,cam_*
 *
 *  Classes are data, observe and admin (api/core/guard.h). A name may have several tokens, so that a new one works before the old one
 *  is taken away. A set does not change: reading anew makes another one. Errors say the line, and nothing of what is in it.
 *  Thread: any. */
#ifndef INFERD_SERVER_AUTH_TOKENS_H
#define INFERD_SERVER_AUTH_TOKENS_H

#include "api/core/guard.h"
#include "inferd/status.h"
#include "inferd/alloc.h"

#define IFD_TOKENS_FILE_BYTES_MAX ((size_t)64 << 10)
#define IFD_TOKENS_LINES_MAX      1024
/** Each is compared for every request. */
#define IFD_TOKENS_MAX           256
#define IFD_TOKEN_NAME_BYTES_MAX 32

struct ifd_tokens;

/** Errors: INVALID (a line; no token at all, which is how a file looks that is just being written), TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_tokens_parse(struct ifd_str text, const struct ifd_alloc *alloc,
                                             struct ifd_tokens **ret_tokens, struct ifd_err *err);

/** The same of a regular file that is this process's user's, for nobody else to read or write, or root's; of the latter a group
 *  may read, if this process is not root and so could not otherwise. Errors: also IO, and INVALID for such a file. */
IFD_NODISCARD enum ifd_code ifd_tokens_read(const char *path, const struct ifd_alloc *alloc,
                                            struct ifd_tokens **ret_tokens, struct ifd_err *err);
void ifd_tokens_destroy(struct ifd_tokens *tokens); /* NULL is fine */

uint32_t ifd_tokens_count(const struct ifd_tokens *tokens);

/** As in struct ifd_guard. Takes the same time whichever token it is, and if it is none. A token for certain models gets what
 *  names one of them, and of the class data also what names none, for that tells nothing of models. */
enum ifd_verdict ifd_tokens_judge(const struct ifd_tokens *tokens, struct ifd_str authorization,
                                  enum ifd_access_class access, struct ifd_str model,
                                  struct ifd_str *ret_caller);

#endif
