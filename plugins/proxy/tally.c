// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the counters of backends, and hides those of backends that are gone (tally.h).
 */
#include "tally.h"

#include <monkey/arena.h>

#include <pthread.h>

static const struct mk_counter_info
    requests = {"proxy", "backend_requests", "requests that were passed to a backend", MK_COUNTER_SUM},
    responses = {"proxy", "backend_responses", "heads of responses of a backend, by class of the status",
                 MK_COUNTER_SUM},
    retries = {"proxy", "backend_retries", "requests that were sent again, by what was wrong before", MK_COUNTER_SUM},
    failures = {"proxy", "backend_failures", "requests that a backend did not answer, or not completely",
                MK_COUNTER_SUM},
    timeouts = {"proxy", "backend_timeouts", "requests for which a backend took too long", MK_COUNTER_SUM},
    opened = {"proxy", "backend_opened_connections", "connections that were opened to a backend", MK_COUNTER_SUM},
    connections = {"proxy", "backend_connections", "open connections to a backend, by state", MK_COUNTER_LEVEL},
    sent = {"proxy", "backend_sent_bytes", "bytes that were sent to a backend, heads included", MK_COUNTER_SUM},
    received = {"proxy", "backend_received_bytes", "bytes that a backend has sent, heads included", MK_COUNTER_SUM},
    connect_duration = {"proxy", "backend_connect_duration", "time that new connections took, TLS included",
                        MK_COUNTER_HISTOGRAM},
    head_duration = {"proxy", "backend_head_duration", "time from the request to the head of the response",
                     MK_COUNTER_HISTOGRAM},
    duration = {"proxy", "backend_duration", "time from the request to the end of the response", MK_COUNTER_HISTOGRAM};

/* The counters, with a further label. */
static const struct {
    const struct mk_counter_info *info;
    const char *name, *value;
} rows[TALLY_COUNTERS] = {
    [TALLY_REQUESTS] = {&requests, NULL, NULL},
    [TALLY_RESPONSES] = {&responses, "status", "1xx"},
    [TALLY_RESPONSES + 1] = {&responses, "status", "2xx"},
    [TALLY_RESPONSES + 2] = {&responses, "status", "3xx"},
    [TALLY_RESPONSES + 3] = {&responses, "status", "4xx"},
    [TALLY_RESPONSES + 4] = {&responses, "status", "5xx"},
    [TALLY_RETRIES + MK_UPSTREAM_NOT_REACHED] = {&retries, "reason", "not_reached"},
    [TALLY_RETRIES + MK_UPSTREAM_KEPT_ENDED] = {&retries, "reason", "kept_connection"},
    [TALLY_RETRIES + MK_UPSTREAM_SENT] = {&retries, "reason", "no_response"},
    [TALLY_RETRIES + MK_UPSTREAM_STATUS] = {&retries, "reason", "status"},
    [TALLY_FAILURES] = {&failures, NULL, NULL},
    [TALLY_TIMEOUTS] = {&timeouts, NULL, NULL},
    [TALLY_OPENED] = {&opened, NULL, NULL},
    [TALLY_BUSY] = {&connections, "state", "busy"},
    [TALLY_IDLE] = {&connections, "state", "idle"},
    [TALLY_SENT_BYTES] = {&sent, NULL, NULL},
    [TALLY_RECEIVED_BYTES] = {&received, NULL, NULL},
    [TALLY_CONNECT_DURATION] = {&connect_duration, NULL, NULL},
    [TALLY_HEAD_DURATION] = {&head_duration, NULL, NULL},
    [TALLY_DURATION] = {&duration, NULL, NULL},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mk_list all = {&all, &all}; /* under the lock, as the numbers of references */
static unsigned generations;              /* of the hooks of the configuration */

static struct tally *find_tally(struct mk_str backend, struct mk_str server)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&all, n, save) {
        struct tally *tally = MK_CONTAINER_OF(n, struct tally, node);
        if (mk_str_eq(tally->backend, backend) && mk_str_eq(tally->server, server))
            return tally;
    }
    return NULL;
}

static struct tally *make_tally(struct mk_str backend, struct mk_str server)
{
    struct tally *tally = mk_account_alloc(NULL, sizeof(*tally) + backend.len + server.len);
    if (!tally)
        return NULL;
    char *text = (char *)(tally + 1);
    *tally = (struct tally){.backend = {text, backend.len}, .server = {text + backend.len, server.len}};
    char *end = mempcpy(text, backend.p, backend.len);
    if (server.len)
        memcpy(end, server.p, server.len);
    mk_list_add(&all, &tally->node);
    return tally;
}

static void open_counters(struct tally *tally)
{
    for (unsigned i = 0; i < TALLY_COUNTERS; i++) {
        struct mk_counter_label labels[3] = {{"backend", tally->backend}};
        unsigned n = 1;
        if (tally->server.len)
            labels[n++] = (struct mk_counter_label){"server", tally->server};
        if (rows[i].name)
            labels[n++] = (struct mk_counter_label){rows[i].name, mk_str_c(rows[i].value)};
        const struct mk_counter *counter = mk_counter_open(rows[i].info, labels, n);
        if (tally->counters[i] != counter) /* threads may be counting */
            tally->counters[i] = counter;
    }
}

struct tally *tally_get(struct mk_str backend, struct mk_str server)
{
    pthread_mutex_lock(&lock);
    struct tally *tally = find_tally(backend, server);
    if (!tally)
        tally = make_tally(backend, server);
    if (tally && tally->refs++ == 0)
        open_counters(tally);
    pthread_mutex_unlock(&lock);
    return tally;
}

void tally_put(struct tally *tally)
{
    pthread_mutex_lock(&lock);
    tally->refs--;
    pthread_mutex_unlock(&lock);
}

/* The label may have been cut. `ctx`: the offset of what it names in a tally. */
static bool is_used(struct mk_str label, void *ctx)
{
    struct mk_list *n, *save;
    const size_t *offset = ctx;
    MK_LIST_EACH(&all, n, save) {
        const struct tally *tally = MK_CONTAINER_OF(n, struct tally, node);
        const struct mk_str *name = (const void *)((const char *)tally + *offset);
        size_t len = name->len < MK_COUNTER_LABEL_MAX ? name->len : MK_COUNTER_LABEL_MAX;
        if (tally->refs && mk_str_eq(mk_str(name->p, len), label))
            return true;
    }
    return false;
}

void tally_hide_unused(void)
{
    pthread_mutex_lock(&lock);
    size_t backend = offsetof(struct tally, backend), server = offsetof(struct tally, server);
    mk_counters_hide("proxy", "backend", is_used, &backend);
    mk_counters_hide("proxy", "server", is_used, &server);
    pthread_mutex_unlock(&lock);
}

void tally_begin_generation(void)
{
    generations++;
}

void tally_end_generation(void)
{
    if (--generations > 0)
        tally_hide_unused();
}

void tally_free_all(void)
{
    while (!mk_list_empty(&all)) {
        struct tally *tally = MK_LIST_FIRST(&all, struct tally, node);
        mk_list_del(&tally->node);
        mk_account_free(NULL, tally, sizeof(*tally) + tally->backend.len + tally->server.len);
    }
}
