// SPDX-License-Identifier: Apache-2.0
/*
 * The files of users and groups, and the hashes in them, as text.
 */
#include "testing.h"

#include "plugins/auth/passwords.h"

#include <errno.h>
#include <stdio.h>

#define YESCRYPT "$y$j9T$ZW3S8CSfL9/C1Sy/3Wu2d.$IMT3fvcvztZGldpwDlyhGmmbAYZbCmmYcMaIMTOcEE8"
#define BCRYPT "$2b$10$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i"
#define APR1 "$apr1$nlop1Zi9$GPOAXeylNHtkkvR06pSxa1"
#define SHA1 "{SHA}fGphxo74ubawYbKMNIvB7Xkhy1M="
#define SHA256 "$5$QbG9CwM0.m1MEbus$rFRmjYjzS9x39Oiv1pSfAfrvpbAc9dgfw5.eHTyDtFB"
#define SHA512 \
    "$6$LB7lfv4B6/mcaucn$dhsW2TpxSBHIjfZNaizWnZWVTebazMDSg1jCpN3vIBDW.nsr5KwNdeLrAywoIUkY0JY0nImk1Cp9bO1zTls/H0"

/* ── hashes ── */

TEST(schemes)
{
    static const struct {
        const char *hash;
        enum scheme scheme;
    } cases[] = {
        {YESCRYPT, SCHEME_YESCRYPT},
        {"$y$jBT$$IMT3fvcvztZGldpwDlyhGmmbAYZbCmmYcMaIMTOcEE8", SCHEME_YESCRYPT}, /* 64 MiB */
        {BCRYPT, SCHEME_BCRYPT},
        {"$2y$05$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i", SCHEME_BCRYPT},
        {"$2a$13$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i", SCHEME_BCRYPT},
        {SHA512, SCHEME_SHA512},
        {SHA256, SCHEME_SHA256},
        {"$5$rounds=999999$QbG9CwM0.m1MEbus$rFRmjYjzS9x39Oiv1pSfAfrvpbAc9dgfw5.eHTyDtFB", SCHEME_SHA256},
        {APR1, SCHEME_APR1},
        {SHA1, SCHEME_SHA1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scheme_fault fault = {0};
        size_t len = strlen(cases[i].hash);
        char *hash = mk_test_guarded(cases[i].hash, len);
        assert_int_equal(scheme_parse(mk_str(hash, len), &fault), cases[i].scheme);
        for (size_t n = 0; n < len; n++) { /* no part of it is a hash */
            char *part = mk_test_guarded(cases[i].hash, n);
            assert_int_equal(scheme_parse(mk_str(part, n), &fault), -EINVAL);
            assert_true(fault.at <= n && fault.sentence);
            mk_test_unguard(part, n);
        }
        mk_test_unguard(hash, len);
    }
}

TEST(refused_hashes)
{
    static const struct {
        const char *hash, *words;
        size_t at;
    } cases[] = {
        {"", "empty", 0},
        {"secret", "plain text", 0},
        {"rqXexS6ZhobKA", "DES", 0},
        {"$1$abc$def", "not supported", 0},
        {"{SSHA}abc", "not supported", 0},
        {"$2x$10$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i", "not supported", 0},
        {"$2b$14$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i", "costs too much", 4},
        {"$2b$3$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i", "not complete", 5},
        {"$y$jCT$x$IMT3fvcvztZGldpwDlyhGmmbAYZbCmmYcMaIMTOcEE8", "costs too much", 4},
        {"$y$jzz$x$IMT3fvcvztZGldpwDlyhGmmbAYZbCmmYcMaIMTOcEE8", "costs too much", 4},
        {"$6$rounds=1000000$x$y", "costs too much", 10},
        {"$6$rounds=$x$y", "not complete", 10},
        {"$6$seventeen-letters$x", "not complete", 20},
        {APR1 "x", "not complete", 37},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scheme_fault fault = {0};
        assert_int_equal(scheme_parse(mk_str_c(cases[i].hash), &fault), -EINVAL);
        assert_non_null(strstr(fault.sentence, cases[i].words));
        assert_int_equal(fault.at, cases[i].at);
    }
}

/* ── users ── */

TEST(users)
{
    struct htpasswd_reader r;
    struct htpasswd_user user;
    htpasswd_begin(&r, mk_str_c("\xef\xbb\xbf# users\n\nada:" APR1 "\r\n \t\nbob smith:" SHA1 ":Bob, of the shop\n"
                                "j\xc3\xb6rg:" BCRYPT));
    assert_int_equal(htpasswd_next_user(&r, &user), 1);
    assert_str_equal(user.name, "ada");
    assert_str_equal(user.hash, APR1);
    assert_int_equal(htpasswd_next_user(&r, &user), 1);
    assert_str_equal(user.name, "bob smith");
    assert_str_equal(user.hash, SHA1);
    assert_int_equal(user.scheme, SCHEME_SHA1);
    assert_int_equal(htpasswd_next_user(&r, &user), 1);
    assert_str_equal(user.name, "j\xc3\xb6rg");
    assert_int_equal(htpasswd_next_user(&r, &user), 0);
    assert_int_equal(htpasswd_next_user(&r, &user), 0);
}

TEST(mistakes_of_users)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *words;
    } cases[] = {
        {"ada", 1, 4, "a colon and a hash"},
        {"\n\n:" APR1, 3, 1, "missing"},
        {"ada:x", 1, 5, "plain text"},
        {"#\nada:$2b$14$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i", 2, 9, "costs"},
        {"a\tb:" APR1, 1, 2, "control"},
        {"a\xff:" APR1, 1, 2, "UTF-8"},
        {"a\xc0\x80:" APR1, 1, 2, "UTF-8"},
        {"a\xc2\x85:" APR1, 1, 2, "control"},
        {"a\xed\xa0\x80:" APR1, 1, 2, "UTF-8"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct htpasswd_reader r;
        struct htpasswd_user user;
        htpasswd_begin(&r, mk_str_c(cases[i].text));
        assert_int_equal(htpasswd_next_user(&r, &user), -EINVAL);
        assert_int_equal(r.line, cases[i].line);
        assert_int_equal(r.column, cases[i].column);
        assert_non_null(strstr(r.error, cases[i].words));
        assert_int_equal(htpasswd_next_user(&r, &user), 0); /* continues behind the line */
    }
}

