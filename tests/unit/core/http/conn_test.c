// SPDX-License-Identifier: Apache-2.0
/*
 * The states of a connection: every timeout to the millisecond, on a fake clock, and all ways to close a connection.
 * The table is checked in conn_table_test.c; turns are tested in h1/h1_test.c and h1/body_test.c.
 */
#include "http/h1_fixture.h"

#include <errno.h>
#include <stdio.h>

/* ── timeouts ── */

static void take_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)piece;
    (void)ctx;
    if (end)
        mk_response_end(req);
}

static void read_body(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_request_read(req, take_piece, NULL);
}

static void answer_half(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_set_length(req, 10);
    assert_int_equal(mk_response_write_ref(req, MK_STR("half")), 0);
}

static void answer_half_and_read(struct mk_request *req, struct mk_test_fixture *fixture)
{
    answer_half(req, fixture);
    read_body(req, fixture);
}

static const struct {
    const char *bytes, *state;
    void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture);
    size_t room;
    uint32_t limit_ms;
    const char *answer; /* how the response begins, "" for none; after one the state is linger */
} waits[] = {
    {"", "new", NULL, SIZE_MAX, 15000, ""},
    {"G", "read_head", NULL, SIZE_MAX, 15000, "HTTP/1.1 408 "},
    {"GET / HTTP/1.1\r\nHost: h\r\n", "read_head", NULL, SIZE_MAX, 15000, "HTTP/1.1 408 "},
    {GET, "idle", NULL, SIZE_MAX, 5000, ""},
    {GET "\r\n", "idle", NULL, SIZE_MAX, 5000, ""},
    {GET "G", "read_head", NULL, SIZE_MAX, 15000, "HTTP/1.1 408 "},
    {POST(10) "123", "read_body", read_body, SIZE_MAX, 30000, "HTTP/1.1 408 "},
    {POST(10), "read_body", read_body, SIZE_MAX, 30000, "HTTP/1.1 408 "},
    {POST(10) "123", "read_body", answer_half_and_read, SIZE_MAX, 30000, ""},
    {GET, "handler", remember, SIZE_MAX, 60000, "HTTP/1.1 503 "},
    {POST(10) "123", "handler", remember, SIZE_MAX, 60000, "HTTP/1.1 503 "},
    {GET, "handler", answer_half, SIZE_MAX, 60000, ""},
    {GET, "write", NULL, 3, 20000, ""},
    {"x\r\n", "linger", NULL, SIZE_MAX, 2000, ""},
};

static void check_wait(size_t i)
{
    open_fixture(waits[i].handler);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = waits[i].room;
    mk_test_settle(&w);
    mk_test_pass(&w, 100);
    mk_test_send(c, mk_str_c(waits[i].bytes));
    mk_test_settle(&w);
    mk_test_received(c);
    assert_string_equal(mk_test_state(c), waits[i].state);
    mk_test_pass(&w, waits[i].limit_ms - (waits[i].bytes[0] ? 1 : 101));
    assert_string_equal(mk_test_state(c), waits[i].state);
    assert_int_equal(c->from_server.len, 0);
    mk_test_pass(&w, 1);
    struct mk_str answer = mk_test_received(c);
    if (!waits[i].answer[0]) {
        assert_int_equal(answer.len, 0);
        assert_string_equal(mk_test_state(c), "closed");
        close_fixture();
        return;
    }
    assert_true(mk_str_starts(answer, mk_str_c(waits[i].answer)));
    assert_non_null(strstr(answer.p, "\r\nConnection: close\r\n"));
    assert_true(c->shut);
    assert_string_equal(mk_test_state(c), "linger");
    mk_test_pass(&w, 1999);
    assert_string_equal(mk_test_state(c), "linger");
    mk_test_pass(&w, 1);
    assert_string_equal(mk_test_state(c), "closed");
    close_fixture();
}

