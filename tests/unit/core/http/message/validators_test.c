// SPDX-License-Identifier: Apache-2.0
/* Entity tags, preconditions in their order, If-Range. */
#include "testing.h"

#include <monkey/request.h>

#include "http/message/validators.h"

#define OLD "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME "Sun, 06 Nov 1994 08:49:37 GMT"
#define SAME_850 "Sunday, 06-Nov-94 08:49:37 GMT"
#define LATER "Sun, 06 Nov 1994 08:49:38 GMT"

static const int64_t mtime = 784111777, now = 1795149843;

TEST(formats_tags)
{
    char out[MK__ETAG_BYTES];
    assert_int_equal(mk__validators_format_etag(13, 1, 5, 0, false, out), strlen("W/\"d-3b9aca05\""));
    assert_string_equal(out, "W/\"d-3b9aca05\"");
    mk__validators_format_etag(0, 0, 0, 0, true, out);
    assert_string_equal(out, "W/\"0-0\"");
    mk__validators_format_etag(0x10, 0, 0, 15, false, out);
    assert_string_equal(out, "\"10-362c2f64b16975d7\"");
    mk__validators_format_etag(0x10, 0, 0, 15, true, out);
    assert_string_equal(out, "W/\"10-362c2f64b16975d7\"");
    mk__validators_format_etag(0x10, 0, 1, 15, false, out);
    assert_string_equal(out, "\"10-f58476d1ce4e5b90\"");
    assert_int_equal(mk__validators_format_etag(UINT64_MAX, -1, 999999999, 0, true, out), 2 + 1 + 16 + 1 + 16 + 1);
    assert_string_equal(out, "W/\"ffffffffffffffff-ffffffffffffffff\"");
}

TEST(versions_of_files)
{
    uint64_t first = mk_file_version(3, 7, 1000, 1);
    assert_true(first && first == mk_file_version(3, 7, 1000, 1));
    assert_true(first != mk_file_version(3, 8, 1000, 1) && first != mk_file_version(3, 7, 1001, 1));
    assert_true(first != mk_file_version(3, 7, 1000, 2) && first != mk_file_version(4, 7, 1000, 1));
}

TEST(a_change_without_a_fraction_of_a_second_is_no_version)
{
    assert_int_equal(mk_file_version(3, 7, 1000, 0), 0);
}

static const struct {
    const char *list, *etag;
    bool strong, weak; /* the results of the two comparisons */
} list_cases[] = {
    {"*", "\"a\"", true, true},
    {" * ", "W/\"a\"", true, true},
    {"\"a\"", "\"a\"", true, true},
    {"\"a\"", "\"b\"", false, false},
    {"\"a\"", "\"ab\"", false, false},
    {"\"A\"", "\"a\"", false, false},
    {"W/\"a\"", "\"a\"", false, true},
    {"\"a\"", "W/\"a\"", false, true},
    {"W/\"a\"", "W/\"a\"", false, true},
    {"\"b\", W/\"c\",\t\"a\"", "\"a\"", true, true},
    {"\"b\",\"a\"", "\"a\"", true, true},
    {",, \"a\" ,,", "\"a\"", true, true},
    {"\"\"", "\"\"", true, true},
    {"\"a,b\"", "\"a,b\"", true, true},
    {"\"a,b\"", "\"a\"", false, false},
    {"\"a\\\"", "\"a\\\"", true, true},
    {"\"\xc3\xbc\"", "\"\xc3\xbc\"", true, true},
    {"", "\"a\"", false, false},
    {" , ", "\"a\"", false, false},
    {"a", "\"a\"", false, false},
    {"\"a", "\"a\"", false, false},
    {"a\"", "\"a\"", false, false},
    {"'a'", "\"a\"", false, false},
    {"w/\"a\"", "\"a\"", false, false},
    {"W/ \"a\"", "\"a\"", false, false},
    {"W/", "\"a\"", false, false},
    {"W", "\"a\"", false, false},
    {"\"a\" \"a\"", "\"a\"", false, false},
    {"\"a\"\"a\"", "\"a\"", false, false},
    {"\"a\", *", "\"a\"", false, false},
    {"*, \"a\"", "\"a\"", false, false},
    {"**", "\"a\"", false, false},
    {"\"a\", b", "\"a\"", false, false},
    {"\"a b\", \"a\"", "\"a\"", false, false},
    {"\"a\x7f\", \"a\"", "\"a\"", false, false},
    {"\"a\"", "", false, false},
};

TEST(matches_lists)
{
    for (size_t i = 0; i < COUNT(list_cases); i++) {
        size_t len = strlen(list_cases[i].list);
        char *bytes = mk_test_guarded(list_cases[i].list, len);
        struct mk_str list = mk_str(bytes, len), etag = mk_str_c(list_cases[i].etag);
        if (mk__validators_match_etags(list, etag, true) != list_cases[i].strong ||
            mk__validators_match_etags(list, etag, false) != list_cases[i].weak)
            fail_msg("%s with %s", list_cases[i].list, list_cases[i].etag);
        mk_test_unguard(bytes, len);
    }
}

enum { PASS = MK__CONDITION_PASS, NOT_MODIFIED, FAILED };

