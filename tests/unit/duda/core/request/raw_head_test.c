// SPDX-License-Identifier: Apache-2.0
/* Heads that services print themselves. */
#include "testing.h"

#include <errno.h>

#include "duda/core/request/raw_head.h"

static const struct {
    const char *text;
    size_t length;
} heads[] = {
    {"", 0},
    {"HTTP/1.1 200 OK\r\n", 0},
    {"HTTP/1.1 200 OK\r\n\r", 0},
    {"HTTP/1.1 200 OK\r\n\r\n", 19},
    {"HTTP/1.1 200 OK\n\nbody\n\n", 17},
    {"A: 1\r\nB: 2\n\r\nbody", 13},
    {"\r\nbody", 2},
    {"a\r\rb", 0},
};

TEST(lengths)
{
    for (size_t i = 0; i < COUNT(heads); i++) {
        size_t len = strlen(heads[i].text);
        char *text = mk_test_guarded(heads[i].text, len);
        assert_int_equal(raw_head_length(mk_str(text, len)), heads[i].length);
        mk_test_unguard(text, len);
    }
}

static const struct {
    const char *line;
    int status;
} lines[] = {
    {"HTTP/1.1 200 OK", 200},      {"HTTP/1.0 404 Not Found", 404}, {"HTTP/1.1 204", 204}, {"HTTP/1.1 204 ", 204},
    {"HTTP/1.1 599 x", 599},       {"HTTP/1.1 600 x", -EINVAL},     {"", -EINVAL},         {"HTTP/1.1", -EINVAL},
    {"HTTP/1.1 20", -EINVAL},      {"HTTP/1.1 2000 OK", -EINVAL},   {"200 OK", -EINVAL},   {"HTTP/2 200 OK", -EINVAL},
    {"HTTP/1.1  200 OK", -EINVAL}, {"HTTP/1.1 2x0 OK", -EINVAL},    {"HTTP/1.", -EINVAL},  {"http/1.1 200", -EINVAL},
};

TEST(status_lines)
{
    for (size_t i = 0; i < COUNT(lines); i++) {
        size_t len = strlen(lines[i].line);
        char *line = mk_test_guarded(lines[i].line, len);
        int status = raw_head_status(mk_str(line, len));
        if (status != lines[i].status)
            fail_msg("\"%s\": %d", lines[i].line, status);
        mk_test_unguard(line, len);
    }
}

TEST(cutting_lines)
{
    struct mk_str rest = MK_STR("a\r\n\nb\r\r\nc"), line;
    assert_true(raw_head_next_line(&rest, &line));
    assert_str_equal(line, "a");
    assert_true(raw_head_next_line(&rest, &line));
    assert_str_equal(line, "");
    assert_true(raw_head_next_line(&rest, &line));
    assert_str_equal(line, "b\r");
    assert_false(raw_head_next_line(&rest, &line));
    assert_str_equal(rest, "c");
}
