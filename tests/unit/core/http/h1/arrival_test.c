// SPDX-License-Identifier: Apache-2.0
/*
 * Arrivals of requests (mk_request_arrival()): one number for those that the loop has reported in a turn, and another
 * one for each that its client may have sent during the turn.
 */
#include "http/h1_fixture.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define HEADERS "\0\0\6\1\5\0\0\0\1\x82\x86\x84\x41\1h"

static uint64_t arrivals[2], turns[2];
static unsigned arrived;

static void note_arrival(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_true(arrived < 2);
    arrivals[arrived] = mk_request_arrival(req);
    turns[arrived++] = mk_loop_turns(&fixture->loop);
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

static int handshake(struct mk_io *io)
{
    (void)io;
    return 0;
}

static struct mk_test_client *connect_idle(void)
{
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "new");
    return c;
}

/* Two clients send in one turn: a request, and then `bytes`. Returns whether their requests have the same number. */
static bool have_same_arrival(struct mk_test_client *first, struct mk_test_client *second, struct mk_str bytes)
{
    arrived = 0;
    mk_test_send(first, MK_STR(GET));
    mk_test_send(second, bytes);
    mk_test_settle(&w);
    assert_int_equal(arrived, 2);
    assert_int_equal(turns[0], turns[1]);
    return arrivals[0] == arrivals[1];
}

TEST(reported_requests_of_a_turn_have_one_number)
{
    open_fixture(note_arrival);
    struct mk_test_client *first = connect_idle(), *second = connect_idle();
    assert_true(have_same_arrival(first, second, MK_STR(GET)));
    uint64_t before = arrivals[1];
    assert_true(have_same_arrival(second, first, MK_STR(GET)));
    assert_true(arrivals[0] > before);
    close_fixture();
}

TEST(a_request_after_other_bytes_has_another_number)
{
    static const struct mk_str others[] = {MK_STR_INIT("\r\n" GET), MK_STR_INIT(PREFACE SETTINGS HEADERS)};
    open_fixture(note_arrival);
    for (size_t i = 0; i < MK_COUNT_OF(others); i++)
        assert_false(have_same_arrival(connect_idle(), connect_idle(), others[i]));
    struct mk_test_client *c = connect_idle();
    mk_test_connection(c)->handle.peer.expects_proxy_header = true;
    assert_false(have_same_arrival(connect_idle(), c, MK_STR("PROXY TCP4 192.0.2.7 10.0.0.9 4711 80\r\n" GET)));
    close_fixture();
}

TEST(a_request_whose_head_had_begun_has_another_number)
{
    open_fixture(note_arrival);
    struct mk_test_client *c = connect_idle();
    mk_test_send(c, MK_STR("GET / HT"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "read_head");
    assert_false(have_same_arrival(connect_idle(), c, MK_STR("TP/1.1\r\nHost: h\r\n\r\n")));
    close_fixture();
}

TEST(a_request_in_records_has_another_number)
{
    struct mk_transport records = mk_test_memory;
    records.handshake = handshake;
    open_fixture(note_arrival);
    w.settings.handshakes_max = 1;
    struct mk_test_client *first = connect_idle();
    w.transport = &records;
    assert_false(have_same_arrival(first, connect_idle(), MK_STR(GET)));
    close_fixture();
}

/* It may connect and send when it sees the response to another one. */
TEST(a_request_of_a_new_connection_has_another_number)
{
    open_fixture(note_arrival);
    struct mk_test_client *c = connect_idle();
    arrived = 0;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    mk_test_connect(&w, MK_STR(GET));
    assert_int_equal(arrived, 2);
    assert_int_not_equal(arrivals[0], arrivals[1]);
    close_fixture();
}
