// SPDX-License-Identifier: Apache-2.0
/*
 * A flag that is set while a file exists. Requests check it, once a second at most for all workers together, and the
 * loop never waits for a disk.
 */
#ifndef MAINTENANCE_FLAG_H
#define MAINTENANCE_FLAG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FLAG_CHECK_MS = 1000 };
#define FLAG_CHECKING UINT64_MAX

struct mk_host;

/* Begins with `path` and `host` set and the rest zero. */
struct flag_file {
    const char *path;
    const struct mk_host *host;     /* for the log */
    _Atomic uint64_t next_check_ms; /* FLAG_CHECKING: a thread checks it */
    _Atomic bool exists;            /* by the last check that did not fail */
    int logged_err;                 /* what was logged last; for the thread that checks */
};

/*
 * Sets the flag before the first request, so that no reload opens what is closed. May block.
 * Returns 0, or -errno: it is not known whether the file exists.
 */
int flag_init(struct flag_file *flag);

/*
 * Checks the file, if a second has passed since the last time. Returns true if the check has to wait for a disk: then
 * the caller calls flag_check() on a thread that may wait, and flag_end_check(). Until then no other thread checks it.
 */
bool flag_begin_check(struct flag_file *flag, uint64_t now_ms);
void flag_check(struct flag_file *flag);
void flag_end_check(struct flag_file *flag, uint64_t now_ms);

#endif
