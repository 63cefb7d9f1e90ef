// SPDX-License-Identifier: Apache-2.0
/*
 * A tunnel. Events of either side move bytes in both directions.
 */
#include "exchange.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/uio.h>

enum { PIECE_BYTES = 16384 };

enum { TURN_BYTES = 8 * PIECE_BYTES }; /* then other connections have their turn */

/* ── the sides ── */

/* Functions as those of <monkey/tunnel.h>. */
struct side {
    ssize_t (*read)(struct mk__gw_tunnel *t, void *to, size_t size);
    ssize_t (*write)(struct mk__gw_tunnel *t, const void *from, size_t size);
    int (*shutdown)(struct mk__gw_tunnel *t);
};

static ssize_t read_client(struct mk__gw_tunnel *t, void *to, size_t size)
{
    return mk_tunnel_read(t->req, to, size);
}

static ssize_t write_client(struct mk__gw_tunnel *t, const void *from, size_t size)
{
    return mk_tunnel_write(t->req, from, size);
}

static int shutdown_client(struct mk__gw_tunnel *t)
{
    return mk_tunnel_shutdown(t->req);
}

static ssize_t read_backend(struct mk__gw_tunnel *t, void *to, size_t size)
{
    return mk__gw_backend_read(t->conn, to, size);
}

static ssize_t write_backend(struct mk__gw_tunnel *t, const void *from, size_t size)
{
    struct mk_io *io = &t->conn->io;
    const struct iovec vec = {.iov_base = (char *)(uintptr_t)from, .iov_len = size};
    ssize_t n = io->transport->write(io, &vec, 1, 0);
    if (n > 0)
        mk_backend_stats_add(t->backend->stats, MK_BACKEND_SENT_BYTES, mk_request_worker(t->req), n);
    return n;
}

static int shutdown_backend(struct mk__gw_tunnel *t)
{
    return t->conn->io.transport->shutdown(&t->conn->io);
}

static const struct side client = {read_client, write_client, shutdown_client};
static const struct side backend = {read_backend, write_backend, shutdown_backend};

/* ── a direction ── */

static void free_piece(struct mk__gw_tunnel *t, struct mk__gw_tunnel_direction *d)
{
    if (!d->piece)
        return;
    mk_account_free(t->backend->thread->account, d->piece, d->size);
    d->piece = NULL;
    d->size = d->at = 0;
}

static int keep_piece(struct mk__gw_tunnel *t, struct mk__gw_tunnel_direction *d, struct mk_str bytes)
{
    if (!bytes.len)
        return 0;
    d->piece = mk_account_alloc(t->backend->thread->account, bytes.len);
    if (!d->piece)
        return -ENOMEM;
    memcpy(d->piece, bytes.p, bytes.len);
    d->size = (uint32_t)bytes.len;
    d->at = 0;
    return 0;
}

/* Returns a result of the receiver, and notes whether it has failed. */
static int note_result(struct mk__gw_tunnel_direction *d, int result)
{
    d->is_refused |= result < 0 && result != -EAGAIN;
    return result;
}

/* Passes on what waits. Returns 0 (nothing waits any more), -EAGAIN or another -errno. */
static int flush_piece(struct mk__gw_tunnel *t, struct mk__gw_tunnel_direction *d, const struct side *to)
{
    while (d->piece) {
        ssize_t n = to->write(t, d->piece + d->at, d->size - d->at);
        if (n < 0)
            return note_result(d, (int)n);
        d->at += (uint32_t)n;
        if (d->at == d->size)
            free_piece(t, d);
    }
    return 0;
}

/* Passes on what the thread's buffer has, and keeps the rest. Returns 0 or -errno. */
static int pass_piece(struct mk__gw_tunnel *t, struct mk__gw_tunnel_direction *d, const struct side *to,
                      struct mk_str bytes)
{
    ssize_t n = to->write(t, bytes.p, bytes.len);
    if (n < 0 && n != -EAGAIN)
        return note_result(d, (int)n);
    size_t sent = n < 0 ? 0 : (size_t)n;
    return keep_piece(t, d, mk_str_after(bytes, sent));
}

