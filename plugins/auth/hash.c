// SPDX-License-Identifier: Apache-2.0
/*
 * Password hashes (hash.h): libcrypt for the kinds of crypt(5), libcrypto for the others.
 */
#include "hash.h"

#include <monkey/arena.h>

#include "apr1.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <assert.h>
#include <stdio.h>

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
    if (apr1_compute(mk_str_c(w->password), mk_str(salt, (size_t)salt_len), hash) < 0)
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
