// SPDX-License-Identifier: Apache-2.0
/*
 * Filters of response bodies: all that a handler queues is filtered in the right order, a response that cannot be
 * completed is cut, and a filter does not hold up other connections.
 */
#include "folder.h"
#include "http/h1_world.h"

#include <ctype.h>
#include <errno.h>
#include <sys/mman.h>

#define REQUEST(method, minor) method " / HTTP/1." minor "\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"

static struct mk__thread_pool jobs;

/* What the filters of a test do. */
static struct {
    unsigned again, busy; /* how often they got -EAGAIN, -EBUSY */
    size_t bytes_max;     /* of one read */
    int error;            /* what the filter returns instead */
    bool early;           /* it ends before its source */
    unsigned n;           /* filters on one response */
    size_t held;          /* the most memory that the exchange had */
} plan;

static ssize_t raise(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    int (*change)(int) = ctx;
    assert_true(size >= 1024);
    assert_ptr_equal(mk_filter_request(filter), current);
    if (plan.error)
        return plan.error;
    if (w.account.bytes > plan.held)
        plan.held = w.account.bytes;
    ssize_t n = mk_filter_read(filter, to, size < plan.bytes_max ? size : plan.bytes_max);
    plan.again += n == -EAGAIN;
    plan.busy += n == -EBUSY;
    for (ssize_t i = 0; i < n; i++)
        to[i] = (char)change((unsigned char)to[i]);
    return plan.early ? 0 : n;
}

static int next(int c)
{
    return c + 1;
}

static int upper(int c)
{
    return toupper(c);
}

static void filter(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    current = req;
    assert_int_equal(mk_response_filter(req, raise, (void *)next), 0);
    if (plan.n > 1)
        assert_int_equal(mk_response_filter(req, raise, (void *)upper), 0);
}

static void open_filtered(handler_fn *handler)
{
    memset(&plan, 0, sizeof(plan));
    plan.bytes_max = SIZE_MAX;
    plan.n = 1;
    mk__thread_pool_open(&jobs, 1);
    assert_int_equal(mk_test_world_open(&w, &jobs), 0);
    w.handler = handler;
    w.on_response = filter;
    assert_int_equal(mk_test_http_open(&w), 0);
}

static void close_filtered(void)
{
    if (w.http.loop)
        mk__conn_abort_all(&w.http);
    mk__thread_pool_close(&jobs);
    close_world();
}

/* ── output ── */

static void two_parts(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    assert_int_equal(mk_response_write_ref(req, MK_STR("abc")), 0);
    assert_int_equal(mk_response_write(req, MK_STR("def")), 0);
    mk_response_end(req);
}

static void nothing(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    mk_response_end(req);
}

static void not_modified(struct mk_request *req, struct mk_test_world *world)
{
    mk_response_set_status(req, 304);
    two_parts(req, world);
}

