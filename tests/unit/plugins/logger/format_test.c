// SPDX-License-Identifier: Apache-2.0
/* Formats: how they are read, what is wrong with those that cannot be, and what each field says of a request. */
#include "arena.h"
#include "http/client_addr.h"
#include "http/request.h"
#include "plugins/logger/logger.h"
#include "testing.h"

#include <errno.h>
#include <stdio.h>

TEST(directives)
{
    assert_string_equal(foreign_find_directive(MK_STR("%h %u")), "client");
    assert_string_equal(foreign_find_directive(MK_STR("%{Referer}i")), "header_NAME");
    assert_null(foreign_find_directive(MK_STR("100%")));
    assert_null(foreign_find_directive(MK_STR("%")));
    assert_null(foreign_find_directive(MK_STR("")));
}

static char reason[512], storage[LINE_BYTES_MAX];
static struct line l;

static int parse(const char *text, struct format *ret, size_t *ret_fault)
{
    struct mk_buf error;
    struct mk_str words = mk_str_c(text);
    struct mk_conf_value value = {.text = words, .words = &words, .n = 1, .fault = ret_fault};
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    int err = format_parse(&value, ret, &arena, &error);
    mk_buf_cstr(&error);
    return err;
}

static struct mk_field lines[16];

static struct mk_connection *conn_of(const struct mk_request *req)
{
    static struct mk_connection conn;
    (void)req;
    return &conn;
}

static int secured(const struct mk_io *io, struct mk_tls_info *ret)
{
    (void)io;
    *ret = (struct mk_tls_info){.version = MK_STR("TLSv1.3"), .cipher = MK_STR("AES"), .client = MK_STR("CN=a b")};
    return 0;
}

static const struct mk_transport plain = {.name = "plain"}, encrypted = {.name = "encrypted", .tls_info = secured};
static struct mk_io io = {.transport = &plain};

static const struct mk_io *io_of(const struct mk_request *req)
{
    (void)req;
    return &io;
}

static const struct mk__request_ops request_ops = {.major = 1, .conn = conn_of, .io = io_of};

/* Of a client of which nothing is known. */
static struct mk_request make_request(const char *text)
{
    static const struct mk__parse_limits limits = {.line_bytes_max = 8192, .head_bytes_max = 16384, .fields_max = 16};
    struct mk_request req = {.status = 200,
                             .output_state = MK__OUTPUT_COMPLETE,
                             .fields = lines,
                             .base = text,
                             .path = MK_STR("/p \xff"),
                             .ops = &request_ops,
                             .client_known = true};
    if (mk__parse_head(&req.parse, lines, &limits, mk_str_c(text)) == 0)
        mk__request_head_read(&req.parse, lines, text, NULL, &req.head);
    return req;
}

static struct mk_str format(const char *text, struct mk_request *req)
{
    struct format f;
    struct log_entry e = {req, 3};
    size_t fault;
    assert_int_equal(parse(text, &f, &fault), 0);
    line_set_time(&l, 784111777, 123);
    line_begin(&l, storage, f.fixed);
    format_put(&f, &l, &e);
    return mk_str(storage, line_length(&l));
}

#define REQUEST \
    "GET /p%20%ff?q HTTP/1.1\r\nHost: h:80\r\nUser-Agent: a \"b\"\r\nX-Own: 1\r\nX-Own: 2\r\n" \
    "traceparent: 00-1\r\n\r\n"

