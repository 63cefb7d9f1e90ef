// SPDX-License-Identifier: Apache-2.0
/*
 * The steps of a connection's handshake. They are the most work that strangers can cause: those who are connected have
 * their turn between a few of them.
 */
#ifndef MK_HTTP_SHAKE_H
#define MK_HTTP_SHAKE_H

#include "http/conn.h"

/* May it take a step in this turn of the loop? If not, its task is scheduled for the next one. */
bool mk__shake_may(struct mk__conn *c);
/* One step, behind the header of a proxy where one is awaited: as of transport->handshake. */
int mk__shake_step(struct mk__conn *c);

#endif
