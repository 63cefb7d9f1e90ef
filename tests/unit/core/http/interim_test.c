// SPDX-License-Identifier: Apache-2.0
/* Interim responses, over HTTP/1 and HTTP/2: their order, the invitation of a body, and their bounds. */
#include "http/h2_fixture.h"

#include <errno.h>

#define HINTS "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"

static const struct mk_header_field hint = {MK_STR_INIT("Link"), MK_STR_INIT("</a.css>; rel=preload")};

static int send_hint(struct mk_request *req)
{
    return mk_response_interim(req, 103, &hint, 1);
}

static void send_hello(struct mk_request *req)
{
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

static void hint_and_hello(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(send_hint(req), 0);
    assert_int_equal(mk_response_interim(req, 102, NULL, 0), 0);
    send_hello(req);
    assert_int_equal(send_hint(req), -EALREADY);
}

TEST(come_before_the_response)
{
    open_fixture(hint_and_hello);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET GET));
    expect_received(c, HINTS "HTTP/1.1 102 Processing\r\n\r\n" HELLO HINTS "HTTP/1.1 102 Processing\r\n\r\n" HELLO);
    close_fixture();
}

TEST(come_before_the_response_on_a_stream)
{
    struct mk_test_h2 t = h2_open(hint_and_hello);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:103,link=</a.css>; rel=preload 1:102 " HELLO_OF(1));
    h2_close(&t);
}

/* A handler that waits may send them one by one, each at once. */
TEST(are_sent_at_once)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    for (int i = 0; i < 3; i++) {
        expect_received(c, "");
        assert_int_equal(send_hint(held_req), 0);
        expect_received(c, HINTS);
        assert_string_equal(mk_test_state(c), "handler");
    }
    send_hello(held_req);
    expect_received(c, HELLO);
    close_fixture();
}

TEST(are_sent_at_once_on_a_stream)
{
    uint32_t head_bytes;
    struct mk_test_h2 t = h2_open(remember);
    h2_get_path(&t, 1, "/");
    for (int i = 0; i < 3; i++) {
        h2_expect(&t, "");
        assert_int_equal(send_hint(held_req), 0);
        h2_expect(&t, "1:103,link=</a.css>; rel=preload");
    }
    head_bytes = (uint32_t)mk_response_head_bytes(held_req);
    assert_int_equal(head_bytes, 0); /* the head is that of the response */
    send_hello(held_req);
    h2_expect(&t, HELLO_OF(1));
    h2_close(&t);
}

/* They do not extend the time that a handler has. */
TEST(do_not_extend_the_wait)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    mk_test_pass(&w, 59000);
    assert_int_equal(send_hint(held_req), 0);
    expect_received(c, HINTS);
    mk_test_pass(&w, 1000);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 503 ")));
    close_fixture();
}

TEST(are_dropped_for_http_1_0)
{
    open_fixture(hint_and_hello);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    close_fixture();
}

static void check_errors(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static const struct mk_header_field bad[] = {
        {MK_STR_INIT("X Y"), MK_STR_INIT("v")},
        {MK_STR_INIT(""), MK_STR_INIT("v")},
        {MK_STR_INIT("X"), MK_STR_INIT("a\r\nInjected: yes")},
        {MK_STR_INIT("Content-Length"), MK_STR_INIT("3")},
        {MK_STR_INIT("transfer-encoding"), MK_STR_INIT("chunked")},
    };
    static const int statuses[] = {-1, 0, 99, 101, 200, 404, 65536 + 103};
    struct mk_header_field many[MK_INTERIM_FIELDS_MAX + 1];
    (void)fixture;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(mk_response_interim(req, 103, &bad[i], 1), -EINVAL);
    for (size_t i = 0; i < COUNT(statuses); i++)
        assert_int_equal(mk_response_interim(req, statuses[i], NULL, 0), -EINVAL);
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = hint;
    assert_int_equal(mk_response_interim(req, 103, many, COUNT(many)), -ENOBUFS);
    send_hello(req);
}

TEST(are_checked)
{
    open_fixture(check_errors);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, HELLO);
    close_fixture();
}

/* ── bounds ── */

static unsigned send_hints_until_full(struct mk_request *req)
{
    unsigned n = 0;
    int err;
    while ((err = send_hint(req)) == 0 && n < 10000)
        n++;
    assert_int_equal(err, -ENOBUFS);
    return n;
}

/* A client that takes nothing makes memory grow up to the limit only; what was accepted arrives. */
TEST(wait_in_bounded_memory)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    c->room = 10;
    assert_int_equal(send_hint(held_req), 0);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "write");
    size_t before = w.account.bytes;
    unsigned n = 1 + send_hints_until_full(held_req);
    assert_true(n > 100);
    assert_true(w.account.bytes - before <= MK_INTERIM_BYTES_MAX);
    mk_test_settle(&w);
    assert_int_equal(send_hint(held_req), -ENOBUFS);
    mk_test_take(c, SIZE_MAX);
    mk_test_settle(&w);
    assert_int_equal(mk_test_received(c).len, n * (sizeof(HINTS) - 1));
    assert_true(w.account.bytes <= before);
    send_hello(held_req);
    expect_received(c, HELLO);
    close_fixture();
}

