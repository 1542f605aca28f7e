/** What the repositories look like from outside: for each model a fingerprint of its files' names,
 *  sizes, times and inodes. Opens folders, never files: cheap enough to be done every few seconds.
 *  Thread: any but the loop. */
#ifndef INFERD_SERVER_REPO_SCAN_H
#define INFERD_SERVER_REPO_SCAN_H

#include "server/repo/folder.h"

/** A model's folder as a scan saw it. Equal fingerprints: nothing was written, renamed or replaced
 *  in between. */
struct ifd_scan_model {
    const char *name;
    uint64_t fingerprint;
    /* The same of the files that no SHA256SUMS vouches for, which have to settle; 0: there is
     * none. */
    uint64_t unsummed;
    /* The first among those in a version's folder whose name says that it is not the file yet
     * (ifd_scan_is_temporary), as a path below the repository; memory of the arena. NULL: none. */
    const char *unfinished;
    uint64_t roots; /* repositories that have it: ifd_scan_root of each */
};

struct ifd_scan {
    struct ifd_scan_model *model; /* sorted by name; a name in two repositories is one model, its
                                  * fingerprint their sum */
    uint32_t count;
    uint32_t *in_root;  /* models of each repository; NULL without memory */
    bool is_complete;   /* false: a repository could not be listed, so that absence means nothing */
    uint64_t unlisted;  /* those repositories: ifd_scan_root of each */
    struct ifd_err err; /* the first reason */
};

/** A bit for repository number d. Repositories 64 apart share one. */
static inline uint64_t ifd_scan_root(uint32_t d)
{
    return UINT64_C(1) << d % 64;
}

/** Every model of the repositories; memory of the arena. */
void ifd_scan_all(const char *const *dir, uint32_t dir_count, struct ifd_arena *arena,
                  struct ifd_scan *ret);

/** One model's folder. Errors: as ifd_folder_list; ret is filled also then, and always alike: that
 *  a folder cannot be read is no change from the last time that it could not, and becoming readable
 *  is one. */
enum ifd_code ifd_scan_one(int root, const char *name, struct ifd_arena *arena,
                           struct ifd_scan_model *ret, struct ifd_err *err);

/** A name that editors and uploads use for what is not the file yet: "x~", "x.swp", "x.tmp",
 *  "x.part". */
bool ifd_scan_is_temporary(const char *name);

#endif
