// SPDX-License-Identifier: Apache-2.0
#include "cheetah.h"

#include <assert.h>

enum { THREADS_MAX = 4096 };

/* ── in the thread that is asked ── */

static void close_cursor(struct piece *p)
{
    if (p->open)
        mk_inspect_close(&p->cursor);
    p->open = false;
    mk_list_del(&p->at_end.node);
}

static void free_piece(struct piece *p)
{
    assert(!p->open);
    if (p->release)
        p->release(p);
    mk_thread_put(&p->thread->base);
    mk_thread_put(&p->home->base);
    mk_buf_release(&p->out);
    mk_account_free(NULL, p, sizeof(*p));
}

static void on_thread_end(struct thread_at_end *at_end)
{
    close_cursor(MK_CONTAINER_OF(at_end, struct piece, at_end));
}

/* The walk has ended before the piece came back, or between two pieces. */
static void close_piece(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct piece *p = MK_CONTAINER_OF(call, struct piece, call);
    (void)thread;
    close_cursor(p);
    free_piece(p);
}

/* Has the piece closed in its thread; if that has ended, nothing is open any more. */
static void drop_piece(struct piece *p)
{
    p->call.fn = close_piece;
    if (mk_thread_call(&p->thread->base, &p->call) < 0)
        free_piece(p);
}

static void take_piece(struct mk_thread_call *call, struct mk_thread *thread);

static void answer_piece(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct piece *p = MK_CONTAINER_OF(call, struct piece, call);
    p->more = false;
    if (thread)
        p->fn(p, thread_worker(thread_of(thread)));
    if (!p->more)
        close_cursor(p);
    p->call.fn = take_piece;
    if (mk_thread_call(&p->home->base, &p->call) < 0)
        close_piece(call, thread);
}

bool conn_filter_holds(const struct conn_filter *f, const struct mk_inspect_conn *conn)
{
    return (!f->id || f->id == conn->id) && (!f->by_peer || mk_address_equal(&f->peer, &conn->peer)) &&
           (!f->state[0] || strcmp(f->state, conn->state) == 0) &&
           (!f->listener[0] || mk_str_eq(conn->listener, mk_str_c(f->listener))) &&
           (!f->host[0] || (conn->has_request && mk_str_ieq(conn->host, mk_str_c(f->host)))) &&
           !(f->with_request && !conn->has_request) && !(f->without_request && conn->has_request) &&
           conn->age_s >= f->age_min_s;
}

void piece_next_conns(struct piece *p, struct mk_worker *worker, mk_inspect_conn_fn fn)
{
    if (!p->open && mk_inspect_open(&p->cursor, worker) < 0)
        return;
    if (!p->open)
        mk_list_add(&p->thread->at_end, &p->at_end.node);
    p->open = true;
    p->more = mk_inspect_next(&p->cursor, WALK_PIECE_CONNS, fn, p);
}

/* ── in the client's thread ── */

static void free_walk(struct walk *w)
{
    mk_timer_cancel(&w->timer);
    for (; w->at < w->n; w->at++)
        mk_thread_put(w->threads[w->at]);
    mk_account_free(NULL, w->threads, THREADS_MAX * sizeof(struct mk_thread *));
    mk_account_free(NULL, w, sizeof(*w));
}

static void stop_walk(struct run *run)
{
    struct walk *w = MK_CONTAINER_OF(run, struct walk, run);
    if (w->piece && w->waiting)
        w->piece->walk = NULL;
    else if (w->piece)
        drop_piece(w->piece);
    if (w->drop)
        w->drop(w);
    free_walk(w);
}

static void send_piece(struct walk *w)
{
    struct piece *p = w->piece;
    p->call.fn = answer_piece;
    p->found_max = w->found_max ? w->found_max - w->found : 0;
    w->waiting = mk_thread_call(&p->thread->base, &p->call) == 0;
    if (!w->waiting) { /* the thread has ended */
        free_piece(p);
        w->piece = NULL;
        return;
    }
    mk_timer_arm(w->run.client->thread->base.loop, &w->timer, WALK_ANSWER_MS);
}

/* Begins with the next thread. Returns false if there is none left. */
static bool ask_next(struct walk *w)
{
    bool enough = w->found_max && w->found >= w->found_max;
    if (w->at == w->n || enough)
        return false;
    struct thread *t = thread_of(w->threads[w->at++]);
    struct piece *p = mk_account_alloc(NULL, sizeof(*p));
    if (!p) {
        mk_thread_put(&t->base);
        return true;
    }
    *p = (struct piece){.walk = w,
                        .thread = t,
                        .home = w->run.client->thread,
                        .fn = w->fn,
                        .at_end = {.fn = on_thread_end},
                        .filter = w->filter};
    mk_list_init(&p->at_end.node);
    mk_buf_init(&p->out, WALK_PIECE_BYTES);
    mk_thread_get(&p->home->base);
    w->piece = p;
    send_piece(w);
    return true;
}

static void finish_walk(struct walk *w)
{
    struct client *c = w->run.client;
    if (w->finish)
        w->finish(w, c);
    else
        client_end(c, NULL);
    free_walk(w);
}

static void resume_walk(struct run *run)
{
    struct walk *w = MK_CONTAINER_OF(run, struct walk, run);
    while (!w->waiting) {
        if (w->piece)
            send_piece(w);
        else if (!ask_next(w))
            break;
    }
    if (!w->waiting)
        finish_walk(w);
}

static void take_piece(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct piece *p = MK_CONTAINER_OF(call, struct piece, call);
    struct walk *w = p->walk;
    (void)thread;
    if (!w) {
        drop_piece(p);
        return;
    }
    struct client *c = w->run.client;
    mk_timer_cancel(&w->timer);
    w->waiting = false;
    if (w->collect)
        w->collect(w, p);
    w->found += p->found;
    p->found = 0;
    mk_buf_adds(&c->out, mk_buf_str(&p->out));
    p->out.len = 0;
    if (!p->more) {
        w->piece = NULL;
        free_piece(p);
    } else if (w->found_max && w->found >= w->found_max) {
        w->piece = NULL;
        drop_piece(p);
    }
    client_flush(c);
}

/* The thread does not answer: the walk continues without it. */
static void on_timer(struct mk_timer *timer)
{
    struct walk *w = MK_CONTAINER_OF(timer, struct walk, timer);
    struct client *c = w->run.client;
    assert(w->waiting && w->piece);
    client_warn(c, "worker %u does not answer", w->piece->thread->base.index);
    w->piece->walk = NULL;
    w->piece = NULL;
    w->waiting = false;
    client_flush(c);
}

struct walk *walk_new(struct client *c, piece_fn fn)
{
    struct walk *w = mk_account_alloc(NULL, sizeof(*w));
    struct mk_thread **threads = w ? mk_account_alloc(NULL, THREADS_MAX * sizeof(struct mk_thread *)) : NULL;
    if (!threads) {
        mk_account_free(NULL, w, sizeof(*w));
        client_end(c, "out of memory");
        return NULL;
    }
    *w = (struct walk){.run = {.client = c, .resume = resume_walk, .stop = stop_walk}, .fn = fn, .threads = threads};
    mk_timer_init(&w->timer, on_timer);
    w->n = thread_list_all(c->thread, threads, THREADS_MAX);
    return w;
}

void walk_start(struct walk *w)
{
    w->run.client->run = &w->run;
}
