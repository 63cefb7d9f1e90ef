// SPDX-License-Identifier: Apache-2.0
/*
 * Changes the text of a file of users. Pure: lines that are not the user's stay as they are, also those that the
 * server does not accept.
 */
#ifndef PASSWD_EDIT_H
#define PASSWD_EDIT_H

#include <monkey/buf.h>

/* Finds the hash of a user. Returns false if no line has that name. */
bool edit_find(struct mk_str text, struct mk_str user, struct mk_str *ret_hash);

/*
 * Appends the text with a new hash of the user to `out`: in the place of the user's line, whose further fields stay, or
 * in a new line at the end. Further lines of the same name are left out. Returns true if the user was there.
 */
bool edit_set(struct mk_buf *out, struct mk_str text, struct mk_str user, struct mk_str hash);

/* Appends the text without the user's lines to `out`. Returns true if the user was there. */
bool edit_delete(struct mk_buf *out, struct mk_str text, struct mk_str user);

#endif
