// SPDX-License-Identifier: Apache-2.0
/*
 * The command `trace`: the states of a connection, or of all of a client, as they change.
 *
 *     walk: each thread starts a tracer, and marks the connections that are open
 *     then: change ─► tracer->out (under its lock, bounded) ─► call ─► the client's thread ─► answer
 *
 * A tracer ends in its own thread: when the client has ended the command, or with the thread.
 */
#include "cheetah.h"

#include <monkey/kit/json.h>

#include <assert.h>
#include <time.h>

enum { TRACERS_MAX = 256, TRACE_BYTES_MAX = 64 * 1024 };

struct trace_run;

struct tracer {
    struct mk_thread_call event_call; /* its changes are on their way, if `posted` */
    struct mk_thread_call stop_call;
    struct thread *thread, *home;
    pthread_mutex_t lock; /* of the following */
    struct mk_buf out;
    unsigned lost, refs;
    bool posted;
    /* of the traced thread */
    uint64_t now_us;
    struct mk_inspect_trace trace;
    struct thread_at_end at_end;
    bool tracing;
    struct trace_run *run; /* of the client's thread; NULL: it has ended */
};

struct trace_run {
    struct run run;
    unsigned n;
    struct tracer *tracers[TRACERS_MAX];
};

static void put_tracer(struct tracer *t)
{
    pthread_mutex_lock(&t->lock);
    bool last = --t->refs == 0;
    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    assert(!t->tracing);
    mk_thread_put(&t->thread->base);
    mk_thread_put(&t->home->base);
    pthread_mutex_destroy(&t->lock);
    mk_buf_release(&t->out);
    mk_account_free(NULL, t, sizeof(*t));
}

/* ── in the client's thread ── */

/* Moves the changes to the answer. */
static void take_changes(struct tracer *t, struct client *c)
{
    pthread_mutex_lock(&t->lock);
    if (!client_is_full(c)) {
        mk_buf_adds(&c->out, mk_buf_str(&t->out));
        t->out.len = 0;
        if (t->lost)
            client_warn(c, "%u changes are missing: they come faster than the shell takes them", t->lost);
        t->lost = 0;
    }
    pthread_mutex_unlock(&t->lock);
}

static void on_changes(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct tracer *t = MK_CONTAINER_OF(call, struct tracer, event_call);
    struct client *c = t->run && thread ? t->run->run.client : NULL;
    pthread_mutex_lock(&t->lock);
    t->posted = false;
    pthread_mutex_unlock(&t->lock);
    if (c) {
        take_changes(t, c);
        client_flush(c);
    }
    put_tracer(t);
}

static void resume_trace(struct run *run)
{
    struct trace_run *r = MK_CONTAINER_OF(run, struct trace_run, run);
    for (unsigned i = 0; i < r->n; i++)
        take_changes(r->tracers[i], run->client);
}

/* ── in the traced thread ── */

static void end_tracing(struct tracer *t)
{
    if (!t->tracing)
        return;
    mk_inspect_trace_stop(&t->trace);
    mk_list_del(&t->at_end.node);
    t->tracing = false;
    put_tracer(t);
}

static void on_thread_end(struct thread_at_end *at_end)
{
    end_tracing(MK_CONTAINER_OF(at_end, struct tracer, at_end));
}

static void stop_tracing(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct tracer *t = MK_CONTAINER_OF(call, struct tracer, stop_call);
    (void)thread;
    end_tracing(t);
    put_tracer(t);
}

/* Returns the time of day of a moment of the loop's clock. */
static uint64_t get_unix_us(uint64_t loop_us)
{
    struct timespec real, steady;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &steady);
    uint64_t now_us = (uint64_t)real.tv_sec * 1000000 + (uint64_t)real.tv_nsec / 1000;
    return now_us + loop_us - ((uint64_t)steady.tv_sec * 1000000 + (uint64_t)steady.tv_nsec / 1000);
}

static void add_change(struct tracer *t, const struct mk_inspect_change *change)
{
    if (t->out.len > TRACE_BYTES_MAX) {
        t->lost++;
        return;
    }
    mk_json_open(&t->out, NULL, '{');
    mk_json_number(&t->out, "time_unix_us", (int64_t)get_unix_us(change->time_us));
    mk_json_number(&t->out, "time_us", (int64_t)change->time_us);
    mk_json_number(&t->out, "id", (int64_t)change->id);
    mk_json_number(&t->out, "worker", t->thread->base.index);
    mk_json_address(&t->out, "peer", &change->peer);
    mk_json_cstr(&t->out, "before", change->before);
    mk_json_cstr(&t->out, "after", change->after);
    mk_json_number(&t->out, "requests", change->requests);
    mk_json_close_line(&t->out);
}

static void on_change(struct mk_inspect_trace *trace, const struct mk_inspect_change *change)
{
    struct tracer *t = MK_CONTAINER_OF(trace, struct tracer, trace);
    pthread_mutex_lock(&t->lock);
    add_change(t, change);
    bool posts = !t->posted;
    t->posted |= posts;
    t->refs += posts;
    pthread_mutex_unlock(&t->lock);
    if (posts && mk_thread_call(&t->home->base, &t->event_call) < 0)
        put_tracer(t); /* the client has gone with its thread; `posted` stays, so that nothing more is sent */
}

