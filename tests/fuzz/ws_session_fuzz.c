// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets on streams in memory. The input is a script: bytes and frames arrive in pieces, peers read or do not, time
 * passes, streams end, allocations fail, and handlers call the interface: send, close, abort, pause, resume, channels,
 * broadcasts. Whatever comes: on_open comes once at most and on_close once, texts are UTF-8, what is sent is a sequence
 * of frames that RFC 6455 allows, nothing follows a close frame, and no memory is left.
 *
 *     first byte   what was agreed on; second byte: limits; third byte: what the handlers do
 *     others       an operation of the table at the end, and its arguments
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "../unit/harness.h"

#include "base/arena.h"
#include "websocket/frame.h"
#include "websocket/ws.h"

#define EXPECT(condition) \
    do { \
        if (!(condition)) \
            abort(); \
    } while (0)

enum { PEERS = 4, INPUT_BYTES = 128 * 1024, OUTPUT_BYTES = 512 * 1024, TEXT_BYTES = 70 * 1024, MESSAGE_MAX = 20000 };

struct peer {
    struct mk_ws *ws; /* NULL: on_close was called */
    char in[INPUT_BYTES];
    uint8_t out[OUTPUT_BYTES];
    size_t in_at, in_len, out_len, room, read_max;
    struct mk__ws_sequence sent; /* the frames of `out` that were checked */
    bool is_client;              /* the WebSocket is: what it sends is masked */
    bool fin, error, woken, ended, opened, said_close;
};

/* What the script works on. */
static struct {
    struct mk_test_fixture fixture;
    struct mk_ws_group *group;
    struct mk_ws_worker *worker;
    struct mk_ws_settings settings;
    struct mk_ws_negotiated negotiated;
    struct peer peers[PEERS], *current;
    const uint8_t *at, *end;
    uint8_t plan;
    unsigned depth; /* of handlers */
} run;

static uint8_t take_byte(void)
{
    return run.at < run.end ? *run.at++ : 0;
}

static const char text_bytes[TEXT_BYTES];

/* ── what was sent ── */

static void check_frame(struct peer *p, const struct mk__ws_head *head, uint8_t *payload)
{
    const char *reason;
    EXPECT(!p->said_close);
    if (head->masked)
        mk__ws_mask(payload, payload, head->len, head->key, 0);
    EXPECT(mk__ws_sequence_step(&p->sent, head, &reason) == 0);
    if (head->opcode != MK__WS_OP_CLOSE)
        return;
    struct mk_str text;
    uint16_t code;
    EXPECT(mk__ws_close_parse(payload, head->len, &code, &text, &reason) == 0);
    p->said_close = true;
}

/* Parses the complete frames of the output, and removes them. */
static void check_output(struct peer *p)
{
    const struct mk__ws_rules rules = {.masked = p->is_client,
                                       .rsv1 = run.negotiated.deflate,
                                       .frame_max = OUTPUT_BYTES};
    size_t at = 0;
    for (;;) {
        struct mk__ws_head head;
        const char *reason;
        int size = mk__ws_head_parse(p->out + at, p->out_len - at, &rules, &head, &reason);
        EXPECT(size >= 0);
        if (!size || p->out_len - at - (size_t)size < head.len)
            break;
        check_frame(p, &head, p->out + at + size);
        at += (size_t)size + head.len;
    }
    memmove(p->out, p->out + at, p->out_len - at);
    p->out_len -= at;
}

/* ── the stream ── */

static ssize_t peer_read(void *stream, void *to, size_t size)
{
    struct peer *p = stream;
    size_t n = p->in_len - p->in_at;
    EXPECT(!p->ended);
    if (p->error)
        return -ECONNRESET;
    if (!n)
        return p->fin ? 0 : -EAGAIN;
    n = n < size ? n : size;
    n = n < p->read_max ? n : p->read_max;
    memcpy(to, p->in + p->in_at, n);
    p->in_at += n;
    return (ssize_t)n;
}

static ssize_t peer_write(void *stream, const void *from, size_t size)
{
    struct peer *p = stream;
    size_t n = size < p->room ? size : p->room;
    EXPECT(!p->ended);
    if (p->error)
        return -EPIPE;
    if (n > OUTPUT_BYTES - p->out_len)
        n = OUTPUT_BYTES - p->out_len;
    if (!n)
        return -EAGAIN;
    memcpy(p->out + p->out_len, from, n);
    p->out_len += n;
    p->room -= n;
    check_output(p);
    return (ssize_t)n;
}

