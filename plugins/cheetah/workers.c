// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <monkey/kit/json.h>

#include <stdio.h>

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
