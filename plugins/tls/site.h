// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin has for a generation, and for each of its hosts: contexts of libssl with certificates. Made in the
 * process context, then read by all workers. Connections that are through with their handshake need none of it: what
 * libssl needs it holds itself.
 */
#ifndef TLS_SITE_H
#define TLS_SITE_H

#include "settings.h"
#include "tickets.h"

#include <openssl/ssl.h>

enum { SITE_POLICY_BYTES = 32, SITE_PAIRS_MAX = 8 };

/* A certificate, and what its issuer says about it. */
struct site_pair {
    X509 *leaf;
    unsigned char *staple; /* NULL: nothing */
    size_t staple_len;
    int64_t staple_begins, staple_ends; /* as of struct staple */
};

/* A host's. */
struct site {
    const struct tls_host *conf;
    SSL_CTX *ctx;                            /* NULL: it has no certificate */
    unsigned char policy[SITE_POLICY_BYTES]; /* of clients' certificates: two that are alike ask the same of them */
    struct site_pair pairs[SITE_PAIRS_MAX];
    unsigned n_pairs;
};

struct tls_generation {
    struct mk_generation *g;
    const struct tls_server *conf;
    struct ticket_keys *keys; /* of a file; NULL: the process's */
    SSL_CTX *bare;            /* for the time until the client has named a host, where the default one has none */
    int port;                 /* of the first listener, for redirects; -ENOENT */
    bool keys_wanted;         /* the file is still to be read */
    unsigned sites;           /* with certificates of their own */
    bool h2;
    bool made; /* the default host's certificate is of our own making */
};

/* A context as all have it. NULL without memory. */
SSL_CTX *site_context(struct tls_generation *t);

/* Reads the host's files; what is wrong is told. 0, -EINVAL, -ENOMEM. */
int site_start(struct site *site, struct mk_host *host, struct tls_generation *t);
/* Gives it this certificate. 0 or -ENOMEM. */
int site_adopt(struct site *site, struct mk_host *host, struct tls_generation *t, X509 *leaf, EVP_PKEY *key);
void site_stop(struct site *site);

/* The site that answers for a name: its host's, else the default host's; NULL: neither has a certificate. */
struct site *site_of_name(const struct tls_generation *t, struct mk_str name);
/* The same for a host. */
struct site *site_of_host(const struct mk_host *host);

/* Does the certificate cover this name, or address in brackets or without? */
bool site_covers(X509 *leaf, struct mk_str name);
/* Is it an address, in brackets or without, rather than a name? Judged by its characters. */
bool site_is_address(struct mk_str name);

#endif
