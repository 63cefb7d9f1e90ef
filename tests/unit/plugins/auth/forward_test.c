// SPDX-License-Identifier: Apache-2.0
#include "arena.h"
#include "harness.h"
#include "plugins/auth/rules.h"
#include "testing.h"

#include <errno.h>

/* Parses the words of `text`, which blanks separate. A value that is refused has a sentence. */
static int parse(mk_conf_parse_fn fn, const char *text, void *field)
{
    char storage[512];
    struct mk_buf error;
    struct mk_str words[32], rest = mk_str_c(text);
    struct mk_conf_value value = {.text = rest, .words = words};
    while (rest.len) {
        const char *end = memchr(rest.p, ' ', rest.len);
        size_t n = end ? (size_t)(end - rest.p) : rest.len;
        words[value.n++] = mk_str(rest.p, n);
        rest = mk_str(rest.p + n + (end != NULL), rest.len - n - (end != NULL));
    }
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = fn(&value, field, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    return err;
}

TEST(targets, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text, *authority, *path;
        bool is_tls;
        uint16_t port;
    } rows[] = {
        {"http://127.0.0.1:9000/verify", "127.0.0.1:9000", "/verify", false, 9000},
        {"HTTP://auth", "auth", "/", false, 80},
        {"https://auth.example.org/a?b=c/d", "auth.example.org", "/a?b=c/d", true, 443},
        {"https://[::1]:8443/", "[::1]:8443", "/", true, 8443},
        {"unix:/run/auth.sock", "localhost", "/", false, 0},
        {"unix:/run/auth.sock /verify?x", "localhost", "/verify?x", false, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_target t = {.path = MK_STR_NONE};
        assert_int_equal(parse(forward_parse_to, rows[i].text, &t), 0);
        assert_str_equal(t.authority, rows[i].authority);
        assert_str_equal(t.path, rows[i].path);
        assert_int_equal(t.is_tls, rows[i].is_tls);
        assert_int_equal(t.dial->port, rows[i].port);
        assert_str_equal(t.text, rows[i].text);
    }
}

TEST(wrong_targets, mk_test_arena_open, mk_test_arena_close)
{
    static const char *const texts[] = {
        "",       "127.0.0.1:80",  "ftp://a/",   "http://",     "http:///a",      "http://a@b/", "http://a:b/",
        "https:", "http://a/ /b",  "http://a?b", "http://a#b",  "http://a/b#c",   "http://a/\"", "http://a/\x7f",
        "unix:",  "unix:/a /b /c", "unix:/a b",  "http://a b/", "https://a:0x/c",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct mk_target t = {.path = MK_STR_NONE};
        if (parse(forward_parse_to, texts[i], &t) != -EINVAL)
            fail_msg("\"%s\" is accepted", texts[i]);
    }
}

TEST(header_names, mk_test_arena_open, mk_test_arena_close)
{
    struct forward_names names = {.n = 0};
    assert_int_equal(parse(forward_parse_names, "Remote-User x_groups", &names), 0);
    assert_int_equal(parse(forward_parse_names, "Authorization", &names), 0); /* a further line */
    assert_int_equal(names.n, 3);
    assert_true(forward_names_have(&names, MK_STR("remote_user")));
    assert_true(forward_names_have(&names, MK_STR("X-GROUPS")));
    assert_false(forward_names_have(&names, MK_STR("x-group")));
    static const char *const wrong[] = {
        "", "a:b", "Host", "content_length", "a TE", "X-Groups", "a A", "Connection", "a b c d e f g h i j k l m n",
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct forward_names copy = names;
        if (parse(forward_parse_names, wrong[i], &copy) != -EINVAL)
            fail_msg("\"%s\" is accepted", wrong[i]);
    }
}

TEST(header_name, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_str name = MK_STR_NONE;
    assert_int_equal(parse(forward_parse_name, "Remote-User", &name), 0);
    assert_str_equal(name, "Remote-User");
    assert_int_equal(parse(forward_parse_name, "", &name), -EINVAL);
    assert_int_equal(parse(forward_parse_name, "a b", &name), -EINVAL);
    assert_int_equal(parse(forward_parse_name, "Host", &name), -EINVAL);
}

TEST(without_memory, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_target t = {.path = MK_STR_NONE};
    struct forward_names names = {.n = 0};
    struct mk_str name;
    arena.bytes_max = 0;
    assert_int_equal(parse(forward_parse_to, "http://a", &t), -ENOMEM);
    assert_int_equal(parse(forward_parse_names, "a", &names), -ENOMEM);
    assert_int_equal(parse(forward_parse_name, "a", &name), -ENOMEM);
}

static struct mk_test_fixture w;
static const struct forward_conf question_conf = {
    .to = {.authority = MK_STR("auth:9000"), .path = MK_STR("/verify?x")},
    .copy = {{MK_STR("Remote-User"), MK_STR("Cookie")}, 2},
    .cache_by = {{MK_STR("Cookie"), MK_STR("X-Key")}, 2},
};

static void ask(void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture), const char *bytes)
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = handler;
    assert_int_equal(mk_test_http_open(&w), 0);
    mk_test_connect(&w, mk_str_c(bytes));
    mk_test_settle(&w);
    assert_int_equal(w.requests, 1);
    mk_test_fixture_close(&w);
}

#define GET(lines) "GET / HTTP/1.1\r\nHost: example.org\r\n" lines "\r\n"
#define SUBJECT "X-Forwarded-Method: GET\r\n"

