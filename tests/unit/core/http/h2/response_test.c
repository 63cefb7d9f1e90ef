// SPDX-License-Identifier: Apache-2.0
/* Answers on streams: which have a body, what their fields say, where bytes come from, and those that break off. */
#include "http/h2_fixture.h"

#include <errno.h>

/* What the handler and the filters of a test do. */
static struct {
    int status;
    size_t length; /* announced; SIZE_MAX: it is not */
    size_t bytes;  /* of a generator, or of a file */
    size_t at;     /* so many of them have gone */
    size_t once;   /* bytes of one call */
    int error;     /* what comes instead of more */
    bool waits;    /* -EAGAIN once */
    unsigned calls, busy;
} plan;

static void start_plan(void)
{
    memset(&plan, 0, sizeof(plan));
    plan.length = SIZE_MAX;
    plan.once = SIZE_MAX;
}

static ssize_t generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    size_t n = plan.bytes - plan.at < size ? plan.bytes - plan.at : size;
    (void)req, (void)ctx;
    plan.calls++;
    if (plan.waits) {
        plan.waits = false;
        return -EAGAIN;
    }
    if (n == 0)
        return -plan.error;
    n = n < plan.once ? n : plan.once;
    for (size_t i = 0; i < n; i++)
        to[i] = mk_test_byte(plan.at + i);
    plan.at += n;
    return (ssize_t)n;
}

static void give(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (plan.status)
        mk_response_set_status(req, plan.status);
    if (plan.length != SIZE_MAX)
        mk_response_set_length(req, plan.length);
    mk_response_generate(req, generate, NULL);
    mk_response_end(req);
}

static void nothing(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (plan.status)
        mk_response_set_status(req, plan.status);
    mk_response_end(req);
}

