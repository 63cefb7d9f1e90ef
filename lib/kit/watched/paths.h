// SPDX-License-Identifier: Apache-2.0
/*
 * Files to watch: which folders can change what their paths mean, and whether the files have changed. One thread.
 */
#ifndef MK_WATCHED_PATHS_H
#define MK_WATCHED_PATHS_H

#include <monkey/base/str.h>

/* An entry of a folder on the way to a file: if it changes, the path may lead to another file. Or the file itself. */
struct mk__paths_step {
    int wd;        /* the folder's or the file's number in inotify */
    uint32_t hash; /* of the entry's name, which is empty for the file itself */
};

struct mk__paths {
    struct mk_str *items; /* each with a NUL */
    unsigned n;
    struct mk__paths_step *steps;
    unsigned n_steps, steps_size;
    bool polls;   /* not all changes are reported: look at the files from time to time */
    bool limited; /* because the kernel watches no more folders for this user */
};

/* Copies the paths. Returns 0, -EINVAL (one is not absolute or too long) or -ENOMEM. */
int mk__paths_init(struct mk__paths *p, const struct mk_str *paths, unsigned n);
void mk__paths_release(struct mk__paths *p);

/*
 * Watches the files and all folders on the way to them and to links, with an inotify descriptor; -1: polls. Call it
 * before mk__paths_signature(), so that a change is either seen there or reported.
 */
void mk__paths_watch(struct mk__paths *p, int inotify);

/* Returns a number that is the same for the same paths. */
uint64_t mk__paths_hash(const struct mk__paths *p);
/*
 * Takes the steps of paths that are watched with the same inotify descriptor. Returns false if the paths are others, or
 * some of their changes are not reported, or without memory.
 */
bool mk__paths_copy_steps(struct mk__paths *p, const struct mk__paths *from);

/* Returns whether an event of this folder may change the files; an empty name means all entries. */
bool mk__paths_has_step(const struct mk__paths *p, int wd, const char *name);
/* Returns whether a watch is that of one of the files. */
bool mk__paths_has_file(const struct mk__paths *p, int wd);
/* Returns whether one of the steps needs this watch. */
bool mk__paths_is_watched(const struct mk__paths *p, int wd);

/*
 * Returns a number that changes with the files: their identity, size, times and mode, or that they are missing.
 * `*ret_denied`: the first file below a folder that may not be searched; NULL: there is none.
 */
uint64_t mk__paths_signature(const struct mk__paths *p, const char **ret_denied);

/* Returns the first file that this process may not read; NULL: it may read all that exist. */
const char *mk__paths_unreadable(const struct mk__paths *p);

#endif
