// SPDX-License-Identifier: Apache-2.0
/*
 * Brings requests to their end without a client:
 *
 *     mk__gw_orphan_adopt ─► the rest of the request ─► heads ─► body, dropped ─► the connection is kept or closed
 *
 * It does not retry: a connection that ends takes the request with it.
 */
#include "exchange.h"

#include <errno.h>
#include <sys/epoll.h>

enum { ORPHANS_MAX = 256, MK__GW_ORPHAN_MS_MAX = 3600000 }; /* of a thread; for one without a Deadline */

enum {
    PIECES_MAX = 16, /* then other connections have their turn */
    REASON_BYTES = 512,
};

struct mk__gw_orphan {
    struct mk_list node;
    struct mk_worker *worker; /* held */
    const struct mk_gateway_conf *conf;
    struct mk_gateway_call call; /* without a request */
    struct mk__gw_thread *thread;
    struct mk__gw_backend *backend; /* held */
    struct mk__gw_backend_conn *conn;
    struct mk__gw_upload up;
    struct mk__gw_received received;
    struct mk__gw_download down;
    struct mk_arena arena; /* the beginning of a head */
    struct mk_timer timer;
    struct mk_task task;
    uint64_t end_ms, head_end_ms; /* head: 0: the request is still being sent */
    bool has_head;
    unsigned n_interim;
    _Alignas(max_align_t) char state[]; /* of the protocol */
};

/* ── the end ── */

/* Frees all but the worker. */
static void free_orphan(struct mk__gw_orphan *o)
{
    if (o->conn)
        mk__gw_backend_close(o->conn);
    mk_timer_cancel(&o->timer);
    mk_task_cancel(&o->task);
    mk__gw_received_release(&o->received);
    mk__gw_upload_release(&o->up);
    mk__gw_download_release(&o->down);
    mk_arena_release(&o->arena);
    mk__gw_backend_release(o->backend);
    mk_list_del(&o->node);
    o->thread->n_orphans--;
    mk_account_free(o->thread->account, o, sizeof(*o) + o->call.protocol->state_bytes);
}

static void end_orphan(struct mk__gw_orphan *o)
{
    struct mk_worker *worker = o->worker;
    free_orphan(o); /* with the connection, on which the client may have logged in */
    mk_worker_end_work(worker);
    mk_worker_put(worker);
}

static void fail_orphan(struct mk__gw_orphan *o, int err)
{
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    mk__gw_failure_describe(mk__gw_failure_find(false, err), &o->down, err, o->thread->buffer, &reason);
    mk_host_log(o->call.host, MK_LOG_ERROR, "%s: %.*s: %s; its client has left before", o->call.protocol->name,
                MK_STR_ARG(o->conf->to.text), mk_buf_cstr(&reason));
    end_orphan(o);
}

/* ── its steps ── */

