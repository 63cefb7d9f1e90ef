// SPDX-License-Identifier: Apache-2.0
/*
 * Loads paths of a host into the cache: those of a list, of a sitemap, or of a folder with all below it. On disk
 * threads, in slices. A path gets what a request for it would get: hidden names, programs and links that are not
 * followed are not loaded.
 *
 *     preload_init() ─► preload_add_...() ─► preload_slice() until it returns false ─► preload_release()
 */
#ifndef CACHE_PRELOAD_H
#define CACHE_PRELOAD_H

#include "folder_walk.h"
#include "load.h"
#include "path_list.h"

enum {
    PRELOAD_LIST_BYTES_MAX = 16 * 1024 * 1024, /* of a file */
    PRELOAD_PATHS_MAX = 100 * 1000,
    PRELOAD_ERRORS_MAX = 1000, /* that are listed */
};

struct preload {
    struct mk_file_loader base;
    struct cache *cache;
    const struct mk_host *host;
    const struct mk_file_server *server;
    bool refresh; /* entries are loaded anew, and others may be displaced */
    uint64_t paths_max;
    const _Atomic bool *cancelled; /* NULL: never */
    /* of a slice */
    uint64_t now_ms;
    int64_t wall_seconds;
    /* what is to be loaded */
    struct mk_buf list;
    size_t list_at;
    bool is_sitemap;
    struct folder_walk *walk; /* NULL: none */
    /* of the path that is loaded */
    const struct files_policy *policy;
    bool has_result;
    enum load_result result;
    /* results */
    uint64_t asked, kept, present, failed, kept_bytes;
    bool is_full, has_more; /* the cache has no more room; there were more paths than `paths_max` */
    struct mk_buf errors;   /* members of a JSON array, up to PRELOAD_ERRORS_MAX */
    char first_error[256];  /* a path and its error */
};

/* Prepares a run without paths. Returns 0 or -ENOENT (no plugin serves files). */
int preload_init(struct preload *p, struct cache *cache, const struct mk_host *host);
void preload_release(struct preload *p);

/* Reads a file with a list of paths. May wait for a disk. Returns 0, -EFBIG or another -errno. */
int preload_read_list(struct preload *p, int fd);
/* Begins with a folder of the host, whose path ends with a slash. Returns 0 or -errno. */
int preload_start_folder(struct preload *p, struct mk_str path);
/* Loads one path: decoded, normalized and with a NUL after it. */
void preload_path(struct preload *p, struct mk_str path);
/*
 * Loads paths for a moment. `now_ms`, `wall_seconds`: the time at which the caller's turn began, or an earlier one.
 * Returns whether some are left.
 */
bool preload_slice(struct preload *p, uint64_t now_ms, int64_t wall_seconds);
/* Writes members of an object: counts and errors. */
void preload_write(const struct preload *p, struct mk_buf *out);

#endif
