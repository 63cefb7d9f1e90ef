// SPDX-License-Identifier: Apache-2.0
#include "tls.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

/* ── kTLS: records one by one, or the kernel sends a file ── */

/* The socket is not connected: a kernel with kTLS returns ENOTCONN, others ENOENT and the like. */
int ktls_probe(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), answer = fd < 0 ? errno : 0;
    if (fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) < 0)
        answer = errno;
    if (fd >= 0)
        close(fd);
    return answer;
}

bool ktls_is_supported(int answer)
{
    return answer == 0 || answer == ENOTCONN;
}

uint64_t ktls_option(bool wanted)
{
    static _Atomic int known; /* 0: not known yet, 1: not supported, 2: supported */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (!answer) {
        answer = 1 + ktls_is_supported(ktls_probe());
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return wanted && answer == 2 ? SSL_OP_ENABLE_KTLS : 0;
}

/* As write and sendfile of mk_transport. */
static ssize_t write_ktls(struct tls_conn *conn, const struct iovec *vec, int n)
{
    assert(conn->ktls);
    size_t done = 0;
    for (int i = 0; i < n; i++)
        for (size_t at = 0; at < vec[i].iov_len;) {
            size_t left = vec[i].iov_len - at;
            int k = SSL_write(conn->ssl, (const char *)vec[i].iov_base + at,
                              (int)(left < RECORD_LARGE_BYTES ? left : RECORD_LARGE_BYTES));
            if (k <= 0)
                return done ? (ssize_t)done : tls_conn_error(conn);
            at += (size_t)k;
            done += (size_t)k;
        }
    return (ssize_t)done;
}

static ssize_t send_file_ktls(struct tls_conn *conn, int file_fd, uint64_t offset, size_t size)
{
    assert(conn->ktls);
    if (BIO_get_ktls_send(SSL_get_wbio(conn->ssl))) {
        ossl_ssize_t n = SSL_sendfile(conn->ssl, file_fd, (off_t)offset, size, 0);
        return n >= 0 ? n : tls_conn_error(conn);
    }
    /* a cipher that the kernel does not support; after -EAGAIN the same bytes are read and written again */
    ssize_t n = write_buffer_read_file(conn->write_buffer, file_fd, offset,
                                       size < RECORD_LARGE_BYTES ? size : RECORD_LARGE_BYTES);
    if (n <= 0)
        return n;
    struct iovec vec = {.iov_base = conn->write_buffer->file, .iov_len = (size_t)n};
    return write_ktls(conn, &vec, 1);
}

/* ── reading ── */

/* Reads what a client has sent that speaks plain HTTP: first the bytes that the handshake has read. */
static ssize_t read_plaintext(struct tls_conn *conn, void *to, size_t size)
{
    assert(conn->plaintext_pos <= conn->plaintext_len);
    size_t plaintext = conn->plaintext_len - conn->plaintext_pos, n = plaintext < size ? plaintext : size;
    if (!plaintext) {
        ssize_t got = recv(conn->fd, to, size, 0);
        return got < 0 ? -errno : got;
    }
    memcpy(to, conn->plaintext + conn->plaintext_pos, n);
    conn->plaintext_pos += (uint32_t)n;
    ssize_t more = n < size ? recv(conn->fd, (char *)to + n, size - n, 0)
                            : 0; /* a short count would mean that the socket is empty */
    return (ssize_t)n + (more > 0 ? more : 0);
}

/* Decrypts records until `to` is full or there are no more. */
static ssize_t read_records(struct tls_conn *conn, char *to, size_t size)
{
    size_t got = 0;
    int r = -EAGAIN;
    conn->socket_empty &= conn->may_have_pending;
    conn->may_have_pending = false;
    while (got < size) {
        int n = SSL_read(conn->ssl, to + got, size - got < INT_MAX ? (int)(size - got) : INT_MAX);
        if (n <= 0) {
            r = tls_conn_error(conn);
            if (r == -EAGAIN && !got && conn->is_client && conn->socket_empty) {
                conn->socket_empty = false; /* no data yet, such as a ticket: the end may have come after it */
                continue;
            }
            break;
        }
        got += (size_t)n;
        conn->no_data_bytes = 0;
        if (conn->socket_empty && !SSL_has_pending(conn->ssl))
            break; /* another SSL_read() costs as much as a record */
    }
    return got ? (ssize_t)got : r;
}

ssize_t io_read(struct mk_io *io, void *to, size_t size)
{
    struct tls_conn *conn = io->state;
    assert(conn->established);
    if (!conn->ssl)
        return read_plaintext(conn, to, size);
    if (conn->broken)
        return conn->error ? conn->error : -EPROTO;
    socket_bio_claim(conn);
    size_t before = conn->write_buffer->len;
    ssize_t n = read_records(conn, to, size);
    io->has_end = n > 0 && (conn->broken || SSL_get_shutdown(conn->ssl) & SSL_RECEIVED_SHUTDOWN);
    int r =
        conn->write_buffer->len > before ? socket_bio_flush(conn, 0) : 0; /* an alert, or the response to a KeyUpdate */
    return r < 0 && r != -EAGAIN ? r : n;
}

/* ── writing ── */

/* Encrypts data into the batch while it has room. Returns the bytes of data, or -errno. */
static ssize_t encrypt_data(struct tls_conn *conn, const char *data, size_t len)
{
    assert(conn->write_buffer->owner == conn && !conn->ktls);
    uint64_t now = mk_loop_now_ms(conn->loop);
    size_t done = 0;
    while (done < len && sizeof(conn->write_buffer->batch) - conn->write_buffer->len >= WRITE_BUFFER_RECORD_BYTES) {
        int n = SSL_write(conn->ssl, data + done, (int)record_size_next(&conn->record_size, now, len - done));
        if (n <= 0) {
            int r = tls_conn_error(conn);
            return r < 0 && r != -EAGAIN ? r : -EPROTO; /* there was room, so it cannot have to wait */
        }
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Sends what earlier calls have left. Returns 0, -EAGAIN or another -errno. */
static int flush_unsent(struct tls_conn *conn)
{
    if (conn->broken)
        return conn->error ? conn->error : -EPROTO;
    socket_bio_claim(conn);
    return conn->unsent ? socket_bio_flush(conn, 0) : 0;
}

ssize_t io_write(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    struct tls_conn *conn = io->state;
    assert(conn->established);
    if (!conn->ssl) {
        struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vec, .msg_iovlen = (size_t)n};
        ssize_t sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL | (flags & MK_IO_MORE ? MSG_MORE : 0));
        return sent < 0 ? -errno : sent;
    }
    int r = flush_unsent(conn);
    if (r < 0)
        return r;
    if (conn->ktls)
        return write_ktls(conn, vec, n);
    size_t done = 0;
    for (int i = 0; i < n; i++) {
        ssize_t encrypted = encrypt_data(conn, vec[i].iov_base, vec[i].iov_len);
        if (encrypted < 0)
            return encrypted;
        done += (size_t)encrypted;
        if ((size_t)encrypted < vec[i].iov_len) {
            flags |= MK_IO_MORE;
            break;
        }
    }
    if (flags & MK_IO_MORE && sizeof(conn->write_buffer->batch) - conn->write_buffer->len >= WRITE_BUFFER_RECORD_BYTES)
        return (ssize_t)done; /* it is sent together with what follows */
    r = socket_bio_flush(conn, flags);
    return r < 0 && r != -EAGAIN ? r : (ssize_t)done;
}

/* Sends as much of a file as the write buffer takes. Returns the bytes, 0 (the end) or -errno. */
static ssize_t send_file_chunk(struct tls_conn *conn, int file_fd, uint64_t offset, size_t size)
{
    ssize_t n = write_buffer_read_file(conn->write_buffer, file_fd, offset, size);
    if (n <= 0)
        return n;
    ssize_t encrypted = encrypt_data(conn, conn->write_buffer->file, (size_t)n);
    if (encrypted < 0)
        return encrypted;
    int r = socket_bio_flush(conn, (size_t)encrypted < size ? MK_IO_MORE : 0);
    return r < 0 && r != -EAGAIN ? r : encrypted;
}

ssize_t io_send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size)
{
    struct tls_conn *conn = io->state;
    size_t sent = 0;
    assert(conn->established);
    if (!conn->ssl) {
        off_t at = (off_t)offset;
        ssize_t n = sendfile(conn->fd, file_fd, &at, size);
        return n < 0 ? -errno : n;
    }
    int r = flush_unsent(conn);
    if (r < 0)
        return r;
    if (conn->ktls)
        return send_file_ktls(conn, file_fd, offset, size);
    while (sent < size && !conn->unsent) {
        ssize_t n = send_file_chunk(conn, file_fd, offset + sent, size - sent);
        if (n <= 0)
            return sent ? (ssize_t)sent : n;
        sent += (size_t)n;
    }
    return (ssize_t)sent;
}
