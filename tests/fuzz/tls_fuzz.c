// SPDX-License-Identifier: Apache-2.0
/*
 * What strangers send to a port for TLS: the transport must take it, read or refuse it, and give everything back. The
 * first byte says what the others are: all that a client sends; changes in the greeting of a real one; records behind a
 * real handshake; bytes inside of its records.
 */
#include "../unit/plugins/tls/fixture.h"

enum kind { ALL, GREETING, RECORDS, INSIDE, KINDS };
enum { HELLO_BYTES = 4096, PIECE_BYTES = 700 };

#define EXPECT(condition) \
    do { \
        if (!(condition)) \
            abort(); \
    } while (0)

static size_t allocated; /* of the worker, without a connection */

static void drain(int fd)
{
    char away[65536];
    while (read(fd, away, sizeof(away)) > 0)
        ;
}

/* The server's turn: as long as it makes progress. */
static void serve(struct mk_io *io, bool *handshaken, bool *broken)
{
    char to[20000];
    int r = *handshaken ? 0 : tls_transport.handshake(io);
    *handshaken = r == 0;
    *broken |= r < 0 && r != -EAGAIN;
    for (int i = 0; *handshaken && !*broken && i < 100; i++) {
        ssize_t n = tls_transport.read(io, to, sizeof(to));
        EXPECT(n <= (ssize_t)sizeof(to));
        *broken |= n <= 0 && n != -EAGAIN;
        if (n <= 0)
            break;
        struct iovec vec = {.iov_base = to, .iov_len = (size_t)n};
        ssize_t sent = tls_transport.write(io, &vec, 1, 0);
        EXPECT(sent <= n && sent != 0);
    }
    if (*handshaken)
        tls_transport.flush(io);
}

static void feed(struct mk_io *io, int fd, const uint8_t *data, size_t size, bool *handshaken)
{
    bool broken = false;
    for (size_t at = 0; at < size && !broken;) {
        size_t n = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        ssize_t sent = send(fd, data + at, n, MSG_NOSIGNAL);
        at += sent > 0 ? (size_t)sent : n;
        serve(io, handshaken, &broken);
        drain(fd);
    }
}

/* The greeting of a real client, with the input's certs of place and byte laid over it. */
static void greet(struct mk_io *io, int fd, const uint8_t *data, size_t size, bool *handshaken)
{
    uint8_t hello[HELLO_BYTES];
    char name[] = "localhost";
    SSL *ssl = SSL_new(tls_fixture.client);
    BIO *out = BIO_new(BIO_s_mem()), *in = BIO_new(BIO_s_mem());
    EXPECT(ssl && out && in);
    SSL_set_bio(ssl, in, out);
    SSL_set_tlsext_host_name(ssl, name);
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    int n = BIO_read(out, hello, sizeof(hello));
    SSL_free(ssl);
    for (size_t i = 0; n > 0 && i + 3 <= size; i += 3)
        hello[(data[i] << 8 | data[i + 1]) % n] = data[i + 2];
    feed(io, fd, hello, n > 0 ? (size_t)n : 0, handshaken);
}

static void meet(struct mk_io *io, int fd, bool inside, const uint8_t *data, size_t size, bool *handshaken)
{
    SSL *ssl = tls_fixture_client(fd);
    *handshaken = tls_fixture_handshake(io, ssl) == 0;
    EXPECT(*handshaken);
    bool broken = false;
    if (!inside)
        feed(io, fd, data, size, handshaken);
    else if (size && SSL_write(ssl, data, (int)size) > 0)
        serve(io, handshaken, &broken);
    EXPECT(!inside || !broken);
    SSL_set_quiet_shutdown(ssl, 1);
    SSL_free(ssl);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    tls_fixture_open();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool handshaken = false;
    int fd;
    if (size < 1 || size > 100000)
        return 0;
    enum kind kind = data[0] % KINDS;
    if (!allocated) { /* the buffers of the write_buffer come with the first connection */
        allocated = tls_fixture.thread.account.bytes;
        EXPECT(allocated);
    }
    struct mk_io io = tls_fixture_connect(&fd);
    if (kind == ALL)
        feed(&io, fd, data + 1, size - 1, &handshaken);
    else if (kind == GREETING)
        greet(&io, fd, data + 1, size - 1, &handshaken);
    else
        meet(&io, fd, kind == INSIDE, data + 1, size - 1, &handshaken);
    if (handshaken)
        tls_transport.shutdown(&io);
    tls_transport.close(&io);
    close(fd);
    EXPECT(tls_fixture.thread.account.bytes == allocated && tls_fixture.worker->refs == 0);
    return 0;
}
