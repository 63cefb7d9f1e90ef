// SPDX-License-Identifier: Apache-2.0
/*
 * Responses as bytes: head and framing, memory and generators (files: file_read_test.c), back-pressure, and
 * responses that cannot be completed. Each is sent at once, and to a client that reads a few bytes at a time.
 */
#include "http/h1_fixture.h"

#include <errno.h>
#include <stdio.h>

#define REQUEST(method, minor) method " / HTTP/1." minor "\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"

/* ── framing ── */

static void two_parts(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_write_ref(req, MK_STR("hello ")), 0);
    assert_int_equal(mk_response_write(req, MK_STR("world")), 0);
    assert_int_equal(mk_response_write(req, MK_STR("")), 0); /* no part, and above all no last chunk */
    mk_response_end(req);
}

static void nothing(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_end(req);
}

static ssize_t count_down(struct mk_request *req, char *to, size_t size, void *ctx)
{
    unsigned *left = ctx;
    (void)req;
    assert_true(size >= 1024);
    if (*left == 0)
        return 0;
    *to = (char)('0' + --*left);
    return 1;
}

static void generated(struct mk_request *req, struct mk_test_fixture *fixture)
{
    unsigned *left = mk_arena_alloc(mk_request_arena(req), sizeof(*left));
    (void)fixture;
    *left = 3;
    assert_int_equal(mk_response_generate(req, count_down, left), 0);
    mk_response_end(req);
}

static void generated_of_known_length(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_set_length(req, 3), 0);
    generated(req, fixture);
}

static void no_content(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_set_status(req, 204), 0);
    two_parts(req, fixture);
}

static void not_modified(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_set_status(req, 304), 0);
    generated(req, fixture);
}

static void with_fields(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_set_status(req, 599), 0); /* not registered */
    assert_int_equal(mk_response_header(req, MK_STR("X-A"), MK_STR("1")), 0);
    assert_int_equal(mk_response_header_ref(req, MK_STR("X-B"), MK_STR("")), 0);
    mk_response_end(req);
}

static const struct {
    const char *request;
    handler_fn *handler;
    const char *answer;
    bool closes;
} framings[] = {
    {REQUEST("GET", "1"), two_parts, OK "Content-Length: 11\r\n\r\nhello world", false},
    {REQUEST("HEAD", "1"), two_parts, OK "Content-Length: 11\r\n\r\n", false},
    {REQUEST("GET", "1"), nothing, OK "Content-Length: 0\r\n\r\n", false},
    {REQUEST("GET", "1"), generated,
     OK "Transfer-Encoding: chunked\r\n\r\n0001\r\n2\r\n0001\r\n1\r\n0001\r\n0\r\n0\r\n\r\n", false},
    {REQUEST("HEAD", "1"), generated, OK "Transfer-Encoding: chunked\r\n\r\n", false},
    {REQUEST("GET", "0"), generated, OK "Connection: close\r\n\r\n210", true},
    {REQUEST("GET", "1"), generated_of_known_length, OK "Content-Length: 3\r\n\r\n210", false},
    {REQUEST("GET", "0"), generated_of_known_length, OK "Content-Length: 3\r\nConnection: keep-alive\r\n\r\n210",
     false},
    {REQUEST("HEAD", "1"), generated_of_known_length, OK "Content-Length: 3\r\n\r\n", false},
    {REQUEST("GET", "1"), no_content, "HTTP/1.1 204 No Content\r\n" STAMP "\r\n", false},
    {REQUEST("GET", "1"), not_modified, "HTTP/1.1 304 Not Modified\r\n" STAMP "\r\n", false},
    {REQUEST("GET", "0"), not_modified, "HTTP/1.1 304 Not Modified\r\n" STAMP "Connection: keep-alive\r\n\r\n", false},
    {REQUEST("GET", "1"), with_fields, "HTTP/1.1 599 \r\n" STAMP "X-A: 1\r\nX-B: \r\nContent-Length: 0\r\n\r\n", false},
};

