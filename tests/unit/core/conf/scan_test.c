// SPDX-License-Identifier: Apache-2.0
/* The syntax: every line as an event, each case against a guard page. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/buf.h>

#include "conf/scan.h"

struct scan_case {
    const char *text;
    const char *events; /* one a line: what, line:col name|value@col */
};

static const struct scan_case cases[] = {
    {"", ""},
    {"\n\n   \n\t\n", ""},
    {"# [X]\n   # y z\n", ""},
    {"\xef\xbb\xbf[SERVER]\n", "section 1:1 SERVER\n"},
    {"[ A B ] # c\n", "section 1:1 A B\n"},
    {"[A]\n    Key value\n", "section 1:1 A\nkey 2:5 Key|value@9\n"},
    {"[A]\r\n\tKey  a b\t \r\n", "section 1:1 A\nkey 2:2 Key|a b@7\n"},
    {" K v # c", "key 1:2 K|v@4\n"},
    {" K v# c", "key 1:2 K|v# c@4\n"},
    {" K a#b \\#c #d", "key 1:2 K|a#b \\#c@4\n"},
    {" K # d", "key 1:2 K|@4\n"},
    {" K\n", "key 1:2 K|@3\n"},
    {" K \"a # b\" # c", "key 1:2 K|\"a # b\"@4\n"},
    {" K \"a \\\" # \\\\\" b # c", "key 1:2 K|\"a \\\" # \\\\\" b@4\n"},
    {" K a\"b c", "key 1:2 K|a\"b c@4\n"},
    {" K \\\"b c", "key 1:2 K|\\\"b c@4\n"},
    {" K ${A:-x # \"y} z", "key 1:2 K|${A:-x # \"y} z@4\n"},
    {" K \"${A:-\"}\" z", "key 1:2 K|\"${A:-\"}\" z@4\n"},
    {" K \\${A b", "key 1:2 K|\\${A b@4\n"},
    {" K $A $ \\.x$", "key 1:2 K|$A $ \\.x$@4\n"},
    {"@SET a=b c # d\n", "set 1:1 a|b c@8\n"},
    {"@set a_1 = \"b c\"\n", "set 1:1 a_1|\"b c\"@12\n"},
    {"@SET a=\n", "set 1:1 a|@8\n"},
    {"@INCLUDE conf.d/*.conf # x\n", "include 1:1 |conf.d/*.conf@10\n"},
    {" A 1\n B 2\n  C 3\n D 4", "key 1:2 A|1@4\nkey 2:2 B|2@4\n"
                                "error 3:3 indented by 2 spaces, but the first key of this file (line 1) by 1 space\n"
                                "key 4:2 D|4@4\n"},
    {"    A 1\n\tB 2\n  \tC 3",
     "key 1:5 A|1@7\n"
     "error 2:2 indented by 1 tab, but the first key of this file (line 1) by 4 spaces\n"
     "error 3:4 indented by a mix of spaces and tabs, but the first key of this file (line 1) by 4 spaces\n"},
    {"A 1\n B 2\nC 3", "error 1:1 a key is indented below its [SECTION]\nkey 2:2 B|2@4\n"
                       "error 3:1 indented by 0 spaces, but the first key of this file (line 2) by 1 space\n"},
    {" [A]\n", "error 1:2 a [SECTION] starts at column 1\n"},
    {"[A\n", "error 1:3 the section's name is never closed with ]\n"},
    {"[]\n[ ]", "error 1:2 a section needs a name\nerror 2:2 a section needs a name\n"},
    {"[A] b\n", "error 1:5 nothing may follow the section's name on its line\n"},
    {"  @SET a=b\n", "error 1:3 @INCLUDE and @SET start at column 1\n"},
    {"@SAT a=b\n", "error 1:1 unknown directive; there are @INCLUDE and @SET\n"},
    {"@SET a\n@SET", "error 1:6 @SET wants name=value\nerror 2:5 @SET wants name=value\n"},
    {"@SET a-b=c\n@SET =c", "error 1:7 the name of a variable consists of letters, digits and _\n"
                            "error 2:6 the name of a variable consists of letters, digits and _\n"},
    {"@INCLUDE # x\n", "error 1:1 @INCLUDE wants the name of a file\n"},
    {" K a \"b\n", "error 1:6 this quote is never closed\n"},
    {" K \"b\\\"\n", "error 1:4 this quote is never closed\n"},
    {" K \"b\"c\n", "error 1:7 a space must follow the closing quote\n"},
    {" K ab${c\n", "error 1:6 this ${ is never closed with }\n"},
    {" K \"ab${c\"\n", "error 1:7 this ${ is never closed with }\n"},
    {" K a\001b\n L 1\n", "error 1:5 control byte 0x01\nkey 2:2 L|1@4\n"},
    {" K a\rb\n", "error 1:5 control byte 0x0d\n"},
    {" K \177\n", "error 1:4 control byte 0x7f\n"},
};

