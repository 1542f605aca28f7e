/** Fingerprints the models of the repositories: names, sizes, times and inodes of their files.
 *  Opens folders, never files: cheap enough for every few seconds. Thread: any but the loop. */
#ifndef INFERD_SERVER_REPO_SCAN_H
#define INFERD_SERVER_REPO_SCAN_H

#include "server/repo/folder.h"

/** A model's folder as seen by a scan. Equal fingerprints: nothing was written, renamed or replaced
 *  in between. */
struct ifd_scan_model {
    const char *name;
    uint64_t fingerprint;
    /* The same of files without a SHA256SUMS, which have to settle; 0: there are none. */
    uint64_t unsummed;
    /* First temporary file (ifd_scan_is_temporary) in a version's folder without sums, as a path
     * below the repository, in the arena. NULL: none. */
    const char *unfinished;
    uint64_t roots; /* repositories that have it: ifd_scan_root of each */
};

/** A model file that lies where no model is looked for. */
struct ifd_scan_stray {
    const struct ifd_scan_stray *next;
    const char *path, *wanted; /* where it would be found */
};

struct ifd_scan {
    struct ifd_scan_model *model; /* sorted by name; a name in two repositories is one model, its
                                  * fingerprint their sum */
    uint32_t count;
    uint32_t *in_root;  /* models of each repository; NULL without memory */
    bool is_complete;   /* false: a repository could not be listed, absence means nothing */
    uint64_t unlisted;  /* those repositories: ifd_scan_root of each */
    struct ifd_err err; /* the first reason */
    const struct ifd_scan_stray *stray;
};

/** Bit of repository d. Repositories 64 apart share one. */
static inline uint64_t ifd_scan_root(uint32_t d)
{
    return UINT64_C(1) << d % 64;
}

struct ifd_scan_where {
    const char *const *dir; /* the repositories */
    uint32_t dir_count;
    /* Called for each folder, a path below the open folder root, before it is read; may be NULL. */
    void (*entered)(void *context, int root, const char *path);
    void *context;
};

/** Scans every model of the repositories; memory of the arena. */
void ifd_scan_all(const struct ifd_scan_where *where, struct ifd_arena *arena,
                  struct ifd_scan *ret);

/** Scans one model's folder. Errors: as ifd_folder_list; then ret has a fixed value, so that a
 *  folder that stays unreadable is no change, and one that becomes readable is. */
enum ifd_code ifd_scan_one(int root, const char *name, struct ifd_arena *arena,
                           struct ifd_scan_model *ret, struct ifd_err *err);

/** True for names that editors and uploads use for unfinished files: "x~", "x.swp", "x.tmp",
 *  "x.part". */
bool ifd_scan_is_temporary(const char *name);

#endif