TEST(fields)
{
    static const struct {
        const char *format, *line;
    } rows[] = {
        {"$method $target $path $query $host $protocol $status", "GET /p%20%ff?q /p\\x20\\xff q h HTTP/1.1 200"},
        {"\"$path\" \"$agent\" $agent", "\"/p \\xff\" \"a \\x22b\\x22\" a\\x20\\x22b\\x22"},
        {"$header_x_own ${header_X-Own} $(header_none)", "1,\\x202 1,\\x202 -"},
        {"$time_clf|$time_iso8601|$time_unix|$time_unix_ms",
         "06/Nov/1994:08:49:37 +0000|1994-11-06T08:49:37.123Z|784111777|784111777123"},
        {"$$5 $$$status.", "$5 $200."},
        {"$worker$aborted${user}x", "3--x"},
        {"\"$request\" $request", "\"GET /p%20%ff?q HTTP/1.1\" GET\\x20/p%20%ff?q\\x20HTTP/1.1"},
        {"$bytes_in $body_bytes_in $bytes_out $body_bytes_out", "104 7 45 42"},
        {"$request_time_us $first_byte_us $referer $tls_version $tls_cipher", "- - - - -"},
        {"common", "- - - [06/Nov/1994:08:49:37 +0000] \"GET /p%20%ff?q HTTP/1.1\" 200 42"},
        {"json $status $agent $referer $query $aborted $time_iso8601 $request_time_us",
         "{\"status\":200,\"agent\":\"a \\u0022b\\u0022\",\"referer\":null,\"query\":\"q\",\"aborted\":false,"
         "\"time_iso8601\":\"1994-11-06T08:49:37.123Z\",\"request_time_us\":null}"},
        {"json $path $request", "{\"path\":\"/p \\u00ff\",\"request\":\"GET /p%20%ff?q HTTP/1.1\"}"},
    };
    struct mk_request req = make_request(REQUEST);
    req.body_bytes = 7;
    req.head_bytes = 3;
    req.sent_bytes = 42;
    mk_arena_init(&req.arena, NULL, 4096, NULL, 0);
    assert_int_equal(req.parse.head_len, strlen(REQUEST));
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str_equal(format(rows[i].format, &req), rows[i].line);
    io.transport = &encrypted;
    assert_str_equal(format("$tls_version $tls_cipher $tls_server_name $tls_client", &req), "TLSv1.3 AES - CN=a\\x20b");
    io.transport = &plain;
    mk_arena_release(&req.arena);
}

TEST(garbage)
{
    struct mk_request req = make_request("GARBAGE\r\n\r\n");
    req.status = 400;
    req.path = MK_STR("");
    struct mk_str line = format("\"$request\" $target $host $agent $status", &req);
    assert_true(line.len > 10 && memmem(line.p, line.len, "- - - 400", 9));
}

TEST(mistakes)
{
    static const struct {
        const char *format, *sentence;
        size_t fault;
    } rows[] = {
        {"", "a format is common, combined, json", 0},
        {"$status $stauts", "no variable \"stauts\"; did you mean \"status\"?", 8},
        {"$header_", "there is no variable \"header_\"", 0},
        {"$status $remote_addr", "there is no variable \"remote_addr\"; did you mean \"client\"?", 8},
        {"a %h %u", "a variable begins with a dollar: write $client in place of %h", 2},
        {"[%>s]", "a variable begins with a dollar: write $status in place of %>", 1},
        {"$xyzzy", "there is no variable \"xyzzy\"; the page", 0},
        {"a $", "a dollar needs", 2},
        {"a $-", "a dollar needs", 2},
        {"${}", "a dollar needs", 0},
        {"${status", "a dollar needs", 0},
        {"$(status}", "a dollar needs", 0},
        {"json status", "behind \"json\" stand variables only", 5},
        {"json $status,$path", "variables only", 12},
        {"json $status $", "a dollar needs", 13},
        {"$(header_a:b)", "is not the name of a header", 0},
    };
    struct format f;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t fault = 99;
        assert_int_equal(parse(rows[i].format, &f, &fault), -EINVAL);
        if (!strstr(reason, rows[i].sentence) || fault != rows[i].fault)
            fail_msg("%s: %s, at %zu", rows[i].format, reason, fault);
    }
}

