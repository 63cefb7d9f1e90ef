// SPDX-License-Identifier: Apache-2.0
/*
 * UserDir: /~name/ is a folder in the home of that user. Each request looks the user up in the system, on a disk thread
 * because it may take long; nothing is cached.
 */
#ifndef STATIC_USERDIR_H
#define STATIC_USERDIR_H

#include "site.h"

enum { USERDIR_NAME_BYTES = 32 }; /* as useradd(8) */

/* Parses UserDir, a folder of the home; an mk_conf_parse_fn. */
int mk__static_userdir_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error);

/*
 * If the host has UserDir and the path begins with "/~", sets `at` to the user and the path below, and returns true.
 * The user is empty if the name is not a valid one.
 */
bool mk__static_userdir_match(struct static_location *at);

static inline bool userdir_is_matched(const struct static_location *at)
{
    return at->user.p != NULL;
}

/*
 * Finds a file of the user, as mk__static_find_path_with(), on a thread that may wait. `at->user` ends with a NUL. A
 * user that does not exist, may not have a folder here, or has none that can be read gets ENOENT, so that clients
 * cannot tell which.
 */
struct find_result mk__static_userdir_find(const struct static_location *at, const struct find_mode *mode);
/* Opens a directory of the user, as mk__static_find_folder(). */
struct find_result mk__static_userdir_find_folder(const struct static_location *at);

#endif
