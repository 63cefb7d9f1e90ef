// SPDX-License-Identifier: Apache-2.0
/*
 * Filters of response bodies: all that a handler queues is filtered in the right order, a response that cannot be
 * completed ends without its last chunk, and a filter does not delay other connections.
 */
#include "folder.h"
#include "http/h1_fixture.h"
#include "loop/job.h"

#include <ctype.h>
#include <errno.h>
#include <sys/mman.h>

#define REQUEST(method, minor) method " / HTTP/1." minor "\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"

static struct mk_thread_pool jobs;

/* What the filters of a test do, and what they have seen. */
static struct {
    unsigned again, busy; /* how often they got -EAGAIN, -EBUSY */
    size_t bytes_max;     /* of one read */
    int error;            /* the filter returns this -errno instead */
    bool early;           /* the filter ends before its input */
    unsigned n;           /* filters on one response: add_one(), then toupper() */
    size_t held;          /* the most memory that the exchange had */
    bool waits;           /* the filter has no bytes of its own for now */
    unsigned calls;
    char kept[1024]; /* read, and not passed on yet */
    size_t kept_at, kept_len;
} plan;

/* Reads below the filter, but passes on no more than plan.bytes_max. */
static ssize_t read_below(struct mk_filter *filter, char *to, size_t size)
{
    if (plan.bytes_max >= MK_FILTER_BYTES_MIN)
        return mk_filter_read(filter, to, size < plan.bytes_max ? size : plan.bytes_max);
    if (plan.kept_at == plan.kept_len) {
        ssize_t n = mk_filter_read(filter, plan.kept, sizeof(plan.kept));
        if (n <= 0)
            return n;
        plan.kept_at = 0;
        plan.kept_len = (size_t)n;
    }
    size_t left = plan.kept_len - plan.kept_at, n = left < plan.bytes_max ? left : plan.bytes_max;
    memcpy(to, plan.kept + plan.kept_at, n);
    plan.kept_at += n;
    return (ssize_t)n;
}

/* The filter of all tests; `ctx` is a function that changes one byte. */
static ssize_t change_bytes(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    int (*change)(int) = ctx;
    assert_true(size >= MK_FILTER_BYTES_MIN);
    assert_ptr_equal(mk_filter_request(filter), held_req);
    plan.calls++;
    if (plan.waits)
        return -EAGAIN;
    if (plan.error)
        return plan.error;
    if (w.account.bytes > plan.held)
        plan.held = w.account.bytes;
    ssize_t n = read_below(filter, to, size);
    plan.again += n == -EAGAIN;
    plan.busy += n == -EBUSY;
    for (ssize_t i = 0; i < n; i++)
        to[i] = (char)change((unsigned char)to[i]);
    return plan.early ? 0 : n;
}

static int add_one(int c)
{
    return c + 1;
}

static void add_filters(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    held_req = req;
    assert_int_equal(mk_response_filter(req, change_bytes, (void *)add_one), 0);
    if (plan.n > 1)
        assert_int_equal(mk_response_filter(req, change_bytes, (void *)toupper), 0);
}

static void open_with_filters(handler_fn *handler)
{
    memset(&plan, 0, sizeof(plan));
    plan.bytes_max = SIZE_MAX;
    plan.n = 1;
    mk__job_open_pool(&jobs, 1);
    assert_int_equal(mk_test_fixture_open(&w, &jobs), 0);
    w.handler = handler;
    w.on_response = add_filters;
    assert_int_equal(mk_test_http_open(&w), 0);
}

static void close_with_filters(void)
{
    if (w.http.loop)
        mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    close_fixture();
}

/* ── output ── */

static void send_two_parts(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_write_ref(req, MK_STR("abc")), 0);
    assert_int_equal(mk_response_write(req, MK_STR("def")), 0);
    mk_response_end(req);
}

static void send_nothing(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_end(req);
}