TEST(every_wait_has_its_limit)
{
    for (size_t i = 0; i < COUNT(waits); i++)
        check_wait(i);
}

/* Sends one byte a second. */
static void drip(struct mk_test_client *c, const char *bytes, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        mk_test_send(c, mk_str(bytes + i % strlen(bytes), 1));
        mk_test_pass(&w, 1000);
    }
}

TEST(a_head_has_one_limit)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("G"));
    drip(c, "ET / HTTP/1.1\r\n", 14);
    mk_test_pass(&w, 999);
    assert_string_equal(mk_test_state(c), "read_head");
    mk_test_pass(&w, 1);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 408 ")));
    close_fixture();
}

TEST(each_head_has_its_own)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("G"));
    mk_test_pass(&w, 14999);
    mk_test_send(c, mk_str_c(&(GET "G")[1])); /* the rest, and the start of the next one */
    mk_test_pass(&w, 14999);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    assert_string_equal(mk_test_state(c), "read_head");
    mk_test_pass(&w, 1);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 408 ")));
    close_fixture();
}

TEST(a_body_may_be_slow_but_not_stand)
{
    open_fixture(read_body);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(4)));
    for (int i = 0; i < 4; i++) {
        mk_test_pass(&w, 29999);
        assert_string_equal(mk_test_state(c), "read_body");
        mk_test_send(c, MK_STR("x"));
    }
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    close_fixture();
}

TEST(a_body_must_bring_its_rate)
{
    open_fixture(read_body);
    w.settings.limits.body_rate_min = 2;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(1000)));
    drip(c, "x", 5);     /* the last one after 4 s */
    mk_test_pass(&w, 1); /* 5.001 s: the grace is over */
    assert_string_equal(mk_test_state(c), "read_body");
    mk_test_send(c, MK_STR("x")); /* 6 bytes, 10 are due */
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 408 ")));
    assert_string_equal(mk_test_state(c), "linger");

    c = mk_test_connect(&w, MK_STR(POST(30) "1234567890"));
    drip(c, "xx", 9); /* 19 bytes in 9 seconds, 18 are due */
    assert_string_equal(mk_test_state(c), "read_body");
    mk_test_send(c, MK_STR("12345678901"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    close_fixture();
}

static void pause_at_once(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    take_piece(req, piece, end, ctx);
    if (!end) {
        mk_request_pause(req);
        held_req = req;
    }
}

static void read_and_pause(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_request_read(req, pause_at_once, NULL);
}

/* The time that a handler takes does not count for MinBodyRate. */
TEST(a_pause_is_not_the_clients)
{
    open_fixture(read_and_pause);
    w.settings.limits.body_rate_min = 256;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(10) "123"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "handler");
    mk_test_pass(&w, 20000);
    mk_request_resume(held_req);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "read_body");
    mk_test_send(c, MK_STR("4567890"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    close_fixture();
}

TEST(a_late_reader_is_not_the_clients)
{
    open_fixture(remember);
    w.settings.limits.body_rate_min = 256;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(10)));
    mk_test_pass(&w, 20000);
    mk_request_read(held_req, take_piece, NULL);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "read_body");
    mk_test_send(c, MK_STR("1234567890"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    close_fixture();
}

TEST(sending_continues_while_the_client_takes)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 1;
    mk_test_send(c, MK_STR(GET));
    for (int i = 0; i < 20; i++) {
        mk_test_pass(&w, 19999);
        assert_string_equal(mk_test_state(c), "write");
        mk_test_take(c, 1);
    }
    mk_test_pass(&w, 20000);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.aborted, 0); /* all of it had been passed to the connection */
    close_fixture();
}

/* Output that a handler adds does not restart the timeout of a client that reads nothing. */
TEST(more_output_is_no_progress)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 10;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mk_response_write(held_req, MK_STR("tick")), 0);
        mk_test_pass(&w, i == 3 ? 4999 : 5000);
        assert_string_equal(mk_test_state(c), "write");
    }
    mk_test_pass(&w, 1);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

