// SPDX-License-Identifier: Apache-2.0
/* The client's side of the handshake: URLs, the request, and responses of servers. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include "websocket/ws.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define STATUS "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define RIGHT STATUS UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\n"

static const struct mk_ws_settings defaults, with_context = {.context_takeover = true}, off = {.no_deflate = true},
                                             protocols = {.protocols = "chat, superchat"};

/* ── URLs ── */

TEST(urls)
{
    static const struct {
        const char *url, *authority, *target; /* NULL: it is wrong */
    } rows[] = {
        {"ws://a", "a", ""},
        {"ws://a/", "a", "/"},
        {"WS://a:8080/chat?x=1", "a:8080", "/chat?x=1"},
        {"ws://a?x", "a", "?x"},
        {"ws://[::1]:80/", "[::1]:80", "/"},
        {"ws://a/%20", "a", "/%20"},
        {"ws://", NULL, NULL},
        {"ws:///x", NULL, NULL},
        {"ws://?x", NULL, NULL},
        {"wss://a", NULL, NULL},
        {"http://a", NULL, NULL},
        {"ws:/a", NULL, NULL},
        {"ws", NULL, NULL},
        {"", NULL, NULL},
        {"ws://a/ b", NULL, NULL},
        {"ws://a/\r\nHost: b", NULL, NULL},
        {"ws://a\t/", NULL, NULL},
        {"ws://a/#top", NULL, NULL},
        {"ws://a/\xc3\xa9", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t n = strlen(rows[i].url);
        char *url = mk_test_guarded(rows[i].url, n);
        struct mk__ws_url parsed;
        const char *error = NULL;
        int err = mk__ws_url_parse(mk_str(url, n), &parsed, &error);
        if (err != (rows[i].authority ? 0 : -EINVAL))
            fail_msg("%s: %d", rows[i].url, err);
        if (err == 0) {
            assert_str_equal(parsed.authority, rows[i].authority);
            assert_str_equal(parsed.target, rows[i].target);
        } else {
            assert_true(strlen(error) > 5);
        }
        mk_test_unguard(url, n);
    }
}

/* ── the request ── */

static void assert_request(const char *url, const struct mk_ws_settings *settings, const char *begin, const char *end)
{
    char text[1024], key[MK_WS_KEY_BYTES + 1], wanted[1024];
    struct mk__ws_url parsed;
    struct mk_arena arena;
    struct mk_str request;
    const char *error;
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    assert_int_equal(mk__ws_url_parse(mk_str_c(url), &parsed, &error), 0);
    assert_int_equal(mk__ws_client_request(&arena, &parsed, settings, key, &request), 0);
    assert_true(mk__ws_key_is_valid(mk_str_c(key)));
    snprintf(wanted, sizeof(wanted), "%sSec-WebSocket-Key: %s\r\n%s\r\n", begin, key, end);
    snprintf(text, sizeof(text), "%.*s", MK_STR_ARG(request));
    assert_string_equal(text, wanted);
    mk_arena_release(&arena);
}

TEST(requests)
{
#define HEADERS "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    assert_request("ws://a:81/x?y", &off, "GET /x?y HTTP/1.1\r\nHost: a:81\r\n" HEADERS, "");
    assert_request("ws://a", &off, "GET / HTTP/1.1\r\nHost: a\r\n" HEADERS, "");
    assert_request("ws://a?y", &off, "GET /?y HTTP/1.1\r\nHost: a\r\n" HEADERS, "");
    assert_request("ws://a", &with_context, "GET / HTTP/1.1\r\nHost: a\r\n" HEADERS,
                   "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n");
    assert_request("ws://a", &protocols, "GET / HTTP/1.1\r\nHost: a\r\n" HEADERS,
                   "Sec-WebSocket-Protocol: chat, superchat\r\nSec-WebSocket-Extensions: permessage-deflate; "
                   "server_no_context_takeover; client_no_context_takeover; client_max_window_bits\r\n");
}

static int request_without_memory(void *ctx)
{
    const struct mk__ws_url url = {MK_STR("a"), MK_STR("/")};
    char key[MK_WS_KEY_BYTES + 1];
    struct mk_arena arena;
    struct mk_str request;
    (void)ctx;
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    int err = mk__ws_client_request(&arena, &url, &defaults, key, &request);
    mk_arena_release(&arena);
    return err;
}

TEST(requests_without_memory)
{
    assert_int_equal(mk_test_failing_allocs(request_without_memory, NULL), 1);
}

TEST(keys_differ)
{
    const struct mk__ws_url url = {MK_STR("a"), MK_STR("/")};
    char keys[2][MK_WS_KEY_BYTES + 1];
    struct mk_arena arena;
    struct mk_str request;
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mk__ws_client_request(&arena, &url, &defaults, keys[i], &request), 0);
    assert_string_not_equal(keys[0], keys[1]);
    mk_arena_release(&arena);
}

/* ── responses ── */

/* Checks a head, behind which nothing can be read. */
static int check(const char *text, const struct mk_ws_settings *settings, struct mk_ws_negotiated *ret)
{
    size_t n = strlen(text);
    char *head = mk_test_guarded(text, n);
    const char *reason = NULL;
    size_t size = 0;
    int err = mk__ws_client_check(mk_str(head, n), KEY, settings, ret, &size, &reason);
    if (err < 0)
        assert_true(reason && strlen(reason) > 10);
    if (err == 0)
        assert_int_equal(size, n);
    mk_test_unguard(head, n);
    return err;
}

