// SPDX-License-Identifier: Apache-2.0
/*
 * A group with one worker in a loop without time, and WebSockets whose peers are queues in memory.
 */
#ifndef MK_UNIT_WEBSOCKET_FIXTURE_H
#define MK_UNIT_WEBSOCKET_FIXTURE_H

#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include "harness.h"

#include "websocket/frame.h"
#include "websocket/ws.h"

enum { FIXTURE_BYTES = 1024 * 1024 };

struct fixture {
    struct mk_test_fixture fixture;
    struct mk_ws_group *group;
    struct mk_ws_worker *worker;
    struct mk_ws_settings settings;
    char log[8192];         /* calls of the handlers */
    unsigned seen;          /* messages */
    enum mk_ws_cause cause; /* of the last end */
};

/* The other end of a WebSocket. */
struct peer {
    struct fixture *fixture;
    struct mk_ws *ws; /* NULL: on_close was called */
    char in[FIXTURE_BYTES], out[FIXTURE_BYTES];
    size_t in_len, in_at, out_len, out_at;
    size_t room;     /* bytes that it still takes */
    size_t read_max; /* the most that one read gives */
    unsigned writes;
    int error; /* of every call */
    bool fin, woken, ended;
    void (*then)(struct peer *p); /* called by on_message */
};

static inline void note(struct fixture *f, const char *format, ...)
{
    size_t n = strlen(f->log);
    va_list args;
    va_start(args, format);
    vsnprintf(f->log + n, sizeof(f->log) - n, format, args);
    va_end(args);
}

/* ── the stream ── */

static inline ssize_t peer_read(void *stream, void *to, size_t size)
{
    struct peer *p = stream;
    size_t n = p->in_len - p->in_at;
    assert_false(p->ended);
    if (p->error)
        return p->error;
    if (!n)
        return p->fin ? 0 : -EAGAIN;
    n = n < size ? n : size;
    n = n < p->read_max ? n : p->read_max;
    memcpy(to, p->in + p->in_at, n);
    p->in_at += n;
    return (ssize_t)n;
}

static inline ssize_t peer_write(void *stream, const void *from, size_t size)
{
    struct peer *p = stream;
    size_t n = size < p->room ? size : p->room;
    assert_false(p->ended);
    if (p->error)
        return p->error;
    if (!n)
        return -EAGAIN;
    assert_true(p->out_len + n <= sizeof(p->out));
    memcpy(p->out + p->out_len, from, n);
    p->out_len += n;
    p->room -= n;
    p->writes++;
    return (ssize_t)n;
}

static inline void peer_wake(void *stream)
{
    struct peer *p = stream;
    assert_false(p->ended);
    p->woken = true;
}

static inline void peer_end(void *stream)
{
    struct peer *p = stream;
    assert_false(p->ended);
    p->ended = true;
}

static const struct mk_ws_stream_ops peer_ops = {peer_read, peer_write, peer_wake, peer_end};

/* ── handlers, which write down what they get ── */

static inline void see_open(struct mk_ws *ws, void *ctx)
{
    struct peer *p = ctx;
    (void)ws;
    note(p->fixture, "open\n");
}

static inline void see_message(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    struct peer *p = ctx;
    assert_ptr_equal(ws, p->ws);
    assert_int_equal(data[len], '\0');
    p->fixture->seen++;
    if (len < 100)
        note(p->fixture, "%s \"%.*s\"\n", opcode == MK_WS_TEXT ? "text" : "binary", (int)len, data);
    else
        note(p->fixture, "%s of %zu\n", opcode == MK_WS_TEXT ? "text" : "binary", len);
    if (p->then)
        p->then(p);
}

static inline void see_ping(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    struct peer *p = ctx;
    (void)ws;
    assert_int_equal(data[len], '\0');
    note(p->fixture, "%s \"%.*s\"\n", opcode == MK_WS_PING ? "ping" : "pong", (int)len, data);
}

static inline void see_writable(struct mk_ws *ws, void *ctx)
{
    struct peer *p = ctx;
    (void)ws;
    note(p->fixture, "writable\n");
}

