// SPDX-License-Identifier: Apache-2.0
/* WebSockets to other servers: connecting, the handshake in pieces, time, and failures. The servers are sockets here.
 */
#include "testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "websocket/ws.h"
#include "websocket/frame.h"

#include "net/dial_fixture.h"

static struct mk_ws_group *group;
static struct mk_ws_worker *worker;
static struct mk_account account;
static struct mk_ws *ws;
static char log_text[4096];
static int listener = -1;

/* ── handlers, which write down what they get ── */

static void note(const char *format, ...)
{
    size_t n = strlen(log_text);
    va_list args;
    va_start(args, format);
    vsnprintf(log_text + n, sizeof(log_text) - n, format, args);
    va_end(args);
}

static void on_open(struct mk_ws *one, void *ctx)
{
    struct mk_str protocol = mk_ws_protocol(one);
    (void)ctx;
    note("open \"%.*s\"\n", MK_STR_ARG(protocol));
}

static void on_message(struct mk_ws *one, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)one, (void)opcode, (void)ctx;
    note("message \"%.*s\"\n", (int)len, data);
}

static void on_close(struct mk_ws *one, unsigned code, struct mk_str reason, void *ctx)
{
    (void)ctx;
    assert_ptr_equal(one, ws);
    ws = NULL;
    note("close %u \"%.*s\"\n", code, MK_STR_ARG(reason));
}

static const struct mk_ws_settings settings = {
    .handlers = {.on_open = on_open, .on_message = on_message, .on_close = on_close},
    .protocols = "chat",
    .no_deflate = true,
};

#define assert_logged(text) \
    do { \
        settle(); \
        assert_string_equal(log_text, text); \
        log_text[0] = '\0'; \
    } while (0)

/* ── the fixture ── */

static void start(void)
{
    static const struct test_host none[] = {{0}};
    open_fixture(none);
    account = (struct mk_account){0};
    log_text[0] = '\0';
    group = mk_ws_group_new();
    worker = mk_ws_worker_get(group, &loop, &account, NULL, NULL);
    assert_non_null(worker);
}

static void finish(void)
{
    if (ws)
        mk_ws_abort(ws);
    assert_null(ws);
    settle();
    assert_int_equal(mk_ws_group_count(group), 0);
    mk_ws_worker_put(worker);
    mk_ws_group_free(group);
    mk_account_trim(&account);
    assert_int_equal(account.bytes, 0);
    close_fixture();
}