/* Passes the end on. Returns 0 or -errno. */
static int shut_side(struct mk__gw_tunnel *t, struct mk__gw_tunnel_direction *d, const struct side *to)
{
    if (d->is_shut)
        return 0;
    d->is_shut = true;
    int err = to->shutdown(t);
    return err == -ENOTCONN ? 0 : note_result(d, err); /* the receiver has gone, which its own direction finds */
}

/* Moves bytes while both sides can. Returns 0, MK_AGAIN (there may be more, after other connections) or -errno. */
static int move_bytes(struct mk__gw_tunnel *t, struct mk__gw_tunnel_direction *d, const struct side *from,
                      const struct side *to)
{
    for (size_t left = TURN_BYTES; left;) {
        int err = flush_piece(t, d, to);
        if (err < 0)
            return err == -EAGAIN ? 0 : err;
        if (d->has_ended)
            return shut_side(t, d, to);
        char *buffer = t->backend->thread->buffer; /* the exchange has made it */
        ssize_t n = from->read(t, buffer, PIECE_BYTES);
        if (n < 0)
            return n == -EAGAIN ? 0 : (int)n;
        d->has_ended = n == 0;
        err = n ? pass_piece(t, d, to, mk_str(buffer, (size_t)n)) : 0;
        if (err < 0)
            return err;
        left -= (size_t)n < left ? (size_t)n : left;
    }
    return MK_AGAIN;
}

/* ── both ── */

static void drop_conn(struct mk__gw_tunnel *t)
{
    if (t->conn)
        mk__gw_backend_close(t->conn);
    t->conn = NULL;
}

/* The backend takes nothing more. What it has sent before is passed on, and then its end. */
static void refuse_up(struct mk__gw_tunnel *t)
{
    free_piece(t, &t->up);
    t->up.is_refused = t->up.is_shut = true;
}

/* Returns as move_bytes(). */
static int move_up(struct mk__gw_tunnel *t)
{
    if (t->up.is_refused)
        return 0;
    int r = move_bytes(t, &t->up, &client, &backend);
    if (r >= 0)
        note_result(&t->up, t->conn->io.transport->flush(&t->conn->io)); /* again when it can take bytes */
    if (!t->up.is_refused)
        return r;
    refuse_up(t);
    return 0;
}

static void run_tunnel(struct mk__gw_tunnel *t)
{
    if (!t->is_open || !t->conn)
        return;
    int up = move_up(t);
    int down = up < 0 ? up : move_bytes(t, &t->down, &backend, &client);
    if (down < 0) {
        drop_conn(t);
        mk_response_abort(t->req);
    } else if (t->up.is_shut && t->down.is_shut) {
        drop_conn(t);
        mk_tunnel_end(t->req);
    } else if (up == MK_AGAIN || down == MK_AGAIN) {
        mk_tunnel_wake(t->req);
    }
}

/* MK_TUNNEL_DRAINING changes nothing: only the two ends know where their protocol may end. */
static void on_client(struct mk_request *req, unsigned events, void *ctx)
{
    struct mk__gw_tunnel *t = ctx;
    (void)req;
    t->is_open = true;
    if (events & (MK_TUNNEL_READ | MK_TUNNEL_WRITE))
        run_tunnel(t);
}

static void on_backend(void *user, uint32_t events)
{
    struct mk__gw_tunnel *t = user;
    if (events & EPOLLERR && t->down.has_ended)
        refuse_up(t); /* no read will find it */
    run_tunnel(t);
}

int mk__gw_tunnel_open(struct mk__gw_tunnel *t, struct mk_request *req, struct mk__gw_backend_conn *conn,
                       struct mk_str rest)
{
    *t = (struct mk__gw_tunnel){.req = req, .backend = conn->backend};
    int err = keep_piece(t, &t->down, rest);
    if (err == 0)
        err = mk_request_take_over(req, on_client, t);
    if (err < 0) {
        free_piece(t, &t->down);
        t->backend = NULL;
        return err;
    }
    t->conn = conn;
    conn->fn = on_backend;
    conn->user = t;
    return 0;
}

void mk__gw_tunnel_release(struct mk__gw_tunnel *t)
{
    if (!t->backend)
        return;
    drop_conn(t);
    free_piece(t, &t->up);
    free_piece(t, &t->down);
    mk__gw_backend_release(t->backend);
}
