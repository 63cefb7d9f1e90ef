// SPDX-License-Identifier: Apache-2.0
/* The limits of children in the configuration. */
#include "testing.h"

#include <monkey/kit/child.h>

#include <errno.h>

static int parse(const char *text, struct mk_child_limits *limits)
{
    char storage[256];
    struct mk_str words[8], rest = mk_str_c(text);
    struct mk_conf_value value = {.text = rest, .words = words};
    struct mk_buf error;
    while (rest.len) {
        size_t n = 0;
        while (n < rest.len && rest.p[n] != ' ')
            n++;
        words[value.n++] = mk_str(rest.p, n);
        n += n < rest.len;
        rest = mk_str(rest.p + n, rest.len - n);
    }
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    *limits = (struct mk_child_limits){0};
    int err = mk_child_parse_limits(&value, limits, NULL, &error);
    assert_int_equal(error.len > 0, err < 0);
    return err;
}

TEST(values)
{
    struct mk_child_limits l;
    assert_int_equal(parse("memory=256M cpu=30s files=64 processes=32", &l), 0);
    assert_true(l.memory_bytes == 256 << 20 && l.cpu_seconds == 30 && l.files == 64 && l.processes == 32);
    assert_int_equal(parse("cpu=2m memory=1G", &l), 0);
    assert_true(l.memory_bytes == 1 << 30 && l.cpu_seconds == 120 && l.files == 0 && l.processes == 0);
    assert_int_equal(parse("cpu=1h", &l), 0);
    assert_int_equal(l.cpu_seconds, 3600);
    assert_int_equal(parse("memory=2048K", &l), 0);
}

TEST(mistakes)
{
    static const char *const rows[] = {
        "",           "memory",          "memory=",
        "memory=256", "memory=1K",       "memory=-1M",
        "cpu=30",     "cpu=0s",          "cpu=30M",
        "cpu=25h",    "files=3",         "files=64K",
        "files=x",    "processes=0",     "=1",
        "disk=1G",    "cpu=1s cpu=2s",   "Memory=1M",
        "cpu=s",      "memory=2000000G", "processes=99999999999999999999",
    };
    struct mk_child_limits l;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (parse(rows[i], &l) != -EINVAL)
            fail_msg("%s", rows[i]);
}

/* The message names what is wrong, and not the form of the value. */
TEST(a_limit_that_is_set_twice)
{
    char storage[256];
    const struct mk_str words[] = {MK_STR("cpu=1s"), MK_STR("cpu=2s")};
    const struct mk_conf_value value = {.text = MK_STR("cpu=1s cpu=2s"), .words = words, .n = 2};
    struct mk_child_limits limits = {0};
    struct mk_buf error;
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    assert_int_equal(mk_child_parse_limits(&value, &limits, NULL, &error), -EINVAL);
    assert_str_equal(mk_buf_str(&error), "cpu is set twice");
}
