// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps a counter for each certificate of a host, by the host's name and the file (expiry.h), over reloads.
 */
#include "expiry.h"

#include "tls_worker.h"

#include <monkey/base/arena.h>
#include <monkey/counters.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <pthread.h>

extern const struct mk_plugin mk_plugin_tls;

static const struct mk_counter_info info = {
    "tls", "certificate_expiry_timestamp_seconds",
    "end of validity of a certificate and its chain, in seconds since 1970, by host and file", MK_COUNTER_VALUE};

/* Of the process: a host's certificate in one generation or more. */
struct cert {
    struct cert *next;
    const struct mk_counter *counter;
    unsigned refs;
    struct mk_str host, file; /* in `text` */
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cert *first; /* under the lock */

static struct cert *find_cert(struct mk_str host, struct mk_str file)
{
    struct cert *cert = first;
    while (cert && !(mk_str_eq(cert->host, host) && mk_str_eq(cert->file, file)))
        cert = cert->next;
    return cert;
}

static struct cert *add_cert(struct mk_str host, struct mk_str file)
{
    struct cert *cert = mk_account_alloc(NULL, sizeof(*cert) + host.len + file.len);
    if (!cert)
        return NULL;
    *cert = (struct cert){.next = first, .host = {cert->text, host.len}, .file = {cert->text + host.len, file.len}};
    memcpy(mempcpy(cert->text, host.p, host.len), file.p, file.len);
    const struct mk_counter_label labels[] = {{"host", host}, {"certificate", file}};
    cert->counter = mk_counter_open(&info, labels, MK_COUNT_OF(labels));
    return first = cert;
}

static void put_cert(struct mk_str host, struct mk_str file)
{
    struct cert **at = &first, *cert = find_cert(host, file);
    if (!cert || --cert->refs)
        return;
    while (*at != cert)
        at = &(*at)->next;
    *at = cert->next;
    mk_account_free(NULL, cert, sizeof(*cert) + host.len + file.len);
}

static bool is_used(struct mk_str labels, void *ctx)
{
    char storage[2][MK_COUNTER_LABEL_VALUE_BYTES];
    struct mk_str host = mk_counter_label_get(labels, MK_STR("host"), storage[0]);
    struct mk_str file = mk_counter_label_get(labels, MK_STR("certificate"), storage[1]);
    const struct cert *cert = first;
    (void)ctx;
    while (cert && !(mk_str_eq(mk_counter_label_truncate(cert->host), host) &&
                     mk_str_eq(mk_counter_label_truncate(cert->file), file)))
        cert = cert->next;
    return cert != NULL;
}

static void hold_cert(struct mk_str host, struct mk_str file)
{
    struct cert *cert = find_cert(host, file);
    cert = cert ? cert : add_cert(host, file);
    if (cert)
        cert->refs++;
}

void expiry_hold(struct tls_generation *t, const struct mk_worker *worker)
{
    assert(!t->expiries_held);
    t->expiries_held = true;
    for (struct mk_host *host = mk_generation_first_host(t->g); host; host = mk_host_next(host)) {
        const struct tls_host *tls_host = mk_host_state(host, &mk_plugin_tls);
        if (!tls_host || !tls_host->watched)
            continue;
        pthread_mutex_lock(&lock);
        for (uint32_t i = 0; i < tls_host->conf->certificates.n; i++)
            hold_cert(mk_host_label(host), tls_host->conf->certificates.items[i]);
        pthread_mutex_unlock(&lock);
        expiry_update(tls_host, tls_host_credentials(tls_worker_context(worker, tls_host)));
    }
    expiry_hide_unused(); /* of a former process */
}

void expiry_release(const struct tls_host *tls_host)
{
    pthread_mutex_lock(&lock);
    if (tls_host->generation->expiries_held && tls_host->watched)
        for (uint32_t i = 0; i < tls_host->conf->certificates.n; i++)
            put_cert(mk_host_label(tls_host->host), tls_host->conf->certificates.items[i]);
    pthread_mutex_unlock(&lock);
}

void expiry_hide_unused(void)
{
    pthread_mutex_lock(&lock);
    if (first) /* else the process ends, whose successor may have them in use */
        mk_counters_hide("tls", "certificate", is_used, NULL);
    pthread_mutex_unlock(&lock);
}

void expiry_update(const struct tls_host *tls_host, const struct tls_credentials *credentials)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < credentials->n_certs; i++) {
        struct cert *cert = find_cert(mk_host_label(tls_host->host), tls_host->conf->certificates.items[i]);
        if (cert)
            mk_counter_set(cert->counter, credentials->certs[i].expiry);
    }
    pthread_mutex_unlock(&lock);
}
