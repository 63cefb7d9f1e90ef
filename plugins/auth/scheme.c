// SPDX-License-Identifier: Apache-2.0
/*
 * Recognizes password hashes (scheme.h) by a table of prefixes. Each row has the fields after the prefix.
 */
#include "scheme.h"

#include <assert.h>
#include <errno.h>

static const char digits[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static const char damaged[] = "the password is not complete: a part of its hash is missing or was changed";
static const char costly[] =
    "the password has a hash that costs too much time or memory for each login: set it again with mk_passwd";

/* A hash that is being read; `at`: the next byte. */
struct scheme_scan {
    struct mk_str hash;
    size_t at;
    const char *fault; /* NULL: none yet */
};

bool scheme_is_digit(char c)
{
    return c && strchr(digits, c);
}

static bool fail_scan(struct scheme_scan *s, const char *sentence)
{
    s->fault = s->fault ? s->fault : sentence;
    return false;
}

/* Reads `min` to `max` digits of base 64. */
static bool scan_digits(struct scheme_scan *s, size_t min, size_t max)
{
    size_t n = 0;
    while (n < max && s->at < s->hash.len && scheme_is_digit(s->hash.p[s->at])) {
        s->at++;
        n++;
    }
    return n >= min || fail_scan(s, damaged);
}

static bool scan_char(struct scheme_scan *s, char c)
{
    if (s->at >= s->hash.len || s->hash.p[s->at] != c)
        return fail_scan(s, damaged);
    s->at++;
    return true;
}

/* Reads a salt, which may have any printable characters but `$` and colons. */
static bool scan_salt(struct scheme_scan *s, size_t max)
{
    size_t n = 0;
    while (s->at < s->hash.len && s->hash.p[s->at] > ' ' && s->hash.p[s->at] < 0x7f && s->hash.p[s->at] != '$') {
        s->at++;
        n++;
    }
    return n <= max || fail_scan(s, damaged);
}

/* Reads a decimal number of at most nine digits. */
static bool scan_number(struct scheme_scan *s, unsigned *ret)
{
    size_t start = s->at;
    *ret = 0;
    while (s->at < s->hash.len && s->hash.p[s->at] >= '0' && s->hash.p[s->at] <= '9' && s->at - start < 9)
        *ret = *ret * 10 + (unsigned)(s->hash.p[s->at++] - '0');
    return s->at > start || fail_scan(s, damaged);
}

static unsigned digit_value(char c)
{
    assert(scheme_is_digit(c));
    return (unsigned)(strchr(digits, c) - digits);
}

/* Reads the parameters that libcrypt writes: `j`, the logarithm of the blocks, and their size. */
static bool scan_yescrypt(struct scheme_scan *s)
{
    size_t start = s->at;
    if (!scan_char(s, 'j') || !scan_digits(s, 2, 2))
        return false;
    unsigned log2 = digit_value(s->hash.p[start + 1]) + 1, blocks = digit_value(s->hash.p[start + 2]) + 1;
    if (log2 > 24 || ((uint64_t)blocks << log2) / 8 > SCHEME_YESCRYPT_KB_MAX) {
        s->at = start + 1;
        return fail_scan(s, costly);
    }
    return scan_char(s, '$') && scan_digits(s, 0, 86) && scan_char(s, '$') && scan_digits(s, 43, 43);
}

static bool scan_bcrypt(struct scheme_scan *s)
{
    unsigned cost;
    size_t start = s->at;
    if (!scan_number(s, &cost) || s->at - start != 2 || cost < 4)
        return fail_scan(s, damaged);
    if (cost > SCHEME_BCRYPT_COST_MAX) {
        s->at = start;
        return fail_scan(s, costly);
    }
    return scan_char(s, '$') && scan_digits(s, 53, 53);
}

/* Reads the rounds that may be given, the salt and `n` digits. */
static bool scan_sha_crypt(struct scheme_scan *s, size_t n)
{
    static const struct mk_str key = MK_STR_INIT("rounds=");
    unsigned rounds;
    if (mk_str_starts(mk_str(s->hash.p + s->at, s->hash.len - s->at), key)) {
        s->at += key.len;
        size_t start = s->at;
        if (!scan_number(s, &rounds) || !scan_char(s, '$'))
            return false;
        if (rounds > SCHEME_ROUNDS_MAX) {
            s->at = start;
            return fail_scan(s, costly);
        }
    }
    return scan_salt(s, 16) && scan_char(s, '$') && scan_digits(s, n, n);
}

static bool scan_sha512(struct scheme_scan *s)
{
    return scan_sha_crypt(s, 86);
}

static bool scan_sha256(struct scheme_scan *s)
{
    return scan_sha_crypt(s, 43);
}

static bool scan_apr1(struct scheme_scan *s)
{
    return scan_salt(s, 8) && scan_char(s, '$') && scan_digits(s, 22, 22);
}

static bool is_base64(char c)
{
    return (scheme_is_digit(c) && c != '.') || c == '+';
}

/* Reads the base 64 of 20 bytes. */
static bool scan_sha1(struct scheme_scan *s)
{
    for (size_t n = 0; n < 27; n++, s->at++)
        if (s->at >= s->hash.len || !is_base64(s->hash.p[s->at]))
            return fail_scan(s, damaged);
    return scan_char(s, '=');
}

static const struct {
    const char *prefix, *name;
    enum scheme scheme;
    bool (*scan)(struct scheme_scan *s);
} rows[] = {
    {"$y$", "yescrypt", SCHEME_YESCRYPT, scan_yescrypt}, {"$2b$", "bcrypt", SCHEME_BCRYPT, scan_bcrypt},
    {"$2y$", "bcrypt", SCHEME_BCRYPT, scan_bcrypt},      {"$2a$", "bcrypt", SCHEME_BCRYPT, scan_bcrypt},
    {"$6$", "sha512", SCHEME_SHA512, scan_sha512},       {"$5$", "sha256", SCHEME_SHA256, scan_sha256},
    {"$apr1$", "apr1", SCHEME_APR1, scan_apr1},          {"{SHA}", "SHA-1", SCHEME_SHA1, scan_sha1},
    {"{SHA1}", "SHA-1", SCHEME_SHA1, scan_sha1}, /* of the original server */
};

enum { ROWS = MK_COUNT_OF(rows), DES_DIGITS = 13 };

const char *scheme_name(enum scheme scheme)
{
    unsigned i = 0;
    while (i < ROWS - 1 && rows[i].scheme != scheme)
        i++;
    return rows[i].name;
}

/* Returns what is wrong with a hash that no row knows. */
static const char *explain_unknown(struct mk_str hash)
{
    size_t n = 0;
    while (n < hash.len && scheme_is_digit(hash.p[n]))
        n++;
    if (!hash.len)
        return "the password is empty: set one with mk_passwd";
    if (hash.p[0] == '$' || hash.p[0] == '{')
        return "the password has a hash of a kind that is not supported: set it again with mk_passwd";
    if (n == hash.len && n == DES_DIGITS)
        return "the password has a DES hash, which can be broken in minutes: set it again with mk_passwd";
    return "the password is plain text or a hash of an unknown kind: set it again with mk_passwd";
}

static int report_fault(struct scheme_fault *ret, size_t at, const char *sentence)
{
    *ret = (struct scheme_fault){at, sentence};
    return -EINVAL;
}

int scheme_parse(struct mk_str hash, struct scheme_fault *ret_fault)
{
    unsigned i = 0;
    while (i < ROWS && !mk_str_starts(hash, mk_str_c(rows[i].prefix)))
        i++;
    if (i == ROWS)
        return report_fault(ret_fault, 0, explain_unknown(hash));
    struct scheme_scan s = {.hash = hash, .at = strlen(rows[i].prefix)};
    if (!rows[i].scan(&s))
        return report_fault(ret_fault, s.at, s.fault);
    if (s.at != hash.len || hash.len > SCHEME_HASH_MAX)
        return report_fault(ret_fault, s.at, damaged);
    return rows[i].scheme;
}
