// SPDX-License-Identifier: Apache-2.0
/*
 * Requests for the same small file in one turn of the loop share one read of it: the second one reads the file and
 * formats the lines of its head, those after it get the same bytes and lines. The cache is valid for that turn only, so
 * that no request gets a file that was replaced before the turn began. A request that may have changed files empties
 * it. Responses that take longer hold the file.
 */
#ifndef STATIC_SMALL_FILE_CACHE_H
#define STATIC_SMALL_FILE_CACHE_H

#include "site.h"

enum { SMALL_FILE_BYTES_MAX = 4096, SMALL_FILE_PATH_BYTES_MAX = 256 };

struct small_file;

/* The last path of a worker; its state under one generation. */
struct small_file_cache {
    struct mk_account *account;
    uint64_t turn; /* of the loop; 0: empty */
    const struct static_site *site;
    size_t path_len;
    bool is_read; /* `found` is in `file`; its name is NULL if it is the path */
    struct find_result found;
    struct small_file *file; /* its memory is used again unless a response holds it; NULL: there is none */
    char path[SMALL_FILE_PATH_BYTES_MAX];
};

void mk__static_small_file_cache_init(struct small_file_cache *cache, struct mk_account *account);
void mk__static_small_file_cache_clear(struct small_file_cache *cache);
void mk__static_small_file_cache_release(struct small_file_cache *cache);

/* As find_path() with `cached`. A file from the cache has an owner, `content`, and a block once it got its lines. */
struct find_result mk__static_small_file_cache_find(struct small_file_cache *cache, uint64_t turn,
                                                    const struct static_location *at, const struct mk_accept *accept);
/* Formats the lines of a file's head for later requests, if it is from the cache and has none. */
void mk__static_small_file_cache_add_lines(const struct mk_file *file);

#endif
