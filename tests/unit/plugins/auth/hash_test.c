// SPDX-License-Identifier: Apache-2.0
/*
 * Password hashes: those that other programs have made, and those that are made here.
 */
#include "testing.h"

#include "plugins/auth/passwords.h"

#include <monkey/base/base64.h>

#include <stdio.h>

/* Made by htpasswd of Apache 2.4, mkpasswd of whois and openssl passwd. */
static const struct {
    const char *password, *hash;
} others[] = {
    {"passw0rd", "{SHA}fGphxo74ubawYbKMNIvB7Xkhy1M="},
    {"passw0rd", "{SHA1}fGphxo74ubawYbKMNIvB7Xkhy1M="}, /* of the original server's mk_passwd */
    {"passw0rd", "$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1"},
    {"", "$apr1$abcdefgh$L.PT565ESX4Tp2bqNs7Ie."},
    {"a password of more than sixteen bytes", "$apr1$x$.61V/urwpq5/FHUkybitK1"},
    {"battery9x", "$apr1$nlop1Zi9$GPOAXeylNHtkkvR06pSxa1"},
    {"battery9x", "$2b$10$q0ZkMPl9bIHtOXU4QmQ3g.IAfj0YVqNuIWOZhTDDge.Twq30Jv42i"},
    {"correct horse", "$y$j9T$ZW3S8CSfL9/C1Sy/3Wu2d.$IMT3fvcvztZGldpwDlyhGmmbAYZbCmmYcMaIMTOcEE8"},
    {"passw0rd", "$5$QbG9CwM0.m1MEbus$rFRmjYjzS9x39Oiv1pSfAfrvpbAc9dgfw5.eHTyDtFB"},
};

static bool matches(struct hash_work *w, const char *password, struct mk_str hash)
{
    struct scheme_fault fault;
    int scheme = scheme_parse(hash, &fault);
    assert_true(scheme >= 0);
    return hash_matches(w, (enum scheme)scheme, mk_str_c(password), hash);
}

TEST(hashes_of_others)
{
    struct hash_work *w = hash_work_new();
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_true(matches(w, others[i].password, mk_str_c(others[i].hash)));
        assert_false(matches(w, "passw0re", mk_str_c(others[i].hash)));
    }
    hash_work_free(w);
}

TEST(created_hashes)
{
    static const struct {
        enum scheme scheme;
        unsigned cost;
    } cases[] = {
        {SCHEME_YESCRYPT, 1}, {SCHEME_BCRYPT, 4}, {SCHEME_SHA512, 1000}, {SCHEME_SHA256, 1000}, {SCHEME_APR1, 0}};
    struct hash_work *w = hash_work_new();
    char first[SCHEME_HASH_MAX + 1];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str hash = hash_create(w, cases[i].scheme, cases[i].cost, MK_STR("p\xc3\xa4ss word"));
        assert_non_null(hash.p);
        snprintf(first, sizeof(first), "%.*s", MK_STR_ARG(hash));
        assert_true(matches(w, "p\xc3\xa4ss word", mk_str_c(first)));
        assert_false(matches(w, "p\xc3\xa4ss Word", mk_str_c(first)));
        hash = hash_create(w, cases[i].scheme, cases[i].cost, MK_STR("p\xc3\xa4ss word"));
        assert_false(mk_str_eq(hash, mk_str_c(first))); /* another salt */
    }
    assert_null(hash_create(w, SCHEME_SHA1, 0, MK_STR("x")).p);
    assert_null(hash_create(w, SCHEME_BCRYPT, 99, MK_STR("x")).p);
    assert_null(hash_create(w, SCHEME_APR1, 1, MK_STR("x")).p);
    hash_work_free(w);
}

