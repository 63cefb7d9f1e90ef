// SPDX-License-Identifier: Apache-2.0
/* Exchanges on streams: the limits of their waits, resets, and memory that runs out everywhere. */
#include "http/h2_fixture.h"

#include "accessors.h"

#include <errno.h>
#include <monkey/tunnel.h>

/* ── the limits of waits, to the millisecond ── */

static void give_a_part_and_read(struct mk_request *req, struct mk_test_fixture *fixture)
{
    give_a_part(req, fixture);
    mk_request_read(req, gather, NULL);
}

static ssize_t never(struct mk_request *req, char *to, size_t size, void *ctx)
{
    (void)req, (void)to, (void)size, (void)ctx;
    return -EAGAIN;
}

static void generate_never(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_generate(req, never, NULL);
    mk_response_end(req);
}

static void take_over(struct mk_request *req, unsigned events, void *ctx)
{
    (void)req, (void)events, (void)ctx;
}

static void tunnel(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_request_take_over(req, take_over, NULL), 0);
}

enum { BODY = 1, CLOSED = 2, TUNNEL = 4 }; /* a body that does not come; a window that is closed */

static const struct {
    const char *name;
    handler_fn *handler;
    uint32_t ms;
    const char *before, *after;
    unsigned what;
} waits[] = {
    {"body", read_all, 30000, "", PAGE(408), BODY},
    {"body, after the head", give_a_part_and_read, 30000, "1:200 1:\"part\"", "1:RST(2)", BODY},
    {"handler", remember, 60000, "", PAGE(503), 0},
    {"handler, with a body that is not read", remember, 60000, "", PAGE(503), BODY},
    {"handler, after the head", give_a_part, 60000, "1:200 1:\"part\"", "1:RST(2)", 0},
    {"paused body", pause_body, 60000, "", PAGE(503), BODY},
    {"generator", generate_never, 60000, "1:200", "1:RST(2)", 0},
    {"send", NULL, 20000, "1:200,content-length=5", "1:RST(2)", CLOSED},
    {"send, without an end", give_a_part, 20000, "1:200", "1:RST(2)", CLOSED},
    {"tunnel", tunnel, 3600000, "1:200", "1:RST(2)", TUNNEL},
};

TEST(every_wait_has_its_limit)
{
    for (size_t i = 0; i < COUNT(waits); i++) {
        struct mk_test_h2 t = h2_open(waits[i].handler);
        if (waits[i].what & CLOSED) {
            h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
            h2_expect(&t, "ACK");
        }
        h2_head(&t, 1, END_HEADERS | (waits[i].what & (BODY | TUNNEL) ? 0 : END_STREAM),
                waits[i].what & TUNNEL ? HEAD("CONNECT", "/") "|:protocol x" : HEAD("GET", "/"));
        h2_expect(&t, waits[i].before);
        assert_string_equal(mk_test_state(t.end), "streams");
        for (uint32_t ms = 1000; ms < waits[i].ms; ms += 1000) { /* which others have nothing to do with */
            mk_test_pass(&w, 1000);
            h2_ping(&t, false);
            h2_expect(&t, "PONG");
        }
        mk_test_pass(&w, 999);
        h2_expect(&t, "");
        if (w.done)
            fail_msg("%s: ends too early", waits[i].name);
        mk_test_pass(&w, 1);
        h2_expect(&t, waits[i].after);
        if (!w.done)
            fail_msg("%s: ends too late", waits[i].name);
        assert_int_equal(w.aborted, waits[i].after[2] == 'R');
        w.handler = NULL;
        if (waits[i].what & CLOSED)
            h2_settings(&t, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65535);
        h2_get_path(&t, 3, "/");
        h2_expect(&t, "*" HELLO_OF(3)); /* the others are none the worse for it */
        h2_close(&t);
    }
}

TEST(each_stream_has_its_own)
{
    struct mk_test_h2 t = h2_open(remember);
    h2_get_path(&t, 1, "/");
    mk_test_pass(&w, 30000);
    h2_get_path(&t, 3, "/");
    mk_test_pass(&w, 29999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, PAGE(503));
    mk_test_pass(&w, 29999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "3:503*!");
    h2_close(&t);
}

TEST(limits_of_a_host)
{
    static struct mk__http_limits own;
    struct mk_test_h2 t = h2_open(remember);
    own = w.settings.limits;
    own.timeout_ms[MK__TIMEOUT_HANDLER] = 10;
    w.limits = &own;
    h2_get_path(&t, 1, "/");
    mk_test_pass(&w, 10);
    h2_expect(&t, PAGE(503));
    h2_close(&t);
}

/* ── resets ── */

static char block[10000];