TEST(long_lines)
{
    char line[2000];
    struct htpasswd_reader r;
    struct htpasswd_user user;
    for (size_t n = 255; n <= 256; n++) {
        memset(line, 'a', n);
        snprintf(line + n, sizeof(line) - n, ":%s\nbob:%s", APR1, APR1);
        htpasswd_begin(&r, mk_str_c(line));
        assert_int_equal(htpasswd_next_user(&r, &user), n == 255 ? 1 : -EINVAL);
        assert_int_equal(htpasswd_next_user(&r, &user), 1);
        assert_str_equal(user.name, "bob");
    }
    memset(line, 'a', 1500);
    line[1500] = '\0';
    htpasswd_begin(&r, mk_str_c(line));
    assert_int_equal(htpasswd_next_user(&r, &user), -EINVAL);
    assert_int_equal(r.column, 1025);
}

/* ── groups ── */

TEST(groups)
{
    static const char *const members[][2] = {
        {"staff", "ada"}, {"staff", "bob"}, {"empty", ""}, {"b\xc3\xbcro", "eve"}, {"staff", "zed"}};
    struct htpasswd_reader r;
    struct htpasswd_member m;
    htpasswd_begin(&r, mk_str_c("# groups\nstaff: ada,\tbob \nempty:\n b\xc3\xbcro :eve\r\nstaff:zed"));
    for (size_t i = 0; i < COUNT(members); i++) {
        assert_int_equal(htpasswd_next_member(&r, &m), 1);
        assert_str_equal(m.group, members[i][0]);
        assert_str_equal(m.user, members[i][1]);
    }
    assert_int_equal(htpasswd_next_member(&r, &m), 0);
}

TEST(mistakes_of_groups)
{
    static const struct {
        const char *text;
        unsigned line, column;
    } cases[] = {{"staff ada", 1, 1}, {"\n: ada", 2, 1}, {"staff: a\x01", 1, 9}, {"staff: \xff", 1, 8}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct htpasswd_reader r;
        struct htpasswd_member m;
        htpasswd_begin(&r, mk_str_c(cases[i].text));
        assert_int_equal(htpasswd_next_member(&r, &m), -EINVAL);
        assert_int_equal(r.line, cases[i].line);
        assert_int_equal(r.column, cases[i].column);
        assert_int_equal(htpasswd_next_member(&r, &m), 0);
    }
}
