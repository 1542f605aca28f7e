/** The file in which a user keeps the token for a server. */
#ifndef INFERD_CLIENTS_C_TOKEN_FILE_H
#define INFERD_CLIENTS_C_TOKEN_FILE_H

#include "inferd_client.h"

#define IFD_TOKEN_BYTES 1024

/** Reads the first line of the file, which only its owner may read or write, into
 *  token[IFD_TOKEN_BYTES]. Errors: INVALID, with path and reason. */
IFD_CLIENT_NODISCARD enum ifd_client_code ifd_token_file_read(const char *path, char *token,
                                                              struct ifd_client_err *err);

#endif
