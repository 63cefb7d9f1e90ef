// SPDX-License-Identifier: Apache-2.0
/* Values of rules and limits as operators write them, and their mistakes. */
#include "arena.h"

#include <errno.h>

#include "plugins/mandril/mandril.h"

enum { WORDS_MAX = 8 };

static char error_text[256];

/* Parses a text whose words have one blank between them; `error_text` gets the mistake. */
static int parse(mk_conf_parse_fn fn, const char *text, void *field)
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
    int err = fn(&value, field, &arena, &error);
    mk_buf_cstr(&error);
    return err;
}

TEST(actions)
{
    static const struct {
        const char *text;
        uint8_t kind;
        uint16_t status;
        uint32_t delay_ms;
        const char *log;
    } good[] = {
        {"allow", ACTION_ALLOW, 403, 0, "allow"},
        {"deny", ACTION_DENY, 403, 0, "deny 403"},
        {"Deny 451", ACTION_DENY, 451, 0, "Deny 451"},
        {"drop", ACTION_DROP, 403, 0, "drop"},
        {"delay 20ms", ACTION_DELAY, 403, 20, "delay 20ms"},
        {"delay 2s", ACTION_DELAY, 403, 2000, "delay 2s"},
        {"delay 30", ACTION_DELAY, 403, 30000, "delay 30"},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct rule_action action = {0};
        assert_int_equal(parse(settings_parse_action, good[i].text, &action), 0);
        assert_int_equal(action.kind, good[i].kind);
        assert_int_equal(action.status, good[i].status);
        assert_int_equal(action.delay_ms, good[i].delay_ms);
        assert_str_equal(action.text, good[i].log);
    }
    static const char *const bad[] = {"",          "forbid",        "allow 200",    "deny 399", "deny 600", "deny 401",
                                      "deny 405",  "deny 1x",       "deny 403 404", "drop 1",   "delay",    "delay 0",
                                      "delay 31s", "delay 31000ms", "delay -1",     "delay 1m", "delay s",  "delay ms"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct rule_action action = {0};
        assert_int_equal(parse(settings_parse_action, bad[i], &action), -EINVAL);
        assert_int_equal(action.kind, ACTION_NONE);
        assert_true(error_text[0]);
    }
}

TEST(rates)
{
    static const struct {
        const char *text;
        uint32_t n, period_s;
    } good[] = {{"10/s", 10, 1}, {"300/m", 300, 60}, {"1/h", 1, 3600}, {"1000000/d", 1000000, 86400}};
    for (size_t i = 0; i < COUNT(good); i++) {
        struct request_rate rate = {0};
        assert_int_equal(parse(settings_parse_rate, good[i].text, &rate), 0);
        assert_int_equal(rate.n, good[i].n);
        assert_int_equal(rate.period_s, good[i].period_s);
    }
    static const char *const bad[] = {"",      "10",   "10/", "/s",    "0/s",  "1000001/s",
                                      "10/ms", "10/x", "x/s", "1.5/s", "10 /s"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct request_rate rate = {0};
        assert_int_equal(parse(settings_parse_rate, bad[i], &rate), -EINVAL);
        assert_int_equal(rate.n, 0);
    }
}

TEST_FILE(mk_test_arena_open, mk_test_arena_close)
