// SPDX-License-Identifier: Apache-2.0
/*
 * A whole connection in the environment of the unit tests: the first bytes of the input say in which pieces the
 * rest arrives, how much the client reads, and what the handlers do. Whatever comes, the connection waits in
 * a state that has a limit, ends when its limits have passed, and leaves nothing behind.
 */
#include <stdint.h>
#include <stdlib.h>

#include "handlers.h"

enum { SCRIPT_BYTES = 4 };

/* What the handlers do, in turn. */
static uint8_t plan;

static void handle(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_str path = mk_request_path(req);
    (void)fixture;
    if (path.len == 0 || path.p[path.len] != '\0')
        abort();
    answer(req, plan++ ^ (uint8_t)path.len);
}

static void play(struct mk_test_fixture *w, const uint8_t *script, const char *in, size_t len)
{
    size_t piece = script[0] % 64 + 1u, room = script[1] < 128 ? SIZE_MAX : script[1];
    struct mk_test_client *c = mk_test_connect(w, MK_STR(""));
    if (!c)
        abort();
    c->room = room;
    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < piece ? len - at : piece;
        mk_test_send(c, mk_str(in + at, n));
        mk_test_settle(w);
        if (c->from_server.len > 1 << 20)
            mk_test_received(c);
        if (script[2] & 1)
            mk_test_take(c, script[2]);
    }
    if (script[2] & 2)
        mk_test_fin(c);
    if (script[2] & 4)
        mk_test_take(c, SIZE_MAX);
    mk_test_settle(w);
    const struct mk__conn *h1 = mk_test_connection(c);
    if (h1 && mk__conn_states[h1->state].timeout >= MK__TIMEOUTS)
        abort();
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
    plan = data[3];
    play(&w, data, (const char *)data + SCRIPT_BYTES, size - SCRIPT_BYTES);
    mk_test_fixture_close(&w); /* aborts when an exchange or a byte is left */
    if (w.closed != 1 || w.requests > w.done)
        abort();
    return 0;
}
