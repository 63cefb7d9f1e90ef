// SPDX-License-Identifier: Apache-2.0
/*
 * A BIO between libssl and the socket: it collects the records in the batch of the write buffer, so that one system
 * call sends several.
 */
#ifndef TLS_SOCKET_BIO_H
#define TLS_SOCKET_BIO_H

#include "tls_conn.h"

/* Makes the method of these BIOs, once for the process. Returns 0 or -ENOMEM. */
int socket_bio_start(void);
/* Returns a BIO for a connection; NULL without memory. */
BIO *socket_bio_new(struct tls_conn *conn);

/*
 * Sends what is held, then the batch, which is empty afterwards. `flags`: MK_IO_MORE.
 * Returns 0, -EAGAIN (the rest is held) or another -errno (the connection has failed).
 */
int socket_bio_flush(struct tls_conn *conn, unsigned flags);
/* Assigns the batch to this connection. Call it before libssl. */
void socket_bio_claim(struct tls_conn *conn);
/* Returns true if the batch has records of this connection. */
bool socket_bio_is_pending(const struct tls_conn *conn);
/* Returns true if a client that sends this byte first speaks HTTP: a method begins with a letter, a TLS record does
 * not. */
bool socket_bio_is_http(char first);
/* Frees the held records. */
void socket_bio_free_unsent(struct tls_conn *conn);

#endif
