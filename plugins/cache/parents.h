// SPDX-License-Identifier: Apache-2.0
/*
 * Folders that a worker keeps open for a moment, to revalidate the files in them: the folder is opened as a request
 * would open it, once in a turn of the loop or in a part of the interval, and each name in it is then one fstatat(2).
 * With `Files Notify` the folders on the way are watched, too.
 */
#ifndef CACHE_PARENTS_H
#define CACHE_PARENTS_H

#include "worker.h"

/* What a name is now. */
struct name_state {
    int err; /* 0: it could be opened */
    bool is_folder, is_file;
    struct file_identity id;
    uint64_t since_ms; /* the state is not older than this */
    uint32_t place;    /* where its changes are counted (notify.h); NOTIFY_UNKNOWN: that of the entry stays */
    uint64_t number;   /* that of the place before the name was looked at */
};

/* A path and the name after its last slash; both belong to the path. */
struct split_name {
    struct mk_str folder; /* without the slash; empty: there is none, or nothing before it */
    struct mk_str last;
};

/* Returns false for paths that have no last component, or "." or "..". */
bool parents_split(struct mk_str path, struct split_name *ret);

/* Returns the state that stat(2) shows. */
struct name_state parents_describe(const struct stat *st);

/*
 * Finds out what the name of an entry is. Returns false if it is to be opened for that; `place` and `number` are set in
 * any case, for a name that is no link. In the worker's thread; a sweep must follow.
 */
bool parents_stat(struct cache_lookup *l, const struct mk_item *item, struct name_state *ret);

/* Each folder is opened again before it is used. */
void parents_forget(struct cache_worker *w);
/* Closes the folders that were not used since the last call. Returns whether others are open. */
bool parents_sweep(struct cache_worker *w);
void parents_release(struct cache_worker *w);

#endif
