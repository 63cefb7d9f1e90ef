// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the entries of a folder in batches: those that GET of their paths could send. Left out are special files, files
 * that cannot be read, names and links that the plugin that serves files hides, and those of Hidden. What other plugins
 * refuse to a client (mk_request_allows_path()) is the worker's business.
 *
 * For a disk thread, one at a time.
 */
#ifndef DIRLISTING_FOLDER_H
#define DIRLISTING_FOLDER_H

#include "rules.h"

#include <dirent.h>
#include <stdatomic.h>

enum { FOLDER_BATCH_BYTES = 64 * 1024, FOLDER_PATH_BYTES = 4096 };

struct folder_entry;

struct folder {
    DIR *dir;
    const struct mk_host *host;
    const struct listing_rule *rule;
    const _Atomic bool *cancelled;     /* ends folder_read() early */
    char unread[256];                  /* the name that did not fit into the last batch */
    bool reading;                      /* folder_read() has returned MK_AGAIN: */
    struct folder_entry *first, *last; /* what it has read so far */
    size_t path_len;
    char path[FOLDER_PATH_BYTES]; /* of the folder, decoded, with a slash at both ends; after it names of entries */
};

/*
 * Opens the folder of a path of the host. `host`, `rule` and `cancelled` must outlive it.
 * Returns 0, -ENOENT, -ENAMETOOLONG or another -errno of mk_host_open_path(); nothing is to be closed then.
 */
int folder_open(struct folder *f, const struct mk_host *host, const struct listing_rule *rule, struct mk_str path,
                const _Atomic bool *cancelled);
void folder_close(struct folder *f);

/*
 * Reads the next entries into `listing`, as many as `bytes_max` bytes hold; `listing->more` tells whether that was all.
 * Of the memory of all listings (`memory_max`) only what is left is used, but at least FOLDER_BATCH_BYTES. Begins with
 * folder_release() or zeroes. Reads at most `*names` names, also those that are left out, so that others get the disk
 * thread in between, and subtracts what it has read.
 * Returns 0, MK_AGAIN (call it again with the same limits to complete the batch), -ECANCELED or another -errno.
 */
int folder_read(struct folder *f, struct listing *listing, size_t bytes_max, uint64_t memory_max, unsigned *names);
/* Frees the entries. Any thread. */
void folder_release(struct listing *listing);

/*
 * Reads the file `name` of the folder, LISTING_README_BYTES of it at most, into `to`, which must have that room.
 * Returns the count or -errno.
 */
ssize_t folder_read_file(struct folder *f, struct mk_str name, char *to);

/* Returns true if GET of the folder's path sends an index. May block. */
bool folder_has_index(const struct mk_host *host, struct mk_str path);

/*
 * Puts the path of an entry, with a slash at the end for a folder and a NUL, after that of the folder. Returns it;
 * `.p` is NULL if it is too long. Valid until the next call.
 */
struct mk_str folder_entry_path(struct folder *f, struct mk_str name, bool is_dir);

#endif
