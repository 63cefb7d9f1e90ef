// SPDX-License-Identifier: Apache-2.0
/*
 * The steps of handshakes. They are the most expensive work that a client can cause before its first request, so a turn
 * of the loop takes only a few of them, and established connections run in between.
 *
 *     input ─► the queue is empty, and this turn has steps left ─► a step
 *           └► else handshake_queue, in the order of arrival ─► handshake_task, at the end of a turn ─► a step
 */
#ifndef MK_HTTP_HANDSHAKE_H
#define MK_HTTP_HANDSHAKE_H

#include "http/context.h"

/* Initializes the queue. */
void mk__handshake_init(struct mk__context *http);
/*
 * Tells whether a connection may take a step now; `task` runs its turns. If not, the task is put into the queue, and
 * runs when its step has come.
 */
bool mk__handshake_can_step(struct mk__context *http, struct mk_task *task);

#endif
