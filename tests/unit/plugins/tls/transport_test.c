// SPDX-License-Identifier: Apache-2.0
/* The transport of the plugin tls: what its calls return, what it holds, and what it gives back. */
#include "testing.h"

#include "fixture.h"

#include <openssl/err.h>

#include <errno.h>

enum { BIG = 3 * 1024 * 1024 };

static char bytes[BIG], back[BIG];
static int fd;
static struct mk_io io;
static SSL *client;

static int open_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    tls_fixture_open();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    tls_fixture_close();
    return 0;
}

static int meet(void **state)
{
    (void)state;
    io = tls_fixture_connect(&fd);
    client = tls_fixture_client(fd);
    assert_int_equal(tls_fixture_handshake(&io, client), 0);
    char byte;
    assert_int_equal(tls_transport.read(&io, &byte, 1), -EAGAIN); /* the first turn */
    assert_int_equal(tls_transport.flush(&io), 0);
    return 0;
}

static int part(void **state)
{
    (void)state;
    SSL_free(client);
    tls_transport.close(&io);
    close(fd);
    assert_int_equal(tls_fixture.worker->refs, 0);
    return 0;
}

static ssize_t write_bytes(const void *from, size_t n, unsigned flags)
{
    struct iovec vec = {.iov_base = (void *)(uintptr_t)from, .iov_len = n};
    return tls_transport.write(&io, &vec, 1, flags);
}

/* What the client can read now. */
static size_t take(size_t at)
{
    int n;
    while (at < sizeof(back) && (n = SSL_read(client, back + at, (int)(sizeof(back) - at))) > 0)
        at += (size_t)n;
    return at;
}

static const struct tls_conn *session(void)
{
    return transport_conn_of(&io);
}

TEST(the_handshake_holds_the_worker)
{
    int own;
    struct mk_io waiting = tls_fixture_connect(&own);
    assert_int_equal(tls_fixture.worker->refs, 1);
    assert_int_equal(tls_transport.handshake(&waiting), -EAGAIN);
    tls_transport.close(&waiting);
    assert_int_equal(tls_fixture.worker->refs, 0);
    close(own);
}

TEST(what_is_known, meet, part)
{
    struct mk_tls_info known = {0};
    assert_int_equal(tls_transport.tls_info(&io, &known), 0);
    assert_str_equal(known.version, "TLSv1.3");
    assert_str_equal(known.cipher, "TLS_AES_256_GCM_SHA384");
    assert_int_equal(known.server_name.len, 0);
    assert_int_equal(known.client.len, 0);
    assert_int_equal(tls_transport.protocol(&io).len, 0);
    assert_int_equal(tls_transport.handshake(&io), 0); /* again, and no harm is done */
}

TEST(reading, meet, part)
{
    char to[40000];
    assert_int_equal(tls_transport.read(&io, to, sizeof(to)), -EAGAIN);
    assert_int_equal(SSL_write(client, bytes, 100), 100);
    assert_int_equal(SSL_write(client, bytes + 100, 16384), 16384);
    assert_int_equal(SSL_write(client, bytes + 16484, 16384), 16384);
    assert_int_equal(tls_transport.read(&io, to, 50), 50);
    assert_int_equal(tls_transport.read(&io, to + 50, sizeof(to) - 50), 32868 - 50); /* several records, one call */
    assert_memory_equal(to, bytes, 32868);
    assert_int_equal(tls_transport.read(&io, to, sizeof(to)), -EAGAIN);
    SSL_shutdown(client);
    assert_int_equal(tls_transport.read(&io, to, sizeof(to)), 0);
    assert_int_equal(write_bytes("still", 5, 0), 5); /* our side is open */
    assert_int_equal(take(0), 5);
}

TEST(an_end_without_close_notify, meet, part)
{
    char to[100];
    assert_int_equal(SSL_write(client, "last", 4), 4);
    shutdown(fd, SHUT_WR);
    assert_int_equal(tls_transport.read(&io, to, sizeof(to)), 4);
    assert_int_equal(tls_transport.read(&io, to, sizeof(to)), 0);
}

