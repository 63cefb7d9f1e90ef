// SPDX-License-Identifier: Apache-2.0
/* What answers decide, and which of their headers are read. */
#include "plugins/auth/forward_response.h"

#include "arena.h"

#include <errno.h>

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
