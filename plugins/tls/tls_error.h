// SPDX-License-Identifier: Apache-2.0
/*
 * Maps a failure of libssl to a result of a transport function.
 */
#ifndef TLS_TLS_ERROR_H
#define TLS_TLS_ERROR_H

#include "tls_conn.h"

/*
 * Returns what a failed call of libssl means: -EAGAIN, 0 (the client has ended its side) or -EPROTO (the connection is
 * broken). Does not use libssl's error queue to decide, because all connections of the thread share it; empties it if
 * the connection is broken.
 */
int tls_conn_error(struct tls_conn *s);

#endif
