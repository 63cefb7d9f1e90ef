// SPDX-License-Identifier: Apache-2.0
/*
 * A file that says something by being there. It is looked at when a request comes, once a second at most by all
 * workers together, and the loop never waits for a disk.
 */
#ifndef MAINTENANCE_FLAG_H
#define MAINTENANCE_FLAG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FLAG_CHECK_MS = 1000 };
#define FLAG_CHECKING UINT64_MAX

/* All zero but for its path: nobody has looked yet. */
struct flag_file {
    const char *path;
    _Atomic uint64_t next_check_ms; /* FLAG_CHECKING: somebody is looking */
    _Atomic bool exists;            /* as of the last look that could tell */
    int logged_err;                 /* the looker's: what the log knows */
};

/*
 * Looks if it is time to, and if that needs no disk. True when it does: then the caller has taken the matter, looks
 * with flag_check() on a thread that may wait, and gives the matter back with flag_end_check().
 */
bool flag_begin_check(struct flag_file *flag, uint64_t now_ms);
void flag_check(struct flag_file *flag);
void flag_end_check(struct flag_file *flag, uint64_t now_ms);

#endif
