// SPDX-License-Identifier: Apache-2.0
/*
 * Writes with kTLS (ktls.h): records one by one, or the kernel sends a file.
 */
#include "ktls.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

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

ssize_t ktls_write(struct tls_conn *conn, const struct iovec *vec, int n)
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

/* For ciphers that the kernel does not support. After -EAGAIN the same bytes are read and written again. */
static ssize_t copy_file(struct tls_conn *conn, int file_fd, uint64_t offset, size_t size)
{
    ssize_t n = write_buffer_read_file(conn->write_buffer, file_fd, offset,
                                       size < RECORD_LARGE_BYTES ? size : RECORD_LARGE_BYTES);
    if (n <= 0)
        return n;
    struct iovec vec = {.iov_base = conn->write_buffer->file, .iov_len = (size_t)n};
    return ktls_write(conn, &vec, 1);
}

ssize_t ktls_sendfile(struct tls_conn *conn, int file_fd, uint64_t offset, size_t size)
{
    assert(conn->ktls);
    if (BIO_get_ktls_send(SSL_get_wbio(conn->ssl))) {
        ossl_ssize_t n = SSL_sendfile(conn->ssl, file_fd, (off_t)offset, size, 0);
        return n >= 0 ? n : tls_conn_error(conn);
    }
    return copy_file(conn, file_fd, offset, size);
}
