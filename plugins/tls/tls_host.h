// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin has for a generation, and for each of its hosts: contexts of libssl with certificates. Made in the
 * process context, then read by all workers. Connections that are through with their handshake need none of it: what
 * libssl needs it holds itself.
 */
#ifndef TLS_TLS_HOST_H
#define TLS_TLS_HOST_H

#include "settings.h"
#include "ticket_keys.h"

#include <openssl/ssl.h>

enum { TLS_HOST_POLICY_BYTES = 32, TLS_HOST_CERTS_MAX = 8 };

/* A certificate, and what its issuer says about it. */
struct tls_cert {
    X509 *leaf;
    unsigned char *ocsp; /* NULL: nothing */
    size_t ocsp_len;
    int64_t ocsp_this_update, ocsp_next_update; /* as of struct ocsp_response */
};

/* A host's. */
struct tls_host {
    const struct tls_host_conf *conf;
    SSL_CTX *ctx;                                /* NULL: it has no certificate */
    unsigned char policy[TLS_HOST_POLICY_BYTES]; /* of clients' certificates: two that are alike ask the same of them */
    struct tls_cert certs[TLS_HOST_CERTS_MAX];
    unsigned n_certs;
};

struct tls_generation {
    struct mk_generation *g;
    const struct tls_server_conf *conf;
    struct ticket_keys *keys; /* of a file; NULL: the process's */
    SSL_CTX *default_ctx;     /* for the time until the client has named a host, where the default one has none */
    int port;                 /* of the first listener, for redirects; -ENOENT */
    bool keys_pending;        /* the file is still to be read */
    unsigned n_hosts;         /* with certificates of their own */
    bool h2;
    bool self_signed; /* the default host's certificate is of our own making */
};

/* A context as all have it. NULL without memory. */
SSL_CTX *tls_host_new_context(struct tls_generation *t);

/* Reads the host's files; what is wrong is told. 0, -EINVAL, -ENOMEM. */
int tls_host_start(struct tls_host *tls_host, struct mk_host *host, struct tls_generation *t);
/* Gives it this certificate. 0 or -ENOMEM. */
int tls_host_set_certificate(struct tls_host *tls_host, struct mk_host *host, struct tls_generation *t, X509 *leaf,
                             EVP_PKEY *key);
void tls_host_stop(struct tls_host *tls_host);

/* The tls_host that answers for a name: its host's, else the default host's; NULL: neither has a certificate. */
struct tls_host *tls_host_by_name(const struct tls_generation *t, struct mk_str name);
/* The same for a host. */
struct tls_host *tls_host_of(const struct mk_host *host);

/* Does the certificate cover this name, or address in brackets or without? */
bool tls_host_covers(X509 *leaf, struct mk_str name);
/* Is it an address, in brackets or without, rather than a name? Judged by its characters. */
bool tls_host_is_address(struct mk_str name);

#endif
