// SPDX-License-Identifier: Apache-2.0
/* Peers and clients: connections accepted and refused by hooks, PROXY headers, and the client of a request. */
#include "http/h1_fixture.h"

#include <errno.h>
#include <sys/un.h>

#define PROXY "PROXY TCP4 192.0.2.7 10.0.0.9 4711 80\r\n"
#define LOCAL "\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"

static struct {
    const char *peer;
    bool awaits;
    int handshake_result, client_result;
    unsigned accepted, known, parted;
    struct mk__http_app app;
    struct mk_network items[2];
} own;

static int see_accepted(struct mk_connection *conn, void *ctx)
{
    (void)ctx;
    own.accepted++;
    assert_int_equal(mk_address_parse(mk_str_c(own.peer), &conn->peer.address), 0);
    conn->peer.expects_proxy_header = own.awaits;
    assert_int_equal(conn->id, 0);
    return own.handshake_result;
}

static int see_client(struct mk_connection *conn, void *ctx)
{
    (void)ctx;
    own.known++;
    assert_false(conn->peer.expects_proxy_header);
    return own.client_result;
}

static void see_parted(struct mk_connection *conn, void *ctx)
{
    (void)ctx;
    own.parted++;
    assert_true(mk__conn_of(conn)->sock.io.fd >= 0);
}

static const struct mk__trusted_proxies *trust_all(const struct mk_request *req)
{
    return &req->http->settings->trusted_proxies;
}

static void describe(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char text[128];
    struct mk_buf b;
    struct mk_address peer = mk_request_peer(req), client = mk_request_client(req);
    (void)fixture;
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_address_print(&client, &b);
    mk_buf_addf(&b, ":%u by ", client.port);
    mk_address_print(&peer, &b);
    mk_buf_addf(&b, " %.*s", MK_STR_ARG(mk_request_scheme(req)));
    assert_int_equal(mk_response_write(req, mk_buf_str(&b)), 0);
    mk_response_end(req);
}

static void open_own_fixture(bool awaits)
{
    open_fixture(describe);
    own.peer = "10.0.0.1";
    own.awaits = awaits;
    own.handshake_result = own.client_result = 0;
    own.accepted = own.known = own.parted = 0;
    own.app = *w.http.app;
    own.app.on_accept = see_accepted;
    own.app.on_client = see_client;
    own.app.on_close = see_parted;
    own.app.trusted_proxies = trust_all;
    w.http.app = &own.app;
    w.settings.notify_accept = w.settings.notify_client = w.settings.notify_close = true;
    assert_int_equal(mk_network_parse(MK_STR("10.0.0.0/8"), &own.items[0], NULL), 0);
    assert_int_equal(mk_network_parse(MK_STR("unix"), &own.items[1], NULL), 0);
    w.settings.trusted_proxies.networks = (struct mk_networks){own.items, 2};
}

/* Returns the body of the only response since the last call. */
static void expect_logged(struct mk_test_client *c, const char *text)
{
    mk_test_settle(&w);
    const char *body_at = strstr(mk_test_received(c).p, "\r\n\r\n");
    assert_non_null(body_at);
    assert_string_equal(body_at + 4, text);
}

TEST(each_connection_is_shown)
{
    open_own_fixture(false);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_logged(c, "10.0.0.1:0 by 10.0.0.1 http");
    assert_int_equal(own.accepted, 1);
    assert_int_equal(own.known, 1);
    assert_int_equal(own.parted, 0);
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_int_equal(own.parted, 1);
    close_fixture();
}

TEST(refused_clients_are_not_read)
{
    open_own_fixture(false);
    own.handshake_result = -EACCES;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_true(c->closed);
    assert_int_equal(c->read_bytes, 0);
    assert_int_equal(mk_test_received(c).len, 0);
    assert_int_equal(own.known + own.parted, 0);
    assert_int_equal(w.closed, 1);
    close_fixture();
}

TEST(a_client_that_is_refused)
{
    for (int behind_proxy = 0; behind_proxy < 2; behind_proxy++) {
        open_own_fixture(behind_proxy);
        own.client_result = -EACCES;
        struct mk_test_client *c = mk_test_connect(&w, behind_proxy ? MK_STR(PROXY GET) : MK_STR(GET));
        mk_test_settle(&w);
        assert_true(c->closed);
        assert_int_equal(mk_test_received(c).len, 0);
        assert_int_equal(w.requests, 0);
        assert_int_equal(own.accepted + own.known + own.parted, 3);
        close_fixture();
    }
}

TEST(no_lookup_without_need)
{
    open_own_fixture(true);
    w.settings.notify_accept = w.settings.notify_client = w.settings.notify_close = false;
    mk_test_connect(&w, MK_STR(CLOSE));
    mk_test_settle(&w);
    assert_int_equal(own.accepted + own.known + own.parted, 0);
    assert_int_equal(w.closed, 1);
    close_fixture();
}

