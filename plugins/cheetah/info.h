// SPDX-License-Identifier: Apache-2.0
/*
 * What the server as a whole tells of itself.
 */
#ifndef CHEETAH_INFO_H
#define CHEETAH_INFO_H

#include "client.h"

/* Adds the members of `status` that need no other thread. */
void info_add_status(struct client *c);
/* Finds the host that serves a name, of the generation in use; NULL: none has it. */
struct mk_host *info_find_host(const struct client *c, struct mk_str name);

#endif
