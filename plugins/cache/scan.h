// SPDX-License-Identifier: Apache-2.0
/*
 * Looks at all entries of a host: a page of them in an order, and removing those of a path. On a disk thread; the store
 * is locked part by part, so that workers never wait for long. A page takes memory for its rows only.
 */
#ifndef CACHE_SCAN_H
#define CACHE_SCAN_H

#include "places.h"
#include "worker.h"

enum scan_sort { SCAN_HITS, SCAN_BYTES, SCAN_AGE, SCAN_NAME, SCAN_SORTS };
extern const char *const scan_sorts[SCAN_SORTS + 1]; /* their names; ends with NULL */

enum { SCAN_ROWS_MAX = 1000, SCAN_AGES = 5 };

/* Where a page begins: after the row with this position. */
struct scan_cursor {
    bool is_set;
    uint64_t value, hash;
    char path[PATH_BYTES]; /* for SCAN_NAME, in place of `value` */
    size_t path_len;
};

struct scan_query {
    struct mk_str prefix; /* of the paths; empty: all */
    enum scan_sort sort;
    unsigned limit; /* 1 to SCAN_ROWS_MAX */
    struct scan_cursor after;
    uint64_t now_ms;
};

/*
 * Parses a cursor: "VALUE:HASH", or for SCAN_NAME "PATH:HASH" with a percent-encoded path; the hash has 16 hexadecimal
 * digits. Returns whether it is one.
 */
bool scan_read_cursor(struct mk_str text, enum scan_sort sort, struct scan_cursor *ret);

/* Writes members of an object: `total` of the matching entries, their `ages`, `entries`, and `next` if there are more.
 */
int scan_write_entries(struct cache *cache, const struct places *places, const struct scan_query *query,
                       struct mk_buf *out);

/* An entry of a page. */
struct scan_row {
    uint64_t value, hash; /* its position */
    char *path;           /* of the heap */
    size_t path_len;
    uint64_t file_bytes, memory_bytes, age_ms, checked_ms;
    uint32_t hits;
    uint8_t kind, coding;
};

/* Writes the members of an object for a row. */
void scan_write_row(const struct scan_row *row, struct mk_buf *out);

typedef void (*scan_row_fn)(const struct scan_row *row, void *ctx);
/* Calls `fn` for the rows of a page in their order. Returns 0 or -ENOMEM. */
int scan_each(struct cache *cache, const struct places *places, const struct scan_query *query, scan_row_fn fn,
              void *ctx);

/* What is removed: a path with its variants, what begins with a prefix, or all of the host. */
struct scan_target {
    struct mk_str path, prefix; /* one of them; both empty: all */
};

/* Removes entries. Returns how many. */
uint64_t scan_remove(struct cache *cache, const struct places *places, const struct scan_target *target);

#endif
