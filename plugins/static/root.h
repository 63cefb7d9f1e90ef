// SPDX-License-Identifier: Apache-2.0
/*
 * The document root as a place that may be swapped: `current -> releases/42` by a rename, or the directory itself
 * moved away and another one put where it was. Looked at when a request comes, once a second at most.
 */
#ifndef STATIC_ROOT_H
#define STATIC_ROOT_H

#include "static.h"

enum { ROOT_CHECK_MS = 1000 };
#define ROOT_CHECKING UINT64_MAX

/* Opens `configured_path`; whether the kernel (or what confines this process) knows openat2(2) is found out too. 0 or
 * -errno.
 */
int root_open(struct static_site *site, struct mk_str configured_path);
void root_close(struct static_site *site);

/*
 * Is it time to look, and is the root no longer what its path names, or can that not be told without waiting?
 * Then the caller has taken the matter, and gives it back with root_check() on a thread that may wait, or with
 * root_end_check(). Costs nothing while it is not time, and three calls then.
 */
bool root_begin_check(struct static_site *site, uint64_t now_ms);
void root_check(struct static_site *site, uint64_t now_ms);
void root_end_check(struct static_site *site, uint64_t now_ms);

#endif