TEST(a_client_takes_it_back)
{
    static const struct {
        handler_fn *handler;
        bool has_body;
    } cases[] = {
        {remember, false}, {read_all, true}, {pause_body, true}, {give_a_part, false}, {generate_never, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(cases[i].handler);
        size_t before = w.account.bytes;
        h2_head(&t, 1, END_HEADERS | (cases[i].has_body ? 0 : END_STREAM), HEAD("GET", "/"));
        if (cases[i].has_body)
            h2_data(&t, 1, 0, mk_str(block, sizeof(block)));
        mk_test_settle(&w);
        assert_int_equal(w.done, 0);
        h2_rst(&t, 1);
        mk_test_settle(&w);
        assert_int_equal(w.done, 1);
        assert_int_equal(w.aborted, 1);
        assert_string_equal(mk_test_state(t.end), "idle");
        h2_rst(&t, 1); /* once more does no harm */
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(t.end), "idle");
        h2_get_path(&t, 3, "/");
        h2_rst(&t, 3); /* in the same turn */
        mk_test_settle(&w);
        assert_int_equal(w.done, 2);
        assert_true(w.account.bytes < before + 32 * 1024); /* a head buffer stays */
        h2_close(&t);
    }
}

static void end_again(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    mk_response_end(req);
}

/* A hook that still calls the request when it is over. */
TEST(a_request_that_is_woken_at_its_end)
{
    for (int closes = 0; closes < 2; closes++) {
        struct mk_test_h2 t = h2_open(remember);
        w.on_done = end_again;
        h2_get_path(&t, 1, "/");
        h2_get_path(&t, 3, "/");
        mk_test_settle(&w);
        mk_response_end(held_req);
        h2_expect(&t, "3:200*!");
        if (closes)
            mk__conn_abort_all(&w.http);
        else
            h2_rst(&t, 1);
        mk_test_settle(&w);
        assert_int_equal(w.done, 2);
        if (!closes) {
            h2_get_path(&t, 5, "/");
            h2_expect(&t, "");
            mk_response_end(held_req);
            h2_expect(&t, "5:200*!");
        }
        h2_close(&t);
    }
}

