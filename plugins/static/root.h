// SPDX-License-Identifier: Apache-2.0
/*
 * The root of a site, which may be replaced while the server runs: the link `current -> releases/42` is renamed, or the
 * folder is moved and another one takes its place. A request checks that, once a second at most.
 */
#ifndef STATIC_ROOT_H
#define STATIC_ROOT_H

#include "site.h"

enum { ROOT_CHECK_MS = 1000 };
#define ROOT_CHECKING UINT64_MAX

/* Opens `configured_path`. Returns 0 or -errno. */
int mk__static_root_open(struct static_site *site, struct mk_str configured_path);
void mk__static_root_close(struct static_site *site);

/*
 * Returns whether the path leads to another folder; true, too, if the kernel cannot tell without waiting. While the
 * path does not exist, the root stays.
 */
bool mk__static_root_has_changed(const struct static_site *site);
/*
 * Checks the root, if a second has passed since the last time (three system calls). Returns true if the root was
 * replaced, or if that cannot be told without waiting for a disk: then the caller calls mk__static_root_check() on a
 * thread that may wait, or mk__static_root_end_check() if that cannot be done. Until then no other thread checks the
 * root, and `may_be_replaced` is set: requests leave their lookups to such threads, too.
 */
bool mk__static_root_begin_check(struct static_site *site, uint64_t now_ms);
/* Opens the new root and swaps it in, if it was replaced. May wait for a disk. */
void mk__static_root_update(struct static_site *site);
/* Does so and ends the check. */
void mk__static_root_check(struct static_site *site, uint64_t now_ms);
void mk__static_root_end_check(struct static_site *site, uint64_t now_ms);
/* Checks the root likewise, on a thread that may wait for a disk. */
void mk__static_root_refresh(struct static_site *site);

#endif
