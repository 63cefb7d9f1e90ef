// SPDX-License-Identifier: Apache-2.0
/* Values of Files as operators write them, and their mistakes. */
#include "testing.h"

#include <errno.h>

#include "plugins/cache/worker.h"

enum { WORDS_MAX = 4 };

static char error_text[256];

/* Parses a text whose words have one blank between them; `error_text` gets the mistake. */
static int parse(const char *text, struct files_policy *policy)
{
    struct mk_str words[WORDS_MAX], rest = mk_str_c(text);
    struct mk_conf_value value = {.text = rest, .words = words};
    struct mk_buf error;
    while (rest.len) {
        const char *blank = memchr(rest.p, ' ', rest.len);
        size_t len = blank ? (size_t)(blank - rest.p) : rest.len;
        words[value.n++] = mk_str(rest.p, len);
        rest = mk_str(rest.p + len + (blank != NULL), rest.len - len - (blank != NULL));
    }
    mk_buf_init_fixed(&error, error_text, sizeof(error_text));
    int err = directives_parse_files(&value, policy, NULL, &error);
    mk_buf_cstr(&error);
    return err;
}

TEST(values)
{
    static const struct {
        const char *text;
        enum files_mode mode;
        uint32_t interval_ms;
    } good[] = {
        {"Off", FILES_OFF, 0},
        {"EachCycle", FILES_EACH_CYCLE, 0},
        {"immutable", FILES_IMMUTABLE, 0},
        {"Revalidate", FILES_REVALIDATE, 1000},
        {"Revalidate 1s", FILES_REVALIDATE, 1000},
        {"revalidate 5", FILES_REVALIDATE, 5000},
        {"Revalidate 1ms", FILES_REVALIDATE, 1},
        {"Revalidate 250ms", FILES_REVALIDATE, 250},
        {"Revalidate 2m", FILES_REVALIDATE, 120000},
        {"Revalidate 24h", FILES_REVALIDATE, 86400000},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct files_policy policy = {0};
        assert_int_equal(parse(good[i].text, &policy), 0);
        assert_int_equal(policy.mode, good[i].mode);
        if (good[i].interval_ms)
            assert_int_equal(policy.interval_ms, good[i].interval_ms);
    }
}

TEST(mistakes)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "the values are Off"},
        {"On", "the values are Off"},
        {"Revalidate 0", "from 1ms to 24h"},
        {"Revalidate 0s", "from 1ms to 24h"},
        {"Revalidate s", "from 1ms to 24h"},
        {"Revalidate -1s", "from 1ms to 24h"},
        {"Revalidate 25h", "from 1ms to 24h"},
        {"Revalidate 99999999999999999999", "from 1ms to 24h"},
        {"Revalidate 1s 2s", "Revalidate takes one time"},
        {"Immutable 1s", "Immutable takes none"},
        {"Off 1s", "Off takes none"},
        {"EachCycle 10", "EachCycle takes none"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct files_policy policy = {0};
        assert_int_equal(parse(bad[i].text, &policy), -EINVAL);
        assert_non_null(strstr(error_text, bad[i].says));
    }
}

TEST(names)
{
    assert_string_equal(directives_mode_name(FILES_OFF), "Off");
    assert_string_equal(directives_mode_name(FILES_EACH_CYCLE), "EachCycle");
    assert_string_equal(directives_mode_name(FILES_REVALIDATE), "Revalidate");
    assert_string_equal(directives_mode_name(FILES_IMMUTABLE), "Immutable");
}
