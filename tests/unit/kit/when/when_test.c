// SPDX-License-Identifier: Apache-2.0
/* Conditions: how they are read, where they are wrong, and for which requests they hold. */
#include "conf_value.h"

#include <monkey/kit/when.h>

#include <errno.h>

static int parse(struct mk_when *when, const char *text)
{
    return mk_test_parse_value(mk_when_parse, when, text);
}

static struct mk_str get_header(void *ctx, struct mk_str name)
{
    (void)ctx;
    if (mk_str_ieq(name, MK_STR("User-Agent")))
        return MK_STR("Mozilla/5.0 (GoodBot)");
    return mk_str_ieq(name, MK_STR("X-Empty")) ? MK_STR("") : MK_STR_NONE;
}

static const struct mk_when_request request = {
    .method = MK_STR("GET"),
    .query = MK_STR("lang=de&empty=&flag&a%20b=1+2&lang=at&&%6Cate=%zz&=anon&long"),
    .header = get_header,
};

TEST(conditions, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text;
        int holds;
    } cases[] = {
        {"method GET", 1},
        {"method HEAD GET", 1},
        {"method HEAD", 0},
        {"method POST", 0},
        {"!method POST", 1},
        {"!method GET POST", 0},
        {"query lang", 1},
        {"query Lang", 0},
        {"query nothing", 0},
        {"!query nothing", 1},
        {"query lang =de", 1},
        {"query lang =at", 1},
        {"query lang =d", 0},
        {"query lang =fr =at", 1},
        {"query lang ~^[a-z]{2}$", 1},
        {"query lang ~^A", 0},
        {"query lang ~*^A", 1},
        {"!query lang =de", 0},
        {"!query lang =fr", 1},
        {"query empty =", 1},
        {"query flag =", 1},
        {"query flag", 1},
        {"query a+b", 0},
        {"query late =%zz", 1},
        {"query de", 0},
        {"header User-Agent ~*bot", 1},
        {"header user-agent ~bot", 0},
        {"!header User-Agent ~*bot", 0},
        {"header Cookie", 0},
        {"!header Cookie", 1},
        {"!header Cookie =a", 1},
        {"header X-Empty", 1},
        {"header X-Empty =", 1},
        {"header X-Empty ~.", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_when when = {0};
        if (parse(&when, cases[i].text) != 0)
            fail_msg("%s: %s", cases[i].text, reason);
        if (mk_when_holds(&when, &request) != cases[i].holds)
            fail_msg("%s", cases[i].text);
    }
}

TEST(decoded_names, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_str words[] = {MK_STR("query"), MK_STR("a b"), MK_STR("=1 2")};
    struct mk_conf_value value = {.text = MK_STR("query a b =1 2"), .words = words, .n = 3};
    struct mk_when when = {0};
    struct mk_buf error;
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    assert_int_equal(mk_when_parse(&value, &when, &arena, &error), 0);
    assert_int_equal(mk_when_holds(&when, &request), 1);
}

TEST(all_must_hold, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_when when = {0};
    assert_int_equal(mk_when_holds(&when, &request), 1);
    assert_int_equal(parse(&when, "method GET"), 0);
    assert_false(mk_when_needs_query(&when));
    assert_int_equal(parse(&when, "query lang"), 0);
    assert_true(mk_when_needs_query(&when));
    assert_int_equal(mk_when_holds(&when, &request), 1);
    assert_int_equal(parse(&when, "header Cookie"), 0);
    assert_int_equal(mk_when_holds(&when, &request), 0);
}

TEST(no_query, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_when_request other = request;
    struct mk_when when = {0};
    assert_int_equal(parse(&when, "query lang"), 0);
    other.query = MK_STR_NONE;
    assert_int_equal(mk_when_holds(&when, &other), 0);
    other.query = MK_STR("");
    assert_int_equal(mk_when_holds(&when, &other), 0);
}

