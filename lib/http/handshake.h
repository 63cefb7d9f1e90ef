// SPDX-License-Identifier: Apache-2.0
/*
 * The steps of a connection's handshake. They are the most expensive work that a client without a request can cause, so
 * only a few of them are taken in a turn of the loop, and established connections have their turn between them.
 *
 *     bytes have come ─► nothing waits, and this turn has steps left ─► a step
 *                     └► handshake_queue, in the order of arrival ─► handshake_task, at the end of a turn ─► a step
 */
#ifndef MK_HTTP_HANDSHAKE_H
#define MK_HTTP_HANDSHAKE_H

#include "http/conn.h"

void mk__handshake_init(struct mk__context *http);
/* May it take a step now? If not, it waits in the queue, and its task runs when it is the first there. */
bool mk__handshake_can_step(struct mk__conn *c);
/* One step, behind the header of a proxy where one is awaited: as of transport->handshake. */
int mk__handshake_run_step(struct mk__conn *c);

#endif
