// SPDX-License-Identifier: Apache-2.0
/*
 * Files of paths, prepared requests, and the distributions of the order.
 */
#include "testing.h"

#include "tools/wr/load/paths.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

static struct mk_arena arena;
static const struct request_form form = {.method = {"GET", 3},
                                         .host = {"h:1", 3},
                                         .headers = {"A: b\r\n", 6},
                                         .length = -1};

static int set_up(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL, SIZE_MAX, NULL, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mk_arena_release(&arena);
    return 0;
}

static int parse(struct paths *paths, const char *text, unsigned *line, const char **error)
{
    *paths = (struct paths){0};
    return paths_parse(paths, &arena, &form, mk_str_c(text), line, error);
}

TEST(file)
{
    struct paths paths;
    unsigned line;
    const char *error;
    assert_int_equal(parse(&paths, "# all\n/a 200 5 " HASH "\r\n\n/b?x=1\n  /c - 7\n/d 404", &line, &error), 0);
    assert_int_equal(paths.n, 4);
    assert_true(paths.has_hashes && paths.list[0].has_hash && !paths.list[1].has_hash);
    assert_int_equal(paths.list[0].status, 200);
    assert_int_equal(paths.list[0].length, 5);
    assert_int_equal(paths.list[0].hash[1], 0x11);
    assert_int_equal(paths.list[0].hash[31], 0xff);
    assert_str_equal(paths.list[1].request, "GET /b?x=1 HTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n");
    assert_int_equal(paths.list[1].length, -1);
    assert_int_equal(paths.list[2].status, 0);
    assert_int_equal(paths.list[2].length, 7);
    assert_int_equal(paths.list[3].status, 404);
}

TEST(wrong_files)
{
    static const struct {
        const char *text, *error;
        unsigned line;
    } cases[] = {
        {"", "no paths", 0},          {"# nothing\n", "no paths", 1}, {"/a\nb\n", "begins with /", 2},
        {"/a#b", "begins with /", 1}, {"/a 99", "status", 1},         {"/a x", "status", 1},
        {"/a 200 -5", "length", 1},   {"/a 200 5 abc", "64", 1},      {"/a 200 5 " HASH " more", "SHA256]", 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct paths paths;
        unsigned line;
        const char *error;
        assert_int_equal(parse(&paths, cases[i].text, &line, &error), -EINVAL);
        assert_int_equal(line, cases[i].line);
        assert_non_null(strstr(error, cases[i].error));
    }
}

TEST(request_with_body)
{
    struct paths paths = {0};
    struct request_form post = {.method = MK_STR("POST"), .host = MK_STR("h"), .body = MK_STR("xyz"), .close = true};
    assert_int_equal(paths_add(&paths, &arena, &post, MK_STR("/p")), 0);
    assert_str_equal(paths.list[0].request,
                     "POST /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 3\r\n\r\nxyz");
}

static void count_picks(enum pick pick, double exponent, unsigned *counts, unsigned n, unsigned picks)
{
    struct paths paths = {0};
    struct picker picker;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(paths_add(&paths, &arena, &form, MK_STR("/")), 0);
    assert_int_equal(paths_prepare(&paths, &arena, pick, exponent), 0);
    picker_init(&picker, 7, 0, 1);
    memset(counts, 0, n * sizeof(*counts));
    for (unsigned i = 0; i < picks; i++)
        counts[paths_pick(&paths, &picker)]++;
}

TEST(sequence)
{
    unsigned counts[7], all = 0;
    count_picks(PICK_SEQUENCE, 0, counts, 7, 700);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(counts[i], 100);
    struct paths paths = {.n = 5, .pick = PICK_SEQUENCE};
    for (unsigned thread = 0; thread < 2; thread++) { /* together, two threads have each path once */
        struct picker picker;
        picker_init(&picker, 1, thread, 2);
        for (unsigned i = 0; i < (thread ? 2u : 3u); i++)
            all |= 1u << paths_pick(&paths, &picker);
    }
    assert_int_equal(all, 31);
}

/* Each share is within five standard deviations of what the distribution says. */
static void check_shares(const unsigned *counts, unsigned n, double exponent, unsigned picks)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += pow(i + 1, -exponent);
    for (unsigned i = 0; i < n; i++) {
        double p = pow(i + 1, -exponent) / sum, expected = p * picks;
        assert_true(fabs(counts[i] - expected) < 5 * sqrt(expected * (1 - p)) + 1);
    }
}

TEST(shares)
{
    enum { N = 1000, PICKS = 1000000 };
    static unsigned counts[N];
    static const double exponents[] = {0, 0.8, 1, 1.5};
    count_picks(PICK_UNIFORM, 0, counts, N, PICKS);
    check_shares(counts, N, 0, PICKS);
    for (size_t i = 0; i < COUNT(exponents); i++) {
        count_picks(PICK_ZIPF, exponents[i], counts, N, PICKS);
        check_shares(counts, N, exponents[i], PICKS);
    }
}

TEST_FILE(set_up, tear_down)
