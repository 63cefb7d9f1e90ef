// SPDX-License-Identifier: Apache-2.0
/*
 * What a failure of libssl means for the caller of a transport.
 */
#ifndef TLS_TLS_ERROR_H
#define TLS_TLS_ERROR_H

#include "tls_conn.h"

/*
 * The last call has failed: -EAGAIN; 0: the client has ended its side; else -errno, and the connection is broken.
 * Whatever is in libssl's queue of errors, which all connections of the thread share, does not count; a connection that
 * breaks leaves it empty.
 */
int tls_conn_error(struct tls_conn *s);

#endif