static void hello(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (plan.status)
        mk_response_set_status(req, plan.status);
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

static void later(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    if (plan.status)
        mk_response_set_status(req, plan.status);
    mk_response_write_ref(req, MK_STR("hello"));
}

static void error_404(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_error(req, 404);
}

/* ── which have a body ── */

TEST(bodies)
{
    static const struct {
        const char *method;
        int status;
        handler_fn *handler;
        const char *answer;
    } cases[] = {
        {"GET", 200, hello, HELLO_OF(1)},
        {"GET", 200, nothing, "1:200,content-length=0!"},
        {"GET", 200, generate_x, "1:200 1:\"x\"!"},
        {"GET", 200, give, "1:200 1:!"},
        {"HEAD", 200, hello, "1:200,content-length=5!"},
        {"HEAD", 200, nothing, "1:200,content-length=0!"},
        {"HEAD", 200, generate_x, "1:200!"},
        {"GET", 204, nothing, "1:204!"},
        {"GET", 204, hello, "1:204!"},
        {"GET", 204, give, "1:204!"},
        {"GET", 304, nothing, "1:304!"},
        {"GET", 304, hello, "1:304!"},
        {"GET", 205, nothing, "1:205,content-length=0!"},
        {"GET", 205, hello, "1:205,content-length=0!"},
        {"GET", 404, error_404, "1:404,content-type=text/html; charset=utf-8,content-length=* 1:#*!"},
        {"HEAD", 404, error_404, "1:404,content-type=text/html; charset=utf-8,content-length=*!"},
        {"GET", 599, hello, "1:599,content-length=5 1:\"hello\"!"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char fields[128];
        start_plan();
        plan.status = cases[i].status;
        struct mk_test_h2 t = h2_open(cases[i].handler);
        snprintf(fields, sizeof(fields), ":method %s|:scheme http|:path /|:authority h", cases[i].method);
        h2_head(&t, 1, END_HEADERS | END_STREAM, fields);
        h2_expect(&t, cases[i].answer);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, 0);
        assert_string_equal(mk_test_state(t.end), "idle");
        h2_close(&t);
    }
}

/* The head leaves before the end is known. */
TEST(ends_that_come_later)
{
    static const struct {
        const char *method;
        int status;
        const char *first, *second;
    } cases[] = {
        {"GET", 200, "1:200 1:\"hello\"", "1:!"},
        {"HEAD", 200, "1:200", "1:!"},
        {"GET", 304, "1:304", "1:!"},
        {"GET", 204, "1:204", "1:!"},
        {"GET", 205, "1:205,content-length=0", "1:!"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char fields[128];
        start_plan();
        plan.status = cases[i].status;
        struct mk_test_h2 t = h2_open(later);
        snprintf(fields, sizeof(fields), ":method %s|:scheme http|:path /|:authority h", cases[i].method);
        h2_head(&t, 1, END_HEADERS | END_STREAM, fields);
        h2_expect(&t, cases[i].first);
        assert_int_equal(w.done, 0);
        mk_response_end(held_req);
        h2_expect(&t, cases[i].second);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

/* ── fields ── */

static void fields_of_all_kinds(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_header(req, MK_STR("X-One"), MK_STR("1")), 0);
    assert_int_equal(mk_response_header(req, MK_STR("Upgrade"), MK_STR("h3")), 0);
    assert_int_equal(mk_response_header(req, MK_STR("Proxy-Connection"), MK_STR("x")), 0);
    assert_int_equal(mk_response_header(req, MK_STR("TE"), MK_STR("trailers")), 0);
    assert_int_equal(mk_response_header(req, MK_STR("X-Empty"), MK_STR("")), 0);
    hello(req, fixture);
}

TEST(fields)
{
    start_plan();
    struct mk_test_h2 t = h2_open(fields_of_all_kinds);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200,x-one=1,x-empty=,content-length=5 1:\"hello\"!");
    h2_get_path(&t, 3, "/");
    mk_test_settle(&w);
    assert_int_equal(w.done, 2);
    h2_close(&t);
}

static void many_fields(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char value[100];
    unsigned n = 0;
    memset(value, 'v', sizeof(value));
    while (mk_response_header(req, MK_STR("X-Many"), mk_str(value, sizeof(value))) == 0)
        n++;
    assert_true(n >= 60);
    hello(req, fixture);
}

TEST(as_many_as_there_may_be)
{
    start_plan();
    struct mk_test_h2 t = h2_open(many_fields);
    h2_get_path(&t, 1, "/");
    mk_test_settle(&w);
    h2_listen(&t);
    assert_non_null(strstr(t.log.p, ",content-length=5 1:\"hello\"!"));
    h2_close(&t);
}

static void too_much(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static char value[70000];
    struct mk_str name = MK_STR("X-Much"), much = mk_str(value, sizeof(value));
    memset(value, 'v', sizeof(value));
    assert_int_equal(plan.status ? mk_response_trailer(req, name, much) : mk_response_header(req, name, much), 0);
    hello(req, fixture);
}

/* More than 64 KB of fields: the client is notified at once. */
TEST(more_than_there_may_be)
{
    static const char *const heard[] = {"1:RST(2)", "1:200 1:\"hello\" 1:RST(2)"};
    for (int trailers = 0; trailers < 2; trailers++) {
        start_plan();
        plan.status = trailers ? 200 : 0;
        struct mk_test_h2 t = h2_open(too_much);
        h2_get_path(&t, 1, "/");
        h2_expect(&t, heard[trailers]);
        assert_int_equal(w.done, 1);
        h2_close(&t);
    }
}

static void say_close(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_response_close_connection(req);
    hello(req, fixture);
}

/* The connection is not its own: others may be under way. It is shut down gracefully. */
TEST(a_response_that_closes)
{
    start_plan();
    struct mk_test_h2 t = h2_open(say_close);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "*PING*");
    h2_get_path(&t, 3, "/");
    h2_expect(&t, HELLO_OF(3));
    h2_ping(&t, true);
    h2_expect(&t, "GOAWAY(3,0)");
    assert_string_equal(mk_test_state(t.end), "linger");
    h2_close(&t);
}

/* ── where bytes come from ── */

TEST(generators)
{
    static const struct {
        size_t bytes, once, length;
        bool waits;
    } cases[] = {
        {1, SIZE_MAX, SIZE_MAX, false},    {16384, SIZE_MAX, SIZE_MAX, false}, {16385, SIZE_MAX, 16385, false},
        {100000, 1, SIZE_MAX, false},      {100000, 1000, 100000, true},       {1000000, SIZE_MAX, SIZE_MAX, true},
        {3000000, 16383, SIZE_MAX, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        start_plan();
        plan.bytes = cases[i].bytes;
        plan.once = cases[i].once;
        plan.length = cases[i].length;
        plan.waits = cases[i].waits;
        struct mk_test_h2 t = h2_open(give);
        h2_open_wide(&t);
        h2_get_path(&t, 1, "/");
        mk_test_settle(&w);
        if (cases[i].waits)
            mk_response_wake(held_req);
        mk_test_settle(&w);
        h2_listen(&t);
        assert_int_equal(t.data[0], cases[i].bytes);
        assert_int_equal(t.log.p[t.log.len - 1], '!');
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

static unsigned refills;

static void refill(struct mk_request *req, void *ctx)
{
    static char block[40000];
    (void)ctx;
    while (refills) {
        for (size_t i = 0; i < sizeof(block); i++)
            block[i] = mk_test_byte(plan.at + i);
        plan.at += sizeof(block);
        refills--;
        if (mk_response_write(req, mk_str(block, sizeof(block))) != 0)
            break;
    }
    if (!refills)
        mk_response_end(req);
}

static void much(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    refills = 20;
    mk_response_on_writable(req, refill, NULL);
    refill(req, NULL);
}

TEST(a_handler_that_is_notified_of_room)
{
    start_plan();
    struct mk_test_h2 t = h2_open(much);
    h2_open_wide(&t);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200 1:#800000!");
    h2_close(&t);
}

static void much_of_known_length(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_response_set_length(req, 800000);
    much(req, fixture);
}

/* A response without a body drops what the handler writes, so that there is room again. */
TEST(a_handler_that_is_notified_of_room_without_a_body)
{
    static const struct {
        handler_fn *handler;
        const char *expected;
    } cases[] = {{much, "1:200 1:!"}, {much_of_known_length, "1:200,content-length=800000 1:!"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        start_plan();
        struct mk_test_h2 t = h2_open(cases[i].handler);
        h2_head(&t, 1, END_HEADERS | END_STREAM, ":method HEAD|:scheme http|:path /|:authority h");
        h2_expect(&t, cases[i].expected);
        assert_int_equal(refills, 0);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, 0);
        h2_close(&t);
    }
}

static unsigned endless_calls;

static void write_endlessly(struct mk_request *req, void *ctx)
{
    static const char block[40000];
    (void)ctx;
    endless_calls++;
    while (mk_response_write_ref(req, mk_str(block, sizeof(block))) == 0)
        ;
}

static void endless_or_small(struct mk_request *req, struct mk_test_fixture *fixture)
{
    if (!mk_str_eq(mk_request_path(req), MK_STR("/"))) {
        hello(req, fixture);
        return;
    }
    mk_response_on_writable(req, write_endlessly, NULL);
    write_endlessly(req, NULL);
}

/* A handler that never stops writing, to a client that takes all: other streams are served, and each turn ends. */
TEST(a_handler_that_writes_without_end)
{
    static const char *const methods[] = {"GET", "HEAD"};
    enum { TURNS = 20, CALLS_PER_TURN = 10 };
    for (size_t i = 0; i < COUNT(methods); i++) {
        char fields[100];
        snprintf(fields, sizeof(fields), ":method %s|:scheme http|:path /|:authority h|priority i", methods[i]);
        endless_calls = 0;
        struct mk_test_h2 t = h2_open(endless_or_small);
        h2_open_wide(&t);
        h2_head(&t, 1, END_HEADERS | END_STREAM, fields);
        for (unsigned n = 0; n < TURNS; n++)
            assert_int_equal(mk__loop_turn(&w.loop), 0);
        assert_in_range(endless_calls, TURNS / 2, TURNS * CALLS_PER_TURN);
        h2_get_path(&t, 3, "/small");
        for (unsigned n = 0; n < TURNS; n++)
            assert_int_equal(mk__loop_turn(&w.loop), 0);
        assert_int_equal(w.done, 1); /* the small one */
        assert_int_equal(w.aborted, 0);
        h2_rst(&t, 1);
        mk_test_settle(&w);
        assert_int_equal(w.done, 2);
        assert_int_equal(w.aborted, 1);
        h2_close(&t);
    }
}

/* ── filters ── */

static ssize_t pass_on(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    assert_true(size >= MK_FILTER_BYTES_MIN);
    ssize_t n = mk_filter_read(filter, to, size);
    (void)ctx;
    plan.busy += n == -EBUSY;
    if (plan.error == EPIPE && n > 0)
        return 0; /* it ends before what is below */
    return plan.error && n == 0 ? -plan.error : n;
}

static void filter(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_filter(req, pass_on, NULL), 0);
}

TEST(filters)
{
    static const struct {
        handler_fn *handler;
        int error;
        const char *answer;
    } cases[] = {
        {hello, 0, "1:200 1:\"hello\"!"},
        {nothing, 0, "1:200 1:!"},
        {hello, EIO, "1:200*1:RST(2)"},
        {hello, EPIPE, "1:200 1:RST(2)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        start_plan();
        plan.error = cases[i].error;
        struct mk_test_h2 t = h2_open(cases[i].handler);
        w.on_response = filter;
        h2_get_path(&t, 1, "/");
        h2_expect(&t, cases[i].answer);
        assert_int_equal(w.aborted, cases[i].error != 0);
        h2_close(&t);
    }
}

/* Filters have the same room, whatever the client's windows say. */
TEST(filters_and_small_windows)
{
    start_plan();
    struct mk_test_h2 t = h2_open(hello);
    h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1);
    h2_expect(&t, "ACK");
    w.on_response = filter;
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200 1:\"h\"");
    h2_window(&t, 1, 2);
    h2_expect(&t, "1:\"el\"");
    h2_window(&t, 1, 2000);
    h2_expect(&t, "1:\"lo\"!");
    h2_close(&t);
}

TEST(filters_take_turns)
{
    start_plan();
    struct mk_test_h2 t = h2_open(much);
    h2_open_wide(&t);
    w.on_response = filter;
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200 1:#800000!");
    assert_true(plan.busy >= 800000 / (64 * 1024 + 40000));
    h2_close(&t);
}

TEST(a_filtered_piece_comes_when_it_is_written)
{
    start_plan();
    struct mk_test_h2 t = h2_open(later);
    w.on_response = filter;
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200 1:\"hello\"");
    assert_int_equal(mk_response_write_ref(held_req, MK_STR("more")), 0);
    h2_expect(&t, "1:\"more\"");
    mk_response_end(held_req);
    h2_expect(&t, "1:!");
    h2_close(&t);
}

/* ── those that break off ── */

static void fail_at_once(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_abort(req);
}

static void too_short(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_response_set_length(req, 6);
    hello(req, fixture);
}

static void too_long(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_response_set_length(req, 4);
    hello(req, fixture);
}

static void fail_generator(struct mk_request *req, struct mk_test_fixture *fixture)
{
    plan.bytes = 5;
    plan.error = EIO;
    give(req, fixture);
}

static void short_generator(struct mk_request *req, struct mk_test_fixture *fixture)
{
    plan.bytes = 5;
    plan.length = 6;
    give(req, fixture);
}

static void long_generator(struct mk_request *req, struct mk_test_fixture *fixture)
{
    plan.bytes = 40000;
    plan.length = 39999;
    give(req, fixture);
}

/* ── trailers ── */

static void give_trailers(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    mk_response_write(req, MK_STR("hello"));
    mk_response_trailer(req, MK_STR("Keep-Alive"), MK_STR("timeout=5"));
    mk_response_trailer(req, MK_STR("X-A"), MK_STR("b"));
    mk_response_trailer(req, MK_STR("Upgrade"), MK_STR("h2c"));
    mk_response_trailer(req, MK_STR("Proxy-Connection"), MK_STR("close"));
    mk_response_end(req);
}

TEST(trailers)
{
    start_plan();
    struct mk_test_h2 t = h2_open(give_trailers);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200 1:\"hello\",x-a=b!");
    h2_close(&t);
}

