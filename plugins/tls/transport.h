// SPDX-License-Identifier: Apache-2.0
/*
 * The functions of mk_transport for encrypted connections. In the thread of the connection's worker.
 */
#ifndef TLS_TRANSPORT_H
#define TLS_TRANSPORT_H

#include "tls_conn.h"

extern const struct mk_transport tls_transport;

/* Returns the state of a connection; NULL if another transport carries it. */
const struct tls_conn *transport_conn_of(const struct mk_io *io);

#endif
