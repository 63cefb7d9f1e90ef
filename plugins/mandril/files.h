// SPDX-License-Identifier: Apache-2.0
/*
 * The files of networks of a generation, each opened once, and read again when it changes. Workers look at the current
 * networks without a lock.
 */
#ifndef MANDRIL_FILES_H
#define MANDRIL_FILES_H

#include <monkey/plugin.h>
#include <monkey/watched.h>

#include "networks.h"

/* Of a generation; begins zeroed. */
struct files {
    struct mk_arena *arena;
    struct network_file **items;
    uint32_t n;
};

/* Of a worker. */
struct files_refs {
    uint32_t n;
    struct mk_watched_ref refs[];
};

/*
 * Opens a file, unless it is open, and returns its index.
 * Returns -ENOMEM, or another -errno with a sentence in `message`.
 */
int files_open(struct files *files, struct mk_str path, struct mk_buf *message);
/* Closes all files; no worker may have references any more. */
void files_close(struct files *files);

/* Returns the references of a worker; NULL without memory. */
struct files_refs *files_refs_new(const struct files *files);
void files_refs_free(struct files_refs *refs);

/* Returns the current networks of a file, valid until the next call for the same worker and file. */
static inline const struct network_set *files_get(struct files_refs *refs, int index)
{
    return mk_watched_ref_get(&refs->refs[index]);
}

#endif