static void describe(const struct mk__scan *s, const struct mk__scan_line *l, struct mk_buf *out)
{
    static const char *const names[] = {"end", "error", "section", "key", "include", "set"};

    mk_buf_addf(out, "%s %u:%u ", names[l->kind], s->line, l->col);
    if (l->kind == MK__SCAN_ERROR)
        mk_buf_addf(out, "%s\n", l->error);
    else if (l->kind == MK__SCAN_SECTION)
        mk_buf_addf(out, "%.*s\n", MK_STR_ARG(l->name));
    else
        mk_buf_addf(out, "%.*s|%.*s@%u\n", MK_STR_ARG(l->name), MK_STR_ARG(l->value), l->value_col);
}

static void scan_all(struct mk_str text, struct mk_buf *out)
{
    struct mk__scan s;
    struct mk__scan_line l;

    mk__scan_init(&s, text);
    for (mk__scan_next(&s, &l); l.kind != MK__SCAN_END; mk__scan_next(&s, &l))
        describe(&s, &l, out);
    mk__scan_next(&s, &l);
    assert_int_equal(l.kind, MK__SCAN_END);
}

TEST(lines)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].text);
        char *text = mk_test_guarded(cases[i].text, len);
        struct mk_buf out;
        mk_buf_init(&out, 1 << 16);
        scan_all(mk_str(text, len), &out);
        assert_string_equal(mk_buf_cstr(&out), cases[i].events);
        mk_buf_release(&out);
        mk_test_unguard(text, len);
    }
}

/* Every beginning of every case is scanned without a fault. */
TEST(cut_anywhere)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t len = strlen(cases[i].text); len-- > 0;) {
            char *text = mk_test_guarded(cases[i].text, len);
            struct mk_buf out;
            mk_buf_init(&out, 1 << 16);
            scan_all(mk_str(text, len), &out);
            assert_int_equal(out.err, 0);
            mk_buf_release(&out);
            mk_test_unguard(text, len);
        }
}

TEST(nul_and_long_lines)
{
    char text[MK__SCAN_LINE_MAX + 8];
    struct mk_buf out;

    mk_buf_init(&out, 1 << 16);
    scan_all(mk_str(" K a\0b", 6), &out);
    memset(text, 'x', sizeof(text));
    memcpy(text, " K ", 3);
    text[MK__SCAN_LINE_MAX + 1] = '\n';
    scan_all(mk_str(text, MK__SCAN_LINE_MAX + 2), &out);
    assert_string_equal(mk_buf_cstr(&out), "error 1:5 control byte 0x00\n"
                                           "error 1:4097 the line is longer than 4096 bytes\n");
    mk_buf_release(&out);
    mk_buf_init(&out, 1 << 16);
    scan_all(mk_str(text, MK__SCAN_LINE_MAX), &out);
    assert_memory_equal(out.data, "key 1:2 K|xxx", 13);
    mk_buf_release(&out);
}
