// SPDX-License-Identifier: Apache-2.0
/*
 * Reads files of users (`name:hash`, as of htpasswd) and of groups (`group: user user`). Pure: bytes in, spans of them
 * out. Empty lines and lines that begin with `#` are skipped.
 */
#ifndef AUTH_HTPASSWD_H
#define AUTH_HTPASSWD_H

#include "scheme.h"

enum {
    HTPASSWD_BYTES_MAX = 16 * 1024 * 1024,
    HTPASSWD_USERS_MAX = 200000,
    HTPASSWD_LINE_MAX = 1024,
    HTPASSWD_NAME_MAX = 255,
    HTPASSWD_GROUP_LINE_MAX = 65536,
    HTPASSWD_MEMBERS_MAX = 1000000,
};

struct htpasswd_user {
    struct mk_str name, hash;
    enum scheme scheme;
};

struct htpasswd_member {
    struct mk_str group, user;
};

/* A position in a file. Initialized by htpasswd_begin(); after an error `line` and `column` are those of the mistake.
 */
struct htpasswd_reader {
    struct mk_str rest;
    uint32_t line, column;          /* from 1 */
    struct mk_str line_rest, group; /* of a groups file: the members that are left in the line */
    const char *error;              /* a sentence without a full stop, a literal; never has bytes of the file */
};

/* Begins at the start of a file. A byte order mark is skipped. */
void htpasswd_begin(struct htpasswd_reader *r, struct mk_str text);

/*
 * Reads the next user; what follows a second colon of its line is ignored, as Apache does.
 * Returns 1, 0 (the end) or -EINVAL (see `r->error`; the next call continues after the line).
 */
int htpasswd_next_user(struct htpasswd_reader *r, struct htpasswd_user *ret);

/* Reads the next member of a group. A group without members gives one with an empty name. Returns as above. */
int htpasswd_next_member(struct htpasswd_reader *r, struct htpasswd_member *ret);

/*
 * Checks a user's name: 1 to HTPASSWD_NAME_MAX bytes of UTF-8, without a colon (RFC 7617 section 2) and without control
 * bytes. Returns NULL, or a sentence that says what is wrong, and where in `*ret_at`.
 */
const char *htpasswd_check_name(struct mk_str name, size_t *ret_at);

/* Returns true for well-formed UTF-8 (RFC 3629) without control characters. */
bool htpasswd_is_text(struct mk_str text, size_t *ret_at);

#endif
