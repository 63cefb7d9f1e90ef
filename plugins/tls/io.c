// SPDX-License-Identifier: Apache-2.0
/*
 * Encrypts and decrypts records (io.h). socket_bio.c sends them and holds what the socket does not take.
 */
#include "io.h"

#include "ktls.h"
#include "tls_error.h"
#include "socket_bio.h"

#include <errno.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

/* ── reading ── */

static ssize_t read_plaintext(struct tls_conn *s, void *to, size_t size)
{
    size_t plaintext = s->plaintext_len - s->plaintext_pos, n = plaintext < size ? plaintext : size;
    if (!plaintext) {
        ssize_t got = recv(s->fd, to, size, 0);
        return got < 0 ? -errno : got;
    }
    memcpy(to, s->plaintext + s->plaintext_pos, n);
    s->plaintext_pos += (uint32_t)n;
    ssize_t more =
        n < size ? recv(s->fd, (char *)to + n, size - n, 0) : 0; /* a short count would mean that the socket is empty */
    return (ssize_t)n + (more > 0 ? more : 0);
}

static ssize_t read_records(struct tls_conn *s, char *to, size_t size)
{
    size_t got = 0;
    int r = -EAGAIN;
    s->socket_empty &= s->may_have_pending;
    s->may_have_pending = false;
    while (got < size) {
        int n = SSL_read(s->ssl, to + got, size - got < INT_MAX ? (int)(size - got) : INT_MAX);
        if (n <= 0) {
            r = tls_conn_error(s);
            break;
        }
        got += (size_t)n;
        s->no_data_bytes = 0;
        if (s->socket_empty && !SSL_has_pending(s->ssl))
            break; /* another SSL_read() costs as much as a record */
    }
    return got ? (ssize_t)got : r;
}

ssize_t io_read(struct mk_io *io, void *to, size_t size)
{
    struct tls_conn *s = io->state;
    if (!s->ssl)
        return read_plaintext(s, to, size);
    if (s->broken)
        return -EPROTO;
    socket_bio_claim(s);
    size_t before = s->write_buffer->len;
    ssize_t n = read_records(s, to, size);
    int r = s->write_buffer->len > before ? socket_bio_flush(s, 0) : 0; /* an alert, or the response to a KeyUpdate */
    return r < 0 && r != -EAGAIN ? r : n;
}

/* ── writing ── */

/* Encrypts data into the batch while it has room. Returns the bytes of data, or -errno. */
static ssize_t encrypt_data(struct tls_conn *s, const char *data, size_t len)
{
    uint64_t now = mk_loop_now_ms(s->loop);
    size_t done = 0;
    while (done < len && sizeof(s->write_buffer->batch) - s->write_buffer->len >= WRITE_BUFFER_RECORD_BYTES) {
        int n = SSL_write(s->ssl, data + done, (int)record_size_next(&s->record_size, now, len - done));
        if (n <= 0) {
            int r = tls_conn_error(s);
            return r < 0 && r != -EAGAIN ? r : -EPROTO; /* there was room, so it cannot have to wait */
        }
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Sends what earlier calls have left. Returns 0, -EAGAIN or another -errno. */
static int flush_unsent(struct tls_conn *s)
{
    if (s->broken)
        return -EPROTO;
    socket_bio_claim(s);
    return s->unsent ? socket_bio_flush(s, 0) : 0;
}

static ssize_t write_plaintext(struct tls_conn *s, const struct iovec *vec, int n, unsigned flags)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vec, .msg_iovlen = (size_t)n};
    ssize_t sent = sendmsg(s->fd, &message, MSG_NOSIGNAL | (flags & MK_IO_MORE ? MSG_MORE : 0));
    return sent < 0 ? -errno : sent;
}

ssize_t io_write(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    struct tls_conn *s = io->state;
    if (!s->ssl)
        return write_plaintext(s, vec, n, flags);
    int r = flush_unsent(s);
    if (r < 0)
        return r;
    if (s->ktls)
        return ktls_write(s, vec, n);
    size_t done = 0;
    for (int i = 0; i < n; i++) {
        ssize_t encrypted = encrypt_data(s, vec[i].iov_base, vec[i].iov_len);
        if (encrypted < 0)
            return encrypted;
        done += (size_t)encrypted;
        if ((size_t)encrypted < vec[i].iov_len) {
            flags |= MK_IO_MORE;
            break;
        }
    }
    if (flags & MK_IO_MORE && sizeof(s->write_buffer->batch) - s->write_buffer->len >= WRITE_BUFFER_RECORD_BYTES)
        return (ssize_t)done; /* it is sent together with what follows */
    r = socket_bio_flush(s, flags);
    return r < 0 && r != -EAGAIN ? r : (ssize_t)done;
}

static ssize_t send_file_plaintext(struct tls_conn *s, int file_fd, uint64_t offset, size_t size)
{
    off_t at = (off_t)offset;
    ssize_t n = sendfile(s->fd, file_fd, &at, size);
    return n < 0 ? -errno : n;
}

static ssize_t send_file_chunk(struct tls_conn *s, int file_fd, uint64_t offset, size_t size)
{
    ssize_t n = write_buffer_read_file(s->write_buffer, file_fd, offset, size);
    if (n <= 0)
        return n;
    ssize_t encrypted = encrypt_data(s, s->write_buffer->file, (size_t)n);
    if (encrypted < 0)
        return encrypted;
    int r = socket_bio_flush(s, (size_t)encrypted < size ? MK_IO_MORE : 0);
    return r < 0 && r != -EAGAIN ? r : encrypted;
}

ssize_t io_send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size)
{
    struct tls_conn *s = io->state;
    size_t sent = 0;
    if (!s->ssl)
        return send_file_plaintext(s, file_fd, offset, size);
    int r = flush_unsent(s);
    if (r < 0)
        return r;
    if (s->ktls)
        return ktls_sendfile(s, file_fd, offset, size);
    while (sent < size && !s->unsent) {
        ssize_t n = send_file_chunk(s, file_fd, offset + sent, size - sent);
        if (n <= 0)
            return sent ? (ssize_t)sent : n;
        sent += (size_t)n;
    }
    return (ssize_t)sent;
}
