// SPDX-License-Identifier: Apache-2.0
/* CGI heads in the place of HTTP heads: what they say of the body, and state that moves. */
#include "testing.h"

#include <monkey/kit/cgi.h>

#include <errno.h>

static int parse(const char *head, enum mk_response_to to, struct mk_response_parser *p)
{
    static const struct mk_response_limits limits = {.head_bytes_max = 100, .fields_max = 4};
    static struct mk_field fields[4];
    struct mk_cgi_head response = {0};
    mk_response_parser_init(p, &limits, to);
    return mk_cgi_parse_response(&response, p, fields, mk_str_c(head));
}

TEST(heads)
{
    static const struct {
        const char *head;
        enum mk_response_to to;
        int result;
        unsigned status;
        enum mk_response_body body;
        bool is_done;
    } rows[] = {
        {"X: 1\n\n", MK_RESPONSE_TO_OTHER, 0, 200, MK_RESPONSE_BODY_UNTIL_END, false},
        {"Status: 404 No\r\nX: 1\r\n\r\n", MK_RESPONSE_TO_OTHER, 0, 404, MK_RESPONSE_BODY_UNTIL_END, false},
        {"Content-Length: 5\n\n", MK_RESPONSE_TO_OTHER, 0, 200, MK_RESPONSE_BODY_LENGTH, false},
        {"Content-Length: 0\n\n", MK_RESPONSE_TO_OTHER, 0, 200, MK_RESPONSE_BODY_LENGTH, true},
        {"Content-Length: 5\n\n", MK_RESPONSE_TO_HEAD, 0, 200, MK_RESPONSE_BODY_NONE, true},
        {"Status: 304\n\n", MK_RESPONSE_TO_OTHER, 0, 304, MK_RESPONSE_BODY_NONE, true},
        {"Location: /x\n\n", MK_RESPONSE_TO_OTHER, 0, 302, MK_RESPONSE_BODY_UNTIL_END, false},
        {"X: 1\n", MK_RESPONSE_TO_OTHER, MK_AGAIN, 0, 0, false},
        {"HTTP/1.1 200 OK\n\n", MK_RESPONSE_TO_OTHER, -EINVAL, 0, 0, false},
        {"Status: 100\n\n", MK_RESPONSE_TO_OTHER, -EINVAL, 0, 0, false},
        {"A: 1\nB: 1\nC: 1\nD: 1\nE: 1\n\n", MK_RESPONSE_TO_OTHER, -EMSGSIZE, 0, 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_response_parser p;
        assert_int_equal(parse(rows[i].head, rows[i].to, &p), rows[i].result);
        if (rows[i].result != 0)
            continue;
        assert_int_equal(p.status, rows[i].status);
        assert_int_equal(p.body, rows[i].body);
        assert_int_equal(p.is_done, rows[i].is_done);
        assert_int_equal(p.head_bytes, strlen(rows[i].head));
    }
}

/* The state is copied between two calls, and the old one is overwritten. */
TEST(state_that_moves)
{
    static const struct mk_response_limits limits = {.head_bytes_max = 100, .fields_max = 4};
    static const char head[] = "Status: 201\nContent-Length: 7\n\n";
    struct mk_field fields[4];
    struct mk_response_parser p;
    struct mk_cgi_head states[2] = {0};
    int result = MK_AGAIN;
    mk_response_parser_init(&p, &limits, MK_RESPONSE_TO_OTHER);
    for (size_t len = 1; len < sizeof(head) && result == MK_AGAIN; len++) {
        result = mk_cgi_parse_response(&states[len % 2], &p, fields, mk_str(head, len));
        states[(len + 1) % 2] = states[len % 2];
        memset(&states[len % 2], 0xff, sizeof(states[0]));
    }
    assert_int_equal(result, 0);
    assert_int_equal(p.status, 201);
    assert_int_equal(p.left, 7);
    assert_int_equal(p.head_bytes, sizeof(head) - 1);
}
