// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ── pipes ── */

static void close_pipe(struct mk__gw_pipe *pipe)
{
    struct mk__gw_pipes *all = pipe->owner;
    close(pipe->read_fd);
    close(pipe->write_fd);
    mk_account_free(all->account, pipe, sizeof(*pipe));
    all->n--;
}

static struct mk__gw_pipe *open_pipe(struct mk__gw_pipes *all)
{
    int fds[2];
    struct mk__gw_pipe *pipe = mk_account_alloc(all->account, sizeof(*pipe));
    if (!pipe)
        return NULL;
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0) {
        mk_account_free(all->account, pipe, sizeof(*pipe));
        return NULL;
    }
    fcntl(fds[1], F_SETPIPE_SZ, MK__GW_PIPE_BYTES); /* a smaller one takes more calls */
    *pipe = (struct mk__gw_pipe){.owner = all, .read_fd = fds[0], .write_fd = fds[1]};
    all->n++;
    return pipe;
}

struct mk__gw_pipe *mk__gw_pipes_take(struct mk__gw_pipes *all)
{
    struct mk__gw_pipe *pipe = all->idle;
    all->idle = NULL;
    if (pipe || all->n >= MK__GW_PIPES_MAX)
        return pipe;
    return open_pipe(all);
}

void mk__gw_pipes_release(struct mk__gw_pipes *all)
{
    if (all->idle)
        close_pipe(all->idle);
    all->idle = NULL;
}

void mk__gw_pipe_put(struct mk__gw_pipe *pipe)
{
    if (pipe->bytes || pipe->owner->idle)
        close_pipe(pipe);
    else
        pipe->owner->idle = pipe;
}

static ssize_t get_error(void)
{
    return errno == EINVAL || errno == ENOSYS || errno == EPERM ? -EOPNOTSUPP : -errno;
}

ssize_t mk__gw_pipe_fill(struct mk__gw_pipe *pipe, int fd, size_t size)
{
    assert(pipe->bytes == 0);
    ssize_t n = splice(fd, NULL, pipe->write_fd, NULL, size < MK__GW_PIPE_BYTES ? size : MK__GW_PIPE_BYTES,
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0)
        return get_error();
    pipe->bytes = (size_t)n;
    return n;
}

ssize_t mk__gw_pipe_drain(struct mk__gw_pipe *pipe, int fd, size_t size)
{
    size_t most = pipe->bytes < size ? pipe->bytes : size;
    ssize_t n = splice(pipe->read_fd, NULL, fd, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0)
        return get_error();
    pipe->bytes -= (size_t)n;
    return n;
}

ssize_t mk__gw_pipe_read(struct mk__gw_pipe *pipe, char *to, size_t size)
{
    ssize_t n = read(pipe->read_fd, to, size);
    assert(n > 0 && (size_t)n <= pipe->bytes); /* there are bytes, and the call has no other way to fail */
    pipe->bytes -= (size_t)n;
    return n;
}

/* ── requests ── */

enum { PARTS_MAX = 5, UNSENT_BYTES_MAX = 1024 * 1024 };

static void drop_pipe(struct mk__gw_upload *u)
{
    if (u->pipe)
        mk__gw_pipe_put(u->pipe);
    u->pipe = NULL;
}

void mk__gw_upload_begin(struct mk__gw_upload *u, struct mk_str head, bool has_body,
                         const struct mk_gateway_frames *frames)
{
    mk__gw_upload_release(u);
    mk_buf_init(&u->unsent, UNSENT_BYTES_MAX);
    u->head = head;
    u->has_body = has_body;
    u->frames = frames;
    u->is_sent = u->is_refused = u->is_held = false;
}

void mk__gw_upload_release(struct mk__gw_upload *u)
{
    mk_buf_release(&u->unsent);
    drop_pipe(u);
}

void mk__gw_upload_move(struct mk__gw_upload *to, struct mk__gw_upload *from)
{
    *to = *from;
    mk_buf_init(&from->unsent, 0);
    from->pipe = NULL;
}

static struct iovec vec_of(struct mk_str s)
{
    return (struct iovec){.iov_base = (char *)(uintptr_t)s.p, .iov_len = s.len};
}

/* A write has failed: nothing more is sent. The response that may have come before is still read. */
static int mark_refused(struct mk__gw_upload *u)
{
    u->is_refused = true;
    u->is_held = false;
    u->unsent.len = 0;
    drop_pipe(u);
    return 0;
}

/* Writes until the connection takes no more; `*vec` and `*n` become what is left. Returns 0 (nothing) or -errno. */
static int write_parts(struct mk__gw_upload *u, struct mk_io *io, struct iovec **vec, int *n)
{
    while (*n) {
        ssize_t sent = io->transport->write(io, *vec, *n, 0);
        if (sent < 0)
            return (int)sent;
        u->is_sent |= sent > 0;
        u->sent_bytes += (uint64_t)sent;
        size_t left = (size_t)sent;
        for (; *n && left >= (*vec)->iov_len; --*n, ++*vec)
            left -= (*vec)->iov_len;
        if (*n)
            **vec = (struct iovec){(char *)(*vec)->iov_base + left, (*vec)->iov_len - left};
    }
    int err = io->transport->flush(io);
    u->is_held = err == -EAGAIN;
    return err == -EAGAIN ? 0 : err;
}

