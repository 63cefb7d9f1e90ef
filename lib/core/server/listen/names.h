// SPDX-License-Identifier: Apache-2.0
/*
 * Names in Listen lines: `localhost`, and those of /etc/hosts.
 */
#ifndef MK_SERVER_LISTEN_NAMES_H
#define MK_SERVER_LISTEN_NAMES_H

#include "net/addr.h"

enum { MK__LISTEN_NAMES_MAX = 8 }; /* addresses of one name */

/* Returns whether the address of a Listen line is a name and a port ("localhost:80"); the name then. */
MK_COLD bool mk__listen_names_split(struct mk_str text, struct mk_str *ret_name);

/*
 * Reads the addresses of a name from the text of a file as /etc/hosts: in its order, each once. Returns their number, 0
 * if the name is not there. Pure.
 */
MK_COLD unsigned mk__listen_names_find(struct mk_str hosts, struct mk_str name, struct mk__addr *ret, unsigned max);

/*
 * Finds the addresses of this machine for a name: `localhost` is 127.0.0.1 and ::1, others are searched in /etc/hosts.
 * Those that no interface has are left out. Without DNS, so that it cannot block.
 * Returns their number, or -EINVAL with a phrase in `*ret_error`.
 */
MK_COLD int mk__listen_names_resolve(struct mk_str name, struct mk__addr *ret, unsigned max, const char **ret_error);

/* Tells whether this machine has an address, whose port must be 0. */
bool mk__listen_names_is_own(const struct mk__addr *addr);

#endif
