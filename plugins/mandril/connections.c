// SPDX-License-Identifier: Apache-2.0
/*
 * Applies [CONNECTIONS] when the client of a connection is known or, where a trusted proxy names clients in headers, to
 * each request.
 */
#include "mandril.h"

#include <assert.h>
#include <errno.h>

/* ── counting ── */

/* A section has counted a connection, or a request behind a proxy. */
struct conn_count {
    struct conn_count *next;
    struct zone *zone; /* holds a reference */
    struct mk_client_ref ref;
};

static void uncount_client(struct zone *zone, struct mk_client_ref ref)
{
    struct zone_client *record = mk_client_table_lock_ref(zone->table, ref);
    if (!record)
        return; /* evicted */
    assert(record->connections > 0);
    record->connections--;
    zone_unlock_client(zone, record, 0);
}

void connections_end(struct conn_count **counts, struct process_state *process)
{
    while (*counts) {
        struct conn_count *c = *counts;
        *counts = c->next;
        uncount_client(c->zone, c->ref);
        zones_put(process->zones, c->zone);
        mk_account_free(NULL, c, sizeof(*c));
    }
}

static bool was_counted(const struct conn_count *counts, const struct zone *zone)
{
    while (counts && counts->zone != zone)
        counts = counts->next;
    return counts != NULL;
}

/* ── deciding ── */

struct conn_subject {
    struct process_state *process;
    struct mk_address client;
    struct mk_loop *loop;
    struct mk_connection *conn; /* whose client is known, or */
    struct mk_request *req;     /* a request; the other is NULL */
    bool counts;                /* the client is to be counted */
    struct conn_count *counted; /* by sections, so far */
};

static void log_decision(const struct connection_rule *rule, struct mk_str what, const struct conn_subject *s)
{
    struct zone_decision line = {
        .place = rule->base.place,
        .name = rule->base.name,
        .what = what,
        .client = s->client,
        .req = s->req,
        .conn = s->conn,
        .level = MK_LOG_INFO,
        .dry_run = rule->conf->dry_run,
    };
    struct mk_worker *worker = s->req ? mk_request_worker(s->req) : mk_connection_worker(s->conn);
    decision_counters_add(DECISION_CONNECTION_DROP, line.dry_run, worker);
    zone_log(rule->base.zone, &line, mk_loop_now_ms(s->loop));
}

/* Counts one more of the client. Returns 0, -EACCES (it has as many as it may) or -ENOMEM. */
static int count_client(const struct connection_rule *rule, struct conn_subject *s)
{
    struct zone *zone = rule->base.zone;
    struct conn_count *c = mk_account_alloc(NULL, sizeof(*c));
    if (!c)
        return -ENOMEM;
    struct zone_client *record = mk_client_table_lock(zone->table, &s->client, mk_loop_now_us(s->loop));
    bool fine = record->connections < rule->conf->connections_max;
    record->connections += fine;
    *c = (struct conn_count){.next = s->counted, .ref = mk_client_table_ref(zone->table, record)};
    zone_unlock_client(zone, record, 0);
    zone_check_evictions(zone, NULL, rule->base.place, mk_loop_now_ms(s->loop));
    if (!fine) {
        mk_account_free(NULL, c, sizeof(*c));
        return -EACCES;
    }
    c->zone = zones_hold(zone);
    s->counted = c;
    return 0;
}

/* Asks a section that is for the client, and logs if it drops. Returns 0, -EACCES or -ENOMEM. */
static int ask_section(const struct connection_rule *rule, struct conn_subject *s)
{
    int err = -EACCES;
    struct mk_str what = MK_STR("drop");
    if (rule->conf->action == CONNECTION_ALLOW) {
        if (!rule->conf->connections_max || !s->counts || was_counted(s->counted, rule->base.zone))
            return 0;
        err = count_client(rule, s);
        what = MK_STR("drop (MaxConnections)");
    }
    if (err == -EACCES)
        log_decision(rule, what, s);
    return err;
}

/*
 * Finds what the sections decide. Returns 0 (it continues; `s->counted` are the counts to end), -EACCES (it is dropped)
 * or -ENOMEM. A section in a dry run counts and logs, and the next one is asked.
 */
static int decide_conn(const struct generation_state *g, struct files_refs *files, struct conn_subject *s)
{
    int err = 0;
    bool decided = false;
    for (uint32_t i = 0; i < g->n_connections && !decided; i++) {
        const struct connection_rule *rule = &g->connections[i];
        if (!filter_contains(&rule->base.clients, files, &s->client))
            continue;
        err = ask_section(rule, s);
        if (rule->conf->dry_run && err == -EACCES)
            err = 0;
        decided = !rule->conf->dry_run || err < 0;
    }
    if (err < 0)
        connections_end(&s->counted, s->process);
    return err;
}

/* ── hooks ── */

int connections_check_client(struct mk_connection *conn)
{
    struct mk_worker *worker = mk_connection_worker(conn);
    const struct generation_state *g = mk_generation_state(mk_worker_generation(worker), &mk_plugin_mandril);
    const struct worker_state *w = mk_worker_state(worker, &mk_plugin_mandril);
    if (!g->n_connections || mk_connection_is_proxy(conn))
        return 0; /* the clients of a proxy are checked with their requests */
    struct conn_subject s = {g->process, mk_connection_client(conn), mk_worker_loop(worker), conn, NULL, true, NULL};
    int err = decide_conn(g, w->files, &s);
    if (!s.counted)
        return err;
    struct conn_state *c = mandril_get_conn(conn, g->process);
    if (!c) {
        connections_end(&s.counted, g->process);
        return -ENOMEM;
    }
    c->counts = s.counted;
    return 0;
}

int connections_check_request(struct generation_state *g, struct files_refs *files,
                              const struct conditions_subject *subject)
{
    const struct mk_connection *conn = mk_request_connection(subject->req);
    struct mk_address first = mk_connection_client(conn);
    bool proxied = mk_connection_is_proxy(conn);
    if (proxied && mk_address_equal(&first, &subject->client))
        return MK_DECLINED; /* a proxy that names no client */
    struct conn_subject s = {g->process, subject->client, mk_request_loop(subject->req), NULL, subject->req, proxied,
                             NULL};
    int err = decide_conn(g, files, &s);
    if (err == -EACCES) {
        mk_response_abort(subject->req);
        return 0;
    }
    if (err < 0 || !s.counted)
        return err < 0 ? err : MK_DECLINED;
    struct exchange *x = mandril_get_exchange(subject->req);
    if (!x) {
        connections_end(&s.counted, g->process);
        return -ENOMEM;
    }
    x->conn_counts = s.counted;
    return MK_DECLINED;
}