static void send_304(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_response_set_status(req, 304);
    send_two_parts(req, fixture);
}

TEST(framing)
{
    static const struct {
        const char *request;
        handler_fn *handler;
        unsigned n;
        const char *response;
    } cases[] = {
        {REQUEST("GET", "1"), send_two_parts, 1,
         OK "Transfer-Encoding: chunked\r\n\r\n0003\r\nbcd\r\n0003\r\nefg\r\n0\r\n\r\n"},
        {REQUEST("GET", "1"), send_two_parts, 2,
         OK "Transfer-Encoding: chunked\r\n\r\n0003\r\nBCD\r\n0003\r\nEFG\r\n0\r\n\r\n"},
        {REQUEST("GET", "0"), send_two_parts, 1, OK "Connection: close\r\n\r\nbcdefg"},
        {REQUEST("HEAD", "1"), send_two_parts, 1, OK "Transfer-Encoding: chunked\r\n\r\n"},
        {REQUEST("GET", "1"), send_nothing, 1, OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {REQUEST("GET", "1"), send_304, 1, "HTTP/1.1 304 Not Modified\r\n" STAMP "\r\n"},
        {REQUEST("GET", "1"), generate_x, 1, OK "Transfer-Encoding: chunked\r\n\r\n0001\r\ny\r\n0\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_with_filters(cases[i].handler);
        plan.n = cases[i].n;
        expect_received(mk_test_connect(&w, mk_str_c(cases[i].request)), cases[i].response);
        close_with_filters();
    }
}

static void check_length(struct mk_request *req, struct mk_test_fixture *fixture)
{
    uint64_t bytes = 0;
    assert_true(mk_response_get_length(req, &bytes));
    assert_int_equal(bytes, 6);
    add_filters(req, fixture);
    assert_false(mk_response_get_length(req, &bytes));
    assert_int_equal(mk_response_set_length(req, 6), 0);
    assert_true(mk_response_get_length(req, &bytes));
}

TEST(a_filter_makes_the_length_unknown)
{
    open_with_filters(send_two_parts);
    w.on_response = check_length;
    expect_received(mk_test_connect(&w, MK_STR(GET)), OK "Content-Length: 6\r\n\r\nbcdefg");
    close_with_filters();
}

/* ── pieces ── */

static void send_tick(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    held_req = req;
    assert_int_equal(mk_response_write(req, MK_STR("tick")), 0);
}

TEST(pieces_are_sent_as_they_are_written)
{
    open_with_filters(send_tick);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, OK "Transfer-Encoding: chunked\r\n\r\n0004\r\nujdl\r\n");
    assert_string_equal(mk_test_state(c), "handler");
    assert_int_equal(plan.again, 1);
    assert_int_equal(mk_response_write(held_req, MK_STR("tack")), 0);
    expect_received(c, "0004\r\nubdl\r\n");
    mk_response_end(held_req);
    expect_received(c, "0\r\n\r\n");
    assert_string_equal(mk_test_state(c), "idle");
    close_with_filters();
}

static unsigned blocks_left;

static void fill_queue(struct mk_request *req, void *ctx)
{
    static char block[40000];
    (void)ctx;
    memset(block, 'a', sizeof(block));
    while (blocks_left && mk_response_write(req, mk_str(block, sizeof(block))) == 0)
        blocks_left--;
    if (blocks_left)
        blocks_left--; /* the one whose result was MK_AGAIN is queued as well */
    else
        mk_response_end(req);
}

static void send_800000_bytes(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    blocks_left = 20;
    mk_response_on_writable(req, fill_queue, NULL);
    fill_queue(req, NULL);
}

/*
 * 20 blocks of 40,000 bytes pass the queue without exceeding its limit. A turn reads 64 KB, and what the last read of
 * up to 32 KB is beyond that.
 */
TEST(a_large_body_is_read_in_turns)
{
    open_with_filters(send_800000_bytes);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    mk_test_settle(&w);
    struct mk_str all = mk_test_received(c);
    const char *text = strstr(all.p, "\r\n\r\n") + 4;
    assert_int_equal(strspn(text, "b"), 800000);
    assert_int_equal(all.len - (size_t)(text - all.p), 800000);
    assert_true(plan.busy >= 800000 / (64 * 1024 + 32 * 1024));
    assert_true(plan.held < 200 * 1024); /* 64 KB of the queue, one part more, the scratch buffers */
    close_with_filters();
}

TEST(a_slow_client)
{
    open_with_filters(send_two_parts);
    plan.bytes_max = 1;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
    c->room = 0;
    mk_test_send(c, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    mk_test_settle(&w);
    for (int i = 0; i < 2000; i++) {
        mk_test_take(c, 1);
        mk_test_settle(&w);
    }
    assert_non_null(strstr(mk_test_received(c).p, "\r\n\r\nbcdefg"));
    close_with_filters();
}

static unsigned ends; /* of the first filter */

static ssize_t end_once(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    (void)ctx;
    ssize_t n = mk_filter_read(filter, to, size);
    if (n == 0)
        assert_int_equal(++ends, 1);
    return n;
}

/* Adds a last byte, and reads below it again before it ends. */
static ssize_t add_byte(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    bool *added = ctx;
    ssize_t n = mk_filter_read(filter, to, size);
    if (n != 0 || *added)
        return n;
    *added = true;
    to[0] = '!';
    return 1;
}

static void add_two_filters(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_filter(req, end_once, NULL), 0);
    assert_int_equal(mk_response_filter(req, add_byte, mk_arena_zalloc(mk_request_arena(req), sizeof(bool))), 0);
}

TEST(a_filter_ends_once)
{
    open_with_filters(send_two_parts);
    w.on_response = add_two_filters;
    ends = 0;
    expect_received(mk_test_connect(&w, MK_STR(GET)),
                    OK "Transfer-Encoding: chunked\r\n\r\n0003\r\nabc\r\n0003\r\ndef\r\n0001\r\n!\r\n0\r\n\r\n");
    assert_int_equal(ends, 1);
    close_with_filters();
}

/* A window of HTTP/2 may have room for one byte only; the filter is given more. */
TEST(little_room)
{
    char got[16] = "";
    ssize_t n;
    open_with_filters(send_tick);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(mk_response_write(held_req, MK_STR("tack")), 0);
    mk_response_end(held_req);
    plan.calls = 0;
    for (size_t at = 0; (n = mk__filter_read_output(held_req, got + at, 1)) != 0; at++)
        assert_int_equal(n, 1);
    assert_string_equal(got, "ubdl");
    assert_int_equal(plan.calls, 2); /* for all of the bytes, and for the end */
    mk_test_reset(c);
    mk_test_settle(&w);
    close_with_filters();
}

/* ── a filter that waits ── */

static void open_waiting(struct mk_test_client **ret_c)
{
    open_with_filters(send_two_parts);
    plan.waits = true;
    *ret_c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(*ret_c), "handler");
    assert_int_equal(plan.calls, 1);
}

