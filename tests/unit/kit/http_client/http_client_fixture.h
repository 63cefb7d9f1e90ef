// SPDX-License-Identifier: Apache-2.0
/*
 * A client with a server in the test: what it was asked, and what the callback got. For the tests of this folder.
 */
#ifndef MK_UNIT_HTTP_CLIENT_FIXTURE_H
#define MK_UNIT_HTTP_CLIENT_FIXTURE_H

#include "core/net/dial_fixture.h"

#include <monkey/kit/http_client.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TIMEOUT_MS = 2000 };

#define REQUEST "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define RESPONSE "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: test\r\n\r\nhello"

static struct mk_arena arena;
static struct mk_http_client client;
static struct mk_http_client_options options;
static int listener, peer; /* peer: the server's end, or -1 */

/* What the callback got. */
static unsigned calls, status, n_fields;
static int result;
static bool is_connected;
static bool is_whole;
static char error_text[512], body[4096], server_field[64];

static inline void copy_text(char *to, size_t size, struct mk_str text)
{
    snprintf(to, size, "%.*s", MK_STR_ARG(text));
}

static inline void note_response(struct mk_http_client *c, const struct mk_http_response *r)
{
    assert_ptr_equal(c, &client);
    calls++;
    result = r->err;
    is_connected = r->is_connected;
    status = r->status;
    n_fields = r->n_fields;
    is_whole = r->is_whole;
    server_field[0] = '\0';
    copy_text(error_text, sizeof(error_text), mk_str_c(r->error));
    copy_text(body, sizeof(body), r->body);
    for (unsigned i = 0; i < r->n_fields; i++)
        if (mk_str_ieq(mk_span_str(r->head.p, r->fields[i].name), MK_STR("server")))
            copy_text(server_field, sizeof(server_field), mk_span_str(r->head.p, r->fields[i].value));
    memset(c, 0xa5, sizeof(*c)); /* its memory is the caller's */
    *c = (struct mk_http_client){0};
}

static inline void ignore_response(struct mk_http_client *c, const struct mk_http_response *r)
{
    (void)c, (void)r;
}

static inline int start_server(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    return ntohs(addr.sin_port);
}

static inline int open_all(void **state)
{
    static const struct test_host none[] = {{0}};
    char text[64];
    const char *why;
    (void)state;
    open_fixture(none);
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    snprintf(text, sizeof(text), "127.0.0.1:%d", start_server());
    options = (struct mk_http_client_options){.head = MK_STR(REQUEST),
                                              .timeout_ms = TIMEOUT_MS,
                                              .head_bytes_max = 1000,
                                              .fields_max = 8,
                                              .body_bytes_max = 100};
    assert_int_equal(mk_dial_target_parse(&arena, mk_arena_dup(&arena, mk_str_c(text)), 0, &options.target, &why), 0);
    client = (struct mk_http_client){0};
    calls = status = 0;
    peer = -1;
    return 0;
}

static inline int close_all(void **state)
{
    (void)state;
    mk_http_client_cancel(&client);
    if (peer >= 0)
        close(peer);
    if (listener >= 0)
        close(listener);
    mk_arena_release(&arena);
    close_fixture();
    return 0;
}

static inline void start(void)
{
    calls = 0;
    mk_http_client_start(&client, &loop, &options, note_response);
    assert_int_equal(calls, 0);
}

static inline void accept_peer(void)
{
    settle();
    peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(peer >= 0);
    settle();
}

static inline void connect_peer(void)
{
    start();
    accept_peer();
}

/* Checks what the server has received. */
static inline void expect(const char *text)
{
    char bytes[4096];
    ssize_t n = recv(peer, bytes, sizeof(bytes) - 1, 0);
    bytes[n > 0 ? n : 0] = '\0';
    assert_string_equal(bytes, text);
}

static inline void reply(const char *bytes, size_t len)
{
    assert_int_equal(send(peer, bytes, len, MSG_NOSIGNAL), len);
    settle();
}

static inline void close_peer(void)
{
    close(peer);
    peer = -1;
    settle();
}

static inline void ask(const char *response)
{
    connect_peer();
    expect(REQUEST);
    reply(response, strlen(response));
}

static inline void expect_body(const char *text, bool whole)
{
    assert_int_equal(calls, 1);
    assert_int_equal(result, 0);
    assert_true(is_connected);
    assert_int_equal(status, 200);
    assert_string_equal(body, text);
    assert_int_equal(is_whole, whole);
}

static inline void expect_error(int err, const char *text)
{
    assert_int_equal(calls, 1);
    assert_int_equal(result, err);
    assert_string_equal(error_text, text);
    if (peer >= 0)
        close_peer();
}

#endif
