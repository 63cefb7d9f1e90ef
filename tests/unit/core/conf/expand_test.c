// SPDX-License-Identifier: Apache-2.0
/* Words: quotes, escapes, variables, limits. */
#include "testing.h"

#include <stdlib.h>

#include "conf/expand.h"
#include "conf/value.h"

static const struct mk__variable other = {NULL, MK_STR("SHADOWED"), MK_STR("from @SET"), false};
static const struct mk__variable second = {&other, MK_STR("blank"), MK_STR(""), false};
static const struct mk__variable variables = {&second, MK_STR("two"), MK_STR(" a b "), false};

struct expand_case {
    const char *value;
    const char *words; /* each in <>, or "col: error" */
};

static const struct expand_case cases[] = {
    {"", ""},
    {"a", "<a@10>"},
    {"a  b\tc", "<a@10><b@13><c@15>"},
    {"\"a  b\" c", "<a  b@10><c@17>"},
    {"\"\"", "<@10>"},
    {"\\\"a\\\" \\#b c\\d \\\\", "<\"a\"@10><#b@16><c\\d@20><\\\\@24>"},
    {"\"\\\"\\\\\\#\\d\"", "<\"\\#\\d@10>"},
    {"\\.php$ $x $ a$", "<\\.php$@10><$x@17><$@20><a$@22>"},
    {"\\${two} \"\\${two}\"", "<${two}@10><${two}@18>"},
    {"${two}", "<a@10><b@10>"},
    {"\"${two}\"", "< a b @10>"},
    {"x${two}y", "<x@10><a@11><b@11><y@17>"},
    {"${blank}", ""},
    {"\"${blank}\"", "<@10>"},
    {"a${blank}b", "<ab@10>"},
    {"${blank:-d}", "<d@10>"},
    {"${nowhere:-}", ""},
    {"${nowhere:-a b}", "<a@10><b@10>"},
    {"${nowhere:-\"${two}", "<\"${two@10>"},
    {"${MK_TEST_WORD}/x", "<word@10></x@25>"},
    {"${SHADOWED}", "<from@10><@SET@10>"},
    {"a ${nowhere}",
     "12: ${nowhere} is neither set with @SET nor in the environment; ${nowhere:-x} would give it a default"},
    {"\"a ${}\"", "13: ${} is neither set with @SET nor in the environment; ${:-x} would give it a default"},
    {"${MK_TEST_CONTROL}", "10: the value of ${MK_TEST_CONTROL} has control bytes"},
};

TEST(words)
{
    static struct mk__words words;
    struct mk__expand_error error;

    setenv("MK_TEST_WORD", "word ", 1);
    setenv("MK_TEST_CONTROL", "a\nb", 1);
    setenv("SHADOWED", "from the environment", 1);
    unsetenv("nowhere");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_buf out;
        mk_buf_init(&out, 4096);
        if (mk__expand(&variables, mk_str_c(cases[i].value), 10, &words, &error))
            for (uint32_t w = 0; w < words.n; w++)
                mk_buf_addf(&out, "<%.*s@%u>", MK_STR_ARG(words.word[w]), words.col[w]);
        else
            mk_buf_addf(&out, "%u: %s", error.col, error.text);
        assert_string_equal(mk_buf_cstr(&out), cases[i].words);
        mk_buf_release(&out);
    }
}

TEST(text_has_one_space)
{
    static struct mk__words words;
    struct mk__expand_error error;
    assert_true(mk__expand(&variables, MK_STR("My \t \"great  big\"   site"), 1, &words, &error));
    assert_str_equal(mk_buf_str(&words.text), "My great  big site");
}

TEST(limits)
{
    static struct mk__words words;
    static char many[2 * MK__WORDS_MAX + 2], big[MK__WORDS_BYTES_MAX + 1];
    struct mk__expand_error error;
    struct mk__variable v = {NULL, MK_STR("big"), mk_str(big, sizeof(big)), false};

    for (size_t i = 0; i < sizeof(many); i++)
        many[i] = i % 2 ? ' ' : 'w';
    assert_true(mk__expand(NULL, mk_str(many, 2 * MK__WORDS_MAX), 1, &words, &error));
    assert_int_equal(words.n, MK__WORDS_MAX);
    assert_false(mk__expand(NULL, mk_str(many, 2 * MK__WORDS_MAX + 1), 1, &words, &error));
    assert_string_equal(error.text, "the value has more than 128 words");
    memset(big, 'b', sizeof(big));
    assert_false(mk__expand(&v, MK_STR("${big}"), 1, &words, &error));
    assert_string_equal(error.text, "its variables make the value longer than 8192 bytes");
    v.value.len--;
    assert_true(mk__expand(&v, MK_STR("${big}"), 1, &words, &error));
    assert_int_equal(words.word[0].len, MK__WORDS_BYTES_MAX);
}

TEST(literal)
{
    static struct mk__words words;
    assert_true(mk__expand_literal(MK_STR("a \"${b} # \\"), &words));
    assert_int_equal(words.n, 1);
    assert_str_equal(words.word[0], "a \"${b} # \\");
    assert_false(mk__expand_literal(MK_STR("a\nb"), &words));
}

/* What is quoted is read back as the same one word. */
TEST(quote_round_trip)
{
    static const char *const texts[] = {"",       "plain", "a b",     "\ttab ", "#c", "a#b",    "\"q\"", "back\\slash",
                                        "\\#",    "${x}",  "\\${x}",  "$5",     "a$", "\\\\\"", "[x]",   "@SET",
                                        "\\${\"", "${",    "\xc3\xa9"};
    static struct mk__words words;
    struct mk__expand_error error;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct mk_buf out;
        mk_buf_init(&out, 256);
        mk__value_quote(mk_str_c(texts[i]), &out);
        assert_true(mk__expand(NULL, mk_buf_str(&out), 1, &words, &error));
        assert_int_equal(words.n, 1);
        assert_str_equal(words.word[0], texts[i]);
        mk_buf_release(&out);
    }
}
