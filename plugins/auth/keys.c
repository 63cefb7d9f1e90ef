// SPDX-License-Identifier: Apache-2.0
#include "token.h"

#include <monkey/base/file.h>

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

/*
 * Which keys are accepted, and which may have signed a token. jwks.c reads JSON Web Keys.
 */
struct key_set {
    struct jws_key all[KEY_SET_MAX];
    unsigned n;
    char id[KEY_SET_ID_BYTES];
    struct mk_arena arena; /* of the kids */
};

struct key_set *key_set_new(void)
{
    struct key_set *keys = mk_account_zalloc(NULL, sizeof(*keys));
    if (!keys)
        return NULL;
    mk_arena_init(&keys->arena, NULL, (size_t)2 * KEY_SET_MAX * JWS_KID_BYTES_MAX, NULL, 0);
    return keys;
}

void key_set_free(struct key_set *keys)
{
    if (!keys)
        return;
    for (unsigned i = 0; i < keys->n; i++)
        EVP_PKEY_free(keys->all[i].pkey);
    mk_arena_release(&keys->arena);
    mk_account_free(NULL, keys, sizeof(*keys));
}

unsigned key_set_count(const struct key_set *keys)
{
    return keys->n;
}

static bool is_secret(const EVP_PKEY *pkey)
{
    return EVP_PKEY_is_a(pkey, "HMAC");
}

static unsigned count_secrets(const struct key_set *keys)
{
    unsigned n = 0;
    for (unsigned i = 0; i < keys->n; i++)
        n += is_secret(keys->all[i].pkey);
    return n;
}

struct mk_str key_set_id(const struct key_set *keys)
{
    return mk_str(keys->id, sizeof(keys->id));
}

struct mk_buf *key_set_report(struct mk_buf *message, const char *name)
{
    mk_buf_addf(message, "%s%s ", message->len ? "; " : "", name);
    return message;
}

/* ── which keys are accepted ── */

static int check_rsa(const EVP_PKEY *pkey, struct mk_buf *message)
{
    int bits = EVP_PKEY_get_bits(pkey);
    if (bits >= KEY_SET_RSA_BITS_MIN && bits <= KEY_SET_RSA_BITS_MAX)
        return 0;
    mk_buf_addf(message, "is an RSA key of %d bits; %d to %d are accepted", bits, KEY_SET_RSA_BITS_MIN,
                KEY_SET_RSA_BITS_MAX);
    return -EINVAL;
}

static int refuse_type(const EVP_PKEY *pkey, struct mk_buf *message)
{
    char group[64] = "";
    size_t len;
    if (EVP_PKEY_is_a(pkey, "RSA-PSS")) {
        mk_buf_addf(message, "is an RSA-PSS key: write it as a JWK of type RSA, with its algorithm as alg");
        return -EINVAL;
    }
    if (!EVP_PKEY_is_a(pkey, "EC")) {
        mk_buf_addf(message, "is neither an RSA, nor an EC, nor an Ed25519 key");
        return -EINVAL;
    }
    EVP_PKEY_get_group_name(pkey, group, sizeof(group), &len);
    mk_buf_addf(message, "is an EC key of the curve %s; P-256, P-384 and P-521 are accepted",
                *group ? group : "without a name");
    return -EINVAL;
}

/* Finds the algorithm of a key, of which `named` may be JWS_BY_TYPE. */
static int check_type(const EVP_PKEY *pkey, enum jws_alg named, enum jws_alg *ret, struct mk_buf *message)
{
    unsigned own = 0;
    while (own < JWS_ALGS && !jws_fits(own, pkey))
        own++;
    if (own == JWS_ALGS)
        return refuse_type(pkey, message);
    *ret = named == JWS_BY_TYPE ? own : named;
    if (!jws_fits(*ret, pkey)) {
        mk_buf_addf(message, "has the algorithm %s, which is not one of its type", jws_alg_name(*ret));
        return -EINVAL;
    }
    return own == JWS_RS256 ? check_rsa(pkey, message) : 0;
}