/* What is no password of a client matches nothing, also what crypt(3) would cut at a NUL. */
TEST(odd_passwords)
{
    char longest[HASH_PASSWORD_MAX + 2];
    struct hash_work *w = hash_work_new();
    struct mk_str hash = mk_str_c(others[4].hash);
    assert_false(hash_matches(w, SCHEME_APR1, MK_STR("battery9x\0more"), hash));
    assert_false(hash_matches(w, SCHEME_APR1, MK_STR_NONE, hash));
    memset(longest, 'x', sizeof(longest));
    assert_false(hash_matches(w, SCHEME_APR1, mk_str(longest, sizeof(longest)), hash));
    hash = hash_create(w, SCHEME_SHA256, 1000, mk_str(longest, HASH_PASSWORD_MAX));
    assert_non_null(hash.p);
    hash_work_free(w);
}

/* ── credentials ── */

static enum basic_result read_plain(const char *scheme, struct mk_str plain, struct basic_credentials *c)
{
    struct mk_buf value;
    mk_buf_init(&value, 4096);
    mk_buf_addf(&value, "%s ", scheme);
    mk_base64_encode(&value, plain.p, plain.len, MK_BASE64);
    assert_int_equal(value.err, 0);
    char *bytes = mk_test_guarded(value.data, value.len);
    enum basic_result result = basic_read(mk_str(bytes, value.len), c);
    mk_test_unguard(bytes, value.len);
    mk_buf_release(&value);
    return result;
}

TEST(credentials)
{
    struct basic_credentials c;
    assert_int_equal(read_plain("Basic", MK_STR("ada:se:cret"), &c), BASIC_OK);
    assert_str_equal(c.user, "ada");
    assert_str_equal(c.password, "se:cret");
    assert_int_equal(read_plain("bAsIc  ", MK_STR("j\xc3\xb6rg:"), &c), BASIC_OK);
    assert_str_equal(c.user, "j\xc3\xb6rg");
    assert_str_equal(c.password, "");
    assert_int_equal(read_plain("Basic", MK_STR("ada"), &c), BASIC_MALFORMED);
    assert_int_equal(read_plain("Basic", MK_STR("ada:\xe4"), &c), BASIC_MALFORMED); /* Latin-1 */
    assert_int_equal(read_plain("Basic", MK_STR("a\nda:x"), &c), BASIC_MALFORMED);
    assert_int_equal(read_plain("Basic", MK_STR("ada:x\0y"), &c), BASIC_MALFORMED);
    assert_int_equal(read_plain("Basic", MK_STR(""), &c), BASIC_MALFORMED);
    assert_int_equal(read_plain("Bearer", MK_STR("ada:x"), &c), BASIC_NONE);
    assert_int_equal(read_plain("Basics", MK_STR("ada:x"), &c), BASIC_NONE);
    assert_int_equal(basic_read(MK_STR_NONE, &c), BASIC_NONE);
    assert_int_equal(basic_read(MK_STR(""), &c), BASIC_NONE);
    assert_int_equal(basic_read(MK_STR("Basic"), &c), BASIC_MALFORMED);
    assert_int_equal(basic_read(MK_STR("Basic YTpi="), &c), BASIC_MALFORMED);
    assert_int_equal(basic_read(MK_STR("Basic YTpi YTpi"), &c), BASIC_MALFORMED);
}

TEST(long_credentials)
{
    char plain[900];
    struct basic_credentials c;
    memset(plain, 'x', sizeof(plain));
    plain[255] = ':';
    assert_int_equal(read_plain("Basic", mk_str(plain, 255 + 1 + 511), &c), BASIC_OK);
    assert_int_equal(c.user.len, 255);
    assert_int_equal(c.password.len, 511);
    assert_int_equal(read_plain("Basic", mk_str(plain, 255 + 1 + 512), &c), BASIC_MALFORMED);
    plain[256] = ':';
    plain[255] = 'x';
    assert_int_equal(read_plain("Basic", mk_str(plain, 300), &c), BASIC_MALFORMED);
    plain[0] = ':';
    assert_int_equal(read_plain("Basic", mk_str(plain, 1 + 512), &c), BASIC_MALFORMED);
    assert_int_equal(read_plain("Basic", mk_str(plain, 1 + 511), &c), BASIC_OK);
}
