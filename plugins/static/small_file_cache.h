// SPDX-License-Identifier: Apache-2.0
/*
 * Requests that come at the same moment and ask for the same small file share one reading of it: from the second one
 * on in a turn of the loop. Nothing is believed for longer than that turn, so that no request can meet a file that was
 * replaced before its turn began; nor behind a request that may have changed something.
 */
#ifndef STATIC_SMALL_FILE_CACHE_H
#define STATIC_SMALL_FILE_CACHE_H

#include "static.h"

enum { SMALL_FILE_BYTES_MAX = 4096, SMALL_FILE_PATH_BYTES_MAX = 256 };

/* What a worker was asked for last, under one generation. */
struct small_file_cache {
    uint64_t turn; /* of the loop; 0: none */
    const struct static_site *site;
    size_t path_len;
    struct find_result found; /* a file: it has been read; its name is NULL when that is the path's */
    char path[SMALL_FILE_PATH_BYTES_MAX], bytes[SMALL_FILE_BYTES_MAX];
};

void small_file_cache_clear(struct small_file_cache *r);

/* As find_path() with `cached`; a file with content has no descriptor, and its content lasts until the next call. */
struct find_result small_file_cache_find(struct small_file_cache *r, uint64_t turn, const struct static_location *at,
                                         const struct mk_accept *accept);

#endif