/* Sends bytes, or keeps them after others. */
static int send_parts(struct mk__gw_upload *u, struct mk_io *io, struct iovec *vec, int n)
{
    if (u->is_refused)
        return 0;
    int err = mk__gw_upload_is_blocked(u) ? -EAGAIN : write_parts(u, io, &vec, &n);
    if (err < 0 && err != -EAGAIN)
        return mark_refused(u);
    for (int i = 0; i < n; i++)
        mk_buf_add(&u->unsent, vec[i].iov_base, vec[i].iov_len);
    return u->unsent.err ? -ENOMEM : 0;
}

/* Sends a piece of at most the length that a frame may have. */
static int send_piece(struct mk__gw_upload *u, struct mk_io *io, struct mk_str piece, bool end)
{
    char line[MK_GATEWAY_FRAME_BYTES];
    struct iovec vec[PARTS_MAX];
    int n = 0;
    if (u->head.p)
        vec[n++] = vec_of(u->head);
    u->head = MK_STR_NONE;
    if (piece.len && u->frames)
        vec[n++] = vec_of(mk_str(line, u->frames->begin(line, piece.len)));
    if (piece.len)
        vec[n++] = vec_of(piece);
    if (piece.len && u->frames && u->frames->piece_end.len)
        vec[n++] = vec_of(u->frames->piece_end);
    if (u->frames && end)
        vec[n++] = vec_of(u->body_end.p ? u->body_end : u->frames->body_end);
    return n ? send_parts(u, io, vec, n) : 0;
}

int mk__gw_upload_piece(struct mk__gw_upload *u, struct mk_io *io, struct mk_str piece, bool end)
{
    size_t max = u->frames ? u->frames->piece_max : SIZE_MAX;
    int err = 0;
    u->body_ended |= end;
    u->body_begun |= piece.len > 0;
    for (; piece.len > max && err == 0; piece = mk_str_after(piece, max))
        err = send_piece(u, io, mk_str(piece.p, max), false);
    return err == 0 ? send_piece(u, io, piece, end) : err;
}

/* ── by splice(2) ── */

/* Copies what the system does not move. */
static int copy_pipe(struct mk__gw_upload *u)
{
    size_t n = u->pipe->bytes;
    if (mk_buf_reserve(&u->unsent, n) < 0)
        return -ENOMEM;
    while (u->pipe->bytes)
        u->unsent.len += (size_t)mk__gw_pipe_read(u->pipe, u->unsent.data + u->unsent.len, u->pipe->bytes);
    drop_pipe(u);
    return 0;
}

static int flush_pipe(struct mk__gw_upload *u, struct mk_io *io)
{
    while (u->pipe->bytes) {
        ssize_t n = mk__gw_pipe_drain(u->pipe, io->fd, u->pipe->bytes);
        if (n == -EAGAIN)
            return 0;
        if (n == -EOPNOTSUPP)
            return copy_pipe(u);
        if (n <= 0)
            return mark_refused(u);
        u->sent_bytes += (uint64_t)n;
    }
    drop_pipe(u);
    return 0;
}

int mk__gw_upload_flush(struct mk__gw_upload *u, struct mk_io *io)
{
    if (u->head.p) {
        struct iovec vec = vec_of(u->head);
        u->head = MK_STR_NONE;
        return send_parts(u, io, &vec, 1);
    }
    int err = u->pipe ? flush_pipe(u, io) : 0;
    if (err < 0 || u->pipe || !mk__gw_upload_is_blocked(u))
        return err;
    struct iovec all = vec_of(mk_buf_str(&u->unsent)), *vec = &all;
    int n = all.iov_len > 0;
    err = write_parts(u, io, &vec, &n);
    if (err < 0 && err != -EAGAIN)
        return mark_refused(u);
    mk_buf_drop(&u->unsent, u->unsent.len - (n ? vec->iov_len : 0));
    return 0;
}

ssize_t mk__gw_upload_splice(struct mk__gw_upload *u, struct mk__gw_pipes *pipes, struct mk_io *io, int fd, size_t size)
{
    assert(!mk__gw_upload_is_blocked(u) && !u->frames);
    u->pipe = u->is_refused ? NULL : mk__gw_pipes_take(pipes);
    if (!u->pipe)
        return -EOPNOTSUPP;
    ssize_t n = mk__gw_pipe_fill(u->pipe, fd, size);
    u->body_begun |= n > 0;
    int err = mk__gw_upload_flush(u, io);
    return err < 0 ? err : n;
}