static void peer_wake(void *stream)
{
    struct peer *p = stream;
    EXPECT(!p->ended);
    p->woken = true;
}

static void peer_end(void *stream)
{
    struct peer *p = stream;
    EXPECT(!p->ended && !p->ws);
    p->ended = true;
}

static const struct mk_ws_stream_ops ops = {peer_read, peer_write, peer_wake, peer_end};

/* ── handlers ── */

static void call_api(struct peer *p);

/* Independent of lib/kit/websocket/frame.c. */
static bool is_utf8(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < n;) {
        unsigned more = p[i] < 0x80 ? 0 : p[i] >> 5 == 6 ? 1 : p[i] >> 4 == 14 ? 2 : p[i] >> 3 == 30 ? 3 : 4;
        if (more == 4 || n - i <= more)
            return false;
        uint32_t code = more ? p[i] & (0x3fu >> more) : p[i];
        for (unsigned k = 1; k <= more; k++) {
            if (p[i + k] >> 6 != 2)
                return false;
            code = code << 6 | (p[i + k] & 63);
        }
        if (code < least[more] || code > 0x10ffff || code >> 11 == 27)
            return false;
        i += more + 1;
    }
    return true;
}

static void on_open(struct mk_ws *ws, void *ctx)
{
    struct peer *p = ctx;
    EXPECT(!p->opened && (!p->ws || p->ws == ws));
    p->opened = true;
    if (run.plan & 1)
        mk_ws_send(ws, MK_WS_TEXT, "hello", 5);
}

static void on_message(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    struct peer *p = ctx;
    EXPECT(p->opened && p->ws == ws && data[len] == '\0' && len <= MESSAGE_MAX);
    EXPECT(opcode == MK_WS_BINARY || (opcode == MK_WS_TEXT && is_utf8((const uint8_t *)data, len)));
    if (run.plan & 2)
        mk_ws_send(ws, opcode, data, len);
    if (run.plan & 4)
        call_api(p);
    memset(data, 'x', len); /* it is writable */
}

static void on_ping(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    struct peer *p = ctx;
    EXPECT(p->ws == ws && data[len] == '\0' && len < 126 && (opcode == MK_WS_PING || opcode == MK_WS_PONG));
    if (run.plan & 8)
        call_api(p);
}

static void on_writable(struct mk_ws *ws, void *ctx)
{
    struct peer *p = ctx;
    EXPECT(p->opened && p->ws == ws);
    if (run.plan & 16)
        call_api(p);
}

static void on_close(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    struct peer *p = ctx;
    EXPECT(p->ws == ws && code >= 1000 && code < 5000 && reason.len < 124);
    EXPECT(mk_ws_send(ws, MK_WS_TEXT, "late", 4) == -EPIPE);
    if (run.plan & 32)
        call_api(p);
    p->ws = NULL;
}

/* ── the interface ── */

static void send_message(struct mk_ws *ws)
{
    static const enum mk_ws_opcode opcodes[] = {MK_WS_TEXT, MK_WS_BINARY, MK_WS_PING, MK_WS_PONG};
    uint8_t how = take_byte();
    size_t len = take_byte();
    if (how & 4)
        len *= how & 8 ? 256 : 16;
    mk_ws_send(ws, opcodes[how & 3], text_bytes, len);
}

static void close_ws(struct mk_ws *ws)
{
    static const uint16_t codes[] = {0, 1000, 1001, 1008, 1011, 1012, 3000, 4999};
    mk_ws_close(ws, codes[take_byte() & 7], MK_STR("bye"));
}

static void broadcast(struct mk_ws *ws)
{
    uint8_t how = take_byte();
    mk_ws_broadcast(run.group, (how & 3) - 1, how & 4 ? MK_WS_TEXT : MK_WS_BINARY, text_bytes,
                    (size_t)take_byte() << (how >> 5), how & 8 ? ws : NULL);
}

static void move(struct mk_ws *ws)
{
    mk_ws_set_channel(ws, (take_byte() & 3) - 1);
}

