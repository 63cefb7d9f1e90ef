// SPDX-License-Identifier: Apache-2.0
/*
 * Requests for the same small file in one turn of the loop share one read of it: the second one reads the file, those
 * after it get the same bytes. The cache is valid for that turn only, so that no request gets a file that was replaced
 * before the turn began. A request that may have changed files empties it.
 */
#ifndef STATIC_SMALL_FILE_CACHE_H
#define STATIC_SMALL_FILE_CACHE_H

#include "site.h"

enum { SMALL_FILE_BYTES_MAX = 4096, SMALL_FILE_PATH_BYTES_MAX = 256 };

/* The last path of a worker; its state under one generation. */
struct small_file_cache {
    uint64_t turn; /* of the loop; 0: empty */
    const struct static_site *site;
    size_t path_len;
    struct find_result found; /* FOUND_FILE: it was read into `bytes`; its name is NULL if it is the path */
    char path[SMALL_FILE_PATH_BYTES_MAX], bytes[SMALL_FILE_BYTES_MAX];
};

void mk__static_small_file_cache_clear(struct small_file_cache *cache);

/* As find_path() with `cached`. A file from the cache has `content`, which is valid until the next call, and no `fd`.
 */
struct find_result mk__static_small_file_cache_find(struct small_file_cache *cache, uint64_t turn,
                                                    const struct static_location *at, const struct mk_accept *accept);

#endif
