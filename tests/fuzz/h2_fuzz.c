// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP/2 connection in the environment of the unit tests: the first bytes of the input say in which pieces the
 * rest arrives behind the preface, how much the client reads, how it ends, and which allocation fails; the path of
 * a request chooses what its handler does. Whatever comes, the connection ends when its limits have passed, every
 * exchange ends once, and nothing is left in the account.
 */
#include <stdint.h>
#include <stdlib.h>

#include <monkey/tunnel.h>

#include "handlers.h"

#include "base/arena.h"

enum { SCRIPT_BYTES = 4, LATER_MS = 100 };

static void read_body(struct mk_request *req)
{
    mk_request_read(req, on_piece, NULL);
}

static void collect(struct mk_request *req)
{
    mk_request_collect(req, 0, on_body, NULL);
}

/* ── late answers ── */

struct late {
    struct mk_timer timer;
    struct mk_request *req;
};

static void on_timer(struct mk_timer *timer)
{
    struct late *late = MK_CONTAINER_OF(timer, struct late, timer);
    mk_request_resume(late->req);
    mk_response_write_ref(late->req, MK_STR("late"));
    mk_response_end(late->req);
}

static void forget(void *ctx)
{
    struct late *late = ctx;
    mk_timer_cancel(&late->timer);
}

static void answer_late(struct mk_request *req)
{
    struct late *late = mk_arena_zalloc(mk_request_arena(req), sizeof(*late));
    if (!late || mk_arena_defer(mk_request_arena(req), forget, late) < 0) {
        mk_response_error(req, 503);
        return;
    }
    late->req = req;
    mk_timer_init(&late->timer, on_timer);
    mk_timer_arm(mk_request_loop(req), &late->timer, LATER_MS);
    mk_request_pause(req);
}

/* ── long ones ── */

static void stream_long(struct mk_request *req)
{
    stream(req, 20);
}

static ssize_t pass_on(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    (void)ctx;
    return mk_filter_read(filter, to, size);
}

static void filter(struct mk_request *req)
{
    if (mk_response_filter(req, pass_on, NULL) < 0)
        mk_response_error(req, 503);
    else
        stream_long(req);
}

/* ── tunnels ── */

static void echo(struct mk_request *req, unsigned events, void *ctx)
{
    char bytes[100];
    ssize_t n;
    (void)events, (void)ctx;
    while ((n = mk_tunnel_read(req, bytes, sizeof(bytes))) > 0) {
        mk_tunnel_write(req, bytes, (size_t)n);
        if (bytes[0] == 's')
            mk_tunnel_shutdown(req);
        if (bytes[0] == 'a')
            mk_response_abort(req);
    }
    if (n == 0)
        mk_tunnel_end(req);
}

static void take_over(struct mk_request *req)
{
    if (mk_request_take_over(req, echo, NULL) < 0)
        mk_response_error(req, 400);
}

static void never(struct mk_request *req)
{
    (void)req; /* the limit answers */
}

static void give_up(struct mk_request *req)
{
    mk_response_write_ref(req, MK_STR("hel"));
    mk_response_set_length(req, 5);
    mk_response_end(req);
}

static void hello(struct mk_request *req)
{
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

static void handle(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static void (*const ways[])(struct mk_request * req) = {
        ['b'] = read_body, ['c'] = collect, ['l'] = answer_late, ['s'] = stream_long, ['f'] = filter,
        ['t'] = take_over, ['n'] = never,   ['g'] = give_up,     ['p'] = forward,
    };
    struct mk_str path = mk_request_path(req);
    uint8_t way = path.len > 1 ? (uint8_t)path.p[1] : 0;
    (void)fixture;
    if (path.p[path.len] != '\0')
        abort();
    if (mk_request_method(req) == MK_CONNECT)
        take_over(req);
    else if (way < sizeof(ways) / sizeof(ways[0]) && ways[way])
        ways[way](req);
    else
        hello(req);
}

/* ── the script ── */

static void play(struct mk_test_fixture *w, const uint8_t *script, const char *in, size_t len)
{
    size_t piece = script[0] < 128 ? SIZE_MAX : script[0] - 127u;
    mk__alloc_countdown = (script[3] >> 2) - 1;
    struct mk_test_client *c = mk_test_connect(w, MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    if (!c)
        return;
    c->room = script[1] < 128 ? SIZE_MAX : script[1];
    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < piece ? len - at : piece;
        mk_test_send(c, mk_str(in + at, n));
        mk_test_pass(w, script[3] & 1 ? LATER_MS : 0);
        if (c->from_server.len > 1 << 20)
            mk_test_received(c);
        mk_test_take(c, script[2] & 1 ? script[2] : 0);
    }
    if (script[3] & 2)
        mk__conn_drain_all(&w->http);
    if (script[2] & 2)
        mk_test_fin(c);
    if (script[2] & 4)
        mk_test_take(c, SIZE_MAX);
    if (script[2] & 8)
        mk_test_reset(c);
    mk__alloc_countdown = -1;
    mk_test_pass(w, MK_TEST_DAY_MS); /* however many requests wait for their limits */
    if (mk_test_connection(c))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mk_test_fixture w;
    if (size < SCRIPT_BYTES)
        return 0;
    if (mk_test_fixture_open(&w, NULL) < 0)
        abort();
    w.handler = handle;
    w.on_response = w.on_done = on_hook;
    if (mk_test_http_open(&w) < 0)
        abort();
    play(&w, data, (const char *)data + SCRIPT_BYTES, size - SCRIPT_BYTES);
    mk_test_fixture_close(&w); /* aborts when a byte is left */
    if (w.closed != 1 || w.requests > w.done || w.worker_refs != 0)
        abort();
    return 0;
}
