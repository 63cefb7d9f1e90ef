// SPDX-License-Identifier: Apache-2.0
/*
 * UserDir: /~name/ is a folder in the home of that user. Who that is is asked of the system each time, on a disk
 * thread, since it may take long; nothing is kept. Lean builds have none.
 */
#ifndef STATIC_USERDIR_H
#define STATIC_USERDIR_H

#include "static.h"

enum { USERDIR_NAME_BYTES = 32 }; /* as useradd(8) */

/* The parser of UserDir: a folder of the home. As mk_conf_parse_fn. */
int userdir_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

/* Is `at->path` one of a user, and has the host UserDir? `at` is what lies below then; the name may be empty. */
bool userdir_match(struct static_location *at);

static inline bool userdir_is_matched(const struct static_location *at)
{
    return at->user.p != NULL;
}

/*
 * As find_path, for a thread that may wait; the name of the user ends with a NUL. Who does not exist, is none of
 * those who may have a folder here, or has none that can be read is not told from each other: all are ENOENT.
 */
struct find_result userdir_find(const struct static_location *at, const struct mk_accept *accept);

#endif