/* With room for `step` bytes at a time. */
static void check_framing(size_t i, size_t step)
{
    char got[1024] = "";
    open_fixture(framings[i].handler);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = step;
    mk_test_send(c, mk_str_c(framings[i].request));
    for (mk_test_settle(&w); c->from_server.len; mk_test_settle(&w)) {
        strncat(got, mk_test_received(c).p, sizeof(got) - strlen(got) - 1);
        mk_test_take(c, step);
    }
    assert_string_equal(got, framings[i].answer);
    assert_string_equal(mk_test_state(c), framings[i].closes ? "linger" : "idle");
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

TEST(framing)
{
    static const size_t steps[] = {1, 7, 100, SIZE_MAX};
    for (size_t i = 0; i < COUNT(framings); i++)
        for (size_t s = 0; s < COUNT(steps); s++)
            check_framing(i, steps[s]);
}

static unsigned notified;

static void add_field(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    notified++;
    assert_int_equal(mk_response_header_ref(req, MK_STR("X-Hook"), MK_STR("was here")), 0);
    assert_int_equal(mk_response_set_status(req, 201), 0);
}

TEST(the_hook_changes_the_head)
{
    open_fixture(two_parts);
    w.on_response = add_field;
    notified = 0;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p,
                        "HTTP/1.1 201 Created\r\n" STAMP "X-Hook: was here\r\nContent-Length: 11\r\n\r\nhello world");
    assert_int_equal(notified, 1);
    close_fixture();
}

static unsigned fields;
static bool may_lack_memory;

static void many_fields(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static char value[900];
    (void)fixture;
    memset(value, 'v', sizeof(value));
    for (unsigned i = 0; i < fields; i++)
        assert_true(mk_response_header_ref(req, MK_STR("X"), mk_str(value, sizeof(value))) == 0 || may_lack_memory);
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

/* The client gets `step` bytes at a time. */
static void check_long_head(size_t step)
{
    static char got[65536];
    size_t len = 0;
    open_fixture(many_fields);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = step;
    mk_test_send(c, MK_STR(REQUEST("GET", "1")));
    for (mk_test_settle(&w); c->from_server.len; mk_test_settle(&w)) {
        struct mk_str more = mk_test_received(c);
        assert_true(more.len < sizeof(got) - len);
        memcpy(got + len, more.p, more.len);
        len += more.len;
        mk_test_take(c, step);
    }
    const struct mk_str start = MK_STR(OK "X: vvv"), end = MK_STR("vvv\r\nContent-Length: 5\r\n\r\nhello");
    assert_int_equal(len, start.len - 6 + fields * 905 + end.len - 5);
    assert_true(mk_str_starts(mk_str(got, len), start));
    assert_memory_equal(got + len - end.len, end.p, end.len);
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

/* A head that is longer than the output buffer has one of its own. */
TEST(a_head_may_be_long)
{
    fields = 40;
    check_long_head(1000);
    check_long_head(30000);
    check_long_head(SIZE_MAX);
}

TEST(no_memory_for_a_long_head)
{
    bool all_fine = false;
    fields = 40;
    may_lack_memory = true;
    for (long n = 0; !all_fine && n < 50; n++) {
        open_fixture(many_fields);
        mk__alloc_countdown = n;
        mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
        mk_test_settle(&w);
        all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        close_fixture();
    }
    may_lack_memory = false;
    assert_true(all_fine);
}

TEST(a_head_may_be_too_long)
{
    fields = 80;
    open_fixture(many_fields);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p,
                        "HTTP/1.1 500 Internal Server Error\r\n" STAMP "Content-Length: 0\r\n\r\n");
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

/* ── announced lengths ── */

static struct {
    uint64_t announced;
    unsigned pieces;
} lengths;

static void announce(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_set_length(req, lengths.announced), 0);
    for (unsigned i = 0; i < lengths.pieces; i++)
        mk_response_write_ref(req, MK_STR("12345"));
    mk_response_end(req);
    held_req = req;
}

TEST(an_announced_length_is_kept)
{
    static const struct {
        uint64_t announced;
        unsigned pieces;
        size_t body_max; /* no byte may follow the announced ones */
        bool good;
    } cases[] = {{10, 2, 10, true}, {11, 2, 10, false}, {9, 2, 9, false}, {5, 2, 5, false},
                 {0, 0, 0, true},   {1, 0, 0, false},   {0, 1, 0, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_fixture(announce);
        lengths.announced = cases[i].announced;
        lengths.pieces = cases[i].pieces;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1") REQUEST("GET", "1")));
        mk_test_settle(&w);
        struct mk_str answer = mk_test_received(c);
        const char *end = strstr(answer.p, "\r\n\r\n");
        assert_non_null(end);
        if (cases[i].good) {
            assert_string_equal(mk_test_state(c), "idle");
            assert_int_equal(w.requests, 2);
        } else {
            assert_true(strlen(end + 4) <= cases[i].body_max);
            assert_string_not_equal(mk_test_state(c), "idle");
            assert_int_equal(w.requests, 1); /* the response to the next request must not fill this gap */
            assert_int_equal(w.aborted, 1);
        }
        close_fixture();
    }
}

static ssize_t say_too_much(struct mk_request *req, char *to, size_t size, void *ctx)
{
    (void)req;
    (void)ctx;
    memset(to, 'x', size);
    return (ssize_t)size;
}

static void generate_too_much(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_set_length(req, 10), 0);
    assert_int_equal(mk_response_generate(req, say_too_much, NULL), 0);
    mk_response_end(req);
}

TEST(a_generator_is_kept_to_the_length)
{
    open_fixture(generate_too_much);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    const char *end = strstr(mk_test_received(c).p, "\r\n\r\n");
    assert_non_null(end);
    assert_true(strlen(end + 4) <= 10);
    assert_string_not_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

/* ── giving up ── */

static void give_up(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_write_ref(req, MK_STR("half an ans"));
    mk_response_abort(req);
}

TEST(giving_up)
{
    open_fixture(give_up);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p, ""); /* nothing was sent */
    assert_string_not_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 1);
    w.handler = remember;
    c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    assert_int_equal(mk_response_write(held_req, MK_STR("half an ans")), 0);
    mk_test_settle(&w);
    mk_response_error(held_req, 500); /* too late: the head says 200 */
    mk_test_settle(&w);
    struct mk_str answer = mk_test_received(c);
    assert_non_null(strstr(answer.p, "b\r\nhalf an ans\r\n"));
    assert_null(strstr(answer.p, "0\r\n\r\n")); /* so that the client sees that it is incomplete */
    assert_string_not_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 2);
    close_fixture();
}

