// SPDX-License-Identifier: Apache-2.0
/*
 * Commands about the workers: what each of them holds.
 */
#include "commands.h"
#include "info.h"
#include "json.h"
#include "walk.h"

#include <stdio.h>

static void add_worker(struct mk_buf *out, const struct mk_inspect_worker *w)
{
    json_begin(out);
    json_number(out, "worker", w->index);
    json_number(out, "connections", w->connections);
    json_text(out, "state", w->draining ? "draining" : w->retiring ? "retiring" : "serving");
    json_number(out, "generation", w->generations[0].number);
    json_number(out, "holders", w->generations[0].holders);
    char older[256] = "";
    size_t at = 0;
    for (unsigned i = 1; i < w->n_generations && at < sizeof(older) - 32; i++)
        at += (size_t)snprintf(older + at, sizeof(older) - at, "%s%u (%u)", i > 1 ? ", " : "", w->generations[i].number,
                               w->generations[i].holders);
    json_text(out, "older_generations", older);
    json_number(out, "disk_jobs", w->jobs);
    json_end(out);
}

static void list_worker(struct piece *p, struct mk_worker *worker)
{
    mk_inspect_worker(worker, &p->worker);
    add_worker(&p->out, &p->worker);
}

static void list_timers(struct piece *p, struct mk_worker *worker)
{
    mk_inspect_worker(worker, &p->worker);
    json_begin(&p->out);
    json_number(&p->out, "worker", p->worker.index);
    json_number(&p->out, "timers", p->worker.timers);
    json_bool(&p->out, "or_more", p->worker.timers == MK_INSPECT_TIMERS_MAX);
    if (p->worker.timer_ms >= 0)
        json_number(&p->out, "next_ms", p->worker.timer_ms);
    json_end(&p->out);
}

static void list_memory(struct piece *p, struct mk_worker *worker)
{
    const struct mk_inspect_worker *w = &p->worker;
    mk_inspect_worker(worker, &p->worker);
    json_begin(&p->out);
    json_number(&p->out, "worker", w->index);
    json_number(&p->out, "account_bytes", (int64_t)w->memory);
    json_number(&p->out, "limit_bytes", (int64_t)w->memory_max);
    json_number(&p->out, "spare_chunks", w->spares);
    json_number(&p->out, "connections", w->conn_pool.used);
    json_number(&p->out, "connection_pool_bytes", (int64_t)w->conn_pool.used * w->conn_pool.bytes);
    json_number(&p->out, "requests", w->request_pool.used);
    json_number(&p->out, "request_pool_bytes", (int64_t)w->request_pool.used * w->request_pool.bytes);
    json_end(&p->out);
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
    json_begin(&c->out);
    info_add_status(c);
    json_number(&c->out, "worker_threads", w->workers);
    json_number(&c->out, "connections", w->totals.connections);
    json_number(&c->out, "requests_under_way", w->totals.request_pool.used);
    json_number(&c->out, "workers_memory_bytes", (int64_t)w->totals.memory);
    json_text(&c->out, "state", w->totals.draining ? "draining" : "serving");
    json_end(&c->out);
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
