// SPDX-License-Identifier: Apache-2.0
/*
 * Walks through a folder and those below it, and writes what is there into an archive, in steps that take a bounded
 * time and amount of memory. A disk thread makes a step; between the steps the worker tells what the client may have.
 *
 *     walk_open() ─► walk_step() ─► WALK_OUTPUT (further bytes) ─► walk_step() ...
 *                        │  ▲
 *                        ▼  └────── walk_check() until it returns false (worker)
 *                     WALK_CHECK
 *
 * Only what GET of its path would send is in the archive. A folder is left out if the plugin does not list it, or, with
 * ArchiveIndexed Off, if it has an index. What vanishes, or cannot be read, before its turn is left out, too.
 */
#ifndef DIRLISTING_WALK_H
#define DIRLISTING_WALK_H

#include "folder.h"
#include "tar.h"

#include <sys/stat.h>

enum walk_result { WALK_OUTPUT, WALK_CHECK, WALK_END };

struct walk_level; /* a folder that is being read */

struct walk {
    const struct mk_host *host;
    const struct listing_rule *rule; /* of the first folder: its limits count */
    const _Atomic bool *cancelled;
    struct tar *tar;
    struct mk_buf *out; /* of the archive */
    struct walk_level *top;
    unsigned depth;
    uint64_t bytes, entries; /* so far */
    size_t base_len;         /* of the first folder's path up to its name, which the names in the archive leave out */
    int fd;                  /* the file that is being read, or -1 */
    struct stat st;          /* of that file, at its beginning */
    uint64_t left;           /* bytes of it */
    bool ended;
    char *chunk;
};

/*
 * Opens the first folder. `out` gets the bytes; the other pointers must outlive the walk. For a disk thread. Call
 * walk_close() in any case.
 * Returns 0 or -errno, as folder_open().
 */
int walk_open(struct walk *w, const struct mk_host *host, const struct listing_rule *rule, struct mk_str path,
              const _Atomic bool *cancelled);
void walk_close(struct walk *w);

/* Begins the archive. Returns 0 or -ENOMEM. */
int walk_start_archive(struct walk *w, enum archive_kind kind, struct mk_buf *out);
/* Sets the buffer for the bytes of the next steps. */
void walk_set_output(struct walk *w, struct mk_buf *out);

/*
 * Writes the next bytes. For a disk thread.
 * Returns WALK_OUTPUT (call it again), WALK_CHECK (first call walk_check()), WALK_END (all is written), -ECANCELED,
 * -EFBIG, -E2BIG, -EMLINK (more than ArchiveMaxBytes, -Entries, -Depth), -ESTALE (a file has changed while it was read)
 * or another -errno.
 */
int walk_step(struct walk *w);
/* Checks entries for the client of `req`, in its worker, for one turn (turn.h). Returns false if all are checked. */
bool walk_check(struct walk *w, struct mk_request *req);

/* Returns a phrase for an -errno of walk_step(), for the log. */
const char *walk_error(int err);

#endif