/* ── generators ── */

static struct {
    const char *next;
    ssize_t error;
    unsigned calls;
} source;

static ssize_t from_source(struct mk_request *req, char *to, size_t size, void *ctx)
{
    (void)req;
    (void)size;
    (void)ctx;
    source.calls++;
    if (source.error)
        return source.error;
    if (!source.next)
        return -EAGAIN;
    size_t n = strlen(source.next);
    memcpy(to, source.next, n);
    source.next = NULL;
    return (ssize_t)n;
}

static void generate_from_source(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    memset(&source, 0, sizeof(source));
    assert_int_equal(mk_response_generate(req, from_source, NULL), 0);
    mk_response_end(req);
}

TEST(a_generator_waits_to_be_woken)
{
    open_fixture(generate_from_source);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p, OK "Transfer-Encoding: chunked\r\n\r\n");
    assert_string_equal(mk_test_state(c), "handler");
    assert_int_equal(source.calls, 1);
    mk_test_pass(&w, 1000);
    assert_int_equal(source.calls, 1);
    source.next = "tick";
    mk_response_wake(held_req);
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p, "0004\r\ntick\r\n");
    assert_int_equal(source.calls, 3);
    source.error = -EIO;
    mk_response_wake(held_req);
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p, "");
    assert_string_not_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

/* A response in pieces may take any time, if each piece comes within HandlerTimeout. */
TEST(a_stream_of_pieces_continues)
{
    open_fixture(generate_from_source);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    for (int i = 0; i < 10; i++) {
        mk_test_pass(&w, 59999);
        assert_string_equal(mk_test_state(c), "handler");
        source.next = "tick";
        mk_response_wake(held_req);
        mk_test_settle(&w);
    }
    mk_test_pass(&w, 60000);
    assert_string_equal(mk_test_state(c), "closed");
    close_fixture();
}

static ssize_t fill(struct mk_request *req, char *to, size_t size, void *ctx)
{
    uint64_t *left = ctx;
    (void)req;
    size_t n = size < *left ? size : (size_t)*left;
    memset(to, 'f', n);
    *left -= n;
    return n ? (ssize_t)n : -EAGAIN;
}