TEST(a_408_waits_for_room_too)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 0;
    mk_test_send(c, MK_STR("GET"));
    mk_test_settle(&w);
    mk_test_pass(&w, 15000);
    assert_string_equal(mk_test_state(c), "write");
    mk_test_take(c, SIZE_MAX);
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 408 ")));
    assert_string_equal(mk_test_state(c), "linger");
    close_fixture();
}

/* ── closing ── */

TEST(a_reset_ends_every_state)
{
    for (size_t i = 0; i < COUNT(waits); i++) {
        open_fixture(waits[i].handler);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
        c->room = waits[i].room;
        mk_test_send(c, mk_str_c(waits[i].bytes));
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(c), waits[i].state);
        mk_test_reset(c);
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(c), "closed");
        assert_int_equal(w.closed, 1);
        close_fixture();
    }
}

TEST(ends_of_the_clients_bytes)
{
    static const struct {
        const char *bytes, *state, *answer;
        void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture);
        bool answered;
    } ends[] = {
        {"", "closed", "", NULL, false},
        {"GE", "closed", "", NULL, false},
        {GET, "closed", "HTTP/1.1 200 ", NULL, true}, /* our direction is still open */
        {GET GET, "closed", "HTTP/1.1 200 ", NULL, true},
        {POST(10) "123", "closed", "", read_body, false}, /* it will never be complete */
        {GET, "handler", "", remember, true},             /* the client may still read */
    };
    for (size_t i = 0; i < COUNT(ends); i++) {
        open_fixture(ends[i].handler);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
        mk_test_send(c, mk_str_c(ends[i].bytes));
        mk_test_fin(c);
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(c), ends[i].state);
        assert_true(mk_str_starts(mk_test_received(c), mk_str_c(ends[i].answer)));
        assert_int_equal(w.requests - w.aborted >= 1, ends[i].answered);
        close_fixture();
    }
}

TEST(lingers_until_the_client_ends)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("x\r\n"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "linger");
    mk_test_pass(&w, 1000);
    mk_test_send(c, MK_STR("whatever it still had to say"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "linger");
    assert_int_equal(c->read_at, c->to_server.len);
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    close_fixture();
}

TEST(lingers_for_so_many_bytes)
{
    static char much[1 << 20];
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("x\r\n"));
    mk_test_settle(&w);
    for (int i = 0; i < 64; i++) {
        assert_string_equal(mk_test_state(c), "linger");
        mk_test_send(c, mk_str(much, sizeof(much)));
        mk_test_settle(&w);
    }
    assert_string_equal(mk_test_state(c), "closed");
    close_fixture();
}

/* ── drains, and too many connections ── */

TEST(drains)
{
    open_fixture(remember);
    struct mk_test_client *busy = mk_test_connect(&w, MK_STR(GET));
    w.handler = remember;
    struct mk_test_client *working = mk_test_connect(&w, MK_STR(GET GET));
    w.handler = NULL;
    struct mk_test_client *fresh = mk_test_connect(&w, MK_STR(""));
    struct mk_test_client *idle = mk_test_connect(&w, MK_STR(GET));
    struct mk_test_client *late = mk_test_connect(&w, MK_STR(GET));
    struct mk_test_client *head = mk_test_connect(&w, MK_STR("GET"));
    mk_test_settle(&w);
    mk_test_received(late);
    mk_test_send(late, MK_STR(GET)); /* a request in flight */
    mk__conn_drain_all(&w.http);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(fresh), "closed");
    assert_string_equal(mk_test_state(idle), "closed");
    assert_string_equal(mk_test_state(late), "linger"); /* it may have sent one more */
    struct mk_str answer = mk_test_received(late);
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 200 ")));
    assert_non_null(strstr(answer.p, "\r\nConnection: close\r\n"));
    assert_string_equal(mk_test_state(head), "read_head");
    assert_string_equal(mk_test_state(busy), "handler");
    mk_response_end(held_req);
    mk_test_settle(&w);
    answer = mk_test_received(working);
    assert_non_null(strstr(answer.p, "\r\nConnection: close\r\n"));
    assert_string_equal(mk_test_state(working), "linger"); /* its second request gets no answer */
    assert_int_equal(w.requests, 5);
    mk__conn_abort_all(&w.http);
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

