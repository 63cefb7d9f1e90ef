// SPDX-License-Identifier: Apache-2.0
/*
 * The server's side of the starter: forking it, and channels to it.
 */
#ifndef MK_KIT_CHILD_STARTER_H
#define MK_KIT_CHILD_STARTER_H

#include "message.h"

/* Which starter it is, of those that were forked one after the other. */
struct mk__starter_id {
    uint64_t serial;
    pid_t pid;
};

/*
 * Opens a channel to the starter, which is forked if there is none. May block: for a job. Any thread.
 * Returns a descriptor, -EAGAIN (the starter has ended twice within a second) or another -errno, and in `*ret_id` which
 * starter it is.
 */
int mk__starter_connect(struct mk_child_starter *starter, struct mk__starter_id *ret_id);
/*
 * Kills a starter that does not answer. Does nothing if another one has taken its place. Any thread; does not wait,
 * also if another one forks: that one kills it then.
 */
void mk__starter_kill(struct mk_child_starter *starter, uint64_t serial);
/*
 * Reaps a starter that has ended. Does nothing if that was done. Any thread; does not wait, also if another one forks:
 * that one reaps it then.
 */
void mk__starter_reap(struct mk_child_starter *starter, uint64_t serial);

#endif