/* The client can tell that it has not got all of it, and the connection continues. */
TEST(incomplete_answers)
{
    static const struct {
        handler_fn *handler;
        const char *answer;
    } cases[] = {
        {fail_at_once, "1:RST(2)"},
        {too_short, "1:200,content-length=6*1:RST(2)"},
        {too_long, "1:200,content-length=4*1:RST(2)"},
        {fail_generator, "1:200*1:RST(2)"},
        {short_generator, "1:200,content-length=6*1:RST(2)"},
        {long_generator, "1:200,content-length=39999*1:RST(2)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        start_plan();
        struct mk_test_h2 t = h2_open(cases[i].handler);
        h2_get_path(&t, 1, "/");
        h2_expect(&t, cases[i].answer);
        assert_null(memchr(t.log.p, '!', strlen(t.log.p)));
        assert_int_equal(w.aborted, 1);
        w.handler = NULL;
        h2_get_path(&t, 3, "/");
        h2_expect(&t, HELLO_OF(3));
        h2_close(&t);
    }
}

TEST(given_up_amid)
{
    start_plan();
    struct mk_test_h2 t = h2_open(later);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200 1:\"hello\"");
    mk_response_abort(held_req);
    h2_expect(&t, "1:RST(2)");
    assert_int_equal(w.aborted, 1);
    h2_close(&t);
}