/* ── PROXY headers ── */

static const struct {
    struct mk_str header;
    const char *expected;
} headers[] = {
    {MK_STR(PROXY), "192.0.2.7:4711 by 10.0.0.1 http"},
    {MK_STR("PROXY UNKNOWN\r\n"), "10.0.0.1:0 by 10.0.0.1 http"},
    {MK_STR(LOCAL), "10.0.0.1:0 by 10.0.0.1 http"},
};

TEST(a_header_before_the_first_request)
{
    for (size_t i = 0; i < COUNT(headers); i++) {
        char all[256];
        size_t len = headers[i].header.len;
        memcpy(all, headers[i].header.p, len);
        memcpy(all + len, GET, sizeof(GET));
        for (size_t cut = 0; cut <= len + 1; cut++) {
            open_own_fixture(true);
            struct mk_test_client *c = mk_test_connect(&w, mk_str(all, cut));
            mk_test_settle(&w);
            assert_string_equal(mk_test_state(c), cut <= len ? "new" : "read_head");
            assert_int_equal(own.known, cut >= len);
            mk_test_send(c, mk_str(all + cut, len + sizeof(GET) - 1 - cut));
            /* the kernel does not know the peer of this connection, which has no socket */
            bool proxied = mk_test_connection(c)->handle.peer.from_proxy_header || i == 0;
            expect_logged(c, proxied ? "192.0.2.7:4711 by unknown http" : headers[i].expected);
            mk_test_send(c, MK_STR(GET GET));
            mk_test_settle(&w);
            assert_int_equal(w.requests, 3);
            assert_int_equal(own.known, 1);
            close_fixture();
        }
    }
}

TEST(byte_by_byte)
{
    open_own_fixture(true);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    for (const char *p = PROXY GET; *p; p++) {
        mk_test_send(c, mk_str(p, 1));
        mk_test_settle(&w);
    }
    expect_logged(c, "192.0.2.7:4711 by unknown http");
    close_fixture();
}

TEST(what_is_no_header_ends_it)
{
    static const char *const wrong[] = {GET, "PROXY TCP4 1.2.3.4\r\n", "\r\n" PROXY, PROXY PROXY GET};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        open_own_fixture(true);
        struct mk_test_client *c = mk_test_connect(&w, mk_str_c(wrong[i]));
        mk_test_settle(&w);
        assert_int_equal(w.requests, 0);
        assert_true(i == 3 || (c->closed && !mk_test_received(c).len)); /* a second header is a bad request */
        close_fixture();
    }
}

TEST(the_header_has_a_time_limit)
{
    open_own_fixture(true);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("PROXY "));
    mk_test_pass(&w, 10000);
    mk_test_send(c, MK_STR("TCP4 "));
    mk_test_pass(&w, 4999);
    assert_string_equal(mk_test_state(c), "new");
    mk_test_pass(&w, 1);
    assert_true(c->closed);
    assert_int_equal(mk_test_received(c).len, 0);
    close_fixture();
}

TEST(a_proxy_that_leaves)
{
    for (int i = 0; i < 3; i++) {
        open_own_fixture(true);
        struct mk_test_client *c = mk_test_connect(&w, mk_str(PROXY, i == 0 ? 0 : i == 1 ? 10 : sizeof(PROXY) - 1));
        mk_test_fin(c);
        mk_test_settle(&w);
        assert_true(c->closed);
        assert_int_equal(w.requests, 0);
        assert_int_equal(own.parted, 1);
        close_fixture();
    }
}

/* ── fields ── */

#define ASK(fields) "GET / HTTP/1.1\r\nHost: h\r\n" fields "\r\n"

