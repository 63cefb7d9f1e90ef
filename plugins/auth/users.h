// SPDX-License-Identifier: Apache-2.0
/*
 * Files of users and of groups in memory, sorted for lookups. Constant once they are loaded; any thread may read them.
 */
#ifndef AUTH_USERS_H
#define AUTH_USERS_H

#include <monkey/file.h>

#include "htpasswd.h"

/* The users of a file. The strings point into its bytes. */
struct users {
    struct mk_arena arena;
    struct mk_file_bytes bytes;
    struct htpasswd_user *items; /* sorted by name */
    uint32_t n;
    uint32_t n_sha1; /* users whose hash is {SHA} */
};

/* The members of all groups of a file. */
struct groups {
    struct mk_arena arena;
    struct mk_file_bytes bytes;
    struct htpasswd_member *items; /* sorted by group and user */
    uint32_t n;
};

/*
 * Load a file, which must be a regular one. `path` ends with a NUL. May block.
 * Return 0 and the value, or -errno with a sentence in `message`, which names file, line and column of a mistake.
 */
int users_load(const char *path, struct users **ret, struct mk_buf *message);
int groups_load(const char *path, struct groups **ret, struct mk_buf *message);

/* Wipe and free; NULL is allowed. */
void users_free(struct users *u);
void groups_free(struct groups *g);

/* Appends what an operator should know of a file that was loaded: its mode, weak hashes. Nothing: all is well. */
void users_add_warnings(const struct users *u, struct mk_buf *message);

/* Returns the user of that name; NULL if there is none. */
const struct htpasswd_user *users_find(const struct users *u, struct mk_str name);
/* Returns true if a line of the file is that of the group. */
bool groups_have(const struct groups *g, struct mk_str group);
/* Returns true if the user is in the group. */
bool groups_contain(const struct groups *g, struct mk_str group, struct mk_str user);

#endif
