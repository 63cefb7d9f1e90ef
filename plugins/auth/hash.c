// SPDX-License-Identifier: Apache-2.0
#include "passwords.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <crypt.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>

/*
 * Recognizes password hashes by a table of prefixes. Each row has the fields after the prefix.
 */
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

/* Returns true if `c` is a digit of the base 64 that crypt(5) uses. */
static bool is_crypt_digit(char c)
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
    while (n < max && s->at < s->hash.len && is_crypt_digit(s->hash.p[s->at])) {
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
    assert(is_crypt_digit(c));
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
    return (is_crypt_digit(c) && c != '.') || c == '+';
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
    while (n < hash.len && is_crypt_digit(hash.p[n]))
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

/*
 * The `$apr1$` hash. Its construction is that of FreeBSD's MD5 crypt with another prefix.
 */
enum { MD5_BYTES = 16, ROUNDS = 1000 };

struct apr1_digest {
    EVP_MD_CTX *ctx;
    bool failed;
    unsigned char bytes[MD5_BYTES];
};

static void begin_digest(struct apr1_digest *d)
{
    if (!d->failed && EVP_DigestInit_ex(d->ctx, EVP_md5(), NULL) != 1)
        d->failed = true;
}

static void add_bytes(struct apr1_digest *d, const void *data, size_t len)
{
    if (!d->failed && EVP_DigestUpdate(d->ctx, data, len) != 1)
        d->failed = true;
}

static void add_str(struct apr1_digest *d, struct mk_str s)
{
    add_bytes(d, s.p, s.len);
}

static void end_digest(struct apr1_digest *d)
{
    if (!d->failed && EVP_DigestFinal_ex(d->ctx, d->bytes, NULL) != 1)
        d->failed = true;
}

/* The first digest: of the password, the prefix, the salt, and a digest of both that is as long as the password. */
static void make_first(struct apr1_digest *d, struct mk_str password, struct mk_str salt)
{
    unsigned char inner[MD5_BYTES];
    begin_digest(d);
    add_str(d, password);
    add_str(d, salt);
    add_str(d, password);
    end_digest(d);
    memcpy(inner, d->bytes, sizeof(inner));
    begin_digest(d);
    add_str(d, password);
    add_str(d, MK_STR("$apr1$"));
    add_str(d, salt);
    for (size_t left = password.len; left; left -= left < MD5_BYTES ? left : MD5_BYTES)
        add_bytes(d, inner, left < MD5_BYTES ? left : MD5_BYTES);
    for (size_t bits = password.len; bits; bits >>= 1)
        add_bytes(d, bits & 1 ? "" : password.p, 1); /* a zero, or the first byte of the password */
    end_digest(d);
    explicit_bzero(inner, sizeof(inner));
}

static void make_round(struct apr1_digest *d, unsigned n, struct mk_str password, struct mk_str salt)
{
    struct mk_str last = mk_str((const char *)d->bytes, MD5_BYTES);
    begin_digest(d);
    add_str(d, n & 1 ? password : last);
    if (n % 3)
        add_str(d, salt);
    if (n % 7)
        add_str(d, password);
    add_str(d, n & 1 ? last : password);
    end_digest(d);
}

static char *put_digits(char *to, unsigned long value, unsigned n)
{
    for (; n; n--, value >>= 6)
        *to++ = digits[value & 63];
    return to;
}

static void encode_digest(const unsigned char *bytes, char to[APR1_DIGITS])
{
    static const uint8_t order[5][3] = {{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}};
    for (unsigned i = 0; i < 5; i++)
        to = put_digits(to,
                        (unsigned long)bytes[order[i][0]] << 16 | (unsigned long)bytes[order[i][1]] << 8 |
                            bytes[order[i][2]],
                        4);
    put_digits(to, bytes[11], 2);
}

/* Writes the digits of a hash, without the prefix and the salt. Returns 0, or -ENOTSUP (libcrypto has no MD5). */
static int compute_apr1_digits(struct mk_str password, struct mk_str salt, char to[APR1_DIGITS])
{
    struct apr1_digest d = {.ctx = EVP_MD_CTX_new()};
    d.failed = !d.ctx;
    make_first(&d, password, salt);
    for (unsigned n = 0; n < ROUNDS; n++)
        make_round(&d, n, password, salt);
    encode_digest(d.bytes, to);
    EVP_MD_CTX_free(d.ctx); /* wipes its state */
    explicit_bzero(d.bytes, sizeof(d.bytes));
    return d.failed ? -ENOTSUP : 0;
}

enum { SHA1_BYTES = 20 };

struct hash_work {
    struct crypt_data crypt;
    char password[HASH_PASSWORD_MAX + 1];
    char setting[SCHEME_HASH_MAX + 1]; /* a hash, or its beginning up to the salt */
    char out[SCHEME_HASH_MAX + 1];
};

struct hash_work *hash_work_new(void)
{
    return mk_account_zalloc(NULL, sizeof(struct hash_work));
}

static void wipe_work(struct hash_work *w)
{
    explicit_bzero(&w->crypt, sizeof(w->crypt));
    explicit_bzero(w->password, sizeof(w->password));
}

void hash_work_free(struct hash_work *w)
{
    if (w)
        explicit_bzero(w, sizeof(*w));
    mk_account_free(NULL, w, sizeof(*w));
}

/* The functions below write the hash of the password with the salt of the setting to `w->out`. */

/*
 * crypt_rn(), which AddressSanitizer leaves alone: it replaces the usual function by one that it has looked up at the
 * start of the program, before this plugin has brought libcrypt.
 */
static bool compute_crypt(struct hash_work *w)
{
    const char *hash = crypt_rn(w->password, w->setting, &w->crypt, (int)sizeof(w->crypt));
    if (!hash)
        return false;
    snprintf(w->out, sizeof(w->out), "%s", hash);
    return true;
}

static bool compute_apr1(struct hash_work *w)
{
    static const char prefix[] = "$apr1$";
    char hash[APR1_DIGITS];
    const char *salt = w->setting + sizeof(prefix) - 1;
    int salt_len = (int)strcspn(salt, "$");
    assert(mk_str_starts(mk_str_c(w->setting), MK_STR("$apr1$")) && salt_len <= APR1_SALT_MAX);
    if (compute_apr1_digits(mk_str_c(w->password), mk_str(salt, (size_t)salt_len), hash) < 0)
        return false;
    snprintf(w->out, sizeof(w->out), "%s%.*s$%.*s", prefix, salt_len, salt, APR1_DIGITS, hash);
    return true;
}

/* The setting begins with "{SHA}", or with "{SHA1}" as in files of the original server. */
static bool compute_sha1(struct hash_work *w)
{
    unsigned char bytes[SHA1_BYTES], text[4 * ((SHA1_BYTES + 2) / 3) + 1];
    bool done = EVP_Digest(w->password, strlen(w->password), bytes, NULL, EVP_sha1(), NULL) == 1;
    EVP_EncodeBlock(text, bytes, SHA1_BYTES);
    snprintf(w->out, sizeof(w->out), "%.*s%s", (int)strcspn(w->setting, "}") + 1, w->setting, (const char *)text);
    explicit_bzero(bytes, sizeof(bytes));
    explicit_bzero(text, sizeof(text));
    return done;
}

typedef bool (*compute_fn)(struct hash_work *w);
static const compute_fn compute[SCHEME_COUNT] = {
    [SCHEME_YESCRYPT] = compute_crypt, [SCHEME_BCRYPT] = compute_crypt, [SCHEME_SHA512] = compute_crypt,
    [SCHEME_SHA256] = compute_crypt,   [SCHEME_APR1] = compute_apr1,    [SCHEME_SHA1] = compute_sha1,
};

/* Copies a string with a NUL after it. Returns false if it is too long, or has a NUL itself. */
static bool copy_text(char *to, size_t size, struct mk_str text)
{
    if (text.len >= size || memchr(text.len ? text.p : "", '\0', text.len))
        return false;
    if (text.len)
        memcpy(to, text.p, text.len);
    to[text.len] = '\0';
    return true;
}

bool hash_matches(struct hash_work *w, enum scheme scheme, struct mk_str password, struct mk_str stored)
{
    assert(scheme < SCHEME_COUNT);
    bool same = copy_text(w->setting, sizeof(w->setting), stored) &&
                copy_text(w->password, sizeof(w->password), password) && compute[scheme](w) &&
                strlen(w->out) == stored.len && CRYPTO_memcmp(w->out, stored.p, stored.len) == 0;
    wipe_work(w);
    explicit_bzero(w->out, sizeof(w->out));
    return same;
}

static const char *const prefixes[SCHEME_COUNT] = {
    [SCHEME_YESCRYPT] = "$y$", [SCHEME_BCRYPT] = "$2b$", [SCHEME_SHA512] = "$6$", [SCHEME_SHA256] = "$5$"};

/* Writes a setting with a random salt. crypt_gensalt_rn() refuses a cost that the scheme does not have. */
static bool make_setting(struct hash_work *w, enum scheme scheme, unsigned cost)
{
    if (scheme != SCHEME_APR1)
        return prefixes[scheme] &&
               crypt_gensalt_rn(prefixes[scheme], cost, NULL, 0, w->setting, sizeof(w->setting)) != NULL;
    if (cost || !crypt_gensalt_rn("$1$", 0, NULL, 0, w->out, sizeof(w->out))) /* its salt has the same alphabet */
        return false;
    snprintf(w->setting, sizeof(w->setting), "$apr1$%.*s$", APR1_SALT_MAX, w->out + 3);
    return true;
}

struct mk_str hash_create(struct hash_work *w, enum scheme scheme, unsigned cost, struct mk_str password)
{
    bool made =
        make_setting(w, scheme, cost) && copy_text(w->password, sizeof(w->password), password) && compute[scheme](w);
    wipe_work(w);
    return made ? mk_str_c(w->out) : MK_STR_NONE;
}