/* A connection accepted during a drain may send one request, and the drain does not wait for it. */
TEST(latecomers)
{
    open_fixture(remember);
    struct mk_test_client *busy = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    w.handler = NULL;
    assert_false(mk__conn_all_drained(&w.http));
    w.http.accept_in_drain = true;
    mk__conn_drain_all(&w.http);
    struct mk_test_client *silent = mk_test_connect(&w, MK_STR("")), *begun = mk_test_connect(&w, MK_STR("GET"));
    struct mk_test_client *asking = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    struct mk_str answer = mk_test_received(asking);
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 200 ")));
    assert_non_null(strstr(answer.p, "\r\nConnection: close\r\n"));
    assert_string_equal(mk_test_state(silent), "new");
    mk_test_send(silent, MK_STR(GET));
    mk_test_settle(&w);
    assert_non_null(strstr(mk_test_received(silent).p, "\r\nConnection: close\r\n"));
    assert_string_equal(mk_test_state(begun), "read_head");
    assert_false(mk__conn_all_drained(&w.http));
    mk_test_reset(busy);
    mk_test_settle(&w);
    assert_true(mk__conn_all_drained(&w.http));
    assert_string_equal(mk_test_state(begun), "read_head");
    assert_true(w.http.conns_in_drain > 0);
    mk__conn_abort_all(&w.http);
    assert_int_equal(w.http.conns_in_drain, 0);
    close_fixture();
}

TEST(closes_idle_ones)
{
    struct mk_test_client *c[4];
    open_fixture(NULL);
    for (int i = 0; i < 4; i++)
        c[i] = mk_test_connect(&w, i == 1 ? MK_STR("GET") : MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(mk__conn_close_idle(&w.http, 2), 2);
    assert_string_equal(mk_test_state(c[0]), "closed");
    assert_string_equal(mk_test_state(c[1]), "read_head");
    assert_string_equal(mk_test_state(c[2]), "closed");
    assert_string_equal(mk_test_state(c[3]), "idle");
    assert_int_equal(mk__conn_close_idle(&w.http, 2), 1);
    assert_string_equal(mk_test_state(c[1]), "read_head");
    assert_int_equal(mk__conn_close_idle(&w.http, 2), 0); /* none is idle any more, and the rest of a head may come */
    mk_test_pass(&w, 200);
    assert_int_equal(mk__conn_close_idle(&w.http, 2), 1);
    assert_string_equal(mk_test_state(c[1]), "closed");
    assert_int_equal(mk__conn_close_idle(&w.http, 2), 0);
    mk_test_settle(&w);
    close_fixture();
}

/* What had requests is not new, whatever its state. */
TEST(closes_an_incomplete_head_behind_a_request)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET GET "x"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "read_head");
    assert_int_equal(mk__conn_close_idle(&w.http, 2), 1);
    mk_test_settle(&w);
    close_fixture();
}

TEST(cannot_begin)
{
    open_fixture(NULL);
    w.open_error = -EPROTO;
    assert_null(mk_test_connect(&w, MK_STR(GET)));
    assert_int_equal(w.closed, 1);
    w.refuses_events = true;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.closed, 2);
    w.refuses_events = false;
    mk__alloc_countdown = 0;
    c = mk_test_connect(&w, MK_STR(""));
    mk__alloc_countdown = -1;
    assert_int_equal(w.closed, 2 + !c);
    mk_test_settle(&w);
    close_fixture();
}
