// SPDX-License-Identifier: Apache-2.0
/*
 * References of a worker to the SSL_CTXs of hosts (tls_worker.h).
 */
#include "tls_worker.h"

#include <assert.h>

extern const struct mk_plugin mk_plugin_tls;

static size_t get_size(unsigned n)
{
    return sizeof(struct tls_worker) + n * sizeof(struct mk_watched_ref);
}

static void take_references(struct tls_worker *own, const struct mk_generation *g)
{
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host)) {
        const struct tls_host *tls_host = mk_host_state(host, &mk_plugin_tls);
        if (!tls_host || !tls_host->watched)
            continue;
        assert(tls_host->index < own->n);
        mk_watched_ref_init(&own->refs[tls_host->index], tls_host->watched);
    }
}

struct tls_worker *tls_worker_new(struct mk_worker *worker, const struct tls_generation *t)
{
    struct write_buffer *buffer = write_buffer_new(mk_worker_account(worker));
    struct tls_worker *own = buffer ? mk_account_zalloc(NULL, get_size(t->n_hosts)) : NULL;
    if (!own) {
        if (buffer)
            write_buffer_put(buffer);
        return NULL;
    }
    own->write_buffer = buffer;
    own->n = t->n_hosts;
    take_references(own, t->g);
    return own;
}

void tls_worker_free(struct tls_worker *own)
{
    for (unsigned i = 0; i < own->n; i++)
        mk_watched_ref_release(&own->refs[i]);
    write_buffer_put(own->write_buffer);
    mk_account_free(NULL, own, get_size(own->n));
}

struct tls_worker *tls_worker_of(const struct mk_worker *worker)
{
    return mk_worker_state(worker, &mk_plugin_tls);
}

SSL_CTX *tls_worker_context(const struct mk_worker *worker, const struct tls_host *tls_host)
{
    if (!tls_host->watched)
        return tls_host->ctx;
    struct tls_worker *own = tls_worker_of(worker);
    assert(tls_host->index < own->n);
    return mk_watched_ref_get(&own->refs[tls_host->index]);
}
