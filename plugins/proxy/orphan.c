// SPDX-License-Identifier: Apache-2.0
/*
 * Brings requests to their end without a client (orphan.h):
 *
 *     orphan_adopt ─► the rest of the request ─► heads ─► body, dropped ─► the connection is kept or closed
 *
 * It does not retry: a connection that ends takes the request with it.
 */
#include "orphan.h"

#include "buffer.h"
#include "failure.h"
#include "response.h"

#include <errno.h>
#include <sys/epoll.h>

enum { PIECES_MAX = 16, INTERIM_MAX = 16 }; /* pieces: then other connections have their turn */

struct orphan {
    struct mk_list node;
    struct mk_worker *worker; /* held */
    const struct proxy_conf *conf;
    struct thread *thread;
    struct backend *backend; /* held */
    struct backend_conn *conn;
    struct upload up;
    struct received received;
    struct download down;
    struct mk_arena arena; /* the beginning of a head */
    struct mk_timer timer;
    struct mk_task task;
    uint64_t end_ms, head_end_ms; /* head: 0: the request is still being sent */
    bool has_head;
    unsigned n_interim;
};

/* ── the end ── */

/* Frees all but the worker. */
static void free_orphan(struct orphan *o)
{
    if (o->conn)
        backend_close(o->conn);
    mk_timer_cancel(&o->timer);
    mk_task_cancel(&o->task);
    received_release(&o->received);
    upload_release(&o->up);
    download_release(&o->down);
    mk_arena_release(&o->arena);
    backend_release(o->backend);
    mk_list_del(&o->node);
    o->thread->n_orphans--;
    mk_account_free(o->thread->account, o, sizeof(*o));
}

static void end(struct orphan *o)
{
    struct mk_worker *worker = o->worker;
    free_orphan(o); /* with the connection, on which the client may have logged in (bound.h) */
    mk_worker_put(worker);
}

static void fail(struct orphan *o, int err)
{
    const struct failure *f = failure_find(false, err);
    mk_log_error("proxy: %.*s: %s; its client has left before", MK_STR_ARG(o->conf->to.text),
                 f->text ? f->text : strerror(-err));
    end(o);
}

/* ── its steps ── */

static void arm(struct orphan *o)
{
    uint64_t now = mk_loop_now_ms(mk_worker_loop(o->worker)), end_ms = now + o->conf->read_timeout_ms;
    if (upload_is_blocked(&o->up)) {
        end_ms = now + o->conf->send_timeout_ms;
    } else if (!o->has_head) {
        if (!o->head_end_ms)
            o->head_end_ms = now + o->conf->response_timeout_ms;
        end_ms = o->head_end_ms;
    }
    if (end_ms > o->end_ms)
        end_ms = o->end_ms;
    mk_timer_arm(mk_worker_loop(o->worker), &o->timer, end_ms > now ? (uint32_t)(end_ms - now) : 0);
}

static int send_rest(struct orphan *o)
{
    int err = upload_flush(&o->up, &o->conn->io);
    return err < 0 ? err : received_send(&o->received, &o->up, &o->conn->io);
}

static bool is_live(const struct orphan *o, struct mk_str head)
{
    return buffer_is_live_type(response_find(&o->down.parser, o->down.fields, head, MK_STR("Content-Type")));
}

/* Returns 0 (the response has begun), -EAGAIN, -ECANCELED (it is a stream without an end) or another -errno. */
static int read_head(struct orphan *o)
{
    for (;;) {
        struct mk_str head;
        int err = download_head(&o->down, o->conn, &o->arena, o->thread->fields, o->thread->buffer, THREAD_BUFFER_BYTES,
                                &head);
        if (err < 0)
            return err;
        if (o->down.parser.status == 101)
            return -EPROTO;
        if (o->down.parser.status >= 200) {
            if (is_live(o, head))
                return -ECANCELED;
            o->has_head = true;
            download_first(&o->down, &err);
            return err;
        }
        if (++o->n_interim > INTERIM_MAX)
            return -ELOOP;
    }
}

/* Returns 0 (all was read), MK_AGAIN (others have their turn first), -EAGAIN or another -errno. */
static int read_response(struct orphan *o)
{
    int err = o->has_head ? 0 : read_head(o);
    for (int i = 0; i < PIECES_MAX && err == 0 && !o->down.parser.is_done; i++) {
        ssize_t n = download_body(&o->down, o->conn, o->thread->buffer, THREAD_BUFFER_BYTES);
        err = n < 0 ? (int)n : 0;
    }
    return err == 0 && !o->down.parser.is_done ? MK_AGAIN : err;
}

static void advance(struct orphan *o)
{
    int err = send_rest(o);
    if (err >= 0)
        err = read_response(o);
    if (err == 0 || err == -ECANCELED) {
        end(o);
    } else if (err < 0 && err != -EAGAIN) {
        fail(o, err);
    } else {
        if (err == MK_AGAIN)
            mk_task_schedule(mk_worker_loop(o->worker), &o->task);
        arm(o);
    }
}

static void on_task(struct mk_task *task)
{
    advance(MK_CONTAINER_OF(task, struct orphan, task));
}

static void on_timer(struct mk_timer *timer)
{
    fail(MK_CONTAINER_OF(timer, struct orphan, timer), -ETIMEDOUT);
}

static void on_conn_event(void *user, uint32_t events)
{
    (void)events;
    advance(user);
}

static void on_received(struct received *r, int err)
{
    (void)err; /* of the read that follows */
    advance(MK_CONTAINER_OF(r, struct orphan, received));
}

/* ── its life ── */

bool orphan_adopt(const struct orphan_parts *parts)
{
    struct thread *t = parts->conn->backend->thread;
    struct orphan *o = t->n_orphans < ORPHANS_MAX ? mk_account_alloc(t->account, sizeof(*o)) : NULL;
    if (!o)
        return false;
    *o = (struct orphan){.worker = parts->worker, .conf = parts->conf, .thread = t, .has_head = parts->has_head};
    mk_arena_init(&o->arena, t->account, SIZE_MAX, NULL, 0); /* download.h limits it */
    if (download_move(&o->down, parts->down, &o->arena) < 0) {
        mk_arena_release(&o->arena);
        mk_account_free(t->account, o, sizeof(*o));
        return false;
    }
    o->end_ms = mk_loop_now_ms(t->base.loop) + ORPHAN_MS_MAX;
    if (parts->deadline_ms < o->end_ms)
        o->end_ms = parts->deadline_ms;
    upload_move(&o->up, parts->up);
    received_move(&o->received, parts->received, on_received);
    o->conn = parts->conn;
    o->backend = o->conn->backend;
    o->conn->fn = on_conn_event;
    o->conn->user = o;
    mk_worker_get(o->worker);
    mk_list_add(&t->orphans, &o->node);
    t->n_orphans++;
    mk_timer_init(&o->timer, on_timer);
    mk_task_init(&o->task, on_task);
    mk_task_schedule(t->base.loop, &o->task); /* what has come already is not announced again */
    arm(o);
    return true;
}

/* The worker is not put: it stops, although it is held. */
void orphans_stop(struct thread *t, const struct mk_worker *worker)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&t->orphans, n, save) {
        struct orphan *o = MK_CONTAINER_OF(n, struct orphan, node);
        if (o->worker == worker)
            free_orphan(o);
    }
}
