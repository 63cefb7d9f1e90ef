// SPDX-License-Identifier: Apache-2.0
/*
 * Regular expressions: what they match and capture, what is said about wrong ones, that none costs more than it may,
 * and what happens without memory. Several threads use the same one.
 */
#include "arena.h"

#include "base/regex.h"

#include <pthread.h>

#include <monkey/log.h>

static const struct mk_regex *make(const char *text)
{
    const struct mk_regex *regex = NULL;
    struct mk_buf error;
    char storage[300];
    size_t fault;
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    if (mk__regex_new(&regex, mk_str_c(text), &arena, &error, &fault) < 0)
        fail_msg("%s: %s", text, mk_buf_cstr(&error));
    return regex;
}

TEST(matches, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text, *path;
        bool matches;
    } cases[] = {
        {"~b", "/abc", true},
        {"~^b", "/abc", false},
        {"~^/a$", "/a", true},
        {"~^/a$", "/a\n", false},
        {"~^/a.b$", "/a\nb", true},
        {"~^/A$", "/a", false},
        {"~*^/A$", "/a", true},
        {"~/\\d+/", "/a/12/", true},
        {"~^/.$", "/\xc3\xa9", false},
        {"~^/..$", "/\xc3\xa9", true},
        {"~*^/\xc3\x89", "/\xc3\xa9", false},
        {"~^$", "", true},
        {"~(?<!a)b", "/ab", false},
        {"~(?i)A", "/a", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t n = strlen(cases[i].path);
        char *path = mk_test_guarded(cases[i].path, n);
        if (mk__regex_match(make(cases[i].text), mk_str(path, n), NULL, 0) != cases[i].matches)
            fail_msg("%s and %s", cases[i].text, cases[i].path);
        mk_test_unguard(path, n);
    }
    assert_true(mk__regex_match(make("~^$"), MK_STR_NONE, NULL, 0));
}

TEST(captures, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_str groups[4];
    assert_true(mk__regex_match(make("~/(a+)(x)?(b+)(c)"), MK_STR("/aabbc!"), groups, 4));
    assert_str_equal(groups[0], "/aabbc");
    assert_str_equal(groups[1], "aa");
    assert_str_equal(groups[2], "");
    assert_str_equal(groups[3], "bb");
    assert_true(mk__regex_match(make("~/(a)"), MK_STR("/a"), groups, 4));
    assert_str_equal(groups[1], "a");
    assert_str_equal(groups[3], "");
}

TEST(refuses, mk_test_arena_open, mk_test_arena_close)
{
    static char text[1027];
    static const struct {
        const char *text, *reason;
        size_t fault;
    } cases[] = {
        {"~", "behind ~", 0},
        {"~*", "behind ~", 0},
        {"~^/a(b", "parenthesis, at byte 6", 5},
        {"~*^/a(b", "at byte 7", 6},
        {"~+", "at byte 2", 1},
        {"~[a", "terminating ]", 2},
        {"~a)", "parenthesis, at byte 3", 2},
        {"~(*UTF)a", "UTF", 7},
        {"~\\C", "\\C", 2},
        {text, "at most 1,024", 0},
    };
    memset(text, 'a', sizeof(text) - 2);
    text[0] = '~';
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct mk_regex *regex;
        struct mk_buf error;
        char storage[300];
        size_t fault;
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk__regex_new(&regex, mk_str_c(cases[i].text), &arena, &error, &fault), -EINVAL);
        if (!strstr(mk_buf_cstr(&error), cases[i].reason) || fault != cases[i].fault)
            fail_msg("%s: %s (%zu)", cases[i].text, mk_buf_cstr(&error), fault);
    }
}

/* What has no end, what is quadratic, what skips much at each place, and what nests: the log tells, once. */
TEST(gives_up, mk_test_arena_open, mk_test_arena_close)
{
    static const char *const costly[] = {"~^(a+)+$", "~(?:a|b)*[cd]", "~[a-z]+[.,]", "~^(?:(a)|b)*$"};
    static char path[32001];
    int ends[2];
    char lines[1000];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 2] = '!';
    for (size_t i = 0; i < COUNT(costly); i++) {
        const struct mk_regex *regex = make(costly[i]);
        assert_int_equal(pipe(ends), 0);
        mk_log_to(ends[1], MK_LOG_WARN);
        for (int k = 0; k < 3; k++)
            assert_int_equal(mk__regex_match(regex, mk_str(path, sizeof(path) - 1), NULL, 0), -EOVERFLOW);
        assert_true(mk__regex_match(make("~a"), mk_str(path, sizeof(path) - 1), NULL, 0));
        mk_log_to(-1, MK_LOG_WARN);
        close(ends[1]);
        ssize_t n = read(ends[0], lines, sizeof(lines) - 1);
        assert_true(n > 0 && lines[n - 1] == '\n');
        lines[n] = '\0';
        assert_non_null(strstr(lines, "on a path of 32000 bytes"));
        assert_null(strchr(strchr(lines, '\n') + 1, '\n'));
        close(ends[0]);
    }
}

/* The longest path that there may be is not too long for what people write. */
TEST(long_paths, mk_test_arena_open, mk_test_arena_close)
{
    static const char *const usual[] = {"~^/[a-z]+/.*\\.php$", "~/(.*)/([^/]*)$", "~*\\.(png|jpe?g|webp)$",
                                        "~^(?!/api/)"};
    static const char end[] = "/x.php";
    static char path[8001];
    memset(path, 'a', sizeof(path) - 1);
    path[0] = path[100] = '/';
    memcpy(path + sizeof(path) - sizeof(end), end, sizeof(end));
    for (size_t i = 0; i < COUNT(usual); i++)
        assert_int_equal(mk__regex_match(make(usual[i]), mk_str(path, sizeof(path) - 1), NULL, 0), i != 2);
}

static int compile_and_match(void *ctx)
{
    const struct mk_regex *regex;
    struct mk_buf error;
    struct mk_arena own;
    size_t fault;
    (void)ctx;
    mk_arena_init(&own, NULL, 1 << 20, NULL, 0);
    mk_buf_init_fixed(&error, NULL, 0);
    int r = mk__regex_new(&regex, MK_STR("~^(a|b)+$"), &own, &error, &fault);
    int match = r == 0 ? mk__regex_match(regex, MK_STR("abab"), NULL, 0) : 0;
    r = match < 0 ? match : r;
    mk_arena_release(&own);
    return r;
}

/* The first one of the process opens the library as well. */
TEST(without_memory)
{
    assert_true(mk_test_failing_allocs(compile_and_match, NULL) >= 5);
}

static void *match_often(void *ctx)
{
    uintptr_t found = 0;
    for (int i = 0; i < 2000; i++)
        found += mk__regex_match(ctx, MK_STR("/a/b/c"), NULL, 0);
    return (void *)found;
}

TEST(threads, mk_test_arena_open, mk_test_arena_close)
{
    const struct mk_regex *regex = make("~^/(?:[a-z]/?)+$");
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, match_often, (void *)(uintptr_t)regex), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *found;
        assert_int_equal(pthread_join(threads[i], &found), 0);
        assert_int_equal((uintptr_t)found, 2000);
    }
}
