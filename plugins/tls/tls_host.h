// SPDX-License-Identifier: Apache-2.0
/*
 * The state of the plugin for a generation and for each of its hosts. The main thread makes it, all workers read it. A
 * connection does not use it after the handshake: libssl holds what it needs itself.
 *
 *     tls_host ─► watched ─► SSL_CTX ─► credentials      made again when the files change; each worker has a reference
 */
#ifndef TLS_TLS_HOST_H
#define TLS_TLS_HOST_H

#include "settings.h"
#include "ticket_keys.h"

#include <monkey/kit/watched.h>

#include <openssl/ssl.h>

enum { TLS_HOST_POLICY_BYTES = 32, TLS_HOST_CERTS_MAX = 8 };

/* A certificate and its OCSP response. */
struct tls_cert {
    X509 *leaf;
    int64_t expiry;      /* seconds since 1970: the first end of validity in the chain */
    unsigned char *ocsp; /* NULL: none */
    size_t ocsp_len;
    int64_t ocsp_this_update, ocsp_next_update; /* as of struct ocsp_response */
};

/* What belongs to an SSL_CTX of a host and lives as long; constant once the SSL_CTX is in use. */
struct tls_credentials {
    unsigned char policy[TLS_HOST_POLICY_BYTES]; /* a digest of what the host requires of client certificates */
    struct tls_cert certs[TLS_HOST_CERTS_MAX];
    unsigned n_certs;
};

/* The state of a host. */
struct tls_host {
    const struct tls_host_conf *conf;
    struct mk_host *host;
    struct tls_generation *generation;
    struct mk_watched *watched; /* the SSL_CTX that its files make; NULL: it has no files */
    unsigned index;             /* of the reference to `watched` in each worker */
    SSL_CTX *ctx;               /* that of the self-signed certificate; NULL: none */
};

struct tls_generation {
    struct mk_generation *g;
    const struct tls_server_conf *conf;
    struct ticket_keys *keys; /* of TicketKeys; NULL: those of the process */
    SSL_CTX *default_ctx;     /* until the client has sent a name, if the default host has none */
    int port;                 /* of the first listener, for redirects; -ENOENT */
    bool keys_pending;        /* TicketKeys was not read yet */
    unsigned n_hosts;         /* hosts with their own certificates */
    bool expiries_held;       /* expiry.h */
    bool h2;
    bool self_signed; /* the default host has the self-signed certificate */
};

/* Frees the certificates and the SSL_CTX. No worker may use them any more. */
void tls_host_release(struct tls_host *tls_host);

/* Makes the credentials of an SSL_CTX, which frees them. Returns NULL without memory. */
struct tls_credentials *tls_host_add_credentials(SSL_CTX *ctx);
/* Returns the credentials of an SSL_CTX; NULL if it is not of a host. */
const struct tls_credentials *tls_host_credentials(const SSL_CTX *ctx);
/* Returns true if the host has its own certificate, or the self-signed one. */
bool tls_host_has_certificate(const struct tls_host *tls_host);

/*
 * Returns the tls_host for a name at the `listener` of a struct mk_io: of its host, else of the default host there;
 * NULL if neither has a certificate.
 */
struct tls_host *tls_host_by_name(const struct tls_generation *t, const void *listener, struct mk_str name);
/* Returns the tls_host for a host, in the same way. */
struct tls_host *tls_host_find(const struct mk_host *host, const void *listener);

/* Returns true if its clients are asked for a certificate: asks_certificate() of mk_transport. */
bool tls_host_asks_certificate(const struct mk_host *host);

/* Returns true if the certificate covers this name, or address with or without brackets. */
bool tls_host_covers(X509 *leaf, struct mk_str name);

#endif