static const struct {
    const char *if_match, *if_none_match, *if_modified_since, *if_unmodified_since;
    int result;
} condition_cases[] = {
    {NULL, NULL, NULL, NULL, PASS},
    /* one field alone */
    {"\"a\"", NULL, NULL, NULL, PASS},
    {"*", NULL, NULL, NULL, PASS},
    {"\"b\"", NULL, NULL, NULL, FAILED},
    {"W/\"a\"", NULL, NULL, NULL, FAILED},
    {"", NULL, NULL, NULL, FAILED},
    {NULL, "\"a\"", NULL, NULL, NOT_MODIFIED},
    {NULL, "W/\"a\"", NULL, NULL, NOT_MODIFIED},
    {NULL, "*", NULL, NULL, NOT_MODIFIED},
    {NULL, "\"b\"", NULL, NULL, PASS},
    {NULL, "", NULL, NULL, PASS},
    {NULL, "a", NULL, NULL, PASS},
    {NULL, NULL, OLD, NULL, PASS},
    {NULL, NULL, SAME, NULL, NOT_MODIFIED},
    {NULL, NULL, SAME_850, NULL, NOT_MODIFIED},
    {NULL, NULL, "Sun Nov  6 08:49:37 1994", NULL, NOT_MODIFIED},
    {NULL, NULL, LATER, NULL, NOT_MODIFIED},
    {NULL, NULL, "yesterday", NULL, PASS},
    {NULL, NULL, "", NULL, PASS},
    {NULL, NULL, NULL, OLD, FAILED},
    {NULL, NULL, NULL, SAME, PASS},
    {NULL, NULL, NULL, LATER, PASS},
    {NULL, NULL, NULL, "yesterday", PASS},
    /* precedence: If-Match hides If-Unmodified-Since, If-None-Match hides If-Modified-Since */
    {"\"a\"", NULL, NULL, OLD, PASS},
    {"\"b\"", NULL, NULL, LATER, FAILED},
    {NULL, "\"b\"", LATER, NULL, PASS},
    {NULL, "\"a\"", OLD, NULL, NOT_MODIFIED},
    {NULL, "garbled", LATER, NULL, PASS},
    /* the first pair comes before the second */
    {"\"b\"", "\"a\"", NULL, NULL, FAILED},
    {"\"a\"", "\"a\"", NULL, NULL, NOT_MODIFIED},
    {"\"a\"", "\"b\"", NULL, NULL, PASS},
    {"\"a\"", NULL, SAME, NULL, NOT_MODIFIED},
    {NULL, "\"a\"", NULL, OLD, FAILED},
    {NULL, NULL, SAME, OLD, FAILED},
    {NULL, NULL, SAME, SAME, NOT_MODIFIED},
};

TEST(checks_in_order)
{
    for (size_t i = 0; i < COUNT(condition_cases); i++) {
        struct mk__conditions in = {
            .if_match = mk_str_c(condition_cases[i].if_match),
            .if_none_match = mk_str_c(condition_cases[i].if_none_match),
            .if_modified_since = mk_str_c(condition_cases[i].if_modified_since),
            .if_unmodified_since = mk_str_c(condition_cases[i].if_unmodified_since),
            .etag = MK_STR("\"a\""),
            .mtime = mtime,
            .now = now,
        };
        int result = mk__validators_check(&in);
        if (result != condition_cases[i].result)
            fail_msg("case %zu: %d", i, result);
    }
}

TEST(without_validators)
{
    struct mk__conditions in = {.mtime = MK__MTIME_NONE, .now = now};
    in.if_modified_since = MK_STR(LATER);
    assert_int_equal(mk__validators_check(&in), PASS);
    in.if_unmodified_since = MK_STR(OLD);
    assert_int_equal(mk__validators_check(&in), PASS);
    in.if_none_match = MK_STR("\"a\"");
    assert_int_equal(mk__validators_check(&in), PASS);
    in.if_match = MK_STR("\"a\"");
    assert_int_equal(mk__validators_check(&in), FAILED);
}

TEST(if_range)
{
    static const struct {
        const char *value, *etag;
        int64_t now;
        bool applies;
    } cases[] = {
        {"\"a\"", "\"a\"", now, true},
        {" \"a\" ", "\"a\"", now, true},
        {"\"b\"", "\"a\"", now, false},
        {"W/\"a\"", "\"a\"", now, false},
        {"\"a\"", "W/\"a\"", now, false},
        {"W/\"a\"", "W/\"a\"", now, false},
        {"\"a\", \"a\"", "\"a\"", now, false},
        {"*", "\"a\"", now, false},
        {"a", "\"a\"", now, false},
        {"", "\"a\"", now, false},
        {SAME, "\"a\"", now, true},
        {SAME_850, "\"a\"", now, true},
        {SAME, "\"a\"", mtime + 2, true},
        {SAME, "\"a\"", mtime + 1, false},
        {SAME, "\"a\"", mtime - 100, false},
        {OLD, "\"a\"", now, false},
        {LATER, "\"a\"", now, false},
        {SAME " x", "\"a\"", now, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (mk__validators_check_if_range(mk_str_c(cases[i].value), mk_str_c(cases[i].etag), mtime, cases[i].now) !=
            cases[i].applies)
            fail_msg("If-Range: %s (case %zu)", cases[i].value, i);
    assert_false(mk__validators_check_if_range(MK_STR(SAME), MK_STR_NONE, MK__MTIME_NONE, now));
    assert_false(mk__validators_check_if_range(MK_STR_NONE, MK_STR_NONE, mtime, now));
}
