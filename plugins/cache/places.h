// SPDX-License-Identifier: Apache-2.0
/*
 * The folders of a host, by which entries are found that are its own, and their paths there. Any thread.
 */
#ifndef CACHE_PLACES_H
#define CACHE_PLACES_H

#include "entry.h"
#include "path_list.h"

struct places {
    const struct mk_host *host;
    const struct mk_file_server *server;
    struct mk_file_place *items;
    unsigned n, size;
};

/* Reads the folders as they are now. Returns 0, -ENOENT (no plugin serves files) or -ENOMEM; release them even so. */
int places_read(struct places *places, const struct mk_host *host);
void places_release(struct places *places);

/*
 * Writes a path of an entry in the host, with a NUL after it: that of the place `*at`, from 0, or a later one; sets
 * `*at` after it. Several aliases may lead to one folder. Returns its length; 0: it has no more that is not hidden.
 */
size_t places_find_path(const struct places *places, const struct entry_key_bytes *key, unsigned *at,
                        char out[PATH_BYTES]);

#endif
