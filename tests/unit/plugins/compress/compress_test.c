// SPDX-License-Identifier: Apache-2.0
#include "plugins/compress/compress.h"
#include "testing.h"

TEST(type_patterns)
{
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"text/html", true},   {"text/*", true},   {"*+json", true},    {"application/vnd.api+json", true},
        {"x/y-z_1", true},     {"text", false},    {"text/", false},    {"/html", false},
        {"*", false},          {"*/*", false},     {"*+", false},       {"text/h*", false},
        {"text/a/b", false},   {"*json", false},   {"text/a;b", false}, {".html", false},
        {"te xt/html", false}, {"*+js on", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (match_is_type_pattern(mk_str_c(cases[i].text)) != cases[i].valid)
            fail_msg("%s", cases[i].text);
}

TEST(types)
{
    static const struct {
        const char *pattern, *type;
        bool matches;
    } cases[] = {
        {"text/html", "text/html", true},
        {"text/html", "Text/HTML; charset=utf-8", true},
        {"TEXT/html", "text/html\t;x", true},
        {"text/html", "text/htm", false},
        {"text/html", "text/html5", false},
        {"text/*", "text/css;charset=utf-8", true},
        {"text/*", "text/", false},
        {"text/*", "application/json", false},
        {"text/*", "text/event-stream", false},
        {"text/event-stream", "text/event-stream; charset=utf-8", true},
        {"*+json", "application/ld+json", true},
        {"*+json", "application/LD+JSON ; x=y", true},
        {"*+json", "application/json", false},
        {"*+json", "+json", false},
        {"*+json", "application/x; y=+json", false},
        {"text/html", "", false},
        {"*+xml", "", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (match_type(mk_str_c(cases[i].pattern), mk_str_c(cases[i].type)) != cases[i].matches)
            fail_msg("%s for %s", cases[i].pattern, cases[i].type);
}