static void look(struct mk_ws *ws)
{
    EXPECT(mk_ws_channel(ws) >= MK_WS_ALL_CHANNELS && mk_ws_get_worker(ws) == run.worker);
    EXPECT(mk_ws_queued_bytes(ws) < 64 * OUTPUT_BYTES && mk_ws_ctx(ws));
}

/* One call, of the handler's own WebSocket or of another one. */
static void call_api(struct peer *p)
{
    static void (*const calls[])(struct mk_ws * ws) = {
        send_message, close_ws, mk_ws_abort, mk_ws_pause, mk_ws_resume, move, broadcast, look,
    };
    uint8_t what = take_byte();
    struct mk_ws *ws = what & 8 ? run.peers[what >> 6].ws : p->ws;
    if (!ws || run.depth == 3)
        return;
    run.depth++;
    calls[what & 7](ws);
    run.depth--;
}

/* ── operations ── */

static void open_peer(struct peer *p)
{
    if (p->ws)
        return;
    p->in_at = p->in_len = p->out_len = 0;
    p->room = p->read_max = SIZE_MAX / 2;
    p->sent = (struct mk__ws_sequence){0};
    p->fin = p->error = p->woken = p->ended = p->opened = p->said_close = false;
    struct mk_ws_negotiated negotiated = run.negotiated;
    negotiated.is_client = p->is_client = p == &run.peers[PEERS - 1];
    struct mk_ws *ws = mk_ws_open(run.worker, &run.settings, &negotiated, (int)(take_byte() & 3) - 1, p, &ops, p);
    if (!ws)
        return;
    p->ws = ws;
    mk_ws_run(ws, MK_TUNNEL_WRITE);
}

static void run_peer(struct peer *p, unsigned events)
{
    if (!p->ended && p->ws)
        mk_ws_run(p->ws, events);
}

/* Lets everything happen that waits only for a turn. */
static void settle(void)
{
    for (unsigned turns = 0; turns < 64; turns++) {
        bool any = false;
        mk__ws_deliver(&run.worker->event, EPOLLIN);
        mk_test_settle(&run.fixture);
        for (unsigned i = 0; i < PEERS; i++) {
            struct peer *p = &run.peers[i];
            if (!p->woken || p->ended)
                continue;
            p->woken = false;
            any = true;
            run_peer(p, 0);
        }
        if (!any)
            return;
    }
}

static void feed(const void *bytes, size_t n)
{
    struct peer *p = run.current;
    if (n > INPUT_BYTES - p->in_len)
        return;
    memcpy(p->in + p->in_len, bytes, n);
    p->in_len += n;
}

static void feed_bytes(void)
{
    size_t n = take_byte(), left = (size_t)(run.end - run.at);
    n = n < left ? n : left;
    feed(run.at, n);
    run.at += n;
}

/* A frame with a key; its payload is of the input, repeated. */
static void feed_frame(void)
{
    static uint8_t payload[TEXT_BYTES];
    uint8_t first = take_byte(), head_bytes[MK__WS_HEAD_BYTES_MAX];
    size_t len = take_byte(), have = take_byte() & 63, left = (size_t)(run.end - run.at);
    uint32_t key;
    have = have < left ? have : left;
    if (len > 130)
        len = (len - 130) * 550;
    if (len > sizeof(payload))
        len = sizeof(payload);
    for (size_t i = 0; i < len; i++)
        payload[i] = have ? run.at[i % have] : 'a';
    run.at += have;
    memcpy(&key, "\x11\x22\x33\x44", 4);
    const bool masked = !run.current->is_client;
    struct mk__ws_head head = {.fin = true, .masked = masked, .opcode = MK__WS_OP_BINARY, .len = len, .key = key};
    size_t n = mk__ws_head_write(head_bytes, &head);
    head_bytes[0] = first;
    if (n + len > INPUT_BYTES - run.current->in_len)
        return;
    if (masked)
        mk__ws_mask(payload, payload, len, key, 0);
    feed(head_bytes, n);
    feed(payload, len);
}

static void choose_peer(void)
{
    run.current = &run.peers[take_byte() % PEERS];
}

static void read_peer(void)
{
    run_peer(run.current, MK_TUNNEL_READ);
}

