// SPDX-License-Identifier: Apache-2.0
/*
 * Parts whose bytes a handler moves to the client's socket: when it is called, with which sizes, and what its results
 * do. The handler only says how many bytes it has moved.
 */
#include "http/h1_fixture.h"

#include "http/request.h"

#include <errno.h>

enum { TURN_BYTES = 512 * 1024, LARGE = 3 * TURN_BYTES };

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
    client->corked = false; /* these bytes follow, or the socket is told that none do */
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
