// SPDX-License-Identifier: Apache-2.0
/* Cursors and traces among connections that come and go, on a clock and a network of the test's own. */
#include "testing.h"

#include "harness.h"
#include "inspect/conns.h"
#include "server/listen/listeners.h"

#include <errno.h>

enum { CLIENTS = 6, MANY = 100000, PIECE = 64 };

static struct mk_test_fixture w;
static struct mk__listener listener;
static struct mk_test_client *clients[CLIENTS];
static struct mk_inspect_cursor cursor;

static struct mk_str hello(void)
{
    return MK_STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
}

static int open_fixture(void **state)
{
    (void)state;
    listener.name.text = MK_STR("test:1");
    if (mk_test_fixture_open(&w, NULL) < 0 || mk_test_http_open(&w) < 0)
        return -1;
    w.listener = &listener;
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = mk_test_connect(&w, hello());
    mk_test_settle(&w);
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    assert_null(w.http.inspector);
    mk_test_fixture_close(&w);
    memset(&w, 0, sizeof(w));
    return 0;
}

static uint64_t seen[64];
static unsigned n_seen;
static enum mk_inspect_action next_action;

static enum mk_inspect_action note(const struct mk_inspect_conn *conn, void *ctx)
{
    (void)ctx;
    assert_str_equal(conn->listener, "test:1");
    assert_false(conn->counts_bytes);
    seen[n_seen++] = conn->id;
    return next_action;
}

static bool next(unsigned n)
{
    n_seen = 0;
    return mk_inspect_next(&cursor, n, note, NULL);
}

static void disconnect(unsigned i)
{
    mk_test_reset(clients[i]);
    mk_test_settle(&w);
}

static void open_cursor(void)
{
    next_action = MK_INSPECT_CONTINUE;
    assert_int_equal(mk__inspect_conns_open(&cursor, &w.http), 0);
}

static uint64_t get_id(unsigned i)
{
    return mk__inspect_conns_id(mk_test_connection(clients[i]));
}

TEST(pieces, open_fixture, close_fixture)
{
    open_cursor();
    assert_true(next(4));
    assert_int_equal(n_seen, 4);
    assert_int_equal(seen[0], get_id(0)); /* the oldest first */
    assert_false(next(4));
    assert_int_equal(n_seen, 2);
    assert_int_equal(seen[1], get_id(5));
    assert_false(next(4));
    assert_int_equal(n_seen, 0);
    mk_inspect_close(&cursor);
}

/* The connections at the cursor, before it and behind it end between two pieces. */
TEST(connections_end, open_fixture, close_fixture)
{
    uint64_t id4 = get_id(4);
    open_cursor();
    assert_true(next(2));
    disconnect(0);
    disconnect(2);
    disconnect(3);
    assert_true(next(1));
    assert_int_equal(seen[0], id4);
    disconnect(5);
    assert_false(next(9));
    assert_int_equal(n_seen, 0);
    clients[0] = mk_test_connect(&w, hello()); /* a new one is behind the cursor, which is at the end */
    mk_test_settle(&w);
    mk_inspect_close(&cursor);
}

TEST(all_end, open_fixture, close_fixture)
{
    open_cursor();
    for (unsigned i = 0; i < CLIENTS; i++)
        disconnect(i);
    assert_false(next(9));
    assert_int_equal(n_seen, 0);
    mk_inspect_close(&cursor);
}

TEST(several_cursors, open_fixture, close_fixture)
{
    struct mk_inspect_cursor other;
    open_cursor();
    assert_int_equal(mk__inspect_conns_open(&other, &w.http), 0);
    assert_true(next(1));
    disconnect(1);
    mk_inspect_close(&other);
    assert_non_null(w.http.inspector);
    assert_true(next(1));
    assert_int_equal(seen[0], get_id(2));
    mk_inspect_close(&cursor);
}

/* Closing the connections that are shown, all of them. */
TEST(abort, open_fixture, close_fixture)
{
    open_cursor();
    next_action = MK_INSPECT_ABORT;
    assert_true(next(2));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(clients[0]), "closed");
    assert_string_equal(mk_test_state(clients[1]), "closed");
    assert_string_equal(mk_test_state(clients[2]), "idle");
    assert_false(next(9));
    mk_test_settle(&w);
    assert_true(mk_list_empty(&w.http.conns));
    mk_inspect_close(&cursor);
}

TEST(stop, open_fixture, close_fixture)
{
    open_cursor();
    next_action = MK_INSPECT_STOP;
    assert_true(next(9));
    assert_int_equal(n_seen, 1);
    assert_true(next(9));
    assert_int_equal(seen[0], get_id(1));
    mk_inspect_close(&cursor);
}

/* 100,000 are listed in pieces, each once and in order, while some of them end and others come. */
TEST(many, open_fixture, close_fixture)
{
    static struct mk_test_client *many[MANY];
    uint64_t last = 0;
    unsigned shown = 0, ended = 0, pieces = 0;
    bool more = true;
    for (unsigned i = 0; i < MANY; i++)
        assert_non_null(many[i] = mk_test_connect(&w, MK_STR("")));
    mk_test_settle(&w);
    open_cursor();
    while (more) {
        more = next(PIECE);
        assert_true(n_seen == PIECE || !more);
        for (unsigned i = 0; i < n_seen; i++) {
            assert_true(seen[i] > last);
            last = seen[i];
        }
        shown += n_seen;
        if (++pieces % 40 == 0) { /* one that was shown, one at the cursor, and one that was not shown yet */
            unsigned at = shown - CLIENTS + ended / 2;
            mk_test_reset(many[at - 100]);
            mk_test_reset(many[at]);
            mk_test_reset(many[MANY - pieces / 40]);
            assert_non_null(mk_test_connect(&w, MK_STR("")));
            mk_test_settle(&w);
            ended += 2;
        }
    }
    assert_int_equal(shown, CLIENTS + MANY - ended + ended / 2);
    assert_true(pieces >= MANY / PIECE);
    mk_inspect_close(&cursor);
}

static char changes[1024];

static void note_change(struct mk_inspect_trace *trace, const struct mk_inspect_change *change)
{
    (void)trace;
    strncat(changes, change->after, sizeof(changes) - strlen(changes) - 2);
    strncat(changes, " ", 2);
}

TEST(trace_one, open_fixture, close_fixture)
{
    struct mk_inspect_trace trace = {.fn = note_change, .id = get_id(1)};
    changes[0] = '\0';
    assert_int_equal(mk__inspect_trace_start(&trace, &w.http), 0);
    open_cursor();
    next_action = MK_INSPECT_TRACE; /* of all: others have no trace */
    next(9);
    mk_inspect_close(&cursor);
    mk_test_send(clients[1], MK_STR("GET /"));
    mk_test_send(clients[2], MK_STR("GET /"));
    mk_test_settle(&w);
    assert_string_equal(changes, "read_head ");
    mk_inspect_trace_stop(&trace);
    disconnect(1); /* marked, but without a trace */
    assert_string_equal(changes, "read_head ");
}

TEST(out_of_memory, open_fixture, close_fixture)
{
    mk__alloc_countdown = 0;
    assert_int_equal(mk__inspect_conns_open(&cursor, &w.http), -ENOMEM);
    mk__alloc_countdown = -1;
}