static void read_slowly(void)
{
    run.current->read_max = 1 + take_byte();
    run_peer(run.current, MK_TUNNEL_READ);
}

static void let_write(void)
{
    run.current->room = (size_t)take_byte() * 64;
    run_peer(run.current, MK_TUNNEL_WRITE);
}

static void stop_writing(void)
{
    run.current->room = 0;
}

static void call(void)
{
    call_api(run.current);
}

static void pass_time(void)
{
    uint32_t n = take_byte();
    mk_test_pass(&run.fixture, (uint64_t)n * n);
}

static void end_input(void)
{
    run.current->fin = true;
    run_peer(run.current, MK_TUNNEL_READ);
}

static void fail_stream(void)
{
    run.current->error = true;
    run_peer(run.current, MK_TUNNEL_READ | MK_TUNNEL_WRITE);
}

static void lose(void)
{
    struct peer *p = run.current;
    if (!p->ws || p->ended)
        return;
    p->ended = true;
    mk_ws_lost(p->ws);
}

static void drain(void)
{
    run_peer(run.current, MK_TUNNEL_DRAINING);
}

static void fail_allocation(void)
{
    mk__alloc_countdown = take_byte() & 31;
}

static void open_current(void)
{
    open_peer(run.current);
}

static void change_plan(void)
{
    run.plan = take_byte();
}

static void (*const operations[])(void) = {
    feed_frame, feed_bytes, read_peer,   settle,      choose_peer, call,  let_write,       stop_writing,
    pass_time,  end_input,  fail_stream, read_slowly, lose,        drain, fail_allocation, open_current,
};

/* ── */

static void set_up(void)
{
    uint8_t agreed = take_byte(), limits = take_byte();
    run.plan = take_byte();
    run.depth = 0;
    run.negotiated = (struct mk_ws_negotiated){.deflate = agreed & 1,
                                               .send_context = agreed & 2,
                                               .receive_context = agreed & 4,
                                               .send_bits = (uint8_t)(9 + (agreed >> 3) % 7),
                                               .receive_bits = (uint8_t)(8 + (agreed >> 5))};
    run.settings = (struct mk_ws_settings){
        .handlers = {on_open, on_message, on_ping, on_writable, on_close},
        .message_bytes_max = limits & 1 ? 1000 : MESSAGE_MAX,
        .frame_bytes_max = limits & 2 ? 500 : 0,
        .queue_bytes_max = limits & 4 ? 3000 : 200000,
        .overflow = limits & 8 ? MK_WS_OVERFLOW_DROP : MK_WS_OVERFLOW_CLOSE,
        .ping_ms = limits & 16 ? 1000 : UINT32_MAX,
        .pong_ms = 500,
        .deflate_bytes_min = limits & 32 ? 1 : 0,
        .window_bits = limits & 64 ? 9 : 0,
    };
    EXPECT(mk_test_fixture_open(&run.fixture, NULL) == 0);
    run.group = mk_ws_group_new();
    EXPECT(run.group);
    run.worker = mk_ws_worker_get(run.group, &run.fixture.loop, &run.fixture.account, NULL, NULL);
    EXPECT(run.worker);
    for (unsigned i = 0; i < PEERS; i++)
        run.peers[i].ws = NULL;
    for (unsigned i = 0; i < PEERS; i++)
        open_peer(&run.peers[i]);
    run.current = run.peers;
}

static void tear_down(void)
{
    mk__alloc_countdown = -1;
    run.plan = 0;
    settle();
    for (unsigned i = 0; i < PEERS; i++) {
        struct peer *p = &run.peers[i];
        if (p->ws)
            mk_ws_abort(p->ws);
        EXPECT(!p->ws);
    }
    EXPECT(mk_ws_group_count(run.group) == 0);
    mk_ws_worker_put(run.worker);
    mk_ws_group_free(run.group);
    EXPECT(run.fixture.account.bytes == 0);
    mk_test_fixture_close(&run.fixture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run.at = data;
    run.end = data + size;
    set_up();
    while (run.at < run.end) {
        uint8_t op = take_byte();
        if (op >= 0xf0)
            change_plan();
        else
            operations[op & 15]();
    }
    tear_down();
    return 0;
}