/* A value that is too long, and an expression that costs too much: it is not known whether the condition holds. */
TEST(unknown, mk_test_arena_open, mk_test_arena_close)
{
    static char text[MK_WHEN_VALUE_BYTES_MAX + 8];
    struct mk_when_request other = request;
    struct mk_when when = {0}, any = {0}, negated = {0};
    assert_int_equal(parse(&when, "query v =x"), 0);
    assert_int_equal(parse(&negated, "!query v =x"), 0);
    assert_int_equal(parse(&any, "query v"), 0);
    memset(text, 'x', sizeof(text));
    memcpy(text, "v=", 2);
    other.query = mk_str(text, 2 + MK_WHEN_VALUE_BYTES_MAX + 1);
    assert_int_equal(mk_when_holds(&when, &other), -EOVERFLOW);
    assert_int_equal(mk_when_holds(&negated, &other), -EOVERFLOW);
    assert_int_equal(mk_when_holds(&any, &other), 1);
    other.query = mk_str(text, 2 + MK_WHEN_VALUE_BYTES_MAX);
    assert_int_equal(mk_when_holds(&when, &other), 0);
    assert_int_equal(parse(&any, "query v ~^(x+)+$"), 0);
    memcpy(text + 60, "!", 1);
    other.query = mk_str(text, 61);
    assert_int_equal(mk_when_holds(&any, &other), -EOVERFLOW);
}

TEST(mistakes, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text;
        size_t fault;
        const char *reason;
    } cases[] = {
        {"path /x", 0, "a condition is"},
        {"!path /x", 1, "a condition is"},
        {"Method GET", 0, "a condition is"},
        {"method", 6, "a method is missing"},
        {"query", 5, "a name is missing"},
        {"!header", 7, "a name is missing"},
        {"method GET post", 11, "capitals"},
        {"method !GET", 7, "in front"},
        {"method GET,HEAD", 10, "a word such as GET"},
        {"query lang de", 11, "=text"},
        {"query lang !=de", 11, "in front"},
        {"query lang =de ~(", 16, "parenthes"},
        {"header User-Agent: x", 17, "name of a header"},
        {"header X y", 9, "=text"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_when when = {0};
        assert_int_equal(parse(&when, cases[i].text), -EINVAL);
        if (fault != cases[i].fault || !strstr(reason, cases[i].reason))
            fail_msg("%s: %s at %zu", cases[i].text, reason, fault);
        assert_int_equal(when.n, 0);
    }
}

/* A condition covers another if it holds for each request for which that holds. */
TEST(covering, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *wide, *narrow;
        bool covers, covers_back;
    } cases[] = {
        {"method GET POST", "method GET", true, false},
        {"method GET", "method HEAD", true, false},
        {"!method GET", "!method GET POST", true, false},
        {"method GET", "!method GET", false, false},
        {"query a", "query a =b", true, false},
        {"query a =b =c", "query a =c", true, false},
        {"query a", "query A", false, false},
        {"!query a =b", "!query a", true, false},
        {"header A =b", "header a =b", true, true},
        {"header A ~b", "header A ~b", true, true},
        {"header A ~b", "header A ~*b", false, false},
        {"header A =~b", "header A ~b", false, false},
        {"header A", "query A", false, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_when wide = {0}, narrow = {0}, none = {0};
        assert_int_equal(parse(&wide, cases[i].wide), 0);
        assert_int_equal(parse(&narrow, cases[i].narrow), 0);
        if (mk_when_covers(&wide, &narrow) != cases[i].covers || mk_when_covers(&narrow, &wide) != cases[i].covers_back)
            fail_msg("%s, %s", cases[i].wide, cases[i].narrow);
        assert_true(mk_when_covers(&none, &wide));
        assert_false(mk_when_covers(&wide, &none));
        assert_int_equal(parse(&narrow, cases[i].wide), 0); /* one condition more */
        assert_true(mk_when_covers(&wide, &narrow));
    }
}

/* GET means HEAD, too, and not the reverse. */
TEST(head_reads_as_get_does, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_when_request head = request;
    struct mk_when get = {0}, only_head = {0}, no_get = {0};
    head.method = MK_STR("HEAD");
    assert_int_equal(parse(&get, "method GET"), 0);
    assert_int_equal(parse(&only_head, "method HEAD"), 0);
    assert_int_equal(parse(&no_get, "!method GET"), 0);
    assert_int_equal(mk_when_holds(&get, &head), 1);
    assert_int_equal(mk_when_holds(&only_head, &head), 1);
    assert_int_equal(mk_when_holds(&only_head, &request), 0);
    assert_int_equal(mk_when_holds(&no_get, &head), 0);
}

static int parse_all(void *ctx)
{
    struct mk_when when = {0};
    int err = 0;
    (void)ctx;
    mk_arena_release(&arena);
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    static const char *const texts[] = {"method GET PUT", "query a =b", "header A =b =c"};
    for (size_t i = 0; i < COUNT(texts) && err == 0; i++)
        err = parse(&when, texts[i]);
    return err;
}

TEST(memory, mk_test_arena_open, mk_test_arena_close)
{
    assert_true(mk_test_failing_allocs(parse_all, NULL) > 0);
}
