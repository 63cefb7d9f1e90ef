// SPDX-License-Identifier: Apache-2.0
/*
 * What libssl reads and writes instead of the socket: its records go into the batch of the write_buffer, and from there
 * to the socket in one call.
 */
#ifndef TLS_SOCKET_BIO_H
#define TLS_SOCKET_BIO_H

#include "tls_conn.h"

/* Once for the process. 0 or -ENOMEM. */
int socket_bio_start(void);
/* For one connection; NULL without memory. */
BIO *socket_bio_new(struct tls_conn *s);

/*
 * Sends what is held, then the batch, which is empty afterwards. 0; -EAGAIN: the rest is held; -errno: the connection
 * is of no use any more. `flags` as mk_transport has them.
 */
int socket_bio_flush(struct tls_conn *s, unsigned flags);
/* Takes the batch for the records of this connection: before libssl is called. */
void socket_bio_claim(struct tls_conn *s);
/* Are records of this connection in the batch? */
bool socket_bio_is_pending(const struct tls_conn *s);
/* Does a client that begins so speak HTTP? By the letter of a method; a record of TLS begins with no letter. */
bool socket_bio_is_http(char first);
/* Frees what is held. */
void socket_bio_free_unsent(struct tls_conn *s);

#endif
