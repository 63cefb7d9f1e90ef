// SPDX-License-Identifier: Apache-2.0
/* Comments, blocks, separators and paths of other servers' syntax: which lines are reported, and which are skipped. */
#include "testing.h"

#include <stdio.h>

#include <monkey/base/buf.h>

#include "conf/foreign_syntax.h"

struct syntax_case {
    const char *text;
    const char *events; /* one a line: "error" or "key", line:column, and the beginning of the sentence or the key */
};

static const struct syntax_case cases[] = {
    {"// a\n K v", "error 1:1 a comment begins with #, not with //\nkey 2:2 K\n"},
    {" ; a\n K v", "error 1:2 a comment begins with #, not with a semicolon\nkey 2:2 K\n"},
    {" /* a\n b\n c */\n K v", "error 1:2 a comment begins with # in each of its lines, not with /*\nkey 4:2 K\n"},
    {" /* a */\n K v", "error 1:2 a comment begins with # in each of its lines, not with /*\nkey 2:2 K\n"},
    {"<!-- a\n-->\n K v", "error 1:1 a comment begins with # in each of its lines, not with <!--\nkey 3:2 K\n"},
    {" /* a\n[A]\n K v",
     "error 1:2 a comment begins with # in each of its lines, not with /*\nsection 2:1 A\nkey 3:2 K\n"},
    {"/*\nserver {\n*/\n K v", "error 1:1 a comment begins with # in each of its lines\nkey 4:2 K\n"},
    {"// server {\n K v", "error 1:1 a comment begins with #\nkey 2:2 K\n"},
    {"server {\n // x\n /* }\n}\n K v", "error 1:1 braces are not used\nkey 5:2 K\n"},
    {"server {\n x\n }\n}\n K v", "error 1:1 braces are not used\nkey 5:2 K\n"},
    {"server {\n location / {\n x\n }\n y\n}\n K v", "error 1:1 braces are not used\nkey 7:2 K\n"},
    {"a {\n}\nb {\n}\n", "error 1:1 braces are not used\nerror 3:1 braces are not used\n"},
    {"}\n}\n K v", "error 1:1 braces are not used\nkey 3:2 K\n"},
    {"server { listen 80; }\n K v", "error 1:1 braces are not used\nkey 2:2 K\n"},
    {" K a { b }\n", "key 1:2 K\n"},
    {" K ~^/a{2}\n", "key 1:2 K\n"},
    {" K ${\n", "error 1:4 this ${ is never closed\n"},
    {" K \"a {\"\n", "key 1:2 K\n"},
    {"<VirtualHost *:80>\n x\n<Directory />\n</Directory>\n y\n</VirtualHost>\n K v",
     "error 1:1 <...> is not used\nkey 7:2 K\n"},
    {"</A>\n</A>\n K v", "error 1:1 <...> is not used\nkey 3:2 K\n"},
    {" <a\n[A]\n K v", "error 1:2 <...> is not used\nsection 2:1 A\nkey 3:2 K\n"},
    {" <3 v", "key 1:2 <3\n"},
};

/* Describes an event; of a sentence, as much as the case has. */
static void describe(const struct mk__scan *s, const struct mk__scan_line *l, const char *expected, struct mk_buf *out)
{
    static const char *const kinds[] = {
        [MK__SCAN_ERROR] = "error", [MK__SCAN_SECTION] = "section", [MK__SCAN_KEY] = "key"};
    mk_buf_addf(out, "%s %u:%u ", kinds[l->kind], s->line, l->col);
    if (l->kind != MK__SCAN_ERROR) {
        mk_buf_addf(out, "%.*s\n", MK_STR_ARG(l->name));
        return;
    }
    const char *rest = strlen(expected) > out->len ? expected + out->len : "";
    size_t n = strcspn(rest, "\n");
    mk_buf_addf(out, "%.*s\n", strncmp(rest, l->error, n) == 0 ? (int)n : (int)sizeof(l->error), l->error);
}