TEST(responses_that_are_right)
{
    static const struct {
        const char *head;
        const struct mk_ws_settings *settings;
        const char *protocol;
        bool deflate, send_context, receive_context;
        unsigned send_bits, receive_bits;
    } rows[] = {
        {RIGHT "\r\n", &defaults, "", false, false, false, 0, 0},
        {"HTTP/1.1 101\r\n" UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &off, "", false, false, false, 0, 0},
        {STATUS "UPGRADE: WebSocket\r\nconnection: keep-alive, upgrade\r\nsec-websocket-accept:" ACCEPT " \r\n"
                "Date: x\r\nX: y\r\nX: z\r\n\r\n",
         &off, "", false, false, false, 0, 0},
        {RIGHT "Sec-WebSocket-Protocol: superchat\r\n\r\n", &protocols, "superchat", false, false, false, 0, 0},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", &with_context, "", true, true, true, 15, 15},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=10; server_max_window_bits=9; "
               "client_no_context_takeover\r\n\r\n",
         &with_context, "", true, false, true, 10, 9},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n\r\n", &defaults, "", true,
         false, false, 15, 15},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_ws_negotiated a;
        if (check(rows[i].head, rows[i].settings, &a) != 0)
            fail_msg("row %zu", i);
        assert_true(a.is_client);
        assert_str_equal(a.protocol, rows[i].protocol);
        assert_int_equal(a.deflate, rows[i].deflate);
        if (!a.deflate)
            continue;
        assert_int_equal(a.send_context, rows[i].send_context);
        assert_int_equal(a.receive_context, rows[i].receive_context);
        assert_int_equal(a.send_bits, rows[i].send_bits);
        assert_int_equal(a.receive_bits, rows[i].receive_bits);
    }
}

TEST(responses_that_are_wrong)
{
    static const struct {
        const char *head;
        const struct mk_ws_settings *settings;
    } rows[] = {
        {"\r\n", &defaults},
        {"HTTP/1.0 101 X\r\n" UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &defaults},
        {"HTTP/1.1 1010 X\r\n" UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &defaults},
        {"HTTP/1.1 200 OK\r\n" UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &defaults},
        {STATUS "\r\n", &defaults},
        {STATUS UPGRADE "\r\n", &defaults},
        {STATUS "Upgrade: websocket\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &defaults},
        {STATUS "Connection: upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &defaults},
        {STATUS "Upgrade: h2c\r\nConnection: upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &defaults},
        {STATUS UPGRADE "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", &defaults},
        {STATUS UPGRADE "Sec-WebSocket-Accept: \r\n\r\n", &defaults},
        {RIGHT "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n", &defaults},
        {RIGHT "Upgrade: websocket\r\n\r\n", &defaults},
        {RIGHT "no colon\r\n\r\n", &defaults},
        {RIGHT ": no name\r\n\r\n", &defaults},
        {RIGHT "Sec-WebSocket-Protocol: chat\r\n\r\n", &defaults},
        {RIGHT "Sec-WebSocket-Protocol: soap\r\n\r\n", &protocols},
        {RIGHT "Sec-WebSocket-Protocol: chat, superchat\r\n\r\n", &protocols},
        {RIGHT "Sec-WebSocket-Protocol: \r\n\r\n", &protocols},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", &off},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", &defaults}, /* our wish is not granted */
        {RIGHT "Sec-WebSocket-Extensions: x-other\r\n\r\n", &with_context},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate, permessage-deflate\r\n\r\n", &with_context},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate\r\n"
               "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
         &with_context},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate; x\r\n\r\n", &with_context},
        {RIGHT "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=8\r\n\r\n", &with_context},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_ws_negotiated a;
        if (check(rows[i].head, rows[i].settings, &a) != -EPROTO)
            fail_msg("row %zu", i);
    }
}

/* A head is complete with its last byte; what follows is not part of it. */
TEST(heads_that_are_cut)
{
    static const char head[] = RIGHT "\r\n";
    char part[sizeof(head)] = "";
    for (size_t n = 0; n < sizeof(head); n++) {
        struct mk_ws_negotiated a;
        assert_int_equal(check(part, &defaults, &a), n < sizeof(head) - 1 ? MK_AGAIN : 0);
        part[n] = head[n];
    }
    struct mk_ws_negotiated a;
    const char *reason;
    size_t size;
    assert_int_equal(mk__ws_client_check(MK_STR(RIGHT "\r\n\x81\x01y"), KEY, &defaults, &a, &size, &reason), 0);
    assert_int_equal(size, sizeof(head) - 1);
}

TEST(a_head_that_is_too_long)
{
    static char head[MK__WS_CLIENT_HEAD_MAX + 1] = STATUS "X: ";
    struct mk_ws_negotiated a;
    memset(head + strlen(head), 'x', sizeof(head) - 1 - strlen(head));
    assert_int_equal(check(head, &defaults, &a), -EPROTO);
}