TEST(heads_that_are_not_accepted)
{
    static const struct {
        const char *fields, *heard;
    } cases[] = {
        {HEAD("GET", "/%zz"), "1:400*!"},
        {HEAD("GET", "/a%2Fb"), "1:404*!"},
        {":method GET|:scheme foo|:path /|:authority h", "1:400*!"},
        {":method GET|:scheme foo|:path http://evil/x|:authority h", "1:400*!"},
        {":method GET|:scheme foo|:path x|:authority h", "1:400*!"},
        {":method GET|:scheme http|:path http://evil/x|:authority h", "1:RST(1)"},
        {":method GET|:scheme foo|:path *|:authority h", "1:400*!"},
        {":method OPTIONS|:scheme foo|:path *|:authority h", "1:400*!"},
        {":method CONNECT|:scheme foo|:path /|:authority h|:protocol websocket", "1:400*!"},
        {HEAD("GET", "/") "|host other", "1:400*!"},
        {":method GET|:scheme http|:path /", "1:RST(1)"},
        {":method GET|:scheme http|:authority h", "1:RST(1)"},
        {HEAD("GET", "/") "|Upper 1", "1:RST(1)"},
        {HEAD("GET", "/") "|connection close", "1:RST(1)"},
        {HEAD("GET", "/") "|transfer-encoding chunked", "1:RST(1)"},
        {"x y|:method GET|:scheme http|:path /|:authority h", "1:RST(1)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(NULL);
        h2_head(&t, 1, END_HEADERS | END_STREAM, cases[i].fields);
        h2_expect(&t, cases[i].heard);
        assert_int_equal(w.requests, 0);
        h2_get_path(&t, 3, "/");
        h2_expect(&t, HELLO_OF(3));
        h2_close(&t);
    }
}

static void show_to_hook(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_str *seen = fixture->ctx;
    call_accessors(req);
    if (mk_str_eq(mk_request_method_name(req), seen[0]) && mk_str_eq(mk_request_target(req), seen[1]))
        return;
    fail_msg("a hook sees \"%.*s %.*s\", not \"%.*s %.*s\"", MK_STR_ARG(mk_request_method_name(req)),
             MK_STR_ARG(mk_request_target(req)), MK_STR_ARG(seen[0]), MK_STR_ARG(seen[1]));
}

/* Logs and hooks see the head of a request that is refused, as far as it was read. */
TEST(hooks_see_refused_heads)
{
    static const struct {
        const char *fields, *heard;
        struct mk_str seen[2];
    } cases[] = {
        {HEAD("GET", "/a/path/of/some/length?query") "|expect nonsense",
         "1:417*!",
         {MK_STR("GET"), MK_STR("/a/path/of/some/length?query")}},
        {":method GET|:scheme foo|:path /y|:authority h", "1:400*!", {MK_STR("GET"), MK_STR("/y")}},
        {HEAD("OPTIONS", "/x") "|host other", "1:400*!", {MK_STR("OPTIONS"), MK_STR("/x")}},
        {HEAD("GET", "/many") "|a 1|a 2|a 3|a 4|a 5|a 6|a 7|a 8|a 9|a 10|a 11|a 12|a 13|a 14|a 15|a 16",
         "1:431*!",
         {MK_STR("GET"), MK_STR("/many")}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_test_h2 t = h2_open(NULL);
        struct mk_str seen[2] = {cases[i].seen[0], cases[i].seen[1]};
        w.ctx = seen;
        w.on_response = w.on_done = show_to_hook;
        h2_head(&t, 1, END_HEADERS | END_STREAM, cases[i].fields);
        h2_expect(&t, cases[i].heard);
        assert_int_equal(w.done, 1);
        h2_close(&t);
    }
}

/* ── memory ── */

static void fill_and_collect(struct mk_request *req, struct mk_test_fixture *fixture)
{
    mk_test_fill_arena(req);
    collect(req, fixture);
}

static void echo_ready(struct mk_request *req, unsigned events, void *ctx)
{
    char bytes[100];
    ssize_t n;
    (void)events, (void)ctx;
    while ((n = mk_tunnel_read(req, bytes, sizeof(bytes))) > 0)
        if (mk_tunnel_write(req, bytes, (size_t)n) < 0) {
            mk_response_abort(req);
            return;
        }
    if (n == 0)
        mk_tunnel_end(req);
}

static void echo(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    if (mk_request_take_over(req, echo_ready, NULL) < 0)
        mk_response_error(req, 503);
}

static const struct {
    handler_fn *handler;
    const char *fields;
    size_t room;
} scenarios[] = {
    {NULL, HEAD("GET", "/"), SIZE_MAX},
    {NULL, HEAD("POST", "/"), 60},
    {read_all, HEAD("POST", "/"), SIZE_MAX},
    {fill_and_collect, HEAD("POST", "/"), SIZE_MAX},
    {collect, LENGTH(6), 100},
    {pause_body, HEAD("POST", "/"), SIZE_MAX},
    {generate_x, HEAD("GET", "/"), SIZE_MAX},
    {remember, HEAD("GET", "/"), SIZE_MAX},
    {echo, HEAD("CONNECT", "/") "|:protocol x", SIZE_MAX},
    {NULL, HEAD("GET", "/%zz"), SIZE_MAX},
};

/* Whatever is missing: streams or the connection end, or continue, and nothing is lost. */
static void play(size_t i)
{
    open_fixture(scenarios[i].handler);
    struct mk_test_client *end = mk_test_connect(&w, MK_STR(""));
    if (end) {
        end->room = scenarios[i].room;
        struct mk_test_h2 t = h2_begin(end);
        for (int32_t id = 1; id <= 3; id += 2) {
            h2_head(&t, id, END_HEADERS, scenarios[i].fields);
            h2_data(&t, id, 0, MK_STR("abc"));
            mk_test_settle(&w);
            h2_data(&t, id, END_STREAM, MK_STR("def"));
        }
        mk_test_settle(&w);
        mk_test_take(end, SIZE_MAX);
        h2_goaway(&t);
        mk_test_pass(&w, MK_TEST_DAY_MS);
        assert_string_equal(mk_test_state(end), "closed");
        h2_free(&t);
    }
    assert_int_equal(w.closed, 1);
    close_fixture(); /* which says that nothing is left */
}

TEST(every_allocation_may_fail)
{
    for (size_t i = 0; i < COUNT(scenarios); i++) {
        for (long n = 3;; n++) { /* the first three are mk__http_init's */
            mk__alloc_countdown = n;
            play(i);
            bool all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            if (all_fine)
                break;
            assert_true(n < 1000);
        }
    }
}

/* What a connection took is given back when it goes, whatever was under way. */
TEST(the_account_is_back_where_it_was)
{
    for (size_t i = 0; i < COUNT(scenarios); i++) {
        struct mk_test_h2 t = h2_open(scenarios[i].handler), second;
        h2_get_path(&t, 1, "/");
        mk_test_settle(&w);
        size_t before = w.account.bytes;
        for (int round = 0; round < 3; round++) {
            second = h2_connect();
            h2_head(&second, 1, END_HEADERS, scenarios[i].fields);
            h2_data(&second, 1, 0, MK_STR("abcdef"));
            h2_head(&second, 3, 0, scenarios[i].fields); /* amid a head */
            mk_test_settle(&w);
            assert_true(w.account.bytes > before);
            mk_test_reset(second.end);
            mk_test_settle(&w);
            h2_free(&second);
        }
        assert_true(w.account.bytes <= before + 4 * MK__REQUEST_BYTES + 64); /* of pools, which keep a block */
        h2_close(&t);
    }
}
