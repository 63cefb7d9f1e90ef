// SPDX-License-Identifier: Apache-2.0
/* Events for the clients of a worker: when they are made, which client gets which, and what ends a stream. */
#include "http/h1_fixture.h"

#include "server/worker/thread.h"

#include <monkey/kit/event_stream.h>

#include <stdio.h>

enum { STREAMS_MAX = 2, BYTES_MAX = 4 << 20 };

static struct mk_worker worker;
static struct mk_event_streams streams;
static unsigned n_open, made, cancelled;
static bool is_silent; /* make() sends nothing */

static void make(struct mk_event_streams *s)
{
    struct mk_buf text;
    assert_ptr_equal(s, &streams);
    made++;
    if (is_silent)
        return;
    mk_buf_init(&text, BYTES_MAX);
    mk_buf_addf(&text, "data: %u\n\n", made);
    mk_event_streams_send(s, text);
}

static void cancel(struct mk_event_streams *s)
{
    assert_ptr_equal(s, &streams);
    cancelled++;
}

static const struct mk_event_maker maker = {make, cancel};

static void answer(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_event_streams_answer(&streams, req, STREAMS_MAX);
}

static void open_streams(void)
{
    open_fixture(answer);
    worker = (struct mk_worker){.loop = &w.loop};
    made = cancelled = n_open = 0;
    is_silent = false;
    mk_event_streams_init(&streams, &worker, &n_open, &maker);
}

static void close_streams(void)
{
    close_fixture();
    assert_int_equal(n_open, 0);
    assert_null(streams.newest);
}

static struct mk_test_client *connect_stream(void)
{
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    return c;
}

/* Checks that the output since the last call has this text. */
static void expect(struct mk_test_client *c, const char *text)
{
    mk_test_settle(&w);
    const char *found = mk_test_received(c).p;
    if (!strstr(found, text))
        fail_msg("%s is not in %s", text, found);
}

TEST(one_event_each_second)
{
    open_streams();
    struct mk_test_client *c = connect_stream();
    const char *text = mk_test_received(c).p;
    assert_non_null(strstr(text, "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"));
    assert_non_null(strstr(text, "retry: 1000\n\n"));
    assert_non_null(strstr(text, "data: 1\n\n"));
    for (unsigned n = 2; n < 5; n++) {
        char event[32];
        mk_test_pass(&w, MK_EVENT_STREAM_MS - 1);
        assert_int_equal(made, n - 1);
        mk_test_pass(&w, 1);
        snprintf(event, sizeof(event), "data: %u\n\n", n);
        expect(c, event);
    }
    close_streams();
}

TEST(clients_share_events)
{
    open_streams();
    struct mk_test_client *a = connect_stream(), *b = connect_stream();
    expect(a, "data: 1\n\n");
    expect(b, "data: 1\n\n");
    assert_int_equal(made, 1);
    mk_test_pass(&w, MK_EVENT_STREAM_MS);
    expect(a, "data: 2\n\n");
    expect(b, "data: 2\n\n");
    assert_int_equal(made, 2);
    close_streams();
}

TEST(no_clients_no_events)
{
    open_streams();
    mk_test_pass(&w, 10 * MK_EVENT_STREAM_MS);
    assert_int_equal(made, 0);
    struct mk_test_client *c = connect_stream();
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_int_equal(cancelled, 1);
    mk_test_pass(&w, 10 * MK_EVENT_STREAM_MS);
    assert_int_equal(made, 1);
    close_streams();
}

TEST(too_many)
{
    open_streams();
    connect_stream();
    struct mk_test_client *second = connect_stream(), *third = connect_stream();
    expect(third, "HTTP/1.1 503 ");
    assert_int_equal(n_open, STREAMS_MAX);
    mk_test_reset(second);
    mk_test_settle(&w);
    expect(connect_stream(), "HTTP/1.1 200 ");
    close_streams();
}

TEST(head_gets_no_stream)
{
    open_streams();
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"));
    expect(c, "HTTP/1.1 200 ");
    assert_int_equal(n_open, 0);
    assert_int_equal(made, 0);
    close_streams();
}

/* A worker that retires ends its streams, and those that begin then. */
TEST(retired)
{
    open_streams();
    struct mk_test_client *c = connect_stream();
    mk_test_received(c);
    mk_event_streams_retire(&streams);
    expect(c, "0\r\n\r\n");
    assert_int_equal(n_open, 0);
    expect(connect_stream(), "\r\n0\r\n\r\n");
    close_streams();
}

/* Events that come later, do not come, or have no memory. */
TEST(late_and_missing_events)
{
    struct mk_buf text;
    open_streams();
    is_silent = true;
    struct mk_test_client *c = connect_stream();
    mk_test_received(c);
    mk_test_pass(&w, MK_EVENT_STREAM_MS);
    mk_test_settle(&w);
    assert_int_equal(mk_test_received(c).len, 0);
    mk_buf_init(&text, 4);
    mk_buf_adds(&text, MK_STR("data: too long\n\n"));
    mk_event_streams_send(&streams, text);
    assert_null(streams.newest);
    mk_buf_init(&text, BYTES_MAX);
    mk_buf_adds(&text, MK_STR("data: late\n\n"));
    mk__alloc_countdown = 0;
    mk_event_streams_send(&streams, text);
    mk__alloc_countdown = -1;
    assert_null(streams.newest);
    mk_buf_init(&text, BYTES_MAX);
    mk_buf_adds(&text, MK_STR("data: late\n\n"));
    mk_event_streams_send(&streams, text);
    expect(c, "data: late\n\n");
    close_streams();
}

/* A client that does not read gets the newest event once it does. */
TEST(slow_clients)
{
    static char large[1 << 20];
    struct mk_buf text;
    open_streams();
    is_silent = true;
    struct mk_test_client *c = connect_stream();
    memset(large, 'x', sizeof(large));
    for (int i = 0; i < 4; i++) {
        mk_buf_init(&text, BYTES_MAX);
        mk_buf_addf(&text, "data: %d", i);
        mk_buf_add(&text, large, sizeof(large));
        mk_buf_adds(&text, MK_STR("\n\n"));
        mk_event_streams_send(&streams, text);
        mk_test_settle(&w);
    }
    mk_test_take(c, 16 * sizeof(large));
    mk_test_settle(&w);
    struct mk_str received = mk_test_received(c);
    assert_non_null(memmem(received.p, received.len, "data: 3x", 8));
    close_streams();
}

TEST(no_memory)
{
    bool happened = true;
    for (long n = 0; happened; n++) {
        open_streams();
        mk__alloc_countdown = n;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
        if (c)
            mk_test_settle(&w);
        happened = mk__alloc_countdown < 0;
        mk__alloc_countdown = -1;
        close_streams();
    }
}
