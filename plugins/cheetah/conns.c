// SPDX-License-Identifier: Apache-2.0
#include "cheetah.h"

#include <monkey/kit/json.h>

#include <stdio.h>

/* ── workers ── */

static void add_worker(struct mk_buf *out, const struct mk_inspect_worker *w)
{
    mk_json_open(out, NULL, '{');
    mk_json_number(out, "worker", w->index);
    mk_json_number(out, "connections", w->connections);
    mk_json_cstr(out, "state", w->draining ? "draining" : w->retiring ? "retiring" : "serving");
    mk_json_number(out, "generation", w->generations[0].number);
    mk_json_number(out, "holders", w->generations[0].holders);
    char older[256] = "";
    size_t at = 0;
    for (unsigned i = 1; i < w->n_generations && at < sizeof(older) - 32; i++)
        at += (size_t)snprintf(older + at, sizeof(older) - at, "%s%u (%u)", i > 1 ? ", " : "", w->generations[i].number,
                               w->generations[i].holders);
    mk_json_cstr(out, "older_generations", older);
    mk_json_number(out, "disk_jobs", w->jobs);
    mk_json_close_line(out);
}

static void list_worker(struct piece *p, struct mk_worker *worker)
{
    mk_inspect_worker(worker, &p->worker);
    add_worker(&p->out, &p->worker);
}

static void list_timers(struct piece *p, struct mk_worker *worker)
{
    mk_inspect_worker(worker, &p->worker);
    mk_json_open(&p->out, NULL, '{');
    mk_json_number(&p->out, "worker", p->worker.index);
    mk_json_number(&p->out, "timers", p->worker.timers);
    mk_json_bool(&p->out, "or_more", p->worker.timers == MK_INSPECT_TIMERS_MAX);
    if (p->worker.timer_ms >= 0)
        mk_json_number(&p->out, "next_ms", p->worker.timer_ms);
    mk_json_close_line(&p->out);
}

static void list_memory(struct piece *p, struct mk_worker *worker)
{
    const struct mk_inspect_worker *w = &p->worker;
    mk_inspect_worker(worker, &p->worker);
    mk_json_open(&p->out, NULL, '{');
    mk_json_number(&p->out, "worker", w->index);
    mk_json_number(&p->out, "account_bytes", (int64_t)w->memory);
    mk_json_number(&p->out, "limit_bytes", (int64_t)w->memory_max);
    mk_json_number(&p->out, "spare_chunks", w->spares);
    mk_json_number(&p->out, "connections", w->conn_pool.used);
    mk_json_number(&p->out, "connection_pool_bytes", (int64_t)w->conn_pool.used * w->conn_pool.bytes);
    mk_json_number(&p->out, "requests", w->request_pool.used);
    mk_json_number(&p->out, "request_pool_bytes", (int64_t)w->request_pool.used * w->request_pool.bytes);
    mk_json_close_line(&p->out);
}

static void walk_workers(struct client *c, piece_fn fn)
{
    client_begin(c, "table");
    struct walk *w = walk_new(c, fn);
    if (w)
        walk_start(w);
}

void workers_list(struct client *c, const struct words *words)
{
    (void)words;
    walk_workers(c, list_worker);
}

void workers_timers(struct client *c, const struct words *words)
{
    (void)words;
    walk_workers(c, list_timers);
}

void workers_memory(struct client *c, const struct words *words)
{
    (void)words;
    walk_workers(c, list_memory);
}

/* ── the end of `status`: totals ── */

static void count_worker(struct piece *p, struct mk_worker *worker)
{
    mk_inspect_worker(worker, &p->worker);
}

static void add_totals(struct walk *w, struct piece *p)
{
    w->workers++;
    w->totals.connections += p->worker.connections;
    w->totals.memory += p->worker.memory;
    w->totals.request_pool.used += p->worker.request_pool.used;
    w->totals.draining |= p->worker.draining;
}

static void finish_status(struct walk *w, struct client *c)
{
    mk_json_open(&c->out, NULL, '{');
    info_add_status(c);
    mk_json_number(&c->out, "worker_threads", w->workers);
    mk_json_number(&c->out, "connections", w->totals.connections);
    mk_json_number(&c->out, "requests_under_way", w->totals.request_pool.used);
    mk_json_number(&c->out, "workers_memory_bytes", (int64_t)w->totals.memory);
    mk_json_cstr(&c->out, "state", w->totals.draining ? "draining" : "serving");
    mk_json_close_line(&c->out);
    client_end(c, NULL);
}

void workers_status(struct client *c)
{
    client_begin(c, "list");
    struct walk *w = walk_new(c, count_worker);
    if (!w)
        return;
    w->collect = add_totals;
    w->finish = finish_status;
    walk_start(w);
}

/* ── connections ── */

enum { TEXT_MAX = 200 };

/* ── arguments ── */

static bool copy_text(char *to, size_t size, struct mk_str value)
{
    if (!value.len || value.len >= size || memchr(value.p, '\0', value.len))
        return false;
    memcpy(to, value.p, value.len);
    to[value.len] = '\0';
    return true;
}

static bool set_state(struct conns_query *q, struct mk_str value)
{
    return copy_text(q->filter.state, sizeof(q->filter.state), value);
}

static bool set_listener(struct conns_query *q, struct mk_str value)
{
    return copy_text(q->filter.listener, sizeof(q->filter.listener), value);
}

static bool set_host(struct conns_query *q, struct mk_str value)
{
    return copy_text(q->filter.host, sizeof(q->filter.host), value);
}