static const struct {
    const char *peer, *request, *expected;
    bool forwarded;
} asked[] = {
    {"10.0.0.1", ASK("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"), "192.0.2.1:0 by 10.0.0.1 https",
     false},
    {"192.0.2.9", ASK("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"), "192.0.2.9:0 by 192.0.2.9 http",
     false},
    {"10.0.0.1", ASK("X-Forwarded-For: 203.0.113.1\r\nx-forwarded-for: 192.0.2.1\r\nX-Forwarded-For: 10.0.0.3\r\n"),
     "192.0.2.1:0 by 10.0.0.1 http", false},
    {"10.0.0.1", ASK("X-Forwarded-Proto: http\r\nX-Forwarded-Proto: https\r\n"), "10.0.0.1:0 by 10.0.0.1 https", false},
    {"10.0.0.1", ASK("X-Forwarded-For: 192.0.2.1, 10.0.0.2\r\nX-Forwarded-Proto: wss\r\nX-Forwarded-Proto: ws\r\n"),
     "192.0.2.1:0 by 10.0.0.1 https", false},
    {"10.0.0.1", ASK("Forwarded: for=192.0.2.1;proto=https\r\n"), "10.0.0.1:0 by 10.0.0.1 http", false},
    {"10.0.0.1", ASK("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1;proto=wss\r\n"),
     "192.0.2.1:0 by 10.0.0.1 https", false},
    {"10.0.0.1", ASK("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2;proto=https\r\n"),
     "192.0.2.1:0 by 10.0.0.1 http", false},
    {"192.0.2.9", ASK("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1;proto=https\r\n"),
     "192.0.2.9:0 by 192.0.2.9 http", false},
    {"10.0.0.1", ASK("Forwarded: for=192.0.2.1;proto=https\r\n"), "192.0.2.1:0 by 10.0.0.1 https", true},
    {"10.0.0.1", ASK("Forwarded: for=203.0.113.1\r\nForwarded: for=\"192.0.2.1:1\", for=10.0.0.2\r\n"),
     "192.0.2.1:1 by 10.0.0.1 http", true},
    {"10.0.0.1", ASK("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"), "10.0.0.1:0 by 10.0.0.1 http",
     true},
};

TEST(fields_of_trusted_peers)
{
    for (size_t i = 0; i < COUNT(asked); i++) {
        open_own_fixture(false);
        own.peer = asked[i].peer;
        w.settings.trusted_proxies.use_forwarded = asked[i].forwarded;
        expect_logged(mk_test_connect(&w, mk_str_c(asked[i].request)), asked[i].expected);
        close_fixture();
    }
}

#define FROM(line) line ASK("X-Forwarded-For: 203.0.113.5\r\n")

/* A PROXY header that names another proxy; and one that names a Unix socket, which is on another machine. */
TEST(a_header_and_then_fields)
{
    static const char unix_path[216], head[] = "\r\n\r\n\0\r\nQUIT\n\x21\x31\x00\xd8";
    open_own_fixture(true);
    expect_logged(mk_test_connect(&w, MK_STR(FROM("PROXY TCP4 10.0.0.5 10.0.0.9 1 2\r\n"))),
                  "203.0.113.5:0 by unknown http");
    expect_logged(mk_test_connect(&w, MK_STR(FROM(PROXY))), "192.0.2.7:4711 by unknown http");
    struct mk_test_client *c = mk_test_connect(&w, mk_str(head, sizeof(head) - 1));
    mk_test_send(c, mk_str(unix_path, sizeof(unix_path)));
    mk_test_send(c, MK_STR(FROM("")));
    expect_logged(c, "unix:0 by unknown http");
    close_fixture();
}

static struct mk_address seen;

static void ask_twice(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk__trusted_proxies *trust = &fixture->settings.trusted_proxies;
    seen = mk_request_client(req);
    trust->networks.n = 0; /* as if by a reload */
    struct mk_address again = mk_request_client(req);
    assert_true(mk_address_equal(&seen, &again));
    mk_response_end(req);
}

TEST(one_answer)
{
    struct mk_address right;
    open_own_fixture(false);
    w.handler = ask_twice;
    mk_test_connect(&w, MK_STR(ASK("X-Forwarded-For: 192.0.2.1\r\n")));
    mk_test_settle(&w);
    assert_int_equal(mk_address_parse(MK_STR("192.0.2.1"), &right), 0);
    assert_true(mk_address_equal(&seen, &right));
    close_fixture();
}

/* ── sockets ── */

TEST(the_system_is_asked_behind_a_proxy_header_only)
{
    struct sockaddr_in own_address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, theirs;
    socklen_t len = sizeof(own_address);
    char text[32];
    struct mk_buf b;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&own_address, len) | listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&own_address, &len), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&own_address, len), 0);
    assert_int_equal(getsockname(client, (struct sockaddr *)&theirs, &len), 0);
    struct mk_io io = {.fd = accept(listener, NULL, NULL)};
    struct mk__peer peer = {.from_proxy_header = true};
    peer.address = mk__client_addr_get_peer(&peer, &io);
    struct mk_address first = peer.address;
    close(io.fd);
    peer.from_proxy_header = false;
    struct mk_address second = mk__client_addr_get_peer(&peer, &io);
    assert_true(mk_address_equal(&first, &second));
    assert_int_equal(first.port, ntohs(theirs.sin_port));
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_address_print(&second, &b);
    assert_str_equal(mk_buf_str(&b), "127.0.0.1");
    close(client);
    close(listener);
}

TEST(unix_sockets)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct mk_io io = {.fd = pair[0]};
    assert_int_equal(mk__client_addr_ask(&io).family, AF_UNIX);
    close(pair[0]);
    close(pair[1]);
    assert_int_equal(mk__client_addr_ask(&io).family, AF_UNSPEC);
}
