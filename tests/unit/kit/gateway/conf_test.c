// SPDX-License-Identifier: Apache-2.0
/* KeepAlive; and InterceptErrors: which statuses become the server's own pages. */
#include "testing.h"

#include <monkey/kit/gateway.h>

#include <errno.h>

static int parse(struct mk_status_set *intercept, const char *first, const char *second)
{
    char storage[256];
    struct mk_buf error;
    struct mk_str words[] = {mk_str_c(first), second ? mk_str_c(second) : MK_STR_NONE};
    struct mk_conf_value value = {.text = words[0], .words = words, .n = second ? 2 : 1};
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = mk_gateway_parse_intercept(&value, intercept, NULL, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    return err;
}

static int parse_keep_alive(int64_t *keep_alive, const char *first, const char *second)
{
    char storage[256];
    struct mk_buf error;
    struct mk_str words[] = {mk_str_c(first), second ? mk_str_c(second) : MK_STR_NONE};
    struct mk_conf_value value = {.text = words[0], .words = words, .n = second ? 2 : 1};
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = mk_gateway_parse_keep_alive(&value, keep_alive, NULL, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    return err;
}

TEST(keep_alive)
{
    static const struct {
        const char *first, *second;
        int64_t wanted; /* or a mistake */
    } rows[] = {
        {"0", NULL, 0},
        {"32", NULL, 32},
        {"10000", NULL, 10000},
        {"Queue", NULL, MK_GATEWAY_KEEP_QUEUE},
        {"queue", NULL, MK_GATEWAY_KEEP_QUEUE},
        {"10001", NULL, -EINVAL},
        {"-1", NULL, -EINVAL},
        {"Off", NULL, -EINVAL},
        {"", NULL, -EINVAL},
        {"Queue", "4", -EINVAL},
        {"4", "Queue", -EINVAL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t got = -2;
        int err = parse_keep_alive(&got, rows[i].first, rows[i].second);
        assert_int_equal(err, rows[i].wanted == -EINVAL ? -EINVAL : 0);
        assert_int_equal(got, err < 0 ? -2 : rows[i].wanted);
    }
}

TEST(statuses)
{
    static const struct {
        const char *first, *second;
        unsigned has[3], lacks[3];
    } rows[] = {
        {"On", NULL, {400, 503, 599}, {399, 200, 600}},       {"on", NULL, {400, 404, 599}, {0, 100, 304}},
        {"502", NULL, {502, 502, 502}, {501, 503, 400}},      {"400", "599", {400, 599, 400}, {401, 598, 600}},
        {"500-599", "404", {500, 599, 404}, {499, 405, 600}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_status_set intercept = {0};
        assert_int_equal(parse(&intercept, rows[i].first, rows[i].second), 0);
        for (size_t k = 0; k < COUNT(rows[i].has); k++) {
            assert_true(mk_status_set_has(&intercept, rows[i].has[k]));
            assert_false(mk_status_set_has(&intercept, rows[i].lacks[k]));
        }
    }
    struct mk_status_set none = {0};
    assert_int_equal(parse(&none, "Off", NULL), 0);
    for (unsigned status = 0; status < 1000; status++)
        assert_false(mk_status_set_has(&none, status));
}

TEST(mistakes)
{
    static const char *const rows[][2] = {{"399"},       {"600"},        {"5xx"},  {""},
                                          {"On", "502"}, {"502", "Off"}, {"-502"}, {"399-404"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_status_set intercept = {0};
        assert_int_equal(parse(&intercept, rows[i][0], rows[i][1]), -EINVAL);
    }
}
