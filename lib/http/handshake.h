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

#include "http/conn.h"

/* Initializes the queue. */
void mk__handshake_init(struct mk__context *http);
/* Tells whether `c` may take a step now. If not, `c` is put into the queue; its task runs when its step has come. */
bool mk__handshake_can_step(struct mk__conn *c);
/*
 * Takes a step: reads the PROXY header, if one is expected, then calls transport->handshake(). Returns the result of
 * that: 0, -EAGAIN (waits for input), -EINPROGRESS (waits until writable) or another -errno.
 */
int mk__handshake_run_step(struct mk__conn *c);

#endif