TEST(wait_in_bounded_memory_for_a_stream)
{
    struct mk_test_h2 t = h2_open(remember);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "");
    t.end->room = 10;
    for (unsigned i = 0; i < 3; i++) {
        send_hints_until_full(held_req);
        mk_test_settle(&w);
    }
    size_t before = w.account.bytes;
    for (unsigned i = 0; i < 20; i++) {
        send_hint(held_req);
        mk_test_settle(&w);
    }
    assert_int_equal(w.account.bytes, before);
    mk_test_take(t.end, SIZE_MAX);
    send_hello(held_req);
    h2_expect(&t, "1:103,*" HELLO_OF(1));
    h2_close(&t);
}

/* What was not sent is freed with the exchange. */
TEST(end_with_the_exchange)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    c->room = 0;
    send_hints_until_full(held_req);
    mk_response_abort(held_req);
    mk_test_settle(&w);
    close_fixture();

    struct mk_test_h2 t = h2_open(remember);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "");
    send_hints_until_full(held_req);
    mk_response_abort(held_req);
    h2_expect(&t, "*1:RST(2)");
    h2_close(&t);
}

static int hint_once(void *ctx)
{
    (void)ctx;
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    mk_test_fill_arena(held_req);
    int err = send_hint(held_req);
    send_hello(held_req);
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p, err ? HELLO : HINTS HELLO);
    close_fixture();
    return err;
}

TEST(without_memory)
{
    open_fixture(remember);
    mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    mk_test_fill_arena(held_req);
    for (long n = 0; n < 2; n++) {
        mk__alloc_countdown = n;
        assert_int_equal(send_hint(held_req), -ENOMEM);
        mk__alloc_countdown = -1;
    }
    close_fixture();
    assert_int_equal(hint_once(NULL), 0);
}

/* ── the invitation to send a body ── */

static void pass_on(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    assert_true(mk_request_expects_continue(req));
    assert_int_equal(mk_response_interim(req, 100, NULL, 0), 0);
    assert_false(mk_request_expects_continue(req));
    assert_int_equal(mk_response_interim(req, 100, NULL, 0), 0);
    read_all(req, fixture);
    assert_int_equal(mk_response_interim(req, 100, NULL, 0), 0);
}

TEST(one_100_of_a_handler_that_passes_it_on)
{
    open_fixture(pass_on);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, CONTINUE);
    mk_test_send(c, MK_STR("12345"));
    expect_received(c, HELLO);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

static void read_and_hold(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    mk_request_hold_continue(req);
    read_all(req, fixture);
}

TEST(a_100_that_comes_after_the_automatic_one)
{
    open_fixture(pause_body);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, "");
    mk_request_resume(held_req);
    expect_received(c, CONTINUE);
    assert_int_equal(mk_response_interim(held_req, 100, NULL, 0), 0);
    expect_received(c, "");
    mk_test_send(c, MK_STR("12345"));
    expect_received(c, HELLO);
    close_fixture();
}

TEST(an_unasked_100_is_dropped)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(5)));
    mk_test_settle(&w);
    assert_false(mk_request_expects_continue(held_req));
    assert_int_equal(mk_response_interim(held_req, 100, NULL, 0), 0);
    expect_received(c, "");
    send_hello(held_req);
    expect_received(c, HELLO);
    close_fixture();
}

/* The client is invited when the handler says so, and no sooner. */
TEST(a_held_invitation)
{
    open_fixture(read_and_hold);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, "");
    assert_string_equal(mk_test_state(c), "handler");
    mk_test_pass(&w, 10000); /* neither BodyTimeout nor MinBodyRate is about this time */
    expect_received(c, "");
    assert_int_equal(mk_response_interim(held_req, 100, NULL, 0), 0);
    expect_received(c, CONTINUE);
    assert_string_equal(mk_test_state(c), "read_body");
    mk_test_send(c, MK_STR("12345"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(a_held_invitation_on_a_stream)
{
    struct mk_test_h2 t = h2_open(read_and_hold);
    h2_head(&t, 1, END_HEADERS, LENGTH(5) "|expect 100-continue");
    h2_expect(&t, "");
    mk_test_pass(&w, 40000);
    h2_expect(&t, "");
    assert_int_equal(mk_response_interim(held_req, 100, NULL, 0), 0);
    h2_expect(&t, "1:100");
    h2_data(&t, 1, END_STREAM, MK_STR("12345"));
    h2_expect(&t, HELLO_OF(1));
    h2_close(&t);
}

/* A client need not wait for it: its body is passed on. */
TEST(a_body_that_comes_before_continue)
{
    open_fixture(read_and_hold);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, "");
    mk_test_send(c, MK_STR("1"));
    expect_received(c, "");
    assert_int_equal(body.len, 1);
    assert_string_equal(mk_test_state(c), "read_body");
    assert_false(mk_request_expects_continue(held_req));
    assert_int_equal(mk_response_interim(held_req, 100, NULL, 0), 0);
    mk_test_send(c, MK_STR("2345"));
    expect_received(c, HELLO);
    close_fixture();
}

TEST(a_client_that_leaves_before_continue)
{
    open_fixture(read_and_hold);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, "");
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

/* Whether the body still comes is not known. */
TEST(a_response_without_an_invitation_closes)
{
    open_fixture(read_and_hold);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, "");
    mk_response_write_ref(held_req, MK_STR("hello"));
    mk_response_set_length(held_req, 5);
    mk_test_settle(&w);
    mk_response_end(held_req);
    expect_received(c, HELLO_CLOSE);
    assert_string_equal(mk_test_state(c), "linger");
    close_fixture();
}

TEST(a_handler_that_never_invites)
{
    open_fixture(read_and_hold);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    mk_test_settle(&w);
    mk_test_pass(&w, 60000);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 503 ")));
    close_fixture();
}
