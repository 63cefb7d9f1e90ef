// SPDX-License-Identifier: Apache-2.0
/* The first bytes of connections. */
#include "testing.h"

#include "http/message/preface.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

TEST(the_preface_of_http2)
{
    size_t whole = sizeof(preface) - 1;
    for (size_t n = 1; n < whole; n++)
        assert_int_equal(mk__preface_check(mk_str(preface, n)), MK__PREFACE_PARTIAL);
    assert_int_equal(mk__preface_check(mk_str(preface, whole)), MK__PREFACE_WHOLE);
    assert_int_equal(mk__preface_check(MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore")), MK__PREFACE_WHOLE);
    static const char *const others[] = {"GET", "POST / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nXM", "pri *", "\x16\x03"};
    for (size_t i = 0; i < COUNT(others); i++)
        assert_int_equal(mk__preface_check(mk_str_c(others[i])), MK__PREFACE_NONE);
}

TEST(other_protocols)
{
    static const struct {
        const char *line;
        bool foreign;
    } cases[] = {
        {"SAY something nice\r\n", true},
        {"INVALID CONNECTION PREFACE\r\n\r\n", true},
        {"GET something nice\r\n", false},
        {"SAY something\r\n", false},
        {"SAY something very nice\r\n", false},
        {"SAY /something nice\r\n", false},
        {"SAY some:thing nice\r\n", false},
        {"SAY something HTTP/x\r\n", false},
        {"SAY * nice\r\n", false},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", false},
    };
    const struct mk__parse_limits limits = {1024, 4096, 16};
    struct mk_field fields[16];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_head_parser p = {0};
        struct mk_str in = mk_str_c(cases[i].line);
        assert_int_equal(mk__parse_head(&p, fields, &limits, in), -400);
        assert_int_equal(mk__preface_is_other_protocol(&p, in), cases[i].foreign);
    }
}