/* Tells of the state in which a connection is when its trace begins. */
static void add_first_state(struct tracer *t, const struct mk_inspect_conn *conn)
{
    struct mk_inspect_change change = {.id = conn->id,
                                       .peer = conn->peer,
                                       .before = "",
                                       .after = conn->state,
                                       .time_us = t->now_us,
                                       .requests = conn->requests};
    pthread_mutex_lock(&t->lock);
    add_change(t, &change);
    pthread_mutex_unlock(&t->lock);
}

static enum mk_inspect_action mark_conn(const struct mk_inspect_conn *conn, void *ctx)
{
    struct piece *p = ctx;
    bool holds = conn_filter_holds(&p->filter, conn);
    p->found += holds;
    if (holds && p->tracer)
        add_first_state(p->tracer, conn);
    return holds ? MK_INSPECT_TRACE : MK_INSPECT_CONTINUE;
}

static struct tracer *new_tracer(const struct piece *p)
{
    struct tracer *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return NULL;
    *t = (struct tracer){.event_call = {.fn = on_changes},
                         .stop_call = {.fn = stop_tracing},
                         .thread = p->thread,
                         .home = p->home,
                         .refs = 2, /* of the traced thread, and of the piece that carries it */
                         .trace = {.fn = on_change, .id = p->filter.id, .peer = p->filter.peer},
                         .at_end = {.fn = on_thread_end}};
    mk_thread_get(&t->thread->base);
    mk_thread_get(&t->home->base);
    pthread_mutex_init(&t->lock, NULL);
    mk_buf_init(&t->out, TRACE_BYTES_MAX + 4096);
    mk_list_init(&t->at_end.node);
    return t;
}

/* The piece ends with its tracer, in the traced thread or after its end. */
static void release_tracer(struct piece *p)
{
    struct tracer *t = p->tracer;
    if (!t)
        return;
    end_tracing(t);
    put_tracer(t);
}

static void start_tracing(struct piece *p, const struct mk_worker *worker)
{
    struct tracer *t = new_tracer(p);
    if (!t)
        return;
    t->tracing = mk_inspect_trace_start(&t->trace, worker) == 0;
    if (t->tracing)
        mk_list_add(&t->thread->at_end, &t->at_end.node);
    else
        put_tracer(t);
    p->tracer = t;
    p->release = release_tracer;
}

static void mark_piece(struct piece *p, struct mk_worker *worker)
{
    if (!p->tracer)
        start_tracing(p, worker);
    struct tracer *t = p->tracer;
    if (t)
        t->now_us = mk_loop_now_us(mk_worker_loop(worker));
    piece_next_conns(p, worker, mark_conn);
}

/* ── the command ── */

/* Ends a tracer in its thread. */
static void drop_tracer(struct tracer *t)
{
    t->run = NULL;
    if (mk_thread_call(&t->thread->base, &t->stop_call) < 0) /* which takes the reference */
        put_tracer(t);
}

static void stop_trace(struct run *run)
{
    struct trace_run *r = MK_CONTAINER_OF(run, struct trace_run, run);
    for (unsigned i = 0; i < r->n; i++)
        drop_tracer(r->tracers[i]);
    mk_account_free(NULL, r, sizeof(*r));
}

/* A piece has come back with the tracer of its thread, which passes to the run. */
static void collect_tracer(struct walk *w, struct piece *p)
{
    struct trace_run *r = w->data;
    if (!p->tracer || p->more)
        return;
    struct tracer *t = p->tracer;
    p->tracer = NULL;
    t->run = r->n < TRACERS_MAX ? r : NULL;
    if (t->run)
        r->tracers[r->n++] = t;
    else
        drop_tracer(t);
}

static void begin_trace(struct walk *w, struct client *c)
{
    struct trace_run *r = w->data;
    w->data = NULL;
    if (w->filter.id && !w->found) {
        stop_trace(&r->run);
        client_end(c, "there is no connection of this number");
        return;
    }
    c->run = &r->run;
    resume_trace(&r->run);
}

static void drop_trace(struct walk *w)
{
    struct trace_run *r = w->data;
    if (r)
        stop_trace(&r->run);
}

void trace_run(struct client *c, const struct words *words)
{
    struct conns_query q = {.limit = 0};
    uint64_t id = 0;
    if (words->n != 2) {
        client_refuse(c, "trace needs the number of a connection, or peer=ADDRESS");
        return;
    }
    if (mk_str_u64(words->items[1], UINT64_MAX, &id) && id)
        q.filter.id = id;
    else if (!conns_read_argument(c, words->items[1], &q))
        return;
    if (!q.filter.id && !q.filter.by_peer) {
        client_refuse(c, "trace needs the number of a connection, or peer=ADDRESS");
        return;
    }
    struct trace_run *r = mk_account_alloc(NULL, sizeof(*r));
    client_begin(c, "stream");
    struct walk *w = r ? walk_new(c, mark_piece) : NULL;
    if (!w) {
        mk_account_free(NULL, r, sizeof(*r));
        if (!r)
            client_end(c, "out of memory");
        return;
    }
    *r = (struct trace_run){.run = {.client = c, .resume = resume_trace, .stop = stop_trace, .streams = true}};
    w->filter = q.filter;
    w->data = r;
    w->drop = drop_trace;
    w->collect = collect_tracer;
    w->finish = begin_trace;
    walk_start(w);
}