static inline void see_close(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    struct peer *p = ctx;
    assert_ptr_equal(ws, p->ws);
    p->ws = NULL;
    p->fixture->cause = mk_ws_get_cause(ws);
    note(p->fixture, "close %u \"%.*s\"\n", code, MK_STR_ARG(reason));
}

/* ── the fixture ── */

static inline void fixture_open(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    assert_int_equal(mk_test_fixture_open(&f->fixture, NULL), 0);
    f->settings = (struct mk_ws_settings){.handlers = {see_open, see_message, see_ping, see_writable, see_close}};
    f->group = mk_ws_group_new();
    assert_non_null(f->group);
    f->worker = mk_ws_worker_get(f->group, &f->fixture.loop, &f->fixture.account, NULL, NULL);
    assert_non_null(f->worker);
}

static inline void fixture_close(struct fixture *f)
{
    assert_int_equal(mk_ws_group_count(f->group), 0);
    mk_ws_worker_put(f->worker);
    mk_ws_group_free(f->group);
    assert_int_equal(f->fixture.account.bytes, 0);
    mk_test_fixture_close(&f->fixture);
}

/* Calls of the handlers since the last one of this function. */
#define assert_logged(f, text) \
    do { \
        assert_string_equal((f)->log, text); \
        (f)->log[0] = '\0'; \
    } while (0)

/* Opens a WebSocket and runs it for the first time. */
static inline struct peer *connect_as(struct fixture *f, const struct mk_ws_negotiated *negotiated, int channel)
{
    struct peer *p = test_calloc(1, sizeof(*p));
    p->fixture = f;
    p->room = p->read_max = SIZE_MAX / 2;
    p->ws = mk_ws_open(f->worker, &f->settings, negotiated, channel, p, &peer_ops, p);
    assert_non_null(p->ws);
    mk_ws_run(p->ws, MK_TUNNEL_WRITE);
    return p;
}

static inline struct peer *connect_plain(struct fixture *f)
{
    struct peer *p = connect_as(f, &(struct mk_ws_negotiated){0}, MK_WS_ALL_CHANNELS);
    assert_logged(f, "open\n");
    return p;
}

static inline void disconnect(struct peer *p)
{
    if (p->ws)
        mk_ws_abort(p->ws);
    assert_null(p->ws);
    assert_true(p->ended);
    test_free(p);
}

/* Runs it as long as it asks for it. */
static inline void run(struct peer *p, unsigned events)
{
    do {
        p->woken = false;
        if (!p->ended)
            mk_ws_run(p->ws, events);
        events = 0;
    } while (p->woken && !p->ended);
}

/* Appends bytes to what the peer has sent. */
static inline void feed(struct peer *p, const void *bytes, size_t n)
{
    assert_true(p->in_len + n <= sizeof(p->in));
    memcpy(p->in + p->in_len, bytes, n);
    p->in_len += n;
}

/* Appends a masked frame. `first`: FIN, RSV and opcode. */
static inline void feed_frame(struct peer *p, uint8_t first, const void *payload, size_t n)
{
    static char masked[FIXTURE_BYTES];
    uint32_t key;
    memcpy(&key, "\x12\x34\x56\x78", 4);
    struct mk__ws_head head = {
        .fin = first & 0x80, .rsv1 = first & 0x40, .opcode = first & 15, .masked = true, .len = n, .key = key};
    uint8_t bytes[MK__WS_HEAD_BYTES_MAX];
    feed(p, bytes, mk__ws_head_write(bytes, &head));
    mk__ws_mask(masked, payload, n, key, 0);
    feed(p, masked, n);
}

static inline void feed_text(struct peer *p, const char *text)
{
    feed_frame(p, 0x81, text, strlen(text));
}

/* Asserts that exactly these bytes were sent to the peer since the last call. */
#define assert_sent(p, bytes, n) \
    do { \
        assert_int_equal((p)->out_len - (p)->out_at, n); \
        assert_memory_equal((p)->out + (p)->out_at, bytes, n); \
        (p)->out_at = (p)->out_len; \
    } while (0)

#define assert_sent_text(p, literal) assert_sent(p, literal, sizeof(literal) - 1)

#endif