static void test_framing(void **state)
{
    static const struct {
        const char *request;
        handler_fn *handler;
        unsigned n;
        const char *answer;
    } cases[] = {
        {REQUEST("GET", "1"), two_parts, 1,
         OK "Transfer-Encoding: chunked\r\n\r\n0003\r\nbcd\r\n0003\r\nefg\r\n0\r\n\r\n"},
        {REQUEST("GET", "1"), two_parts, 2,
         OK "Transfer-Encoding: chunked\r\n\r\n0003\r\nBCD\r\n0003\r\nEFG\r\n0\r\n\r\n"},
        {REQUEST("GET", "0"), two_parts, 1, OK "Connection: close\r\n\r\nbcdefg"},
        {REQUEST("HEAD", "1"), two_parts, 1, OK "Transfer-Encoding: chunked\r\n\r\n"},
        {REQUEST("GET", "1"), nothing, 1, OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {REQUEST("GET", "1"), not_modified, 1, "HTTP/1.1 304 Not Modified\r\n" STAMP "\r\n"},
        {REQUEST("GET", "1"), generate_x, 1, OK "Transfer-Encoding: chunked\r\n\r\n0001\r\ny\r\n0\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_filtered(cases[i].handler);
        plan.n = cases[i].n;
        expect_received(mk_test_connect(&w, mk_str_c(cases[i].request)), cases[i].answer);
        close_filtered();
    }
}

static void ask_length(struct mk_request *req, struct mk_test_world *world)
{
    uint64_t bytes = 0;
    assert_true(mk_response_get_length(req, &bytes));
    assert_int_equal(bytes, 6);
    filter(req, world);
    assert_false(mk_response_get_length(req, &bytes));
    assert_int_equal(mk_response_set_length(req, 6), 0);
    assert_true(mk_response_get_length(req, &bytes));
}

static void test_the_length_is_known_before_and_not_after(void **state)
{
    (void)state;
    open_filtered(two_parts);
    w.on_response = ask_length;
    expect_received(mk_test_connect(&w, MK_STR(GET)), OK "Content-Length: 6\r\n\r\nbcdefg");
    close_filtered();
}

/* ── pieces ── */

static void one_piece(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    current = req;
    assert_int_equal(mk_response_write(req, MK_STR("tick")), 0);
}

static void test_pieces_come_as_they_are_written(void **state)
{
    (void)state;
    open_filtered(one_piece);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, OK "Transfer-Encoding: chunked\r\n\r\n0004\r\nujdl\r\n");
    assert_string_equal(mk_test_state(c), "handler");
    assert_int_equal(plan.again, 1);
    assert_int_equal(mk_response_write(current, MK_STR("tack")), 0);
    expect_received(c, "0004\r\nubdl\r\n");
    mk_response_end(current);
    expect_received(c, "0\r\n\r\n");
    assert_string_equal(mk_test_state(c), "idle");
    close_filtered();
}

static unsigned refills;

static void refill(struct mk_request *req, void *ctx)
{
    static char block[40000];
    (void)ctx;
    memset(block, 'a', sizeof(block));
    while (refills && mk_response_write(req, mk_str(block, sizeof(block))) == 0)
        refills--;
    if (refills)
        refills--; /* the one that came with MK_AGAIN */
    else
        mk_response_end(req);
}

static void much(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    refills = 20;
    mk_response_on_writable(req, refill, NULL);
    refill(req, NULL);
}

/* 20 x 40,000 bytes: never more than the queue may hold, and in turns of 64 KB. */
static void test_much_goes_in_turns(void **state)
{
    (void)state;
    open_filtered(much);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    mk_test_settle(&w);
    struct mk_str all = mk_test_received(c);
    const char *text = strstr(all.p, "\r\n\r\n") + 4;
    assert_int_equal(strspn(text, "b"), 800000);
    assert_int_equal(all.len - (size_t)(text - all.p), 800000);
    assert_true(plan.busy >= 800000 / (64 * 1024 + 32 * 1024));
    assert_true(plan.held < 200 * 1024); /* the queue's 64 KB and a part, and the scratch buffers */
    close_filtered();
}

static void test_a_slow_client(void **state)
{
    (void)state;
    open_filtered(two_parts);
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
    close_filtered();
}

/* ── answers that cannot be completed ── */

static void shorter_than_announced(struct mk_request *req, struct mk_test_world *world)
{
    mk_response_set_length(req, 10);
    two_parts(req, world);
}

static void longer_than_announced(struct mk_request *req, struct mk_test_world *world)
{
    mk_response_set_length(req, 2);
    two_parts(req, world);
}

static void given_up(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    mk_response_write(req, MK_STR("abc"));
    mk_response_abort(req);
}

static void test_incomplete_answers_have_no_last_chunk(void **state)
{
    static const struct {
        handler_fn *handler;
        int error;
        bool early;
    } cases[] = {
        {shorter_than_announced, 0, false},
        {longer_than_announced, 0, false},
        {given_up, 0, false},
        {two_parts, -EIO, false},
        {two_parts, 0, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_filtered(cases[i].handler);
        plan.error = cases[i].error;
        plan.early = cases[i].early;
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
        mk_test_settle(&w);
        assert_null(strstr(mk_test_received(c).p, "0\r\n\r\n"));
        assert_int_equal(w.aborted, 1);
        close_filtered();
    }
}

static void late_error(struct mk_request *req, struct mk_test_world *world)
{
    filter(req, world);
    assert_int_equal(mk_response_header(req, MK_STR("Content-Encoding"), MK_STR("gzip")), 0);
    assert_int_equal(mk_response_replace(req, MK_STR("text/plain"), MK_STR("abc")), 0);
}

static void test_another_body_is_not_filtered(void **state)
{
    (void)state;
    open_filtered(two_parts);
    w.on_response = late_error;
    expect_received(mk_test_connect(&w, MK_STR(GET)), OK "Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc");
    close_filtered();
}

static void too_late(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    current = req;
    mk_response_write(req, MK_STR("x"));
}

static void test_too_late(void **state)
{
    (void)state;
    open_filtered(too_late);
    w.on_response = NULL;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(mk_response_filter(current, raise, (void *)next), -EALREADY);
    mk_response_end(current);
    mk_test_settle(&w);
    assert_non_null(strstr(mk_test_received(c).p, "x"));
    close_filtered();
}

/* ── files ── */

enum { FILE_BYTES = 1 << 20 };

static void send_file(struct mk_request *req, struct mk_test_world *world)
{
    (void)world;
    int fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(mk_response_write_ref(req, MK_STR("<")), 0);
    assert_true(mk_response_write_file(req, fd, 1, FILE_BYTES - 1) >= 0);
    assert_true(mk_response_write_ref(req, MK_STR(">")) >= 0);
    mk_response_end(req);
}

static void ask_for_file(void)
{
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    mk_test_settle(&w);
    for (int i = 0; i < 1000 && strcmp(mk_test_state(c), "disk") == 0; i++)
        assert_true(mk_test_wait_mail(&w));
    struct mk_str all = mk_test_received(c);
    const char *text = strstr(all.p, "\r\n\r\n") + 4;
    assert_int_equal(all.len - (size_t)(text - all.p), FILE_BYTES + 1);
    assert_int_equal(text[0], '=');
    for (size_t i = 1; i < FILE_BYTES; i++)
        if (text[i] != (char)('a' + i / 7 % 25 + 1))
            fail_msg("byte %zu is wrong", i);
    assert_int_equal(text[FILE_BYTES], '?');
}

static void test_files(void **state)
{
    (void)state;
    unsigned before = mk_test_descriptors();
    open_filtered(send_file);
    ask_for_file();
    close_filtered();
    assert_int_equal(mk_test_descriptors(), before);
}

static void test_cold_files(void **state)
{
    (void)state;
    unsigned before = mk_test_descriptors();
    int fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    open_filtered(send_file);
    ask_for_file();
    close_filtered();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_the_length_is_known_before_and_not_after),
        cmocka_unit_test(test_pieces_come_as_they_are_written),
        cmocka_unit_test(test_much_goes_in_turns),
        cmocka_unit_test(test_a_slow_client),
        cmocka_unit_test(test_incomplete_answers_have_no_last_chunk),
        cmocka_unit_test(test_another_body_is_not_filtered),
        cmocka_unit_test(test_too_late),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_cold_files),
    };
    return cmocka_run_group_tests(tests, set_up, mk_test_folder_remove);
}