static void arm_timer(struct mk__gw_orphan *o)
{
    uint64_t now = mk_loop_now_ms(mk_worker_loop(o->worker)), end_ms = now + o->conf->read_timeout_ms;
    if (mk__gw_upload_is_blocked(&o->up)) {
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

static bool is_live(const struct mk__gw_orphan *o, struct mk_str bytes)
{
    const struct mk_gateway_head head = {.parser = &o->down.parser, .fields = o->down.fields, .bytes = bytes};
    return mk__gw_buffer_is_live_type(mk_gateway_head_find(&head, MK_STR("Content-Type")));
}

/* Returns 0 (the response has begun), -EAGAIN, -ECANCELED (it is a stream without an end) or another -errno. */
static int read_head(struct mk__gw_orphan *o)
{
    for (;;) {
        struct mk_str head;
        int err = mk__gw_download_head(&o->down, o->conn, &o->arena, o->thread->fields, o->thread->buffer,
                                       MK__GW_BUFFER_BYTES, &head);
        if (err < 0)
            return err;
        if (o->down.parser.status == 101)
            return -EPROTO;
        if (o->down.parser.status >= 200) {
            if (is_live(o, head))
                return -ECANCELED;
            o->has_head = true;
            mk__gw_download_first(&o->down, &err);
            return err;
        }
        if (++o->n_interim > MK__GW_INTERIM_MAX)
            return -ELOOP;
    }
}

/* Returns 0 (all was read), MK_AGAIN (others have their turn first), -EAGAIN or another -errno. */
static int read_response(struct mk__gw_orphan *o)
{
    int err = o->has_head ? 0 : read_head(o);
    for (int i = 0; i < PIECES_MAX && err == 0 && !o->down.parser.is_done; i++) {
        ssize_t n = mk__gw_download_body(&o->down, o->conn, o->thread->buffer, MK__GW_BUFFER_BYTES);
        err = n < 0 ? (int)n : 0;
    }
    return err == 0 && !o->down.parser.is_done ? MK_AGAIN : err;
}

static void advance_orphan(struct mk__gw_orphan *o)
{
    int err = mk__gw_upload_flush(&o->up, &o->conn->io);
    if (err >= 0)
        err = mk__gw_received_send(&o->received, &o->up, &o->conn->io);
    if (err >= 0)
        err = read_response(o);
    if (err == 0 || err == -ECANCELED) {
        end_orphan(o);
    } else if (err < 0 && err != -EAGAIN) {
        fail_orphan(o, err);
    } else {
        if (err == MK_AGAIN)
            mk_task_schedule(mk_worker_loop(o->worker), &o->task);
        arm_timer(o);
    }
}

static void on_task(struct mk_task *task)
{
    advance_orphan(MK_CONTAINER_OF(task, struct mk__gw_orphan, task));
}

static void on_timer(struct mk_timer *timer)
{
    fail_orphan(MK_CONTAINER_OF(timer, struct mk__gw_orphan, timer), -ETIMEDOUT);
}

static void on_conn_event(void *user, uint32_t events)
{
    (void)events;
    advance_orphan(user);
}

static void on_received(struct mk__gw_received *r, int err)
{
    (void)err; /* of the read that follows */
    advance_orphan(MK_CONTAINER_OF(r, struct mk__gw_orphan, received));
}

/* ── its life ── */

/* Makes an orphan with what was read. Returns NULL, and has taken nothing, without memory. */
static struct mk__gw_orphan *make_orphan(const struct mk__gw_orphan_parts *parts, struct mk__gw_thread *t)
{
    size_t state_bytes = parts->call->protocol->state_bytes;
    struct mk__gw_orphan *o = mk_account_alloc(t->account, sizeof(*o) + state_bytes);
    if (!o)
        return NULL;
    *o = (struct mk__gw_orphan){.worker = parts->worker,
                                .conf = parts->call->conf,
                                .thread = t,
                                .has_head = parts->has_head};
    o->call = *parts->call;
    o->call.req = NULL;
    o->call.arg = NULL;
    o->call.state = o->state;
    memcpy(o->state, parts->call->state, state_bytes);
    mk_arena_init(&o->arena, t->account, SIZE_MAX, NULL, 0); /* the download limits it */
    if (mk__gw_download_move(&o->down, parts->down, &o->call, &o->arena) == 0)
        return o;
    mk_arena_release(&o->arena);
    mk_account_free(t->account, o, sizeof(*o) + state_bytes);
    return NULL;
}

bool mk__gw_orphan_adopt(const struct mk__gw_orphan_parts *parts)
{
    struct mk__gw_thread *t = parts->conn->backend->thread;
    struct mk__gw_orphan *o = t->n_orphans < ORPHANS_MAX ? make_orphan(parts, t) : NULL;
    if (!o)
        return false;
    o->end_ms = mk_loop_now_ms(t->base.loop) + MK__GW_ORPHAN_MS_MAX;
    if (parts->deadline_ms < o->end_ms)
        o->end_ms = parts->deadline_ms;
    mk__gw_upload_move(&o->up, parts->up);
    mk__gw_received_move(&o->received, parts->received, on_received);
    o->conn = parts->conn;
    o->backend = o->conn->backend;
    o->conn->fn = on_conn_event;
    o->conn->user = o;
    mk_worker_get(o->worker);
    mk_worker_begin_work(o->worker);
    mk_list_add(&t->orphans, &o->node);
    t->n_orphans++;
    mk_timer_init(&o->timer, on_timer);
    mk_task_init(&o->task, on_task);
    mk_task_schedule(t->base.loop, &o->task); /* what has come already is not announced again */
    arm_timer(o);
    return true;
}

/* The worker is not put, nor the work ended: it stops, although it is held. */
void mk__gw_orphans_stop(struct mk__gw_thread *t, const struct mk_worker *worker)
{
    MK_LIST_EACH_ITEM(&t->orphans, struct mk__gw_orphan, node, o) {
        if (o->worker == worker)
            free_orphan(o);
    }
}
