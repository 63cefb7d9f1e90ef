// SPDX-License-Identifier: Apache-2.0
/*
 * The state of the plugin in a worker under a generation: a write buffer, and a reference to the current SSL_CTX of
 * each host with files.
 */
#ifndef TLS_TLS_WORKER_H
#define TLS_TLS_WORKER_H

#include "tls_host.h"
#include "write_buffer.h"

struct tls_worker {
    struct write_buffer *write_buffer;
    unsigned n;
    struct mk_watched_ref refs[]; /* by the hosts' indexes */
};

/* Makes the state, in the worker's thread. Returns NULL without memory. */
struct tls_worker *tls_worker_new(struct mk_worker *worker, const struct tls_generation *t);
void tls_worker_free(struct tls_worker *own);
/* Returns the state of a worker. */
struct tls_worker *tls_worker_of(const struct mk_worker *worker);

/*
 * Returns the current SSL_CTX of a host that has a certificate. Valid until the next call for the same host: the caller
 * makes or switches an SSL with it, which holds it then.
 */
SSL_CTX *tls_worker_context(const struct mk_worker *worker, const struct tls_host *tls_host);

#endif
