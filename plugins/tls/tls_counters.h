// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin counts: handshakes by version, failed ones, and connections that were closed for abuse. The counters
 * belong to the process, since connections may outlive a generation.
 */
#ifndef TLS_TLS_COUNTERS_H
#define TLS_TLS_COUNTERS_H

#include "tls_conn.h"

#include <monkey/counters.h>

/* Why a connection was not served, or was closed. */
enum tls_count {
    TLS_COUNT_PLAINTEXT,          /* the client speaks plain HTTP */
    TLS_COUNT_CLIENT_CLOSED,      /* it closed the connection during the handshake */
    TLS_COUNT_NAME,               /* no certificate for the name */
    TLS_COUNT_CLIENT_CERTIFICATE, /* none, or one that was refused */
    TLS_COUNT_CLIENT_ALERT,       /* the client has refused */
    TLS_COUNT_PROTOCOL,           /* no common protocol (ALPN) */
    TLS_COUNT_VERSION,            /* no common version */
    TLS_COUNT_CIPHER,             /* no common cipher, group or signature */
    TLS_COUNT_FAILED,             /* a malformed message, or another reason */
    TLS_COUNT_NO_DATA,            /* too many bytes without application data */
    TLS_COUNT_KEY_UPDATES,        /* too many KeyUpdates */
    TLS_COUNTS,
};

/* Opens the counters, in the plugin's start. */
void tls_counters_open(void);
/* Counts a handshake that is complete, in the worker's thread, while the connection holds its worker. */
void tls_counters_add_handshake(const struct tls_conn *conn);
/* Counts something else; in the worker's thread. `worker` may be NULL. */
void tls_counters_add(enum tls_count count, const struct mk_worker *worker);

#endif
