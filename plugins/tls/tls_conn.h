// SPDX-License-Identifier: Apache-2.0
/*
 * One encrypted connection: libssl between a socket and the calls of a transport.
 *
 *     write ──► records ──► the worker's batch ──► one send ──► socket
 *                                  └─ what the socket does not take ─► held, counted as written
 *     socket ──► records ──► read
 *
 * Until its handshake is done it holds the worker under the generation that it began with; afterwards it holds
 * nothing but the write_buffer it works at.
 */
#ifndef TLS_TLS_CONN_H
#define TLS_TLS_CONN_H

#include "write_buffer.h"
#include "record_size.h"
#include "tls_host.h"

#include <monkey/transport.h>

struct tls_conn {
    SSL *ssl;                 /* NULL: it is in the clear */
    struct mk_worker *worker; /* NULL: the handshake is done */
    struct tls_generation *generation;
    struct tls_host *tls_host; /* whose certificate is shown; both as long as the handshake */
    struct mk_account *account;
    struct mk_loop *loop;
    struct write_buffer *write_buffer;
    char *unsent; /* records on their way */
    uint32_t unsent_len, unsent_pos;
    char *plaintext; /* what came in the clear before anybody knew */
    uint32_t plaintext_len, plaintext_pos;
    uint32_t no_data_bytes; /* bytes since the last that were of any use to the application */
    uint32_t key_updates;   /* of the client's keys */
    struct record_size record_size;
    char *client; /* the subject of a certificate that was verified */
    int fd;
    uint16_t client_len;
    uint8_t name_len;
    bool saw_first_byte;   /* its first byte was seen */
    bool may_have_pending; /* the handshake has read what there was, and perhaps more than was its own */
    bool socket_empty;     /* a short read has said that the socket is empty */
    bool peer_closed;      /* the client has ended its side */
    bool broken;           /* libssl must not be asked any more */
    bool ktls;             /* libssl reads and writes the socket itself, so that the kernel may encrypt */
    bool shutdown_pending; /* our side ends once nothing is held */
    unsigned char policy[TLS_HOST_POLICY_BYTES];
    char name[256]; /* that the client asked for */
};

extern const struct mk_transport tls_transport;

/* The host was chosen; `name` has 255 bytes at most. */
void tls_conn_set_host(struct tls_conn *s, struct tls_host *tls_host, struct mk_str name);
struct tls_generation *tls_conn_generation(const struct tls_conn *s);
struct tls_host *tls_conn_host(const struct tls_conn *s);

/*
 * Does the certificate that was shown cover this name? Of several that the host has, libssl does not always tell which
 * one it was, and a resumed session has shown none: all of them must.
 */
bool tls_conn_covers(const struct tls_conn *s, struct mk_str name);

/* Of a request's connection; NULL: it is none of ours. */
const struct tls_conn *tls_conn_of(const struct mk_io *io);

#endif
