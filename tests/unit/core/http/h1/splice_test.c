// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes that a handler moves to the client's socket, and from there: when it is called, with which sizes, and what its
 * results do.
 */
#include "http/h1_fixture.h"

#include "http/request.h"

#include <errno.h>

enum { TURN_BYTES = 512 * 1024, LARGE = 3 * TURN_BYTES };

/* ── to the client: the handler only says how many bytes it has moved ── */

static struct {
    uint64_t length; /* of the response; 0: it has none */
    ssize_t results[4], last;
    unsigned calls, generated;
    size_t sizes[16];
    bool waits_output; /* bytes that were queued before had not been sent */
} move;

static ssize_t generate_rest(struct mk_request *req, char *to, size_t size, void *ctx)
{
    (void)req, (void)size, (void)ctx;
    if (move.generated++)
        return 0;
    memcpy(to, "hello", 5);
    return 5;
}

static ssize_t move_bytes(struct mk_request *req, int fd, size_t size, void *ctx)
{
    (void)ctx;
    assert_true(fd >= 0 && move.calls < COUNT(move.sizes));
    move.waits_output |= req->http->out.len > 0;
    struct mk_test_client *client = req->ops->io(req)->state;
    ssize_t n = move.calls < COUNT(move.results) ? move.results[move.calls] : move.last;
    move.sizes[move.calls++] = size;
    client->corked = false; /* these bytes follow, or the socket is notified that none do */
    if (n == -EBUSY)
        client->room = 0;
    return n > (ssize_t)size ? (ssize_t)size : n;
}

static void respond(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (move.length)
        mk_response_set_length(req, move.length);
    assert_int_equal(mk_response_splice(req, generate_rest, move_bytes, NULL), 0);
    mk_response_end(req);
}

static struct mk_test_client *ask(uint64_t length, const ssize_t results[4], ssize_t last)
{
    memset(&move, 0, sizeof(move));
    move.length = length;
    memcpy(move.results, results, sizeof(move.results));
    move.last = last;
    open_fixture(respond);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    return c;
}

