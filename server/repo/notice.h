/** Tells at once that something changed in folders (inotify). A hint: a file system of another
 *  machine says nothing, so the folders are scanned now and then all the same. */
#ifndef INFERD_SERVER_REPO_NOTICE_H
#define INFERD_SERVER_REPO_NOTICE_H

#include "inferd/status.h"

/** Returns a descriptor that is readable after a change in a folder that was added. The caller
 *  closes it. Errors: IO (too many are open on this machine). */
IFD_NODISCARD enum ifd_code ifd_notice_open(int *ret_fd, struct ifd_err *err);
/** Watches the folder path below the open folder root; again is fine. A folder that is removed
 *  leaves by itself. False: the kernel watches no more folders. Thread: any. */
bool ifd_notice_add(int fd, int root, const char *path);
/** Takes all that was told; true if there was something. */
bool ifd_notice_take(int fd);

#endif
