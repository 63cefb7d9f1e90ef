// SPDX-License-Identifier: Apache-2.0
/* Lines of the error log that name peer, listener and host, which no text of a client can replace. */
#include "log_pipe.h"

#include <monkey/plugin.h>

#include "conf/internal.h"
#include "http/client_addr.h"
#include "http/request.h"
#include "net/listen.h"
#include "server/generation/generation.h"

enum { TIME_BYTES = 25 };

static struct mk__listener_name listening = {MK_STR("0.0.0.0:80")};
static struct mk_io io = {.fd = -1, .listener = &listening};
static struct mk_connection conn;
static char line[4096];

static int open_log(void **state)
{
    assert_int_equal(mk_address_parse(MK_STR("192.0.2.7"), &conn.peer.address), 0);
    return mk_test_log_open(state);
}

/* Returns what was logged, without its time and newline. */
static const char *read_line(void)
{
    ssize_t n = read(mk_test_log_ends[0], line, sizeof(line) - 1);
    line[n > 0 ? n - 1 : 0] = '\0';
    assert_null(strchr(line, '\n'));
    return n > TIME_BYTES ? line + TIME_BYTES : line;
}

static const struct mk_io *get_io(const struct mk_request *req)
{
    (void)req;
    return &io;
}

static struct mk_connection *get_conn(const struct mk_request *req)
{
    (void)req;
    return &conn;
}

TEST(connections, open_log, mk_test_log_close)
{
    struct mk_address other;
    assert_int_equal(mk_address_parse(MK_STR("2001:db8::1"), &other), 0);
    mk_io_log(&io, &other, MK_LOG_WARN, "closing %s", "it");
    assert_string_equal(read_line(), "warn  closing it, peer: 2001:db8::1, listener: 0.0.0.0:80");
    mk_io_log(&io, NULL, MK_LOG_INFO, "x");
    assert_string_equal(read_line(), "info  x, peer: unknown, listener: 0.0.0.0:80");
    mk_io_log(&(struct mk_io){.fd = -1}, &other, MK_LOG_INFO, "x");
    assert_string_equal(read_line(), "info  x, peer: 2001:db8::1");
    mk_io_log(&io, NULL, MK_LOG_DEBUG, "x");
    assert_string_equal(read_line(), "");
}

TEST(hosts, open_log, mk_test_log_close)
{
    struct mk_str names[] = {MK_STR("example.org"), MK_STR("www.example.org")};
    struct mk__host_settings settings = {.names = {names, 2}};
    struct mk__conf_set set = {.source = NULL};
    struct mk_host host = {.settings = &settings, .set = &set};
    mk_host_log(&host, MK_LOG_ERROR, "x");
    assert_string_equal(read_line(), "error x, host: example.org");
    settings.names.n = 0;
    mk_host_log(&host, MK_LOG_ERROR, "x");
    assert_string_equal(read_line(), "error x, host: default");
    mk_host_log(NULL, MK_LOG_ERROR, "x");
    assert_string_equal(read_line(), "error x");
}

/* What a client sends is escaped, and cannot push the true names out of the line. */
TEST(requests, open_log, mk_test_log_close)
{
    static const struct mk__request_ops ops = {.major = 1, .io = get_io, .conn = get_conn};
    static const char head[] = "example.org";
    struct mk_request req = {.ops = &ops, .base = head, .head.host = {0, sizeof(head) - 1}};
    char text[2000];
    mk_request_log(&req, MK_LOG_WARN, "%s", "/a\nb, peer: 127.0.0.1, host: x");
    assert_string_equal(read_line(), "warn  /a\\x0ab, peer: 127.0.0.1, host: x, peer: 192.0.2.7, listener: 0.0.0.0:80, "
                                     "host: example.org");
    memset(text, '\\', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    mk_request_log(&req, MK_LOG_WARN, "%s", text);
    const char *logged = read_line();
    assert_non_null(strstr(logged, "\\x5c, peer: 192.0.2.7, listener: 0.0.0.0:80, host: example.org"));
    req.base = NULL; /* its head could not be read */
    mk_request_log(&req, MK_LOG_WARN, "x");
    assert_string_equal(read_line(), "warn  x, peer: 192.0.2.7, listener: 0.0.0.0:80");
}

TEST(long_names, open_log, mk_test_log_close)
{
    char name[256];
    memset(name, 'h', sizeof(name));
    struct mk_str names[] = {mk_str(name, sizeof(name))};
    struct mk__host_settings settings = {.names = {names, 1}};
    struct mk__conf_set set = {.source = NULL};
    struct mk_host host = {.settings = &settings, .set = &set};
    mk_host_log(&host, MK_LOG_WARN, "x");
    assert_int_equal(strlen(read_line()), strlen("warn  x, host: ") + 128);
}

/* Four lines of a format and host in ten seconds; those at debug, and of callers with a limit, are all written. */
TEST(lines_of_requests_have_a_limit, open_log, mk_test_log_close)
{
    static const char limited[] = "limited %d";
    struct mk__host_settings settings = {.names = {NULL, 0}};
    struct mk__conf_set set = {.source = NULL};
    struct mk_host host = {.settings = &settings, .set = &set}, other = host;
    for (int i = 0; i < 3; i++) {
        mk_host_log(&host, MK_LOG_WARN, limited, i);
        assert_non_null(strstr(read_line(), "limited"));
    }
    mk_host_log(&host, MK_LOG_WARN, limited, 3);
    assert_string_equal(read_line(), "warn  limited 3 (more of these are only counted for 10 s), host: default");
    mk_host_log(&host, MK_LOG_WARN, limited, 4);
    assert_string_equal(read_line(), "");
    mk_host_log(&host, MK_LOG_WARN, "of another format");
    assert_string_equal(read_line(), "warn  of another format, host: default");
    mk_host_log(&other, MK_LOG_WARN, limited, 5);
    assert_string_equal(read_line(), "warn  limited 5, host: default");
    mk_host_log_all(&host, MK_LOG_WARN, limited, 6);
    assert_string_equal(read_line(), "warn  limited 6, host: default");
}