/* Returns the port of a socket on which a server listens. */
static unsigned open_listener(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

static void connect_ws(unsigned port)
{
    char url[64];
    const char *error;
    snprintf(url, sizeof(url), "ws://127.0.0.1:%u/path", port);
    ws = mk_ws_connect(worker, &settings, url, 3, NULL, &error);
    assert_non_null(ws);
}

/* Reads the request, and returns the descriptor of the server's side; `accept`: what the response must say. */
static int take_request(char accept[MK_WS_ACCEPT_BYTES + 1])
{
    char request[2048];
    settle();
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    close(listener);
    settle();
    ssize_t n = recv(fd, request, sizeof(request) - 1, 0);
    assert_true(n > 0);
    request[n] = '\0';
    assert_int_equal(strncmp(request, "GET /path HTTP/1.1\r\nHost: 127.0.0.1:", 36), 0);
    assert_non_null(strstr(request, "\r\nSec-WebSocket-Protocol: chat\r\n"));
    assert_string_equal(request + n - 4, "\r\n\r\n");
    const char *key = strstr(request, "\r\nSec-WebSocket-Key: ");
    assert_non_null(key);
    mk_ws_accept_key(accept, mk_str(key + 21, MK_WS_KEY_BYTES));
    return fd;
}

static size_t write_response(char *to, size_t size, const char *accept)
{
    int n = snprintf(to, size,
                     "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                     "Sec-WebSocket-Protocol: chat\r\n\r\n",
                     accept);
    return (size_t)n;
}

/* Connects and completes the handshake. Returns the descriptor of the server's side. */
static int open_ws(const char *behind)
{
    char accept[MK_WS_ACCEPT_BYTES + 1], response[1024];
    connect_ws(open_listener());
    int fd = take_request(accept);
    size_t n = write_response(response, sizeof(response), accept);
    snprintf(response + n, sizeof(response) - n, "%s", behind);
    assert_int_equal(send(fd, response, strlen(response), 0), (ssize_t)strlen(response));
    return fd;
}

/* Reads a masked frame of a short message. */
static void expect_frame(int fd, uint8_t first, const char *text)
{
    uint8_t bytes[200];
    uint32_t key;
    size_t n = strlen(text);
    settle();
    assert_int_equal(recv(fd, bytes, 6 + n, MSG_WAITALL), 6 + n);
    assert_int_equal(bytes[0], first);
    assert_int_equal(bytes[1], 0x80 | n);
    memcpy(&key, bytes + 2, 4);
    mk__ws_mask(bytes + 6, bytes + 6, n, key, 0);
    assert_memory_equal(bytes + 6, text, n);
}

static void send_bytes(int fd, const char *bytes, size_t n)
{
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
    settle();
}

static void expect_end(int fd)
{
    char byte;
    settle();
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

/* ── */

TEST(messages)
{
    start();
    int fd = open_ws("\x81\x05"
                     "early");
    assert_logged("open \"chat\"\nmessage \"early\"\n");
    assert_int_equal(mk_ws_channel(ws), 3);
    assert_int_equal(mk_ws_send(ws, MK_WS_TEXT, "hello", 5), 0);
    expect_frame(fd, 0x81, "hello");
    send_bytes(fd,
               "\x81\x03"
               "you\x89\x02hi",
               9);
    assert_logged("message \"you\"\n");
    expect_frame(fd, 0x8a, "hi");
    mk_ws_close(ws, 4001, MK_STR("bye"));
    expect_frame(fd, 0x88,
                 "\x0f\xa1"
                 "bye");
    send_bytes(fd, "\x88\x02\x0f\xa1", 4);
    assert_logged("close 4001 \"bye\"\n");
    expect_end(fd);
    finish();
}

TEST(a_response_byte_by_byte)
{
    char accept[MK_WS_ACCEPT_BYTES + 1], response[1024];
    start();
    connect_ws(open_listener());
    int fd = take_request(accept);
    size_t n = write_response(response, sizeof(response), accept);
    for (size_t i = 0; i < n; i++) {
        assert_logged("");
        send_bytes(fd, response + i, 1);
    }
    assert_logged("open \"chat\"\n");
    send_bytes(fd, "\x88\x00", 2);
    assert_logged("close 1005 \"\"\n");
    expect_frame(fd, 0x88, "");
    expect_end(fd);
    finish();
}

TEST(what_is_sent_before_it_is_open)
{
    char accept[MK_WS_ACCEPT_BYTES + 1], response[1024];
    start();
    connect_ws(open_listener());
    assert_int_equal(mk_ws_send(ws, MK_WS_TEXT, "one", 3), 0);
    int fd = take_request(accept);
    assert_int_equal(mk_ws_send(ws, MK_WS_BINARY, "two", 3), 0);
    size_t n = write_response(response, sizeof(response), accept);
    send_bytes(fd, response, n);
    assert_logged("open \"chat\"\n");
    expect_frame(fd, 0x81, "one");
    expect_frame(fd, 0x82, "two");
    close(fd);
    assert_logged("close 1006 \"\"\n");
    finish();
}

TEST(masked_frames_of_a_server)
{
    start();
    int fd = open_ws("");
    assert_logged("open \"chat\"\n");
    send_bytes(fd, "\x81\x81\0\0\0\0x", 7);
    assert_logged("close 1002 \"a frame of the server is masked\"\n");
    close(fd);
    finish();
}

/* ── failures ── */

TEST(a_port_without_a_server)
{
    start();
    unsigned port = open_listener();
    close(listener);
    connect_ws(port);
    settle();
    assert_null(ws);
    assert_int_equal(strncmp(log_text, "close 1006 \"", 12), 0);
    assert_non_null(strstr(log_text, "refused"));
    finish();
}

/* At once: no frame can be sent, so none is waited for. */
TEST(closed_during_the_handshake)
{
    char accept[MK_WS_ACCEPT_BYTES + 1];
    for (int answers = 0; answers < 2; answers++) {
        start();
        connect_ws(open_listener());
        int fd = answers ? take_request(accept) : -1;
        mk_ws_close(ws, 4001, MK_STR("bye"));
        assert_logged("close 4001 \"bye\"\n");
        if (answers)
            expect_end(fd);
        finish();
    }
}

TEST(the_server_leaves_during_the_handshake)
{
    static const char *const parts[] = {"", "HTTP/1.1 101 X\r\nUpgr"};
    for (size_t i = 0; i < COUNT(parts); i++) {
        char accept[MK_WS_ACCEPT_BYTES + 1];
        start();
        connect_ws(open_listener());
        int fd = take_request(accept);
        send_bytes(fd, parts[i], strlen(parts[i]));
        close(fd);
        assert_logged("close 1006 \"the server has closed the connection during the handshake\"\n");
        finish();
    }
}

TEST(a_wrong_response)
{
    static const char response[] = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    char accept[MK_WS_ACCEPT_BYTES + 1];
    start();
    connect_ws(open_listener());
    int fd = take_request(accept);
    send_bytes(fd, response, sizeof(response) - 1);
    assert_logged("close 1006 \"the server does not accept the WebSocket\"\n");
    expect_end(fd);
    finish();
}

TEST(a_response_without_end)
{
    static char line[9000];
    char accept[MK_WS_ACCEPT_BYTES + 1];
    start();
    connect_ws(open_listener());
    int fd = take_request(accept);
    memset(line, 'x', sizeof(line));
    send_bytes(fd, line, sizeof(line));
    assert_logged("close 1006 \"the server's response head is too long\"\n");
    close(fd);
    finish();
}

TEST(a_server_that_does_not_answer)
{
    char accept[MK_WS_ACCEPT_BYTES + 1];
    start();
    connect_ws(open_listener());
    int fd = take_request(accept);
    pass(MK_DIAL_TIMEOUT_MS - 1);
    assert_logged("");
    pass(1);
    assert_logged("close 1006 \"the server does not answer\"\n");
    expect_end(fd);
    finish();
}

/* At each moment of the handshake, by abort() and by close(), which waits for close_ms. */
TEST(it_is_ended_early)
{
    char accept[MK_WS_ACCEPT_BYTES + 1];
    for (int moment = 0; moment < 4; moment++) {
        start();
        unsigned port = open_listener();
        connect_ws(port);
        int fd = moment >= 2 ? take_request(accept) : -1;
        if (moment & 1)
            mk_ws_abort(ws);
        else
            mk_ws_close(ws, 4000, MK_STR("no more"));
        pass(MK__WS_CLOSE_MS);
        assert_logged(moment & 1 ? "close 1006 \"\"\n" : "close 4000 \"no more\"\n");
        if (fd >= 0)
            expect_end(fd);
        else
            close(listener);
        finish();
    }
}

TEST(urls_that_are_wrong)
{
    static const char *const urls[] = {"", "http://a", "wss://a", "ws://", "ws://a:x/", "ws://a:70000", "ws://[::1"};
    start();
    for (size_t i = 0; i < COUNT(urls); i++) {
        const char *error = NULL;
        assert_null(mk_ws_connect(worker, &settings, urls[i], 0, NULL, &error));
        assert_non_null(error);
        assert_logged("");
    }
    finish();
}

TEST(a_connection_that_cannot_be_watched)
{
    start();
    connect_ws(open_listener());
    refuses_events = true;
    settle();
    refuses_events = false;
    assert_null(ws);
    assert_int_equal(strncmp(log_text, "close 1006 \"", 12), 0);
    close(listener);
    finish();
}

/* Whichever allocation fails: an error at once, or on_close. */
TEST(without_memory)
{
    for (long n = 0;; n++) {
        char url[64];
        const char *error = NULL;
        start();
        snprintf(url, sizeof(url), "ws://127.0.0.1:%u/path", open_listener());
        mk__alloc_countdown = n;
        ws = mk_ws_connect(worker, &settings, url, 3, NULL, &error);
        settle();
        bool all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        assert_true(ws || error || strncmp(log_text, "close 1006", 10) == 0);
        close(listener);
        finish();
        if (all_fine)
            return;
    }
}
