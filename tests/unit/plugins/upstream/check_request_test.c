// SPDX-License-Identifier: Apache-2.0
/* The requests of checks: HTTP, and FastCGI variables. */
#include "testing.h"

#include "plugins/upstream/checks.h"

#include <monkey/kit/fastcgi.h>

enum { HEADER = MK_FASTCGI_HEADER_BYTES };

static struct check_conf conf;
static struct mk_buf out;

static int set_up(void **state)
{
    (void)state;
    conf = (struct check_conf){.what = {CHECK_FASTCGI, MK_STR("/ping")}, .method = MK_STR("GET")};
    mk_buf_init(&out, 65536);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mk_buf_release(&out);
    return 0;
}

static void write_request(const char *host)
{
    out.len = 0;
    check_request_write(&conf, mk_str_c(host), &out);
    assert_int_equal(out.err, 0);
}

TEST(http, set_up, tear_down)
{
    conf.what.kind = CHECK_HTTP;
    conf.headers = (struct check_headers){{MK_STR("A: b\r\n")}, 1};
    write_request("a:1");
    assert_str_equal(mk_buf_str(&out), "GET /ping HTTP/1.1\r\nHost: a:1\r\nUser-Agent: monkey (check)\r\n"
                                       "Connection: close\r\nA: b\r\n\r\n");
}

/* Tells whether the request has a variable; texts are shorter than 128 bytes, so that each length is one byte. */
static bool has_variable(const char *name, const char *value)
{
    char pair[300];
    size_t n = strlen(name), v = strlen(value);
    pair[0] = (char)n;
    pair[1] = (char)v;
    memcpy(pair + 2, name, n);
    memcpy(pair + 2 + n, value, v);
    return memmem(out.data, out.len, pair, 2 + n + v) != NULL;
}

static const uint8_t *at(size_t offset)
{
    return (const uint8_t *)out.data + offset;
}

/* The beginning, the variables, their end and the end of the body. */
TEST(records, set_up, tear_down)
{
    write_request("a");
    assert_memory_equal(at(0), "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0\1\4\0\1", 20);
    size_t params = (size_t)at(20)[0] << 8 | at(20)[1];
    assert_int_equal(out.len, 2 * HEADER + HEADER + params + 2 * HEADER);
    assert_memory_equal(at(out.len - 2 * HEADER), "\1\4\0\1\0\0\0\0\1\5\0\1\0\0\0\0", 2 * HEADER);
}

TEST(variables, set_up, tear_down)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"REQUEST_METHOD", "GET"},
        {"SCRIPT_NAME", "/status"},
        {"SCRIPT_FILENAME", "/status"},
        {"QUERY_STRING", "json&full"},
        {"REQUEST_URI", "/status?json&full"},
        {"SERVER_NAME", "app.test"},
        {"HTTP_HOST", "app.test:9000"},
        {"SERVER_PROTOCOL", "HTTP/1.1"},
        {"HTTP_X_KEY_2", "a b"},
        {"HTTP_ACCEPT", ""},
        {"GATEWAY_INTERFACE", "CGI/1.1"},
    };
    conf.what.path = MK_STR("/status?json&full");
    conf.headers = (struct check_headers){{MK_STR("X-Key-2: a b\r\n"), MK_STR("Accept: \r\n")}, 2};
    write_request("app.test:9000");
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!has_variable(rows[i].name, rows[i].value))
            fail_msg("%s is not %s", rows[i].name, rows[i].value);
    conf.what.path = MK_STR("/ping");
    write_request("app.test");
    assert_true(has_variable("QUERY_STRING", ""));
}

TEST(names_of_hosts, set_up, tear_down)
{
    static const char *const rows[][2] = {
        {"a", "a"}, {"a:1", "a"}, {"10.0.0.1:9000", "10.0.0.1"}, {"[::1]", "[::1]"}, {"[::1]:9000", "[::1]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        write_request(rows[i][0]);
        assert_true(has_variable("SERVER_NAME", rows[i][1]));
    }
}

/* The longest that the keys allow. */
TEST(limits, set_up, tear_down)
{
    static char path[2048], header[1024];
    memset(path, '/', sizeof(path));
    memset(header, 'a', sizeof(header));
    conf.what.path = mk_str(path, sizeof(path));
    conf.headers.n = CHECK_HEADERS_MAX;
    for (uint32_t i = 0; i < conf.headers.n; i++) {
        header[i < 8 ? 1000 : 3] = ':'; /* also a name that is longer than a variable can be */
        memcpy(header + sizeof(header) - 2, "\r\n", 2);
        conf.headers.lines[i] = mk_str(header, sizeof(header));
    }
    write_request("a");
    assert_true(out.len < 32768);
}
