// SPDX-License-Identifier: Apache-2.0
/*
 * Who takes more room than others when there is none left. A connection of HTTP/2 may have a hundred answers under way,
 * and a file open for each; a dozen of them, whose clients open no window, would keep everybody else out.
 */
#ifndef MK_HTTP_H2_EVICT_H
#define MK_HTTP_H2_EVICT_H

#include "http/conn.h"

/*
 * The connection with most streams that have been waiting for its client for a while; NULL: none has more than a few of
 * them. It is to go now, which the log tells. Between two turns of connections.
 */
struct mk__conn *mk__h2_evict_find(const struct mk__context *http);

/*
 * While memory is dear, up to `n` idle sessions of HTTP/2 are given a turn, the oldest first: in it they say goodbye,
 * unless something has come. Between two turns of connections.
 */
void mk__h2_evict_close_idle(struct mk__context *http, unsigned n);

#endif