TEST(a_filter_that_is_woken)
{
    struct mk_test_client *c;
    open_waiting(&c);
    mk_response_wake(held_req);
    mk_test_settle(&w);
    assert_int_equal(plan.calls, 2); /* too early: it waits again */
    plan.waits = false;
    mk_response_wake(held_req);
    expect_received(c, OK "Transfer-Encoding: chunked\r\n\r\n0003\r\nbcd\r\n0003\r\nefg\r\n0\r\n\r\n");
    close_with_filters();
}

TEST(a_filter_that_is_not_woken)
{
    struct mk_test_client *c;
    open_waiting(&c);
    plan.waits = false;
    mk_test_pass(&w, MK_TEST_DAY_MS); /* HandlerTimeout */
    assert_int_equal(plan.calls, 1);
    assert_null(strstr(mk_test_received(c).p, "bcd"));
    assert_int_equal(w.aborted, 1);
    close_with_filters();
}

/* ── responses that cannot be completed ── */

static void announce_too_much(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_response_set_length(req, 10);
    send_two_parts(req, fixture);
}

static void announce_too_little(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_response_set_length(req, 2);
    send_two_parts(req, fixture);
}

static void abort_response(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_write(req, MK_STR("abc"));
    mk_response_abort(req);
}

TEST(incomplete_responses_have_no_last_chunk)
{
    static const struct {
        handler_fn *handler;
        int error;
        bool early;
    } cases[] = {
        {announce_too_much, 0, false}, {announce_too_little, 0, false}, {abort_response, 0, false},
        {send_two_parts, -EIO, false}, {send_two_parts, 0, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_with_filters(cases[i].handler);
        plan.error = cases[i].error;
        plan.early = cases[i].early;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
        mk_test_settle(&w);
        assert_null(strstr(mk_test_received(c).p, "0\r\n\r\n"));
        assert_int_equal(w.aborted, 1);
        close_with_filters();
    }
}

static void replace_body(struct mk_request *req, struct mk_test_fixture *fixture)
{
    add_filters(req, fixture);
    assert_int_equal(mk_response_header(req, MK_STR("Content-Encoding"), MK_STR("gzip")), 0);
    assert_int_equal(mk_response_replace(req, MK_STR("text/plain"), MK_STR("abc")), 0);
}

TEST(a_replaced_body_is_not_filtered)
{
    open_with_filters(send_two_parts);
    w.on_response = replace_body;
    expect_received(mk_test_connect(&w, MK_STR(GET)), OK "Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc");
    close_with_filters();
}

static void send_head_first(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    held_req = req;
    mk_response_write(req, MK_STR("x"));
}

TEST(no_filter_after_the_head)
{
    open_with_filters(send_head_first);
    w.on_response = NULL;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(mk_response_filter(held_req, change_bytes, (void *)add_one), -EALREADY);
    mk_response_end(held_req);
    mk_test_settle(&w);
    assert_non_null(strstr(mk_test_received(c).p, "x"));
    close_with_filters();
}

/* ── files ── */

enum { FILE_BYTES = 1 << 20 };

static void send_file(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    int fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(mk_response_write_ref(req, MK_STR("<")), 0);
    assert_true(mk_response_write_file(req, fd, 1, FILE_BYTES - 1) >= 0);
    assert_true(mk_response_write_ref(req, MK_STR(">")) >= 0);
    mk_response_end(req);
}

static void request_file(void)
{
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    mk_test_settle(&w);
    for (int i = 0; i < 1000 && strcmp(mk_test_state(c), "disk") == 0; i++)
        assert_true(mk_test_wait_wakeup(&w));
    struct mk_str all = mk_test_received(c);
    const char *text = strstr(all.p, "\r\n\r\n") + 4;
    assert_int_equal(all.len - (size_t)(text - all.p), FILE_BYTES + 1);
    assert_int_equal(text[0], '=');
    for (size_t i = 1; i < FILE_BYTES; i++)
        if (text[i] != (char)('a' + i / 7 % 25 + 1))
            fail_msg("byte %zu is wrong", i);
    assert_int_equal(text[FILE_BYTES], '?');
}

TEST(files)
{
    unsigned before = mk_test_descriptors();
    open_with_filters(send_file);
    request_file();
    close_with_filters();
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(cold_files)
{
    unsigned before = mk_test_descriptors();
    mk_test_make_cold();
    open_with_filters(send_file);
    request_file();
    close_with_filters();
    assert_int_equal(mk_test_descriptors(), before);
}

static int set_up(void **state)
{
    static char bytes[FILE_BYTES];
    if (mk_test_folder_make(state) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)('a' + i / 7 % 25);
    mk_test_write("file", mk_str(bytes, sizeof(bytes)));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
