// SPDX-License-Identifier: Apache-2.0
/*
 * Handshakes of clients that fail: a counter by reason, and a line in the log for each reason, once in ten seconds.
 */
#ifndef TLS_HANDSHAKE_ERRORS_H
#define TLS_HANDSHAKE_ERRORS_H

#include "tls_conn.h"

/* Reports a handshake that has failed with -errno `err`. While the connection holds its worker. */
void handshake_errors_report(const struct tls_conn *conn, int err);

#endif