TEST(too_long)
{
    static char text[100 * 8 + 1];
    struct format f;
    size_t fault;
    for (int i = 0; i < 100; i++)
        memcpy(text + 8 * i, "$status ", 8);
    assert_int_equal(parse(text, &f, &fault), -EINVAL);
    assert_non_null(strstr(reason, "too long"));
}

/* All of them, with the most that a client can send: the line still fits. */
TEST(every_field_at_once)
{
    static char text[8192];
    struct format f;
    size_t fault, n = 0;
    n += (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: ");
    memset(text + n, '\xff', 6000);
    memcpy(text + n + 6000, "\r\n\r\n", 5);
    struct mk_request req = make_request(text);
    struct log_entry e = {&req, 0};
    req.id = MK_STR("id");
    char *room = mk_test_guarded(storage, LINE_BYTES_MAX);
    assert_int_equal(parse("json $agent $agent $time_clf $status $user $method $aborted $worker", &f, &fault), 0);
    line_begin(&l, room, f.fixed);
    format_put(&f, &l, &e);
    line_put_char(&l, '\n');
    assert_true(line_length(&l) <= LINE_BYTES_MAX);
    assert_memory_equal(l.at - 12, "\"worker\":0}\n", 12);
    mk_test_unguard(room, LINE_BYTES_MAX);
}

/* A value that fits alone is not cut for others that are short; one that does not fit leaves room for them. */
TEST(long_values_leave_room)
{
    static char text[8192];
    struct format f;
    size_t fault, n = 0;
    char many[2048] = "json";
    n += (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: ");
    memset(text + n, 'a', 6000);
    memcpy(text + n + 6000, "\r\n\r\n", 5);
    struct mk_request req = make_request(text);
    struct log_entry e = {&req, 0};
    for (int i = 0; i < 40; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), " $agent");
    const struct {
        const char *format;
        unsigned n, least[2], most[2]; /* lengths of the first two values of the agent */
    } rows[] = {
        {"json $agent $host $path $user $method $client $peer $protocol $traceparent", 1, {6000}, {6000}},
        {"json $agent $agent $method", 2, {6000, 1900}, {6000, 2100}},
        {"json $agent $agent $agent $agent $agent $method", 5, {5000, 250}, {6000, 1100}},
        {many, 40, {90, 90}, {200, 200}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(parse(rows[i].format, &f, &fault), 0);
        line_begin(&l, storage, f.fixed);
        format_put(&f, &l, &e);
        line_put_char(&l, '\0');
        const char *at = storage;
        for (unsigned k = 0; k < rows[i].n; k++) {
            at = strstr(at, "\"agent\":\"");
            assert_non_null(at);
            size_t len = strspn(at += strlen("\"agent\":\""), "a");
            assert_in_range(len, rows[i].least[k > 0], rows[i].most[k > 0]);
        }
        assert_true(i == 3 || strstr(storage, "\"method\":\"GET\""));
    }
}

TEST(lost)
{
    struct format f = {.json = true};
    line_set_time(&l, 784111777, 0);
    line_begin(&l, storage, FORMAT_LOST_FIXED);
    format_put_lost(&f, &l, 7);
    assert_str_equal(mk_str(storage, line_length(&l)), "{\"time_iso8601\":\"1994-11-06T08:49:37.000Z\",\"lost\":7}");
    f.json = false;
    line_begin(&l, storage, FORMAT_LOST_FIXED);
    format_put_lost(&f, &l, UINT64_MAX);
    assert_true(line_length(&l) <= FORMAT_LOST_FIXED);
}

static int parse_all(void *ctx)
{
    struct format f;
    size_t fault;
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    int err = parse("$header_a literal \"$status\"", &f, &fault);
    mk_arena_release(&arena);
    return err;
}

TEST(no_memory)
{
    mk_arena_release(&arena);
    assert_true(mk_test_failing_allocs(parse_all, NULL) > 0);
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
}

TEST_FILE(mk_test_arena_open, mk_test_arena_close)
