// SPDX-License-Identifier: Apache-2.0
/* Connections to servers: settings, sessions, errors and lifetimes, over a socket pair to the transport's own server.
 */
#include "folder.h"

#include "fixture.h"
#include "plugins/tls/tls.h"

#include <openssl/pem.h>

#include <errno.h>

enum { TEXT_BYTES = 600 };

/* ── libcrypto's allocations, which fail as the others do: mk__alloc_countdown ── */

static bool counts_libcrypto;

static bool is_to_fail(void)
{
    return counts_libcrypto && mk__alloc_countdown >= 0 && mk__alloc_countdown-- == 0;
}

static void *allocate(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return size && !is_to_fail() ? malloc(size) : NULL;
}

static void *allocate_again(void *old, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    if (size)
        return is_to_fail() ? NULL : realloc(old, size);
    free(old);
    return NULL;
}

static void release(void *old, const char *file, int line)
{
    (void)file, (void)line;
    free(old);
}

__attribute__((constructor)) static void replace_allocator(void)
{
    if (CRYPTO_set_mem_functions(allocate, allocate_again, release) != 1)
        abort();
}

/* ── fixture ── */

static const struct mk_transport *const tls = &tls_transport;
static struct mk_transport_client_conf trusting = {.server_name = MK_STR("localhost"), .skip_verify = true}, verifying;
static struct mk_io here, there; /* the client and the server */

static int open_all(void **state)
{
    X509 *leaf;
    EVP_PKEY *key;
    static char path[512];
    mk_test_folder_make(state);
    tls_fixture_open();
    assert_int_equal(selfsigned_get(&leaf, &key), 0);
    snprintf(path, sizeof(path), "%s", mk_test_path("ca.pem"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, leaf), 1);
    fclose(file);
    verifying = (struct mk_transport_client_conf){.server_name = MK_STR("localhost"), .ca_file = mk_str_c(path)};
    return 0;
}

static int close_all(void **state)
{
    tls_fixture_close();
    return mk_test_folder_remove(state);
}

/* Opens settings that are expected to be right. */
static struct mk_transport_client *open_client(const struct mk_transport_client_conf *conf)
{
    struct mk_transport_client *client;
    struct mk_buf error;
    char text[TEXT_BYTES];
    size_t field;
    mk_buf_init_fixed(&error, text, sizeof(text));
    if (tls->client_open(conf, &client, &field, &error) < 0)
        fail_msg("%s", mk_buf_cstr(&error));
    return client;
}

/* Opens both ends. Returns what connect() does. */
static int open_pair(struct mk_transport_client *client)
{
    int fd;
    there = tls_fixture_connect(&fd);
    here = (struct mk_io){.transport = tls, .fd = fd};
    return tls->connect(&here, tls_fixture.worker, client);
}

static void close_pair(void)
{
    tls->close(&here);
    tls->close(&there);
}

/* Both take steps until the client has failed, or both are done. Returns the client's result, or the server's. */
static int do_handshakes(void)
{
    int r = -EAGAIN, server = -EAGAIN;
    for (int i = 0; i < 10 && (r == -EAGAIN || (r == 0 && server == -EAGAIN)); i++) {
        r = tls->handshake(&here);
        tls->flush(&here);
        server = server == -EAGAIN ? tls->handshake(&there) : server;
        if (server == 0)
            tls->flush(&there);
    }
    return r == 0 ? server : r;
}

static ssize_t read_byte(struct mk_io *io)
{
    char byte;
    ssize_t n = tls->read(io, &byte, 1);
    return n == -EAGAIN ? tls->read(io, &byte, 1) : n; /* the first turn of a server ends with the handshake */
}

/* A byte each way, so that tickets arrive. Returns 0 or what has failed. */
static int exchange_bytes(void)
{
    char byte = 'x';
    const struct iovec vec = {&byte, 1};
    ssize_t n = tls->write(&here, &vec, 1, 0);
    n = n == 1 ? read_byte(&there) : n;
    n = n == 1 ? tls->write(&there, &vec, 1, 0) : n;
    n = n == 1 ? read_byte(&here) : n;
    return n == 1 ? 0 : n < 0 ? (int)n : -EPIPE;
}

static bool was_resumed(void)
{
    return SSL_session_reused(transport_conn_of(&here)->ssl) == 1;
}

/* A whole connection. Returns whether it has resumed a session. */
static bool talk(struct mk_transport_client *client)
{
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(do_handshakes(), 0);
    assert_int_equal(exchange_bytes(), 0);
    bool resumed = was_resumed();
    close_pair();
    return resumed;
}

/* ── settings ── */

TEST(verified)
{
    struct mk_transport_client *client = open_client(&verifying);
    assert_false(talk(client));
    assert_true(talk(client));
    tls->client_close(client);
}

