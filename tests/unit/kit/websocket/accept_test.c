// SPDX-License-Identifier: Apache-2.0
/* WebSockets on the requests of a plugin: the handshake, the tunnel as the stream, and its end. */
#include "testing.h"

#include "websocket/ws.h"

#include "http/h1_fixture.h"

#define UPGRADE_TO(host) \
    "GET / HTTP/1.1\r\nHost: " host "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define HANDSHAKE UPGRADE_TO("h")
#define SWITCHED_BEGIN "HTTP/1.1 101 Switching Protocols\r\n" STAMP
#define SWITCHED SWITCHED_BEGIN "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

static struct mk_ws_group *group;
static struct mk_ws_worker *worker;
static struct mk_ws *ws; /* the last one that was accepted; NULL: it was closed, or refused */
static unsigned opened, closed;
static bool aborts, closes;

static void on_open(struct mk_ws *one, void *ctx)
{
    assert_ptr_equal(ctx, &group);
    opened++;
    if (aborts)
        mk_ws_abort(one);
    else if (closes)
        mk_ws_close(one, 4000, MK_STR_NONE);
}

static void on_message(struct mk_ws *one, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ctx;
    mk_ws_send(one, opcode, data, len);
}

static void on_close(struct mk_ws *one, unsigned code, struct mk_str reason, void *ctx)
{
    (void)one, (void)code, (void)reason, (void)ctx;
    closed++;
    ws = NULL;
}

static const struct mk_ws_settings settings = {
    .handlers = {.on_open = on_open, .on_message = on_message, .on_close = on_close},
    .protocols = "chat",
};

static void accept_request(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    ws = mk_ws_accept(req, worker, &settings, 1, &group);
}

static const struct mk__trusted_proxies *trust_all(const struct mk_request *req)
{
    return &req->http->settings->trusted_proxies;
}

static struct mk_test_client *start(const char *bytes)
{
    static struct mk__http_app app;
    opened = closed = 0;
    aborts = closes = false;
    open_fixture(accept_request);
    app = *w.http.app;
    app.trusted_proxies = trust_all;
    w.http.app = &app;
    group = mk_ws_group_new();
    worker = mk_ws_worker_get(group, &w.loop, &w.account, NULL, NULL);
    assert_non_null(worker);
    return mk_test_connect(&w, mk_str_c(bytes));
}

static void finish(void)
{
    mk__conn_abort_all(&w.http);
    mk_test_settle(&w);
    assert_null(ws);
    assert_int_equal(mk_ws_group_count(group), 0);
    mk_ws_worker_put(worker);
    mk_ws_group_free(group);
    close_fixture();
}

/* A masked frame, whose key is 0. */
#define FRAME(first, size) first size "\0\0\0\0"

TEST(a_handshake)
{
    struct mk_test_client *c = start(HANDSHAKE "\r\n");
    expect_received(c, SWITCHED "Connection: Upgrade\r\n\r\n");
    assert_int_equal(opened, 1);
    mk_test_send(c, MK_STR(FRAME("\x81", "\x85") "hello"));
    expect_received(c, "\x81\x05hello");
    mk_test_send(c, MK_STR(FRAME("\x88", "\x82") "\x03\xe8"));
    expect_received(c, "\x88\x02\x03\xe8");
    assert_int_equal(closed, 1);
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.done, 1);
    finish();
}

TEST(what_is_agreed_on)
{
    struct mk_test_client *c =
        start(HANDSHAKE "Sec-WebSocket-Protocol: soap\r\nSec-WebSocket-Protocol: chat\r\n"
                        "Sec-WebSocket-Extensions: x\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    expect_received(c, SWITCHED "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Extensions: permessage-deflate; "
                                "server_no_context_takeover; client_no_context_takeover\r\n"
                                "Connection: Upgrade\r\n\r\n");
    assert_str_equal(mk_ws_protocol(ws), "chat");
    assert_int_equal(mk_ws_channel(ws), 1);
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_int_equal(closed, 1);
    finish();
}

TEST(refusals)
{
#define END_LINE "\r\n\r\n"
    static const struct {
        const char *request, *begin, *has; /* of the response */
    } rows[] = {
        {GET, "HTTP/1.1 400 ", NULL},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8" END_LINE,
         "HTTP/1.1 426 ", "\r\nSec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n"},
        {HANDSHAKE "Origin: http://other" END_LINE, "HTTP/1.1 403 ", NULL},
        {HANDSHAKE "Content-Length: 1" END_LINE "x", "HTTP/1.1 400 ", NULL},
        {"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==" END_LINE,
         "HTTP/1.1 400 ", NULL},
        {"GET / HTTP/1.0\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==" END_LINE,
         "HTTP/1.1 400 ", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_test_client *c = start(rows[i].request);
        mk_test_settle(&w);
        const char *text = mk_test_received(c).p;
        if (strncmp(text, rows[i].begin, strlen(rows[i].begin)) != 0)
            fail_msg("row %zu: %s", i, text);
        assert_true(!rows[i].has || strstr(text, rows[i].has));
        assert_null(strstr(text, "Sec-WebSocket-Accept"));
        assert_null(ws);
        assert_int_equal(opened + closed, 0);
        finish();
    }
}

TEST(handlers_that_end_it_at_once)
{
    struct mk_test_client *c = start("");
    aborts = true;
    mk_test_send(c, MK_STR(HANDSHAKE "\r\n"));
    expect_received(c, SWITCHED "Connection: Upgrade\r\n\r\n");
    assert_int_equal(closed, 1);
    finish();
    c = start("");
    closes = true;
    mk_test_send(c, MK_STR(HANDSHAKE "\r\n" FRAME("\x81", "\x82") "hi"));
    expect_received(c, SWITCHED "Connection: Upgrade\r\n\r\n\x88\x02\x0f\xa0");
    assert_int_equal(closed, 0);
    mk_test_pass(&w, MK__WS_CLOSE_MS);
    assert_int_equal(closed, 1);
    finish();
}

TEST(a_drain)
{
    struct mk_test_client *c = start(HANDSHAKE "\r\n");
    mk_test_settle(&w);
    mk_test_received(c);
    mk__conn_drain_all(&w.http);
    expect_received(c, "\x88\x02\x03\xe9");
    mk_test_send(c, MK_STR(FRAME("\x88", "\x82") "\x03\xe9"));
    mk_test_settle(&w);
    assert_int_equal(closed, 1);
    finish();
}

/* Whichever allocation fails, it is opened and closed once, or refused; at last none fails. */
TEST(without_memory)
{
    for (long n = 0;; n++) {
        struct mk_test_client *c = start("");
        mk__alloc_countdown = n;
        mk_test_send(c, MK_STR(HANDSHAKE
                               "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n" FRAME("\x81", "\x85") "hello"));
        mk_test_settle(&w);
        bool all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        const char *text = mk_test_received(c).p;
        if (all_fine)
            assert_non_null(strstr(text, "\x81\x05hello"));
        assert_true(!strncmp(text, "HTTP/1.1 101 ", 13) || !strncmp(text, "HTTP/1.1 503 ", 13) || !*text);
        mk_test_fin(c);
        mk_test_settle(&w);
        assert_true(closed >= opened && closed <= 1);
        finish();
        if (all_fine)
            return;
    }
}
