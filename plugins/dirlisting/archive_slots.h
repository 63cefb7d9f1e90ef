// SPDX-License-Identifier: Apache-2.0
/*
 * How many archives are made at the same time: of all clients, and of one. Any thread.
 */
#ifndef DIRLISTING_ARCHIVE_SLOTS_H
#define DIRLISTING_ARCHIVE_SLOTS_H

#include <monkey/address.h>
#include <monkey/list.h>

#include "rules.h"

/* A place among the archives of the process; a member of what holds it. */
struct archive_slot {
    struct mk_list node;
    struct mk_address client;
};

/*
 * Takes a slot for a client: an IPv6 network of 64 bits is one, and so are the clients of Unix sockets.
 * Returns 0, -EAGAIN (all archives are in use) or -EDQUOT (those of this client are).
 */
int archive_slot_take(struct archive_slot *slot, const struct mk_address *client, const struct listing_limits *limits);
void archive_slot_release(struct archive_slot *slot);

#endif
