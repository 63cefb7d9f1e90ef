// SPDX-License-Identifier: Apache-2.0
/*
 * One encrypted connection, accepted or opened: libssl between a socket and the calls of a transport.
 *
 *     write ──► records ──► the worker's batch ──► one send ──► socket
 *                                  └─ what the socket does not take ─► held, counted as written
 *     socket ──► records ──► read
 *
 * During the handshake a connection that was accepted holds its worker, and so the generation. Afterwards, and from the
 * beginning if it was opened, it holds only the write buffer.
 */
#ifndef TLS_TLS_CONN_H
#define TLS_TLS_CONN_H

#include "write_buffer.h"
#include "record_size.h"
#include "tls_host.h"

#include <monkey/transport.h>

struct tls_conn {
    SSL *ssl;                          /* NULL: the client speaks plain HTTP */
    struct mk_worker *worker;          /* set during the handshake of an accepted connection only */
    struct tls_generation *generation; /* set during the handshake only */
    const void *listener;              /* of struct mk_io */
    struct mk_account *account;
    struct mk_loop *loop;
    struct write_buffer *write_buffer;
    char *unsent; /* records that the socket did not take */
    uint32_t unsent_len, unsent_pos;
    char *plaintext; /* the first bytes, if the client speaks plain HTTP */
    uint32_t plaintext_len, plaintext_pos;
    uint32_t no_data_bytes; /* bytes received since the last application data */
    uint32_t key_updates;   /* KeyUpdates that the client has sent */
    struct record_size record_size;
    X509 *shown;  /* the certificate that was sent, which `ssl` holds; NULL: a session was resumed */
    char *client; /* the subject of a certificate that was verified */
    int fd;
    uint16_t client_len;
    uint8_t name_len;
    bool is_client;        /* connect() has opened it */
    bool established;      /* the handshake is done */
    bool has_host;         /* the handshake has chosen a host */
    bool name_refused;     /* no host has a certificate for `name`, or it is none */
    bool saw_first_byte;   /* the first byte was received */
    bool may_have_pending; /* the handshake may have read application data */
    bool socket_empty;     /* the last read was short: the socket is empty */
    bool peer_closed;      /* the peer has ended its side */
    bool was_reset;        /* the socket has failed */
    bool broken;           /* libssl must not be called any more */
    bool ktls;             /* libssl uses the socket itself, and the kernel may encrypt */
    bool shutdown_pending; /* shut the socket down when nothing is held any more */
    uint8_t alert;         /* the fatal one that was received */
    bool has_alert;
    int error;        /* what tls_conn_error() has returned when it became broken; 0: it has not */
    int error_reason; /* and the reason of libssl; 0: none */
    unsigned char policy[TLS_HOST_POLICY_BYTES];
    char name[256]; /* the client has asked for (SNI); of the server, if is_client */
};

/* Sets the name that the client has sent, 255 bytes at most. */
void tls_conn_set_name(struct tls_conn *conn, struct mk_str name);
/* Sets the host of a connection during the handshake. */
void tls_conn_set_host(struct tls_conn *conn, const struct tls_credentials *own);

/*
 * Returns true if the certificate that was sent covers this name; of a resumed session, which has sent none, if all
 * certificates of the connection's host do.
 */
bool tls_conn_covers(const struct tls_conn *conn, struct mk_str name);

/*
 * Returns what a failed call of libssl means: -EAGAIN, 0 (the peer has ended its side), -EPROTO (the connection is
 * broken) or, if is_client, -ECONNRESET (it has ended without close_notify). Does not use libssl's error queue to
 * decide, because all connections of the thread share it; empties it if the connection is broken.
 */
int tls_conn_error(struct tls_conn *conn);

#endif
