// SPDX-License-Identifier: Apache-2.0
/*
 * Recognizes what a Listen line of another server looks like, so that a message can say what to write. Pure functions.
 */
#ifndef MK_SERVER_LISTEN_FOREIGN_LISTEN_H
#define MK_SERVER_LISTEN_FOREIGN_LISTEN_H

#include <monkey/base/buf.h>

/* Describe a known mistake in the address, or in a word after it, in `error`. Return whether there is one. */
MK_COLD bool mk__foreign_listen_find(struct mk_str address, struct mk_buf *error);
bool mk__foreign_listen_find_option(struct mk_str word, struct mk_buf *error);

#endif
