// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses the connections to close when there is no room for new ones. An HTTP/2 connection may have a hundred
 * responses in progress, with a file open for each; a dozen of them, whose clients open no window, would lock out all
 * others.
 */
#ifndef MK_HTTP_H2_EVICT_H
#define MK_HTTP_H2_EVICT_H

#include "http/conn.h"

/*
 * Finds the connection with the most streams that have been waiting for their client for a second. The caller closes
 * it; this function logs it. Call it between the turns of connections.
 * Returns NULL if no connection has more than eight of them.
 */
struct mk__conn *mk__h2_evict_find(const struct mk__context *http);

/*
 * If memory is low, runs a turn of up to `n` idle HTTP/2 connections, oldest first, which closes them unless a request
 * has arrived. Call it between the turns of connections.
 */
void mk__h2_evict_close_idle(struct mk__context *http, unsigned n);

#endif
