/* Reads a token and refuses files that others may read. */
#include "token_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static enum ifd_client_code fail(struct ifd_client_err *err, const char *path, const char *why)
{
    err->code = IFD_CLIENT_INVALID;
    err->http_status = 0;
    snprintf(err->text, sizeof(err->text), "%s: %s", path, why);
    return IFD_CLIENT_INVALID;
}

enum ifd_client_code ifd_token_file_read(const char *path, char *token, struct ifd_client_err *err)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &info) != 0) {
        int reason = errno;
        if (file) {
            fclose(file);
        }
        return fail(err, path, strerror(reason));
    }
    bool is_private = S_ISREG(info.st_mode) && (info.st_mode & 077) == 0;
    bool is_read = is_private && fgets(token, IFD_TOKEN_BYTES, file) != NULL;
    fclose(file);
    if (!is_private) {
        return fail(err, path, "other users may read or write this token: chmod 600");
    }
    size_t length = is_read ? strcspn(token, "\r\n") : 0;
    if (length == 0 || length + 1 == IFD_TOKEN_BYTES) {
        return fail(err, path, "its first line is empty or too long for a token");
    }
    token[length] = '\0';
    return IFD_CLIENT_OK;
}
