// SPDX-License-Identifier: Apache-2.0
/*
 * The server's side of the starter: forking it, and channels to it.
 */
#ifndef MK_KIT_CHILD_STARTER_H
#define MK_KIT_CHILD_STARTER_H

#include "message.h"

/*
 * Opens a channel to the starter, which is forked if there is none. May block: for a job. Any thread.
 * Returns a descriptor, -EAGAIN (the starter has ended twice within a second) or another -errno, and in `*ret_serial`
 * which starter it is.
 */
int mk__starter_connect(struct mk_child_starter *starter, uint64_t *ret_serial);
/*
 * Kills a starter that does not answer. Does nothing if another one has taken its place. Any thread; does not wait,
 * also if another one forks: that one kills it then.
 */
void mk__starter_kill(struct mk_child_starter *starter, uint64_t serial);

#endif