static bool set_peer(struct conns_query *q, struct mk_str value)
{
    q->filter.by_peer = true;
    if (mk_str_eq(value, MK_STR("unix"))) {
        q->filter.peer = (struct mk_address){.family = 1}; /* AF_UNIX */
        return true;
    }
    return mk_address_parse(value, &q->filter.peer) == 0;
}

static bool set_age(struct conns_query *q, struct mk_str value)
{
    uint64_t n;
    if (!mk_str_u64(value, UINT32_MAX, &n))
        return false;
    q->filter.age_min_s = (uint32_t)n;
    return true;
}

static bool set_id(struct conns_query *q, struct mk_str value)
{
    return mk_str_u64(value, UINT64_MAX, &q->filter.id) && q->filter.id;
}

static bool set_request(struct conns_query *q, struct mk_str value)
{
    q->filter.with_request = mk_str_eq(value, MK_STR("yes"));
    q->filter.without_request = mk_str_eq(value, MK_STR("no"));
    return q->filter.with_request || q->filter.without_request;
}

static bool set_limit(struct conns_query *q, struct mk_str value)
{
    return mk_str_u64(value, UINT64_MAX, &q->limit);
}

/* The shell sorts. */
static bool set_sort(struct conns_query *q, struct mk_str value)
{
    (void)q;
    return value.len > 0;
}

static const struct {
    const char *name;
    bool (*set)(struct conns_query *q, struct mk_str value);
} keys[] = {{"state", set_state}, {"listener", set_listener}, {"host", set_host},
            {"peer", set_peer},   {"older", set_age},         {"id", set_id},
            {"limit", set_limit}, {"sort", set_sort},         {"request", set_request}};

bool conns_read_argument(struct client *c, struct mk_str word, struct conns_query *q)
{
    const char *equals = memchr(word.p, '=', word.len);
    size_t n = equals ? (size_t)(equals - word.p) : 0;
    for (size_t i = 0; equals && i < MK_COUNT_OF(keys); i++)
        if (mk_str_eq(mk_str_c(keys[i].name), mk_str(word.p, n)) &&
            keys[i].set(q, mk_str(word.p + n + 1, word.len - n - 1)))
            return true;
    client_refuse(c, "%.*s is not understood; see help %s", (int)(word.len < 100 ? word.len : 100), word.p, c->command);
    return false;
}

/* ── in the thread that is asked ── */

static void add_text(struct mk_buf *out, const char *key, struct mk_str text)
{
    mk_json_str(out, key, mk_str(text.p, text.len < TEXT_MAX ? text.len : TEXT_MAX));
}

static void add_conn(struct mk_buf *out, unsigned worker, const struct mk_inspect_conn *conn)
{
    mk_json_open(out, NULL, '{');
    mk_json_number(out, "id", (int64_t)conn->id);
    mk_json_number(out, "worker", worker);
    mk_json_address(out, "peer", &conn->peer);
    mk_json_number(out, "port", conn->peer.port);
    add_text(out, "listener", conn->listener);
    add_text(out, "transport", conn->transport);
    mk_json_cstr(out, "protocol", conn->protocol);
    mk_json_cstr(out, "state", conn->state);
    mk_json_number(out, "age_s", conn->age_s);
    mk_json_number(out, "requests", conn->requests);
    if (conn->counts_bytes) {
        mk_json_number(out, "received_bytes", (int64_t)conn->received);
        mk_json_number(out, "sent_bytes", (int64_t)conn->sent);
    }
    mk_json_number(out, "streams", conn->streams);
    if (conn->has_request) {
        add_text(out, "method", conn->method);
        add_text(out, "host", conn->host);
        add_text(out, "path", conn->path);
    }
    mk_json_close_line(out);
}

static enum mk_inspect_action list_conn(const struct mk_inspect_conn *conn, void *ctx)
{
    struct piece *p = ctx;
    if (conn_filter_holds(&p->filter, conn)) {
        p->found++;
        add_conn(&p->out, p->thread->base.index, conn);
    }
    return p->found_max && p->found >= p->found_max ? MK_INSPECT_STOP : MK_INSPECT_CONTINUE;
}

static enum mk_inspect_action close_conn(const struct mk_inspect_conn *conn, void *ctx)
{
    struct piece *p = ctx;
    if (!conn_filter_holds(&p->filter, conn))
        return MK_INSPECT_CONTINUE;
    p->found++;
    add_conn(&p->out, p->thread->base.index, conn);
    return MK_INSPECT_ABORT;
}

static void list_piece(struct piece *p, struct mk_worker *worker)
{
    piece_next_conns(p, worker, list_conn);
}

static void close_piece(struct piece *p, struct mk_worker *worker)
{
    piece_next_conns(p, worker, close_conn);
}

/* ── the command ── */

static void finish_close(struct walk *w, struct client *c)
{
    client_end(c, w->found ? NULL : "there is no connection of this number");
}

static void start_walk(struct client *c, const struct conns_query *q, bool closes)
{
    client_begin(c, "table");
    struct walk *w = walk_new(c, closes ? close_piece : list_piece);
    if (!w)
        return;
    w->filter = q->filter;
    w->found_max = q->limit ? q->limit : q->filter.id ? 1 : 0;
    w->finish = closes ? finish_close : NULL;
    walk_start(w);
}

void conns_run(struct client *c, const struct words *words)
{
    struct conns_query q = {.limit = 0};
    bool closes = words->n > 1 && mk_str_eq(words->items[1], MK_STR("close"));
    if (closes && (words->n != 3 || !set_id(&q, words->items[2]))) {
        client_refuse(c, "connections close needs the number of a connection; connections lists them");
        return;
    }
    for (unsigned i = 1; i < words->n && !closes; i++)
        if (!conns_read_argument(c, words->items[i], &q))
            return;
    start_walk(c, &q, closes);
}
