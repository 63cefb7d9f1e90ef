// SPDX-License-Identifier: Apache-2.0
/*
 * One encrypted connection: libssl between a socket and the calls of a transport.
 *
 *     write ──► records ──► the worker's batch ──► one send ──► socket
 *                                  └─ what the socket does not take ─► held, counted as written
 *     socket ──► records ──► read
 *
 * Until its handshake is done it holds the worker under the generation that it began with; afterwards it holds
 * nothing but the desk it works at.
 */
#ifndef TLS_SESSION_H
#define TLS_SESSION_H

#include "desk.h"
#include "pace.h"
#include "site.h"

#include <monkey/transport.h>

struct session {
    SSL *ssl;                 /* NULL: it is in the clear */
    struct mk_worker *worker; /* NULL: the handshake is done */
    struct tls_generation *generation;
    struct site *site; /* whose certificate is shown; both as long as the handshake */
    struct mk_account *account;
    struct mk_loop *loop;
    struct desk *desk;
    char *held; /* records on their way */
    uint32_t held_len, held_at;
    char *early; /* what came in the clear before anybody knew */
    uint32_t early_len, early_at;
    uint32_t barren;  /* bytes since the last that were of any use to the application */
    uint32_t updates; /* of the client's keys */
    struct pace pace;
    char *client; /* the subject of a certificate that was verified */
    int fd;
    uint16_t client_len;
    uint8_t name_len;
    bool begun;   /* its first byte was seen */
    bool primed;  /* the handshake has read what there was, and perhaps more than was its own */
    bool drained; /* a short read has said that the socket is empty */
    bool ended;   /* the client has ended its side */
    bool broken;  /* libssl must not be asked any more */
    bool direct;  /* libssl reads and writes the socket itself, so that the kernel may encrypt */
    bool ending;  /* our side ends once nothing is held */
    unsigned char policy[SITE_POLICY_BYTES];
    char name[256]; /* that the client asked for */
};

extern const struct mk_transport tls_transport;

/* The host was chosen; `name` has 255 bytes at most. */
void session_set_host(struct session *s, struct site *site, struct mk_str name);
struct tls_generation *session_generation(const struct session *s);
struct site *session_site(const struct session *s);

/*
 * Does the certificate that was shown cover this name? Of several that the host has, libssl does not always tell which
 * one it was, and a resumed session has shown none: all of them must.
 */
bool session_covers(const struct session *s, struct mk_str name);

/* Of a request's connection; NULL: it is none of ours. */
const struct session *session_of(const struct mk_io *io);

#endif