TEST(what_is_wrong)
{
    static const struct mk_str none = MK_STR("/none"), empty = MK_STR("");
    const struct {
        struct mk_transport_client_conf conf;
        size_t field;
    } cases[] = {
        {{.server_name = MK_STR("")}, offsetof(struct mk_transport_client_conf, server_name)},
        {{.server_name = MK_STR("a b")}, offsetof(struct mk_transport_client_conf, server_name)},
        {{.server_name = MK_STR("a\0b")}, offsetof(struct mk_transport_client_conf, server_name)},
        {{.server_name = MK_STR("a\n")}, offsetof(struct mk_transport_client_conf, server_name)},
        {{.server_name = MK_STR("a"), .ca_file = MK_STR("/none")}, offsetof(struct mk_transport_client_conf, ca_file)},
        {{.server_name = MK_STR("a"), .key = none}, offsetof(struct mk_transport_client_conf, key)},
        {{.server_name = MK_STR("a"), .certificate = none}, offsetof(struct mk_transport_client_conf, certificate)},
        {{.skip_verify = true, .certificate = none, .key = none},
         offsetof(struct mk_transport_client_conf, certificate)},
        {{.server_name = MK_STR("a"), .protocols = &empty, .n_protocols = 1},
         offsetof(struct mk_transport_client_conf, protocols)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_transport_client *client;
        struct mk_buf error;
        char text[TEXT_BYTES];
        size_t field = 999;
        mk_buf_init_fixed(&error, text, sizeof(text));
        if (tls->client_open(&cases[i].conf, &client, &field, &error) != -EINVAL || field != cases[i].field ||
            !error.len)
            fail_msg("case %zu: %s", i, mk_buf_cstr(&error));
    }
    tls->client_close(NULL);
}

TEST(addresses)
{
    assert_true(client_is_address("127.0.0.1"));
    assert_true(client_is_address("::1"));
    assert_false(client_is_address("127.0.0.1.example.org"));
    assert_false(client_is_address("127.1"));
    assert_false(client_is_address("1.2.3.256"));
    assert_false(client_is_address("[::1]"));
    assert_false(client_is_address(""));
}

/* ── sessions ── */

TEST(sessions_are_bounded_and_used_once)
{
    struct mk_transport_client *client = open_client(&trusting);
    struct mk_io ours[CLIENT_SESSIONS_MAX + 4], theirs[CLIENT_SESSIONS_MAX + 4];
    unsigned resumed = 0;
    for (unsigned i = 0; i < COUNT(ours); i++) { /* each gets a session, and none has one to resume */
        assert_int_equal(open_pair(client), 0);
        ours[i] = here;
        theirs[i] = there;
    }
    for (unsigned i = 0; i < COUNT(ours); i++) {
        here = ours[i];
        there = theirs[i];
        assert_int_equal(do_handshakes(), 0);
        assert_int_equal(exchange_bytes(), 0);
        assert_false(was_resumed());
        close_pair();
    }
    for (unsigned i = 0; i < COUNT(ours); i++) {
        assert_int_equal(open_pair(client), 0);
        ours[i] = here;
        theirs[i] = there;
    }
    for (unsigned i = 0; i < COUNT(ours); i++) {
        here = ours[i];
        there = theirs[i];
        assert_int_equal(do_handshakes(), 0);
        resumed += was_resumed();
        close_pair();
    }
    assert_int_equal(resumed, CLIENT_SESSIONS_MAX);
    tls->client_close(client);
}

TEST(sessions_belong_to_their_settings)
{
    struct mk_transport_client *one = open_client(&trusting), *other = open_client(&trusting);
    assert_false(talk(one));
    assert_false(talk(other));
    assert_true(talk(one));
    tls->client_close(one);
    tls->client_close(other);
}

/* ── lifetimes ── */

TEST(connections_outlive_their_settings)
{
    struct mk_transport_client *client = open_client(&verifying);
    assert_int_equal(open_pair(client), 0);
    tls->client_close(client);
    assert_int_equal(do_handshakes(), 0);
    assert_int_equal(tls_fixture.worker->refs, 0);
    assert_int_equal(exchange_bytes(), 0);
    close_pair();
}

TEST(closed_amid_the_handshake)
{
    struct mk_transport_client *client = open_client(&verifying);
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(tls->handshake(&here), -EAGAIN);
    assert_int_equal(tls_fixture.worker->refs, 1); /* the server's */
    tls->close(&here);
    tls->close(&there);
    tls->client_close(client);
}

/* ── ends and errors ── */

static void assert_described(int err, const char *type, const char *phrase)
{
    struct mk_buf out;
    char text[TEXT_BYTES];
    mk_buf_init_fixed(&out, text, sizeof(text));
    assert_string_equal(tls->describe_error(&here, err, &out), type);
    assert_string_equal(mk_buf_cstr(&out), phrase);
}

TEST(an_end_with_close_notify)
{
    struct mk_transport_client *client = open_client(&trusting);
    char to[10];
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(do_handshakes(), 0);
    assert_int_equal(exchange_bytes(), 0);
    tls->close_notify(&there);
    assert_int_equal(tls->read(&here, to, sizeof(to)), 0);
    assert_int_equal(tls->read(&here, to, sizeof(to)), 0);
    close_pair();
    tls->client_close(client);
}

TEST(an_end_without)
{
    struct mk_transport_client *client = open_client(&trusting);
    const struct iovec vec = {(char[]){"last"}, 4};
    char to[10];
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(do_handshakes(), 0);
    assert_int_equal(exchange_bytes(), 0);
    assert_int_equal(tls->write(&there, &vec, 1, 0), 4);
    shutdown(there.fd, SHUT_WR);
    assert_int_equal(tls->read(&here, to, sizeof(to)), 4);
    assert_int_equal(tls->read(&here, to, sizeof(to)), -ECONNRESET);
    assert_int_equal(tls->read(&here, to, sizeof(to)), -ECONNRESET);
    assert_described(-ECONNRESET, "connection_terminated", "the server has closed the connection");
    close_pair();
    tls->client_close(client);
}

TEST(an_end_behind_a_ticket)
{
    struct mk_transport_client *client = open_client(&trusting);
    char to[10];
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(do_handshakes(), 0);
    shutdown(there.fd, SHUT_WR);
    assert_int_equal(tls->read(&here, to, sizeof(to)), -ECONNRESET); /* not -EAGAIN: no event follows */
    close_pair();
    tls->client_close(client);
}

TEST(a_certificate_that_is_not_trusted)
{
    struct mk_transport_client_conf conf = verifying;
    conf.server_name = MK_STR("example.org");
    struct mk_transport_client *client = open_client(&conf);
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(do_handshakes(), -EPROTO);
    assert_described(-EPROTO, "tls_certificate_error", "the certificate of the server does not cover example.org");
    close_pair();
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(do_handshakes(), -EPROTO); /* nothing was kept */
    close_pair();
    tls->client_close(client);
}

TEST(bytes_in_the_clear)
{
    static const char bytes[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct mk_transport_client *client = open_client(&trusting);
    assert_int_equal(open_pair(client), 0);
    assert_int_equal(write(there.fd, bytes, sizeof(bytes) - 1), sizeof(bytes) - 1);
    assert_int_equal(tls->handshake(&here), -EPROTO);
    assert_described(-EPROTO, "tls_protocol_error", "the server does not speak TLS at this port");
    close_pair();
    tls->client_close(client);
}

TEST(other_errors)
{
    struct mk_transport_client *client = open_client(&trusting);
    assert_int_equal(open_pair(client), 0);
    assert_described(-ETIMEDOUT, "proxy_internal_error",
                     "the connection has failed in the TLS handshake: Connection timed out");
    assert_described(-EPIPE, "connection_terminated", "the server has closed the connection in the TLS handshake");
    close_pair();
    tls->client_close(client);
}

/* ── without memory ── */

static int open_and_close(void *ctx)
{
    struct mk_transport_client *client;
    struct mk_buf error;
    char text[TEXT_BYTES];
    size_t field;
    mk_buf_init_fixed(&error, text, sizeof(text));
    int err = tls->client_open(ctx, &client, &field, &error);
    if (err == 0)
        tls->client_close(client);
    return err;
}

/* Only the client's allocations fail. */
static int connect_and_close(void *client)
{
    int fd;
    long left = mk__alloc_countdown;
    mk__alloc_countdown = -1;
    there = tls_fixture_connect(&fd);
    mk__alloc_countdown = left;
    here = (struct mk_io){.transport = tls, .fd = fd};
    int err = tls->connect(&here, tls_fixture.worker, client);
    close_pair();
    return err;
}

TEST(allocations_that_fail)
{
    assert_true(mk_test_failing_allocs(open_and_close, &trusting) > 1);
    assert_true(mk_test_failing_allocs(open_and_close, &verifying) > 1);
    struct mk_transport_client *client = open_client(&trusting); /* no other thread allocates */
    assert_true(mk_test_failing_allocs(connect_and_close, client) > 0);
    tls->client_close(client);
}

/*
 * Some of libcrypto's, since there are thousands. It does without a few; what it cannot do without is an error, and all
 * is given back in either case.
 */
static void fail_each_of_libcrypto(int (*run)(void *ctx), void *ctx)
{
    bool all_fine = false;
    counts_libcrypto = true;
    for (long n = 0; !all_fine; n += 1 + n / 64) {
        mk__alloc_countdown = n;
        int result = run(ctx);
        all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        assert_true(all_fine ? result == 0 : result <= 0);
    }
    counts_libcrypto = false;
}

static int talk_or_fail(void *client)
{
    int fd;
    long left = mk__alloc_countdown;
    mk__alloc_countdown = -1;
    there = tls_fixture_connect(&fd);
    mk__alloc_countdown = left;
    here = (struct mk_io){.transport = tls, .fd = fd};
    int err = tls->connect(&here, tls_fixture.worker, client);
    err = err == 0 ? do_handshakes() : err;
    err = err == 0 ? exchange_bytes() : err;
    close_pair();
    return err;
}

TEST(allocations_of_libcrypto_that_fail)
{
    fail_each_of_libcrypto(open_and_close, &verifying);
    struct mk_transport_client *client = open_client(&trusting);
    fail_each_of_libcrypto(talk_or_fail, client);
    tls->client_close(client);
}

TEST_FILE(open_all, close_all)
