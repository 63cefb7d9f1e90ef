// SPDX-License-Identifier: Apache-2.0
/*
 * Sends a request (upload.h): head, what was kept and a new piece in one call.
 */
#include "upload.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { CHUNK_LINE_BYTES = 20, PARTS_MAX = 4, UNSENT_BYTES_MAX = 1024 * 1024 };

void upload_begin(struct upload *u, struct mk_str head, bool has_body, bool is_chunked)
{
    mk_buf_release(&u->unsent);
    mk_buf_init(&u->unsent, UNSENT_BYTES_MAX);
    u->head = head;
    u->has_body = has_body;
    u->is_chunked = is_chunked;
    u->is_sent = u->is_refused = false;
}

void upload_release(struct upload *u)
{
    mk_buf_release(&u->unsent);
}

static struct iovec vec_of(struct mk_str s)
{
    return (struct iovec){.iov_base = (char *)(uintptr_t)s.p, .iov_len = s.len};
}

/* Keeps what is left of `vec` behind the first `sent` bytes. */
static int keep_unsent(struct upload *u, const struct iovec *vec, int n, size_t sent)
{
    for (int i = 0; i < n; i++) {
        size_t skip = sent < vec[i].iov_len ? sent : vec[i].iov_len;
        if (skip < vec[i].iov_len)
            mk_buf_add(&u->unsent, (const char *)vec[i].iov_base + skip, vec[i].iov_len - skip);
        sent -= skip;
    }
    return u->unsent.err ? -ENOMEM : 0;
}

/* A write has failed: nothing more is sent. The response that may have come before is still read. */
static int refuse(struct upload *u)
{
    u->is_refused = true;
    u->unsent.len = 0;
    return 0;
}

/* Sends bytes, or keeps them behind others. */
static int send_parts(struct upload *u, int fd, struct iovec *vec, int n)
{
    if (u->is_refused)
        return 0;
    if (u->unsent.len)
        return keep_unsent(u, vec, n, 0);
    const struct msghdr message = {.msg_iov = vec, .msg_iovlen = (size_t)n};
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN)
        return refuse(u);
    u->is_sent |= sent > 0;
    return keep_unsent(u, vec, n, sent < 0 ? 0 : (size_t)sent);
}

int upload_piece(struct upload *u, int fd, struct mk_str piece, bool end)
{
    char line[CHUNK_LINE_BYTES];
    struct iovec vec[PARTS_MAX];
    int n = 0;
    u->body_ended |= end;
    u->body_begun |= piece.len > 0;
    if (u->head.p)
        vec[n++] = vec_of(u->head);
    u->head = MK_STR_NONE;
    if (u->is_chunked && piece.len) {
        int len = snprintf(line, sizeof(line), "%zx\r\n", piece.len);
        vec[n++] = vec_of(mk_str(line, (size_t)len));
    }
    if (piece.len)
        vec[n++] = vec_of(piece);
    if (u->is_chunked && (piece.len || end))
        vec[n++] = vec_of(!end ? MK_STR("\r\n") : piece.len ? MK_STR("\r\n0\r\n\r\n") : MK_STR("0\r\n\r\n"));
    return n ? send_parts(u, fd, vec, n) : 0;
}

int upload_flush(struct upload *u, int fd)
{
    if (u->head.p) {
        struct iovec vec = vec_of(u->head);
        u->head = MK_STR_NONE;
        return send_parts(u, fd, &vec, 1);
    }
    if (!u->unsent.len)
        return 0;
    ssize_t sent = send(fd, u->unsent.data, u->unsent.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return errno == EAGAIN ? 0 : refuse(u);
    u->is_sent = true;
    mk_buf_drop(&u->unsent, (size_t)sent);
    return 0;
}
