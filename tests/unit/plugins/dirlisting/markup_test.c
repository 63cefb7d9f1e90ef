// SPDX-License-Identifier: Apache-2.0
/* What stands at a place of an HTML text: rows with the text before it. */
#include "plugins/dirlisting/template.h"

#include "testing.h"

static struct markup feed(const char *text)
{
    struct markup m = {0};
    for (; *text; text++)
        markup_feed(&m, *text);
    return m;
}

static const struct {
    const char *text;
    enum markup_place place;
} rows[] = {
    {"", MARKUP_TEXT},
    {"a", MARKUP_TEXT},
    {"a < b", MARKUP_TEXT},
    {"a <", MARKUP_TAG},
    {"<<", MARKUP_TAG},
    {"</", MARKUP_TAG},
    {"</>", MARKUP_TEXT},
    {"<p", MARKUP_TAG},
    {"<p ", MARKUP_TAG},
    {"<p>", MARKUP_TEXT},
    {"<p/>", MARKUP_TEXT},
    {"</p>", MARKUP_TEXT},
    {"<p a", MARKUP_TAG},
    {"<p a =", MARKUP_UNQUOTED},
    {"<p a=b", MARKUP_UNQUOTED},
    {"<p a=b>", MARKUP_TEXT},
    {"<p a=b ", MARKUP_TAG},
    {"<p a='", MARKUP_ATTRIBUTE},
    {"<p a='>\"", MARKUP_ATTRIBUTE},
    {"<p a='b'", MARKUP_TAG},
    {"<p a\n=\n\"", MARKUP_ATTRIBUTE},
    {"<p a b=\"", MARKUP_ATTRIBUTE},
    {"<p title=\"", MARKUP_ATTRIBUTE},
    {"<a HREF=\"", MARKUP_URL},
    {"<img/src='", MARKUP_URL},
    {"<use xlink:href='", MARKUP_URL},
    {"<a x=1 onclick=\"", MARKUP_CODE},
    {"<a style=\"", MARKUP_CODE},
    {"<img srcset='", MARKUP_CODE},
    {"<!", MARKUP_COMMENT},
    {"<!doctype html", MARKUP_COMMENT},
    {"<!doctype html>", MARKUP_TEXT},
    {"<!-x>", MARKUP_TEXT},
    {"<!-->", MARKUP_TEXT},
    {"<!--->", MARKUP_TEXT},
    {"<!--", MARKUP_COMMENT},
    {"<!-- -> <p> --", MARKUP_COMMENT},
    {"<!-- - -->", MARKUP_TEXT},
    {"<!-- --->", MARKUP_TEXT},
    {"<!-- --!>", MARKUP_TEXT},
    {"<!-- --!!>", MARKUP_COMMENT},
    {"<!-- --!->", MARKUP_COMMENT},
    {"<?php ", MARKUP_COMMENT},
    {"<?php ?>", MARKUP_TEXT},
    {"<title>", MARKUP_TEXT},
    {"<title><p>", MARKUP_TEXT},
    {"<title><p a='", MARKUP_TEXT},
    {"<title></title>", MARKUP_TEXT},
    {"<title></titles><p", MARKUP_TEXT},
    {"<script>", MARKUP_RAW},
    {"<script>if (a<b) '</p>'", MARKUP_RAW},
    {"<style></sty", MARKUP_RAW},
    {"<script></scripts>", MARKUP_RAW},
    {"<script><</script>", MARKUP_TEXT},
    {"<SCRIPT a=b></Script x='", MARKUP_ATTRIBUTE},
    {"<style>a { b: \"", MARKUP_RAW},
    {"<style></style>", MARKUP_TEXT},
    {"<style></script>", MARKUP_RAW},
    {"<textarea><script>", MARKUP_TEXT},
    {"<iframe><p>", MARKUP_RAW},
    {"<scriptx>", MARKUP_TEXT},
    {"<a-very-long-name-of-an-element another-very-long-name=\"", MARKUP_ATTRIBUTE},
};

TEST(places)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct markup m = feed(rows[i].text);
        if (markup_place(&m) != rows[i].place)
            fail_msg("%s: %d, not %d", rows[i].text, (int)markup_place(&m), (int)rows[i].place);
    }
}

TEST(files_and_comments)
{
    static const struct {
        const char *text;
        bool script, style, comment;
    } cases[] = {
        {"<script>", false, false, false},
        {"<script defer src=\"a\">", true, false, false},
        {"<script src>", true, false, false},
        {"<link rel=x href='y'>", false, false, false},
        {"<link rel=StyleSheet href='y'>", false, true, false},
        {"<link href='y' rel='stylesheet'>", false, true, false},
        {"<link rel='style sheet'>", false, false, false},
        {"<a rel='stylesheet'>", false, false, false},
        {"<a href='y'>", false, false, false},
        {"<script><!--", false, false, true},
        {"<style><!--", false, false, false},
        {"<script></script src=x>", false, false, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct markup m = feed(cases[i].text);
        assert_int_equal(m.has_script_file, cases[i].script);
        assert_int_equal(m.has_style_file, cases[i].style);
        assert_int_equal(m.has_comment_in_script, cases[i].comment);
    }
}

TEST(same_places)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"", "<p></p>", true},
        {"<p a=\"", "<p a=\"x", true},
        {"<p a=\"", "<p a='", false},
        {"<p a=\"", "<p b=\"", false},
        {"<p ", "<p class=\"x\"", true},
        {"", "<p", false},
        {"<!-- ", "<!-- --", false},
        {"<script>", "<script>x", true},
        {"<script>", "<style>", false},
        {"<title>", "<textarea>", false},
        {"", "<script></script>", true},
        {"<s", "<script", false},
        {"<p", "</p", false},
        {"<title></t", "<title></ti", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct markup a = feed(cases[i].a), b = feed(cases[i].b);
        assert_int_equal(markup_is_same(&a, &b), cases[i].same);
    }
}
