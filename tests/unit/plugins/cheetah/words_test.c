// SPDX-License-Identifier: Apache-2.0
/* The line of a request: words with quotes, or a JSON array; flush against a page that cannot be read. */
#include "plugins/cheetah/cheetah.h"

#include "testing.h"

#include <stdio.h>

/* Splits a copy of a line whose end touches a guard page; appends "[word]" for each. Returns the sentence or NULL. */
static const char *split(const char *text, size_t len, char *out, size_t size)
{
    static struct words words;
    char *line = mk_test_guarded(text, len);
    const char *error = words_split(line, len, &words);
    size_t at = 0;
    out[0] = '\0';
    for (unsigned i = 0; !error && i < words.n; i++)
        at += (size_t)snprintf(out + at, size - at, "[%.*s]", MK_STR_ARG(words.items[i]));
    mk_test_unguard(line, len);
    return error;
}

static const struct {
    const char *line, *words;
} good[] = {
    {"", ""},
    {"   \t\r", ""},
    {"status", "[status]"},
    {"  a  bc\td ", "[a][bc][d]"},
    {"a \"b c\" d", "[a][b c][d]"},
    {"a 'b \"c\\' d", "[a][b \"c\\][d]"},
    {"a\"b c\"d e", "[ab cd][e]"},
    {"\"\" ''", "[][]"},
    {"a\\ b \\\"", "[a b][\"]"},
    {"\"a\\\"b\"", "[a\"b]"},
    {"[\"a\"]", "[a]"},
    {" [ \"a b\" ,\t\"c\" ] ", "[a b][c]"},
    {"[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"]", "[A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80]"},
    {"[\"\\\"\\\\\\/\\t\"]", "[\"\\/\t]"},
};

TEST(words)
{
    char out[4096];
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_null(split(good[i].line, strlen(good[i].line), out, sizeof(out)));
        assert_string_equal(out, good[i].words);
    }
}

static const struct {
    const char *line, *sentence;
} bad[] = {
    {"a \"b", "quote"},
    {"a 'b", "quote"},
    {"a \\", "backslash"},
    {"\"a\\", "backslash"},
    {"[", "JSON array"},
    {"[]", "JSON array"},
    {"[\"a\"", "JSON array"},
    {"[\"a", "JSON array"},
    {"[\"a\"]x", "JSON array"},
    {"[\"a\" \"b\"]", "JSON array"},
    {"[\"a\",]", "JSON array"},
    {"[1]", "JSON array"},
    {"[\"\\x\"]", "JSON array"},
    {"[\"\\u12\"]", "JSON array"},
    {"[\"\\ud83d\"]", "JSON array"},
    {"[\"\\ud83d\\u0041\"]", "JSON array"},
    {"[\"\\udc00\"]", "JSON array"},
    {"[\"a\tb\"]", "JSON array"},
    {"[\"a\\", "JSON array"},
};

TEST(mistakes)
{
    char out[4096];
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *error = split(bad[i].line, strlen(bad[i].line), out, sizeof(out));
        if (!error || !strstr(error, bad[i].sentence))
            fail_msg("%s: %s", bad[i].line, error ? error : out);
    }
}

TEST(limits)
{
    char line[4 * WORDS_MAX + 8], out[8192];
    for (unsigned n = WORDS_MAX; n <= WORDS_MAX + 1; n++) {
        size_t at = 0;
        for (unsigned i = 0; i < n; i++)
            at += (size_t)snprintf(line + at, sizeof(line) - at, "w ");
        assert_true((split(line, at, out, sizeof(out)) == NULL) == (n == WORDS_MAX));
        at = (size_t)snprintf(line, sizeof(line), "[\"w\"");
        for (unsigned i = 1; i < n; i++)
            at += (size_t)snprintf(line + at, sizeof(line) - at, ",\"\"");
        at += (size_t)snprintf(line + at, sizeof(line) - at, "]");
        assert_true((split(line, at, out, sizeof(out)) == NULL) == (n == WORDS_MAX));
    }
}