TEST(garbage_ends_the_connection, meet, part)
{
    char to[100];
    assert_int_equal(write(fd, "\x17\x03\x03\x00\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 37), 37);
    assert_int_equal(tls_transport.read(&io, to, sizeof(to)), -EPROTO);
    assert_int_equal(tls_transport.read(&io, to, sizeof(to)), -EPROTO);
    assert_int_equal(write_bytes("x", 1, 0), -EPROTO);
    assert_int_equal(ERR_peek_error(), 0); /* the next connection of this thread must not find it */
}

/* Never more than a batch is held; it is counted as written, and sent by flush. */
TEST(what_the_socket_does_not_take_is_held, meet, part)
{
    size_t sent = 0, got = 0;
    ssize_t n;
    while ((n = write_bytes(bytes + sent, sizeof(bytes) - sent, 0)) > 0)
        sent += (size_t)n;
    assert_int_equal(n, -EAGAIN);
    assert_true(sent < sizeof(bytes));
    assert_true(session()->unsent_len > 0 && session()->unsent_len <= WRITE_BUFFER_BATCH_BYTES);
    assert_int_equal(session()->write_buffer->len, 0);
    assert_int_equal(tls_transport.flush(&io), -EAGAIN);
    while (tls_transport.flush(&io) == -EAGAIN)
        got = take(got);
    got = take(got);
    assert_int_equal(got, sent);
    assert_memory_equal(back, bytes, sent);
    assert_null(session()->unsent);
    assert_int_equal(tls_transport.flush(&io), 0);
    assert_int_equal(write_bytes("more", 4, 0), 4);
}

TEST(files, meet, part)
{
    int file = memfd_create("file", MFD_CLOEXEC);
    size_t sent = 0, got = 0;
    assert_int_equal(write(file, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    while (sent < 2000000) {
        ssize_t n = tls_transport.sendfile(&io, file, 1000 + sent, 2000000 - sent);
        assert_true(n > 0 || n == -EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        got = take(got);
    }
    while (tls_transport.flush(&io) == -EAGAIN)
        got = take(got);
    assert_int_equal(take(got), 2000000);
    assert_memory_equal(back, bytes + 1000, 2000000);
    assert_int_equal(tls_transport.sendfile(&io, file, sizeof(bytes), 10), 0); /* it ends before that */
    assert_int_equal(tls_transport.sendfile(&io, file, sizeof(bytes) - 5, 10), 5);
    assert_int_equal(take(0), 5);
    close(file);
}

TEST(close_notify_waits_for_held_records, meet, part)
{
    size_t sent = 0, got = 0;
    ssize_t n;
    char end;
    while ((n = write_bytes(bytes + sent, sizeof(bytes) - sent, 0)) > 0)
        sent += (size_t)n;
    assert_int_equal(tls_transport.shutdown(&io), 0);
    while (tls_transport.flush(&io) == -EAGAIN)
        got = take(got);
    assert_int_equal(take(got), sent);
    assert_int_equal(SSL_get_error(client, SSL_read(client, &end, 1)), SSL_ERROR_ZERO_RETURN);
    assert_int_equal(read(fd, &end, 1), 0); /* and the socket ends as well */
}

/* Reading ends with the last key update, whatever comes in between. */
TEST(a_client_that_only_keeps_it_busy, meet, part)
{
    for (int between = 0; between < 2; between++) {
        char to[100];
        ssize_t n = -EAGAIN;
        int updates = 0;
        while (updates++ < 200 && (n == -EAGAIN || n == between)) {
            SSL_key_update(client, SSL_KEY_UPDATE_REQUESTED);
            SSL_do_handshake(client);
            if (between)
                SSL_write(client, "x", between);
            n = tls_transport.read(&io, to, sizeof(to));
            SSL_read(client, back, sizeof(back));
        }
        assert_int_equal(n, -EPROTO);
        assert_in_range(updates, 100, 105);
        part(NULL);
        meet(NULL);
    }
}

TEST(plain_http)
{
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    struct mk_tls_info known;
    char to[100];
    int own;
    struct mk_io plain = tls_fixture_connect(&own);
    assert_int_equal(write(own, request, 3), 3);
    assert_int_equal(tls_transport.handshake(&plain), 0);
    assert_int_equal(tls_fixture.worker->refs, 0);
    assert_int_equal(tls_transport.tls_info(&plain, &known), -ENOENT);
    assert_int_equal(tls_transport.protocol(&plain).len, 0);
    assert_int_equal(write(own, request + 3, sizeof(request) - 4), (ssize_t)sizeof(request) - 4);
    assert_int_equal(tls_transport.read(&plain, to, 2), 2);
    assert_int_equal(tls_transport.read(&plain, to + 2, sizeof(to) - 2), (ssize_t)sizeof(request) - 3);
    assert_memory_equal(to, request, sizeof(request) - 1);
    assert_int_equal(tls_transport.read(&plain, to, sizeof(to)), -EAGAIN);
    struct iovec vec[2] = {{.iov_base = to, .iov_len = 3}, {.iov_base = to + 3, .iov_len = 1}};
    assert_int_equal(tls_transport.write(&plain, vec, 2, 0), 4);
    assert_int_equal(read(own, to, sizeof(to)), 4);
    assert_int_equal(tls_transport.shutdown(&plain), 0);
    assert_int_equal(read(own, to, sizeof(to)), 0);
    tls_transport.close(&plain);
    close(own);
}

TEST(a_client_that_leaves_amid_the_handshake)
{
    int own;
    struct mk_io waiting = tls_fixture_connect(&own);
    SSL *amid = tls_fixture_client(own);
    SSL_do_handshake(amid);
    shutdown(own, SHUT_WR);
    int r = tls_transport.handshake(&waiting);
    for (int i = 0; i < 3 && r == -EAGAIN; i++)
        r = tls_transport.handshake(&waiting);
    assert_true(r < 0 && r != -EAGAIN);
    tls_transport.close(&waiting);
    SSL_free(amid);
    close(own);
}

/* It can still be read, but our part of the handshake cannot be sent: there is nothing to wait for. */
TEST(a_handshake_that_cannot_be_sent)
{
    int own;
    struct mk_io deaf = tls_fixture_connect(&own);
    SSL *amid = tls_fixture_client(own);
    SSL_do_handshake(amid);
    shutdown(own, SHUT_RD);
    assert_int_equal(tls_transport.handshake(&deaf), -EPIPE);
    tls_transport.close(&deaf);
    SSL_free(amid);
    close(own);
}

/* A few records at a time: what is gathered, leaves in one piece. */
TEST(a_batch_is_one_message, meet, part)
{
    char raw[200000];
    for (int i = 0; i < 20; i++)
        assert_int_equal(write_bytes(bytes, 1300, 0), 1300); /* until records are large */
    while (read(fd, raw, sizeof(raw)) > 0)
        ;
    int file = memfd_create("file", MFD_CLOEXEC);
    assert_int_equal(write(file, bytes, 60000), 60000);
    assert_int_equal(tls_transport.sendfile(&io, file, 0, 60000), 60000);
    ssize_t n = recv(fd, raw, sizeof(raw), 0);
    assert_true(n > 60000);
    for (ssize_t at = 0, i = 0; at < n; i++) {
        size_t size = (size_t)(unsigned char)raw[at + 3] << 8 | (unsigned char)raw[at + 4];
        assert_true(i == 3 || size == RECORD_LARGE_BYTES + 17);
        at += (ssize_t)size + 5;
    }
    close(file);
}

/* Another one needs the batch, and the socket does not take what is in it: those bytes count as written. */
TEST(what_another_one_could_not_send_is_not_forgotten, meet, part)
{
    int own;
    struct mk_io other = tls_fixture_connect(&own);
    assert_int_equal(write_bytes("lost", 4, MK_IO_MORE), 4);
    assert_true(socket_bio_is_pending(session()));
    shutdown(fd, SHUT_RDWR);
    assert_int_equal(tls_transport.handshake(&other), -EAGAIN);
    assert_int_equal(session()->write_buffer->len, 0);
    assert_int_equal(tls_transport.flush(&io), -EPROTO);
    assert_int_equal(write_bytes("more", 4, 0), -EPROTO);
    assert_int_equal(tls_transport.flush(&other), 0);
    tls_transport.close(&other);
    close(own);
}

/* As where the kernel may encrypt: libssl has the socket, and nothing is gathered. */
TEST(without_a_batch)
{
    size_t sent = 0, got = 0;
    char to[100];
    int own, file = memfd_create("file", MFD_CLOEXEC);
    struct mk_io direct = tls_fixture_connect(&own);
    struct tls_conn *s = direct.state;
    assert_int_equal(SSL_set_fd(s->ssl, direct.fd), 1);
    s->ktls = true;
    assert_int_equal(tls_transport.handshake(&direct), -EAGAIN);
    SSL *peer = tls_fixture_client(own);
    assert_int_equal(tls_fixture_handshake(&direct, peer), 0);
    assert_int_equal(SSL_write(peer, "hello", 5), 5);
    assert_int_equal(tls_transport.read(&direct, to, sizeof(to)), 5);
    assert_int_equal(tls_transport.read(&direct, to, sizeof(to)), -EAGAIN);
    assert_int_equal(write(file, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    while (sent < 1000000) {
        struct iovec vec = {.iov_base = bytes + sent, .iov_len = sent < 500000 ? 500000 - sent : 0};
        ssize_t n = sent < 500000 ? tls_transport.write(&direct, &vec, 1, 0)
                                  : tls_transport.sendfile(&direct, file, sent, 1000000 - sent);
        assert_true(n > 0 || n == -EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        for (int k; n < 0 && (k = SSL_read(peer, back + got, (int)(sizeof(back) - got))) > 0;)
            got += (size_t)k;
    }
    for (int k; (k = SSL_read(peer, back + got, (int)(sizeof(back) - got))) > 0;)
        got += (size_t)k;
    assert_int_equal(got, sent);
    assert_memory_equal(back, bytes, sent);
    assert_int_equal(tls_transport.shutdown(&direct), 0);
    assert_int_equal(SSL_get_error(peer, SSL_read(peer, to, 1)), SSL_ERROR_ZERO_RETURN);
    tls_transport.close(&direct);
    SSL_free(peer);
    close(own);
    close(file);
}

TEST(plain_http_without_a_batch)
{
    char to[10];
    int own;
    struct mk_io plain = tls_fixture_connect(&own);
    ((struct tls_conn *)plain.state)->ktls = true;
    assert_int_equal(tls_transport.handshake(&plain), -EAGAIN);
    assert_int_equal(write(own, "GET", 3), 3);
    assert_int_equal(tls_transport.handshake(&plain), 0);
    assert_int_equal(tls_transport.read(&plain, to, sizeof(to)), 3);
    tls_transport.close(&plain);
    close(own);
}

TEST_FILE(open_all, close_all)