static uint64_t fill_left;

static void generate_much(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    assert_int_equal(mk_response_generate(req, fill, &fill_left), 0);
    mk_response_end(req);
}

/* The harness checks that no bytes are held back while all sides wait. */
TEST(a_generator_that_pauses_at_any_length)
{
    for (uint64_t n = 30000; n < 34000; n += 77) {
        open_fixture(generate_much);
        fill_left = n;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "0")));
        mk_test_pass(&w, 10);
        assert_string_equal(mk_test_state(c), "handler");
        assert_int_equal(strlen(strstr(mk_test_received(c).p, "\r\n\r\n") + 4), n);
        close_fixture();
    }
}

TEST(a_generator_lets_others_have_their_turn)
{
    open_fixture(generate_much);
    fill_left = 10 << 20;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    assert_in_range(c->from_server.len, 256 * 1024, 320 * 1024); /* one slice in the first turn */
    assert_string_equal(mk_test_state(c), "write");
    mk_test_settle(&w);
    assert_int_equal(fill_left, 0);
    assert_string_equal(mk_test_state(c), "handler");
    close_fixture();
}

/* ── back-pressure ── */

static unsigned drained;

static void on_drain(struct mk_request *req, void *ctx)
{
    static char block[32 * 1024];
    unsigned *left = ctx;
    drained++;
    int r = MK_OK;
    while (*left && r == MK_OK) {
        r = mk_response_write(req, mk_str(block, sizeof(block)));
        --*left;
    }
    assert_true(r >= 0);
    if (!*left)
        mk_response_end(req);
}

static unsigned blocks_left;

static void stream_blocks(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    drained = 0;
    mk_response_on_writable(req, on_drain, &blocks_left);
    on_drain(req, &blocks_left);
}

TEST(a_handler_is_asked_to_wait)
{
    open_fixture(stream_blocks);
    blocks_left = 64; /* 2 MB */
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 1000;
    mk_test_send(c, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    assert_int_equal(blocks_left, 61); /* MK_AGAIN came above 64 KB */
    assert_true(w.account.bytes < 300 * 1024);
    mk_test_pass(&w, 1000);
    assert_int_equal(drained, 1);
    for (int i = 0; i < 1000 && strcmp(mk_test_state(c), "idle") != 0; i++) {
        mk_test_take(c, 10000);
        mk_test_settle(&w);
        assert_true(w.account.bytes < 300 * 1024);
    }
    assert_string_equal(mk_test_state(c), "idle");
    assert_true(drained > 15);
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

TEST(a_fast_client_does_not_own_the_worker)
{
    open_fixture(stream_blocks);
    blocks_left = 320; /* 10 MB */
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    assert_true(c->from_server.len < 1 << 20); /* of the first turn */
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(blocks_left, 0);
    close_fixture();
}

/* The parts of a response to HEAD are dropped: no byte is sent, and the socket never fills up. */
TEST(a_response_without_a_body_does_not_own_the_worker)
{
    open_fixture(stream_blocks);
    blocks_left = 320;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("HEAD", "1")));
    assert_in_range(drained, 1, 2); /* of the first turn */
    assert_in_range(blocks_left, 310, 320);
    assert_non_null(strstr(mk_test_received(c).p, "\r\n\r\n"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(blocks_left, 0);
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

TEST(a_client_that_leaves_a_response_without_a_body)
{
    open_fixture(stream_blocks);
    blocks_left = 10000;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("HEAD", "1")));
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_true(c->closed);
    assert_true(blocks_left > 9000);
    assert_int_equal(w.aborted, 1);
    assert_non_null(strstr(mk_test_received(c).p, "\r\n\r\n"));
    close_fixture();
}

static void end_with_much(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static char block[100 * 1024];
    (void)fixture;
    drained = 0;
    blocks_left = 0;
    mk_response_on_writable(req, on_drain, &blocks_left);
    assert_int_equal(mk_response_write_ref(req, mk_str(block, sizeof(block))), MK_AGAIN);
    mk_response_end(req);
    assert_int_equal(mk_response_write_ref(req, MK_STR("too late")), -EALREADY);
}

TEST(no_drain_after_the_end)
{
    open_fixture(end_with_much);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(REQUEST("GET", "1")));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(drained, 0);
    close_fixture();
}
