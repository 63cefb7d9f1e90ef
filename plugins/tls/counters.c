// SPDX-License-Identifier: Apache-2.0
#include "tls.h"

#include <monkey/base/hash.h>

#include <pthread.h>

/* ── handshakes ── */

static const struct mk_counter_info handshakes = {"tls", "handshakes", "complete handshakes", MK_COUNTER_SUM};
static const struct mk_counter_info failures = {
    "tls", "failures", "connections without a complete handshake, or closed for abuse, by reason", MK_COUNTER_SUM};

enum { HANDSHAKE_12 = TLS_COUNTS, HANDSHAKE_12_RESUMED, HANDSHAKE_13, HANDSHAKE_13_RESUMED, COUNTS };

static const struct mk_counter_row counter_rows[COUNTS] = {
    [TLS_COUNT_PLAINTEXT] = {&failures, {"reason", "plaintext"}},
    [TLS_COUNT_CLIENT_CLOSED] = {&failures, {"reason", "client_closed"}},
    [TLS_COUNT_NAME] = {&failures, {"reason", "name"}},
    [TLS_COUNT_CLIENT_CERTIFICATE] = {&failures, {"reason", "client_certificate"}},
    [TLS_COUNT_CLIENT_ALERT] = {&failures, {"reason", "client_alert"}},
    [TLS_COUNT_PROTOCOL] = {&failures, {"reason", "protocol"}},
    [TLS_COUNT_VERSION] = {&failures, {"reason", "version"}},
    [TLS_COUNT_CIPHER] = {&failures, {"reason", "cipher"}},
    [TLS_COUNT_FAILED] = {&failures, {"reason", "handshake"}},
    [TLS_COUNT_NO_DATA] = {&failures, {"reason", "no_data"}},
    [TLS_COUNT_KEY_UPDATES] = {&failures, {"reason", "key_updates"}},
    [HANDSHAKE_12] = {&handshakes, {"version", "1.2", "resumed", "no"}},
    [HANDSHAKE_12_RESUMED] = {&handshakes, {"version", "1.2", "resumed", "yes"}},
    [HANDSHAKE_13] = {&handshakes, {"version", "1.3", "resumed", "no"}},
    [HANDSHAKE_13_RESUMED] = {&handshakes, {"version", "1.3", "resumed", "yes"}},
};

static const struct mk_counter *counters[COUNTS];

void tls_counters_open(void)
{
    mk_counters_open(counter_rows, COUNTS, counters);
}

void tls_counters_add_handshake(const struct tls_conn *conn)
{
    assert(conn->worker);
    unsigned first = SSL_version(conn->ssl) == TLS1_3_VERSION ? HANDSHAKE_13 : HANDSHAKE_12;
    mk_counter_add(counters[first + (SSL_session_reused(conn->ssl) == 1)], conn->worker, 1);
}

void tls_counters_add(enum tls_count count, const struct mk_worker *worker)
{
    assert(count < TLS_COUNTS);
    mk_counter_add(counters[count], worker, 1);
}

/* ── expiries: over reloads, by the name of the host and the file ── */

static const struct mk_counter_info expiry_info = {
    "tls", "certificate_expiry_timestamp_seconds",
    "end of validity of a certificate and its chain, in seconds since 1970, by host and file", MK_COUNTER_VALUE};

/* Of the process: a host's certificate in one generation or more. */
struct cert {
    struct mk_hash_node node;
    const struct mk_counter *counter;
    unsigned refs;
    struct mk_str host, file; /* in `text` */
    char text[];
};

/* Of the process, so that a certificate of two generations has one counter. */
static struct {
    pthread_mutex_t lock;
    struct mk_hash_table table;
} certs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash_cert(struct mk_str host, struct mk_str file)
{
    return mk_hash_add(mk_hash_add(MK_HASH_EMPTY, host.p, host.len), file.p, file.len);
}

static struct cert *find_cert(struct mk_str host, struct mk_str file)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&certs.table, hash_cert(host, file), n) {
        struct cert *cert = MK_CONTAINER_OF(n, struct cert, node);
        if (mk_str_eq(cert->host, host) && mk_str_eq(cert->file, file))
            return cert;
    }
    return NULL;
}

static struct cert *add_cert(struct mk_str host, struct mk_str file)
{
    struct cert *cert = mk_account_alloc(NULL, sizeof(*cert) + host.len + file.len);
    if (!cert)
        return NULL;
    *cert = (struct cert){.host = {cert->text, host.len}, .file = {cert->text + host.len, file.len}};
    memcpy(mempcpy(cert->text, host.p, host.len), file.p, file.len);
    if (mk_hash_insert(&certs.table, NULL, &cert->node, hash_cert(host, file)) < 0) {
        mk_account_free(NULL, cert, sizeof(*cert) + host.len + file.len);
        return NULL;
    }
    const struct mk_counter_label labels[] = {{"host", host}, {"certificate", file}};
    cert->counter = mk_counter_hold(&expiry_info, labels, MK_COUNT_OF(labels));
    return cert;
}

static void put_cert(struct mk_str host, struct mk_str file)
{
    struct cert *cert = find_cert(host, file);
    if (!cert || --cert->refs)
        return;
    mk_hash_remove(&certs.table, &cert->node);
    mk_counter_put(cert->counter);
    mk_account_free(NULL, cert, sizeof(*cert) + host.len + file.len);
    if (!certs.table.n)
        mk_hash_release(&certs.table, NULL);
}

void expiry_hold(struct tls_generation *t, const struct mk_worker *worker)
{
    assert(!t->expiries_held);
    t->expiries_held = true;
    for (struct mk_host *host = mk_generation_first_host(t->g); host; host = mk_host_next(host)) {
        const struct tls_host *tls_host = mk_host_state(host, t->plugin);
        if (!tls_host || !tls_host->watched)
            continue;
        pthread_mutex_lock(&certs.lock);
        for (uint32_t i = 0; i < tls_host->conf->certificates.n; i++) {
            struct mk_str file = tls_host->conf->certificates.items[i];
            struct cert *cert = find_cert(mk_host_label(host), file);
            cert = cert ? cert : add_cert(mk_host_label(host), file);
            if (cert)
                cert->refs++;
        }
        pthread_mutex_unlock(&certs.lock);
        expiry_update(tls_host, tls_worker_credentials(worker, tls_host));
    }
}

void expiry_release(const struct tls_host *tls_host)
{
    pthread_mutex_lock(&certs.lock);
    if (tls_host->generation->expiries_held && tls_host->watched)
        for (uint32_t i = 0; i < tls_host->conf->certificates.n; i++)
            put_cert(mk_host_label(tls_host->host), tls_host->conf->certificates.items[i]);
    pthread_mutex_unlock(&certs.lock);
}

void expiry_update(const struct tls_host *tls_host, const struct tls_credentials *credentials)
{
    pthread_mutex_lock(&certs.lock);
    for (unsigned i = 0; i < credentials->n_certs; i++) {
        struct cert *cert = find_cert(mk_host_label(tls_host->host), tls_host->conf->certificates.items[i]);
        if (cert)
            mk_counter_set(cert->counter, credentials->certs[i].expiry);
    }
    pthread_mutex_unlock(&certs.lock);
}