/* Checks the numbers of a public key: that a point is on its curve, for example. */
static int check_numbers(EVP_PKEY *pkey, struct mk_buf *message)
{
    ERR_set_mark();
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(pkey, NULL);
    bool right = ctx && EVP_PKEY_public_check(ctx) == 1;
    EVP_PKEY_CTX_free(ctx);
    ERR_pop_to_mark();
    if (right)
        return 0;
    mk_buf_addf(message, "is not a valid public key");
    return -EINVAL;
}

static int store_key(struct key_set *keys, EVP_PKEY *pkey, enum jws_alg alg, struct mk_str kid, struct mk_buf *message)
{
    struct jws_key *key = &keys->all[keys->n];
    if (keys->n == KEY_SET_MAX) {
        mk_buf_addf(message, "is above the limit of %d keys", KEY_SET_MAX);
        return -ENOBUFS;
    }
    struct mk_str copy = kid.p ? mk_arena_dup(&keys->arena, kid) : MK_STR_NONE;
    if (kid.p && !copy.p) {
        mk_buf_addf(message, "cannot be stored: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    *key = (struct jws_key){.alg = alg, .kid = copy, .pkey = pkey};
    keys->n++;
    return 0;
}

int key_set_add(struct key_set *keys, EVP_PKEY *pkey, enum jws_alg alg, struct mk_str kid, struct mk_buf *message)
{
    int err = check_type(pkey, alg, &alg, message);
    if (err == 0 && !is_secret(pkey))
        err = check_numbers(pkey, message);
    if (err == 0)
        err = store_key(keys, pkey, alg, kid, message);
    if (err < 0)
        EVP_PKEY_free(pkey);
    return err;
}

int key_set_add_secret(struct key_set *keys, struct mk_str secret, enum jws_alg alg, struct mk_str kid,
                       struct mk_buf *message)
{
    size_t least = jws_secret_bytes_min(alg);
    if (secret.len < least || secret.len > KEY_SET_SECRET_BYTES_MAX) {
        mk_buf_addf(message, "is a secret of %zu bytes; %zu to %d are accepted", secret.len, least,
                    KEY_SET_SECRET_BYTES_MAX);
        return -EINVAL;
    }
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, (const unsigned char *)secret.p, secret.len);
    if (pkey)
        return key_set_add(keys, pkey, alg, kid, message);
    mk_buf_addf(message, "cannot be stored: %s", strerror(ENOMEM));
    return -ENOMEM;
}

/* The length comes first, so that bytes cannot move from one file to the next. */
static int extend_id(struct key_set *keys, unsigned kind, struct mk_str bytes)
{
    uint64_t head[2] = {kind, bytes.len};
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(ctx, keys->id, sizeof(keys->id)) && EVP_DigestUpdate(ctx, head, sizeof(head)) &&
                EVP_DigestUpdate(ctx, bytes.p, bytes.len) && EVP_DigestFinal_ex(ctx, (unsigned char *)keys->id, NULL);
    EVP_MD_CTX_free(ctx);
    return done ? 0 : -ENOMEM;
}

/* ── which keys may have signed a token ── */

static bool has_kid(const struct key_set *keys, const struct jws *jws)
{
    for (unsigned i = 0; i < keys->n && jws->kid.p; i++)
        if (keys->all[i].alg == jws->alg && keys->all[i].kid.p && mk_str_eq(keys->all[i].kid, jws->kid))
            return true;
    return false;
}

static bool may_sign(const struct jws_key *key, const struct jws *jws, bool exact)
{
    if (key->alg != jws->alg)
        return false;
    if (exact)
        return key->kid.p && mk_str_eq(key->kid, jws->kid);
    return !jws->kid.p || !key->kid.p;
}

const struct jws_key *key_set_next(const struct key_set *keys, const struct jws *jws, const struct jws_key *after)
{
    bool exact = has_kid(keys, jws);
    for (const struct jws_key *key = after ? after + 1 : keys->all; key < keys->all + keys->n; key++)
        if (may_sign(key, jws, exact))
            return key;
    return NULL;
}

/* Blocks of PEM, and which of them hold a public key. The dates of certificates are not looked at. */
/* ── blocks ── */

static EVP_PKEY *read_public(const unsigned char *der, long len)
{
    return d2i_PUBKEY(NULL, &der, len);
}

static EVP_PKEY *read_rsa(const unsigned char *der, long len)
{
    return d2i_PublicKey(EVP_PKEY_RSA, NULL, &der, len);
}

static EVP_PKEY *read_certificate(const unsigned char *der, long len)
{
    X509 *certificate = d2i_X509(NULL, &der, len);
    EVP_PKEY *pkey = certificate ? X509_get_pubkey(certificate) : NULL;
    X509_free(certificate);
    return pkey;
}

static const struct block_kind {
    const char *label;
    EVP_PKEY *(*read)(const unsigned char *der, long len); /* NULL: without meaning here */
} kinds[] = {
    {PEM_STRING_PUBLIC, read_public},
    {PEM_STRING_RSA_PUBLIC, read_rsa},
    {PEM_STRING_X509, read_certificate},
    {PEM_STRING_ECPARAMETERS, NULL},
};

struct block {
    unsigned nth;
    char *label, *header;
    unsigned char *der;
    long len;
};

static const struct block_kind *find_kind(const char *label)
{
    for (size_t i = 0; i < MK_COUNT_OF(kinds); i++)
        if (strcmp(label, kinds[i].label) == 0)
            return &kinds[i];
    return NULL;
}

static int report_error(struct mk_buf *message, const char *name, const struct block *block, const char *phrase)
{
    mk_buf_addf(key_set_report(message, name), "(block %u) %s", block->nth, phrase);
    return -EINVAL;
}

/* A private key, or something that is no key at all. */
static int refuse_block(const char *name, const struct block *block, struct mk_buf *message)
{
    if (!strstr(block->label, "PRIVATE KEY"))
        return report_error(message, name, block, "is neither a public key nor a certificate");
    return report_error(
        message, name, block,
        "is a private key, which does not belong here; openssl pkey -in FILE -pubout writes the public one");
}

static int add_block(struct key_set *keys, const char *name, const struct block *block, struct mk_buf *message)
{
    const struct block_kind *kind = find_kind(block->label);
    if (!kind)
        return refuse_block(name, block, message);
    if (!kind->read)
        return 0;
    EVP_PKEY *pkey = kind->read(block->der, block->len);
    if (!pkey)
        return report_error(message, name, block, "cannot be read");
    MK_BUF_ON_STACK(phrase, 128);
    int err = key_set_add(keys, pkey, JWS_BY_TYPE, MK_STR_NONE, &phrase);
    if (err < 0)
        report_error(message, name, block, mk_buf_cstr(&phrase));
    return err;
}

/* ── texts ── */

static bool read_block(BIO *bio, struct block *block)
{
    block->nth++;
    return PEM_read_bio(bio, &block->label, &block->header, &block->der, &block->len);
}

/* Says what ended the reading. Returns 0 if the text ends after a key. */
static int check_end(const char *name, const struct block *block, bool found, struct mk_buf *message)
{
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return report_error(message, name, block, "is damaged");
    if (found)
        return 0;
    mk_buf_addf(key_set_report(message, name), "holds neither a key in PEM nor a JWK set");
    return -EINVAL;
}

/*
 * Adds all keys of a text to a set. Private keys are refused: they do not belong on a server that only verifies.
 * Returns 0, -EINVAL, -ENOBUFS or -ENOMEM, with sentences in `message`.
 */
static int read_pem(struct key_set *keys, const char *name, struct mk_str text, struct mk_buf *message)
{
    struct block block = {0};
    int err = 0;
    unsigned before = key_set_count(keys);
    bool more = true;
    BIO *bio = BIO_new_mem_buf(text.len ? text.p : "", (int)text.len);
    if (!bio)
        return -ENOMEM;
    ERR_set_mark();
    while (err == 0 && (more = read_block(bio, &block))) {
        err = add_block(keys, name, &block, message);
        OPENSSL_free(block.label);
        OPENSSL_free(block.header);
        OPENSSL_clear_free(block.der, (size_t)block.len);
    }
    if (!more)
        err = check_end(name, &block, key_set_count(keys) > before, message);
    ERR_pop_to_mark();
    BIO_free(bio);
    return err;
}

static int report_memory(struct mk_buf *message, const char *name)
{
    mk_buf_addf(key_set_report(message, name), "cannot be stored: %s", strerror(ENOMEM));
    return -ENOMEM;
}

/* What is surely no secret, but a key file under the wrong directive. */
static bool is_key_file(struct mk_str bytes)
{
    return memmem(bytes.p, bytes.len, "-----BEGIN", 10) || memmem(bytes.p, bytes.len, "\"kty\"", 5) ||
           mk_str_starts(bytes, MK_STR("\x30\x82")) || mk_str_starts(bytes, MK_STR("ssh-"));
}

static int read_secret(struct key_set *keys, const char *name, struct mk_str bytes, struct mk_buf *message)
{
    if (is_key_file(bytes)) {
        mk_buf_addf(key_set_report(message, name), "holds a key, not a secret: name it behind Keys");
        return -EINVAL;
    }
    if (bytes.len && bytes.p[bytes.len - 1] == '\n')
        bytes.len--;
    if (bytes.len && bytes.p[bytes.len - 1] == '\r')
        bytes.len--;
    MK_BUF_ON_STACK(phrase, 128);
    int err = key_set_add_secret(keys, bytes, JWS_BY_TYPE, MK_STR_NONE, &phrase);
    if (err < 0)
        mk_buf_adds(key_set_report(message, name), mk_buf_str(&phrase));
    return err;
}

static bool is_json(struct mk_str bytes)
{
    size_t i = 0;
    while (i < bytes.len && mk_is_one_of(bytes.p[i], " \t\r\n"))
        i++;
    return i < bytes.len && bytes.p[i] == '{';
}

int keys_read(struct key_set *keys, enum keys_kind kind, const char *name, struct mk_str bytes, struct mk_buf *message)
{
    int err = extend_id(keys, kind, bytes);
    if (err < 0)
        return report_memory(message, name);
    if (kind == KEYS_SECRET)
        return read_secret(keys, name, bytes, message);
    return is_json(bytes) ? jwks_read(keys, name, bytes, message) : read_pem(keys, name, bytes, message);
}

/* Reads the keys of a file. Secrets must not be open to others. */
static int add_keys(struct key_set *keys, const struct keys_file *which, const struct mk_file_bytes *file,
                    struct mk_buf *message)
{
    unsigned secrets = count_secrets(keys);
    int err = keys_read(keys, which->kind, which->path.p, mk_str(file->data, file->len), message);
    if (err < 0 || count_secrets(keys) == secrets || mk_file_is_private(file->mode))
        return err;
    mk_file_add_mode_error(key_set_report(message, which->path.p), file->mode);
    return -EINVAL;
}

static int load_file(struct key_set *keys, const struct keys_file *which, struct mk_buf *message)
{
    struct mk_arena arena;
    struct mk_file_bytes file;
    mk_arena_init(&arena, NULL, 2 * KEYS_FILE_BYTES_MAX, NULL, 0);
    int err = mk_file_read(which->path.p, KEYS_FILE_BYTES_MAX, &arena, &file);
    if (err == 0 && !file.len)
        err = -ENODATA;
    if (err < 0) {
        mk_file_add_read_error(key_set_report(message, which->path.p), err, KEYS_FILE_BYTES_MAX);
    } else {
        err = add_keys(keys, which, &file, message);
        explicit_bzero(file.data, file.len);
    }
    mk_arena_release(&arena);
    return err;
}

int keys_load(const struct keys_file *files, unsigned n, struct key_set **ret, struct mk_buf *message)
{
    int err = 0;
    struct key_set *keys = key_set_new();
    if (!keys)
        return report_memory(message, "the keys");
    for (unsigned i = 0; i < n && err == 0; i++)
        err = load_file(keys, &files[i], message);
    if (err < 0)
        key_set_free(keys);
    else
        *ret = keys;
    return err;
}