TEST(moves_no_more_than_the_length)
{
    struct mk_test_client *c = ask(1000, (ssize_t[4]){300, 1, LARGE, LARGE}, 0);
    assert_false(move.waits_output);
    assert_int_equal(move.calls, 3);
    assert_int_equal(move.sizes[0], 1000);
    assert_int_equal(move.sizes[1], 700);
    assert_int_equal(move.sizes[2], 699);
    assert_int_equal(move.generated, 0);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(a_turn_has_a_limit)
{
    struct mk_test_client *c = ask(LARGE, (ssize_t[4]){LARGE, LARGE, LARGE, LARGE}, 0);
    assert_int_equal(move.calls, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(move.sizes[i], TURN_BYTES);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(waits_for_the_handler)
{
    struct mk_test_client *c = ask(10, (ssize_t[4]){4, -EAGAIN, 6, 0}, 0);
    assert_int_equal(move.calls, 2);
    assert_string_equal(mk_test_state(c), "handler");
    mk_response_wake(held_req);
    mk_test_settle(&w);
    assert_int_equal(move.calls, 3);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(waits_for_the_client)
{
    struct mk_test_client *c = ask(10, (ssize_t[4]){4, -EBUSY, 6, 0}, 0);
    assert_int_equal(move.calls, 2);
    assert_string_equal(mk_test_state(c), "write");
    mk_response_wake(held_req); /* changes nothing */
    mk_test_settle(&w);
    assert_int_equal(move.calls, 2);
    mk_test_take(c, LARGE);
    mk_test_settle(&w);
    assert_int_equal(move.calls, 3);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(generates_instead)
{
    struct mk_test_client *c = ask(5, (ssize_t[4]){-EOPNOTSUPP, 0, 0, 0}, 0);
    assert_int_equal(move.calls, 1);
    assert_string_equal(mk_test_received(c).p, HELLO);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(chunks_are_generated)
{
    struct mk_test_client *c = ask(0, (ssize_t[4]){5, 0, 0, 0}, 0);
    assert_int_equal(move.calls, 0);
    assert_string_equal(mk_test_received(c).p, OK "Transfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n0\r\n\r\n");
    close_fixture();
}

TEST(responses_that_cannot_be_completed)
{
    static const ssize_t rows[][4] = {{4, 0, 0, 0}, {4, -EIO, 0, 0}, {-EPIPE, 0, 0, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_test_client *c = ask(10, rows[i], 0);
        assert_string_not_equal(mk_test_state(c), "idle");
        assert_int_equal(w.aborted, 1);
        close_fixture();
    }
}

/* ── from the client ── */

static struct {
    char moved[64]; /* what does not go to `body`, in pieces */
    size_t moved_len, most;
    unsigned calls;
    int error; /* the result of its next call; 0: it moves */
    bool responds_early;
} take;

static ssize_t move_body(struct mk_request *req, int fd, size_t size, void *ctx)
{
    struct mk_io *io = (struct mk_io *)(uintptr_t)req->ops->io(req);
    int error = take.error;
    (void)ctx;
    assert_true(fd >= 0 && size > 0);
    take.calls++;
    take.error = 0;
    if (error == -EBUSY)
        mk_request_pause(req);
    if (error)
        return error;
    assert_true(take.moved_len + size < sizeof(take.moved));
    ssize_t n = io->transport->read(io, take.moved + take.moved_len, size < take.most ? size : take.most);
    take.moved_len += n > 0 ? (size_t)n : 0;
    return n;
}

static void take_body(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (take.responds_early)
        gather(req, MK_STR(""), true, NULL);
    mk_request_splice(req, gather, move_body, NULL);
}

static struct mk_test_client *begin_body(const char *first, int error)
{
    memset(&take, 0, sizeof(take));
    memset(&body, 0, sizeof(body));
    take.most = sizeof(take.moved);
    take.error = error;
    open_fixture(take_body);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    mk_test_send(c, mk_str(first, strlen(first)));
    mk_test_settle(&w);
    return c;
}

static void send_more(struct mk_test_client *c, const char *bytes)
{
    mk_test_send(c, mk_str(bytes, strlen(bytes)));
    mk_test_settle(&w);
}

TEST(moves_what_comes_behind_the_head)
{
    struct mk_test_client *c = begin_body(POST(10) "01", 0);
    take.most = 3;
    assert_string_equal(mk_test_state(c), "read_body");
    send_more(c, "23456");
    send_more(c, "789" POST(3) "abc"); /* of which no byte is moved */
    expect_received(c, HELLO HELLO);
    assert_string_equal(body.bytes, "01abc");
    assert_string_equal(take.moved, "23456789");
    assert_int_equal(body.ends, 2);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(waits_for_the_handler_to_take_more)
{
    struct mk_test_client *c = begin_body(POST(10) "01", 0);
    take.error = -EBUSY;
    send_more(c, "23456789");
    assert_string_equal(mk_test_state(c), "handler");
    assert_int_equal(take.moved_len, 0);
    mk_request_resume(held_req);
    expect_received(c, HELLO);
    assert_string_equal(take.moved, "23456789");
    close_fixture();
}

TEST(reads_instead)
{
    struct mk_test_client *c = begin_body(POST(10) "01", 0);
    send_more(c, "2");
    take.error = -EOPNOTSUPP;
    send_more(c, "34");
    send_more(c, "56789");
    expect_received(c, HELLO);
    assert_string_equal(take.moved, "2");
    assert_string_equal(body.bytes, "013456789");
    close_fixture();
}

TEST(chunks_are_read)
{
    struct mk_test_client *c = begin_body(CHUNKED "2\r\n01\r\n", 0);
    send_more(c, "1\r\n2\r\n0\r\n\r\n");
    expect_received(c, HELLO);
    assert_int_equal(take.calls, 0);
    assert_string_equal(body.bytes, "012");
    close_fixture();
}

TEST(what_is_discarded_is_not_moved)
{
    struct mk_test_client *c = begin_body("", 0);
    take.responds_early = true;
    send_more(c, POST(10) "01");
    send_more(c, "23456789");
    expect_received(c, HELLO);
    assert_int_equal(take.calls, 0);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

TEST(clients_that_end_amid_a_body)
{
    static const int errors[] = {0, -ECONNRESET};
    for (size_t i = 0; i < COUNT(errors); i++) {
        struct mk_test_client *c = begin_body(POST(10) "01", 0);
        take.error = errors[i];
        send_more(c, "23");
        mk_test_fin(c);
        mk_test_settle(&w);
        assert_string_not_equal(mk_test_state(c), "read_body");
        assert_int_equal(body.ends, 0);
        assert_int_equal(w.done, 1);
        close_fixture();
    }
}