static void write_head(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_buf head;
    (void)fixture;
    mk_buf_init(&head, FORWARD_HEAD_BYTES_MAX);
    forward_write_head(&head, req, &question_conf, MK_STR(SUBJECT), 1);
    assert_str_equal(mk_buf_str(&head),
                     "GET /verify?x HTTP/1.1\r\nHost: auth:9000\r\nCookie: a=b\r\nX-Key: 1\r\n"
                     "x_key: 2\r\n" SUBJECT "Via: 1.1 monkey-0000000000000001\r\nX-Request-Id: id7\r\n\r\n");
    mk_buf_release(&head);
    mk_response_end(req);
}

TEST(head)
{
    ask(write_head, GET("Cookie: a=b\r\nremote_user: root\r\nRange: "
                        "bytes=0-1\r\nX_Forwarded_Anything: x\r\nx-original-url: /a\r\nX-Key: 1\r\n"
                        "Content-Length: 0\r\nx_key: 2\r\nIf_Match: *\r\nConnection: x-gone, TE\r\nX-Gone: 1\r\n"
                        "TE: trailers\r\nX-Request-Id: id7\r\nExpect: 100-continue\r\nKeep-Alive: 1\r\n"));
}

static void write_deciding(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct mk_buf text;
    (void)fixture;
    mk_buf_init(&text, FORWARD_SUBJECT_BYTES_MAX);
    forward_write_deciding(&text, req, &question_conf);
    assert_str_equal(mk_buf_str(&text), "x_key: 1\r\nCOOKIE: a=b\r\nX-Key: \r\n");
    mk_buf_release(&text);
    mk_response_end(req);
}

TEST(deciding)
{
    ask(write_deciding, GET("x_key: 1\r\nCOOKIE: a=b\r\nAuthorization: x\r\nX-Key:\r\nCookies: 1\r\n"));
}

static bool is_valid;

static void check_connection(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    is_valid = forward_is_connection_valid(req, &question_conf);
    mk_response_end(req);
}

TEST(connection)
{
    static const struct {
        const char *bytes;
        bool is_valid;
    } rows[] = {
        {GET(""), true},
        {GET("Connection: close, x-other\r\nConnection: remote\r\n"), true},
        {GET("Connection: remote-user\r\n"), false},
        {GET("Connection: close\r\nConnection: x,REMOTE_USER\r\n"), false},
        {GET("Connection: cookie\r\n"), false},
        {GET("Connection: x_key, close\r\n"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ask(check_connection, rows[i].bytes);
        assert_int_equal(is_valid, rows[i].is_valid);
    }
}

TEST(decisions)
{
    static const unsigned passes[] = {200, 201, 204, 299}, refusals[] = {301, 302, 303, 307, 308, 400, 401, 403, 499};
    static const unsigned invalid[] = {100, 101, 199, 300, 304, 305, 306, 309, 399, 500, 502, 503, 599};
    for (size_t i = 0; i < COUNT(passes); i++)
        assert_int_equal(forward_decide(passes[i]), FORWARD_PASS);
    for (size_t i = 0; i < COUNT(refusals); i++)
        assert_int_equal(forward_decide(refusals[i]), FORWARD_REFUSE);
    for (size_t i = 0; i < COUNT(invalid); i++)
        assert_int_equal(forward_decide(invalid[i]), FORWARD_INVALID);
}

#define HEAD \
    "HTTP/1.1 200 OK\r\nRemote-User: ada\r\nremote-groups: a\r\nX-Empty:\r\nREMOTE-GROUPS: b, c\r\n" \
    "Remote_User: root\r\nRemote-Groups: d\r\nContent-Length: 0\r\n\r\n"

static struct mk_field fields[16];

static struct mk_http_response parse_head(void)
{
    static const struct mk_response_limits limits = {.head_bytes_max = 4096, .fields_max = COUNT(fields)};
    struct mk_response_parser parser;
    mk_response_parser_init(&parser, &limits, MK_RESPONSE_TO_OTHER);
    assert_int_equal(mk_response_parser_head(&parser, fields, MK_STR(HEAD)), 0);
    return (struct mk_http_response){.head = MK_STR(HEAD), .fields = fields, .n_fields = parser.n_fields};
}

TEST(values, mk_test_arena_open, mk_test_arena_close)
{
    const struct mk_http_response response = parse_head();
    const struct forward_conf conf = {.copy = {{MK_STR("Remote-Groups"), MK_STR("X-Empty"), MK_STR("X-None")}, 3},
                                      .user_header = MK_STR("Remote-User")};
    struct forward_answer answer;
    assert_int_equal(forward_read_answer(&answer, &conf, &response, &arena), 0);
    assert_int_equal(answer.n, 3);
    assert_str_equal(answer.values[0], "a, b, c, d");
    assert_true(answer.values[1].p && !answer.values[1].len);
    assert_null(answer.values[2].p);
    assert_str_equal(answer.user, "ada");
    const struct forward_conf small = {.copy = {{MK_STR("Remote-User")}, 1}};
    assert_int_equal(forward_read_answer(&answer, &small, &response, &arena), 0);
    assert_str_equal(answer.values[0], "ada");
    assert_null(answer.user.p);
    struct mk_arena full;
    mk_arena_init(&full, NULL, 0, NULL, 0);
    assert_int_equal(forward_read_answer(&answer, &conf, &response, &full), -ENOMEM);
    mk_arena_release(&full);
}