TEST(lines)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char storage[2048];
        struct mk_buf out;
        struct mk__scan s;
        struct mk__scan_line l;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        mk__scan_init(&s, mk_str_c(cases[i].text));
        s.foreign = mk__foreign_syntax_scan;
        for (mk__scan_next(&s, &l); l.kind != MK__SCAN_END; mk__scan_next(&s, &l))
            describe(&s, &l, cases[i].events, &out);
        assert_string_equal(mk_buf_cstr(&out), cases[i].events);
    }
}

TEST(what_is_here_in_place_of_a_block)
{
    static const struct {
        const char *line, *here;
    } rows[] = {
        {"server {", "; a host is a file of sites/"},
        {"<virtualhost a:80>", "; a host is a file of sites/"},
        {"example.org {", "; a host is a file of sites/"},
        {":80 {", "; a host is a file of sites/"},
        {"location = /x {", "; a section for some paths has a line Match"},
        {"<Directory \"/srv\">", "; a section for some paths has a line Match"},
        {"upstream a {", "; a backend is a section [PROXY]"},
        {"if ($a) {", "; conditions are lines When"},
        {"zonk {", "their end"},
        {"{", "their end"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk__scan s;
        struct mk__scan_line l;
        mk__scan_init(&s, mk_str_c(rows[i].line));
        s.foreign = mk__foreign_syntax_scan;
        mk__scan_next(&s, &l);
        assert_int_equal(l.kind, MK__SCAN_ERROR);
        if (!strstr(l.error, rows[i].here))
            fail_msg("%s: %s", rows[i].line, l.error);
    }
}

TEST(signs_between_key_and_value)
{
    static const struct {
        const char *line, *expected; /* NULL: none */
    } rows[] = {
        {" K = v w", "K|v w|=4"},
        {" K=v w", "K|v w|=3 within"},
        {" K= v", "K|v|=3"},
        {" K: v", "K|v|:3"},
        {" K : v", "K|v|:4"},
        {" K := v", "K|v|=4"},
        {" K => v", "K|v|=4"},
        {" K += v", "K|v|=4"},
        {" K=\"a b\"", "K|\"a b\"|=3 within"},
        {" K =", "K||=4"},
        {" K=", "K||=3"},
        {" K :", "K||:4"},
        {" K =v", NULL},
        {" K v = w", NULL},
        {" K \"=\" v", NULL},
        {" K ~a", NULL},
        {" =", NULL},
        {" : a", NULL},
        {" a:b c", NULL},
        {" K", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk__scan s;
        struct mk__scan_line l;
        struct mk__foreign_key key;
        char text[100] = "";
        mk__scan_init(&s, mk_str_c(rows[i].line));
        s.foreign = mk__foreign_syntax_scan;
        mk__scan_next(&s, &l);
        bool found = l.kind == MK__SCAN_KEY && mk__foreign_syntax_split_key(&l, &key);
        if (found)
            snprintf(text, sizeof(text), "%.*s|%.*s|%c%u%s", MK_STR_ARG(key.name), MK_STR_ARG(key.value), key.sign,
                     key.col, key.within ? " within" : "");
        if (found != (rows[i].expected != NULL) || (found && strcmp(text, rows[i].expected) != 0))
            fail_msg("%s: %s", rows[i].line, text);
    }
}

TEST(comments_behind_values)
{
    assert_true(mk__foreign_syntax_is_comment(MK_STR("//")));
    assert_true(mk__foreign_syntax_is_comment(MK_STR("/*a")));
    assert_false(mk__foreign_syntax_is_comment(MK_STR("/")));
    assert_false(mk__foreign_syntax_is_comment(MK_STR("a//")));
}

TEST(paths)
{
    static const char *const wrong[] = {"~/a", "file:///a", "http://a/", "'a b'", "\xe2\x80\x9c/a\xe2\x80\x9d"};
    static const char *const right[] = {"", "/a", "a", "~a/b", "./~/a", "..", "fil", "/a'b'"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_non_null(mk__foreign_syntax_check_path(mk_str_c(wrong[i])));
    for (size_t i = 0; i < COUNT(right); i++)
        assert_null(mk__foreign_syntax_check_path(mk_str_c(right[i])));
}
