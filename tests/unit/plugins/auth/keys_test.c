// SPDX-License-Identifier: Apache-2.0
/* Which keys are read from which files, what is said of the others, and which may have signed a token. */

#include "tokens.h"
#include "folder.h"

#include <openssl/x509.h>

#include <errno.h>

/* ── JWK sets ── */

TEST(skipped_jwks, tokens_setup, tokens_teardown)
{
    static const struct {
        const char *jwk, *phrase; /* NULL: it is added */
    } cases[] = {
        {OKP, NULL},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"use\":\"sig\",\"key_ops\":[\"verify\"],"
         "\"alg\":\"EdDSA\",\"kid\":\"1\",\"x5t\":\"?\"}",
         NULL},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"use\":\"enc\"}", "is not for signatures (use)"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"use\":1}", "is not for signatures (use)"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"key_ops\":[\"sign\"]}",
         "is not for verifying (key_ops)"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"key_ops\":\"verify\"}",
         "is not for verifying (key_ops)"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"alg\":\"ES256\"}",
         "has the algorithm ES256, which is not one of its type"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"alg\":null}", "has an unknown algorithm (alg)"},
        {"{\"kty\":\"RSA\",\"n\":\"" RSA_A2_N "\",\"e\":\"AQAB\",\"alg\":\"RSA-OAEP\"}",
         "has an unknown algorithm (alg)"},
        {"{\"kty\":\"RSA\",\"n\":\"" RSA_A2_N "\",\"e\":\"AQAB\",\"alg\":\"PS512\"}", NULL},
        {"{\"kty\":\"RSA\",\"n\":\"" RSA_A2_N "\",\"e\":\"AQAB\",\"alg\":\"HS256\"}",
         "has the algorithm HS256, which is not one of its type"},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_A3_X "\",\"y\":\"" EC_A3_Y "\",\"alg\":\"ES384\"}",
         "has the algorithm ES384, which is not one of its type"},
        {"{\"kty\":\"oct\",\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\",\"alg\":\"HS384\"}",
         "is a secret of 32 bytes; 48 to 4096 are accepted"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\",\"kid\":7}",
         "has a \"kid\" that is not a string of at most 256 bytes"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed448\",\"x\":\"" OKP_X "\"}", "has another curve than Ed25519"},
        {"{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"" OKP_X "\"}", "has another curve than Ed25519"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}", "has no string \"x\""},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"\"}", "has no string \"x\""},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}", "has an \"x\" that is not of 32 bytes"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "AAA\"}", "has an \"x\" that is not of 32 bytes"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "=\"}", "has a member \"x\" that is not base64url"},
        {"{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"" EC_A3_X "\",\"y\":\"" EC_A3_Y "\"}",
         "has an \"x\" that is not of 48 bytes"},
        {"{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":\"" EC_A3_X "\",\"y\":\"" EC_A3_Y "\"}",
         "has another curve than P-256, P-384 and P-521"},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_A3_X "\"}", "has no string \"y\""},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"" EC_A3_Y "\"}",
         "has an \"x\" that is not of 32 bytes"},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_A3_X "\",\"y\":\"AAAA\"}",
         "has a \"y\" that is not of 32 bytes"},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_A3_X "\",\"y\":\"" EC_A3_X "\"}", "is not a valid public key"},
        {"{\"kty\":\"RSA\",\"e\":\"AQAB\"}", "has no string \"n\""},
        {"{\"kty\":\"RSA\",\"n\":\"" RSA_A2_N "\",\"e\":\"AQA\"}", "is not a valid public key"},
        {"{\"kty\":\"RSA\",\"n\":\"" RSA_A2_N "\",\"e\":\"AQ\"}", "is not a valid public key"},
        {"{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAk\",\"e\":\"AQAB\"}",
         "is an RSA key of 192 bits; 2048 to 8192 are accepted"},
        {"{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ\"}",
         "is a secret of 25 bytes; 32 to 4096 are accepted"},
        {"{\"kty\":\"oct\"}", "has no string \"k\""},
        {"{\"kty\":\"AKP\"}", "has an unknown type (kty)"},
        {"{\"kty\":\"rsa\"}", "has an unknown type (kty)"},
        {"{}", "has an unknown type (kty)"},
        {"7", "is not an object"},
    };
    struct tokens *t = *state;
    char text[2048], expected[256];
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned before = key_set_count(t->keys);
        snprintf(text, sizeof(text), "{\"keys\":[%s,%s]}", cases[i].jwk, OKP);
        snprintf(expected, sizeof(expected), "keys (key 1) %s, and is skipped", cases[i].phrase ? cases[i].phrase : "");
        tokens_read_keys(t, text);
        const char *message = tokens_message(t);
        assert_int_equal(key_set_count(t->keys) - before, cases[i].phrase ? 1 : 2);
        assert_string_equal(message, cases[i].phrase ? expected : "");
    }
}

TEST(private_members, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    tokens_read_keys(
        t, "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\","
           "\"x\":\"" OKP_X "\"}]}");
    assert_string_equal(tokens_message(t), "keys (key 1) has private members, which do not belong here");
    assert_int_equal(key_set_count(t->keys), 1);
}

TEST(wrong_sets, tokens_setup, tokens_teardown)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "keys has no array \"keys\""},
        {"{\"keys\":{}}", "keys has no array \"keys\""},
        {"{\"keys\":null,\"kty\":\"oct\"}", "keys has no array \"keys\""},
        {"{\"keys\":[]}", "keys holds no key that can be used"},
        {"{\"keys\":[1,{}]}",
         "keys (key 1) is not an object, and is skipped; keys (key 2) has an unknown type (kty), and "
         "is skipped; keys holds no key that can be used"},
        {"{\"kty\":\"x\"}",
         "keys (key 1) has an unknown type (kty), and is skipped; keys holds no key that can be used"},
        {"{\"keys\":[]\n,}", "keys is wrong in line 2, column 2: not JSON"},
        {"\n {\"keys\":[],\"keys\":[]}", "keys is wrong in line 2, column 18: a name appears twice in an object"},
    };
    struct tokens *t = *state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(keys_read(t->keys, KEYS_PUBLIC, "keys", mk_str_c(cases[i].text), &t->message), -EINVAL);
        assert_string_equal(tokens_message(t), cases[i].message);
    }
}

TEST(single_jwk, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    tokens_read_keys(t, OKP);
    assert_int_equal(key_set_count(t->keys), 1);
}

TEST(many_keys, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct mk_buf text;
    mk_buf_init(&text, 1 << 20);
    mk_buf_addf(&text, "{\"keys\":[%s", OKP);
    for (unsigned i = 1; i < KEY_SET_MAX; i++)
        mk_buf_addf(&text, ",%s", OKP);
    size_t len = text.len;
    mk_buf_addf(&text, "]}");
    tokens_read_keys(t, mk_buf_cstr(&text));
    assert_int_equal(key_set_count(t->keys), KEY_SET_MAX);
    key_set_free(t->keys);
    t->keys = key_set_new();
    text.len = len;
    mk_buf_addf(&text, ",%s]}", OKP);
    assert_int_equal(keys_read(t->keys, KEYS_PUBLIC, "keys", mk_buf_str(&text), &t->message), -ENOBUFS);
    assert_string_equal(tokens_message(t), "keys (key 129) is above the limit of 128 keys");
    mk_buf_release(&text);
}

/* ── PEM ── */

static void write_public(BIO *bio, enum jws_alg alg)
{
    EVP_PKEY *key = tokens_make_key(alg);
    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    EVP_PKEY_free(key);
}

static void write_certificate(BIO *bio)
{
    EVP_PKEY *key = tokens_make_key(JWS_ES256);
    X509 *x = X509_new();
    X509_set_pubkey(x, key);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 60);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(bio, x), 1);
    X509_free(x);
    EVP_PKEY_free(key);
}

static struct mk_str text_of(BIO *bio)
{
    char *p;
    long len = BIO_get_mem_data(bio, &p);
    return mk_str(p, (size_t)len);
}

static int read_pem(struct tokens *t, struct mk_str text)
{
    return keys_read(t->keys, KEYS_PUBLIC, "keys", text, &t->message);
}

TEST(pem, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    BIO *bio = BIO_new(BIO_s_mem());
    BIO_puts(bio, "a comment\n");
    write_public(bio, JWS_RS256);
    write_certificate(bio);
    write_public(bio, JWS_EDDSA);
    BIO_puts(bio, "more\n");
    assert_int_equal(read_pem(t, text_of(bio)), 0);
    assert_string_equal(tokens_message(t), "");
    assert_int_equal(key_set_count(t->keys), 3);
    BIO_free(bio);
}

TEST(pkcs1, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    unsigned char *der = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    EVP_PKEY *key = tokens_make_key(JWS_RS256);
    int len = i2d_PublicKey(key, &der);
    assert_true(PEM_write_bio(bio, "RSA PUBLIC KEY", "", der, len) > 0);
    assert_int_equal(read_pem(t, text_of(bio)), 0);
    assert_int_equal(key_set_count(t->keys), 1);
    OPENSSL_free(der);
    EVP_PKEY_free(key);
    BIO_free(bio);
}

TEST(wrong_pem, tokens_setup, tokens_teardown)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "keys holds neither a key in PEM nor a JWK set"},
        {"hello\n", "keys holds neither a key in PEM nor a JWK set"},
        {"[]", "keys holds neither a key in PEM nor a JWK set"},
        {"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n",
         "keys holds neither a key in PEM nor a JWK set"},
        {"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS\n", "keys (block 1) is damaged"},
        {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "keys (block 1) cannot be read"},
        {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "keys (block 1) cannot be read"},
        {"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
         "keys (block 1) is neither a public key nor a certificate"},
        {"-----BEGIN RSA PRIVATE"
         " KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
         "keys (block 1) is a private key, which does not belong here; openssl pkey -in FILE -pubout writes the public "
         "one"},
    };
    struct tokens *t = *state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(read_pem(t, mk_str_c(cases[i].text)), -EINVAL);
        assert_string_equal(tokens_message(t), cases[i].message);
    }
}

static void check_refused(struct tokens *t, EVP_PKEY *key, const char *message)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_non_null(key);
    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    assert_int_equal(read_pem(t, text_of(bio)), -EINVAL);
    assert_string_equal(tokens_message(t), message);
    BIO_free(bio);
    EVP_PKEY_free(key);
}

TEST(other_keys, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    check_refused(t, EVP_RSA_gen(1024U), "keys (block 1) is an RSA key of 1024 bits; 2048 to 8192 are accepted");
    check_refused(t, EVP_EC_gen("P-224"),
                  "keys (block 1) is an EC key of the curve secp224r1; P-256, P-384 and P-521 are accepted");
    check_refused(t, EVP_EC_gen("secp256k1"),
                  "keys (block 1) is an EC key of the curve secp256k1; P-256, P-384 and P-521 are accepted");
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA-PSS", NULL);
    EVP_PKEY *pss = NULL;
    assert_true(EVP_PKEY_keygen_init(ctx) == 1 && EVP_PKEY_generate(ctx, &pss) == 1);
    EVP_PKEY_CTX_free(ctx);
    check_refused(t, pss, "keys (block 1) is an RSA-PSS key: write it as a JWK of type RSA, with its algorithm as alg");
    check_refused(t, EVP_PKEY_Q_keygen(NULL, NULL, "ED448"),
                  "keys (block 1) is neither an RSA, nor an EC, nor an Ed25519 key");
    check_refused(t, EVP_PKEY_Q_keygen(NULL, NULL, "X25519"),
                  "keys (block 1) is neither an RSA, nor an EC, nor an Ed25519 key");
}

/* ── secrets ── */

static int read_secret(struct tokens *t, const char *text)
{
    return keys_read(t->keys, KEYS_SECRET, "secret", mk_str_c(text), &t->message);
}

TEST(secrets, tokens_setup, tokens_teardown)
{
    static const char *const good[] = {SECRET, SECRET "\n", SECRET "\r\n"};
    struct tokens *t = *state;
    EVP_PKEY *mac = tokens_make_key(JWS_HS256);
    struct mk_str token = tokens_sign(t, mac, "{\"alg\":\"HS256\"}", "{}");
    struct claims_rules rules = {.expiry_optional = true};
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(read_secret(t, good[i]), 0);
        assert_int_equal(tokens_decide(t, token, &rules, 0).result, TOKEN_OK);
        key_set_free(t->keys);
        t->keys = key_set_new();
    }
    EVP_PKEY_free(mac);
}

TEST(wrong_secrets, tokens_setup, tokens_teardown)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"0123456789abcdef0123456789abcde\n", "secret is a secret of 31 bytes; 32 to 4096 are accepted"},
        {"", "secret is a secret of 0 bytes; 32 to 4096 are accepted"},
        {"\n", "secret is a secret of 0 bytes; 32 to 4096 are accepted"},
        {RFC_KEYS, "secret holds a key, not a secret: name it behind Keys"},
        {"x-----BEGIN PUBLIC KEY-----", "secret holds a key, not a secret: name it behind Keys"},
        {"\x30\x82 of a certificate in DER, for example", "secret holds a key, not a secret: name it behind Keys"},
    };
    struct tokens *t = *state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(read_secret(t, cases[i].text), -EINVAL);
        assert_string_equal(tokens_message(t), cases[i].message);
    }
    assert_int_equal(key_set_count(t->keys), 0);
}

/* ── files ── */

static int load(struct tokens *t, const char *name, enum keys_kind kind)
{
    char path[600];
    snprintf(path, sizeof(path), "%s", mk_test_path(name));
    struct keys_file file = {mk_str_c(path), kind};
    key_set_free(t->keys);
    t->keys = NULL;
    return keys_load(&file, 1, &t->keys, &t->message);
}

static void check_load(struct tokens *t, const char *name, enum keys_kind kind, int err, const char *sentence)
{
    char expected[800];
    snprintf(expected, sizeof(expected), "%s%s%s", *sentence ? mk_test_path(name) : "", *sentence ? " " : "", sentence);
    assert_int_equal(load(t, name, kind), err);
    assert_string_equal(tokens_message(t), expected);
}

#define IS_OPEN \
    "is open to others: its mode is 644, but only its owner may write it, and only its group read it too (chmod 600, " \
    "or 640)"

TEST(files, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    mk_test_write("empty", MK_STR(""));
    mk_test_write("jwks", MK_STR(OKP));
    mk_test_write("oct", MK_STR(OCT_A1));
    mk_test_write("secret", MK_STR(SECRET));
    mk_test_write("large", MK_STR(""));
    assert_int_equal(truncate(mk_test_path("large"), KEYS_FILE_BYTES_MAX + 1), 0);
    assert_int_equal(mkfifo(mk_test_path("fifo"), 0600), 0);
    check_load(t, "absent", KEYS_PUBLIC, -ENOENT, "cannot be read: No such file or directory");
    check_load(t, "empty", KEYS_PUBLIC, -ENODATA, "is empty");
    check_load(t, "fifo", KEYS_PUBLIC, -EINVAL, "is not a regular file");
    check_load(t, "large", KEYS_PUBLIC, -EFBIG, "has more than 1048576 bytes");
    check_load(t, "secret", KEYS_PUBLIC, -EINVAL, "holds neither a key in PEM nor a JWK set");
    check_load(t, "secret", KEYS_SECRET, -EINVAL, IS_OPEN);
    check_load(t, "oct", KEYS_PUBLIC, -EINVAL, IS_OPEN);
    check_load(t, "jwks", KEYS_PUBLIC, 0, "");
    chmod(mk_test_path("secret"), 0640);
    chmod(mk_test_path("oct"), 0600);
    check_load(t, "secret", KEYS_SECRET, 0, "");
    check_load(t, "oct", KEYS_PUBLIC, 0, "");
}

/* The id of a set is that of its files. */
TEST(ids, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    static const struct {
        enum keys_kind kind;
        const char *texts[2];
    } sets[] = {
        {KEYS_PUBLIC, {OKP, ""}},         {KEYS_PUBLIC, {OKP " ", ""}}, {KEYS_PUBLIC, {OKP, OKP}},
        {KEYS_PUBLIC, {EC_A3, OKP}},      {KEYS_PUBLIC, {OKP, EC_A3}},  {KEYS_SECRET, {SECRET, ""}},
        {KEYS_SECRET, {SECRET "\n", ""}},
    };
    char ids[COUNT(sets)][KEY_SET_ID_BYTES];
    for (size_t i = 0; i < COUNT(sets); i++) {
        for (size_t k = 0; k < 2 && *sets[i].texts[k]; k++)
            assert_int_equal(keys_read(t->keys, sets[i].kind, "x", mk_str_c(sets[i].texts[k]), &t->message), 0);
        memcpy(ids[i], key_set_id(t->keys).p, KEY_SET_ID_BYTES);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(ids[i], ids[k], KEY_SET_ID_BYTES);
        key_set_free(t->keys);
        t->keys = key_set_new();
    }
}

/* ── the choice of keys ── */

/* Returns the numbers of the keys that fit, as text. */
static const char *choose(struct tokens *t, const struct jws_key *first, enum jws_alg alg, const char *kid)
{
    static char text[64];
    struct jws jws = {.alg = alg, .kid = mk_str_c(kid)};
    size_t len = 0;
    text[0] = '\0';
    for (const struct jws_key *key = NULL; (key = key_set_next(t->keys, &jws, key));)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%td", key - first);
    return text;
}

TEST(choice, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    EVP_PKEY *ed = tokens_make_key(JWS_EDDSA), *ec = tokens_make_key(JWS_ES256);
    struct jws any = {.alg = JWS_EDDSA};
    tokens_add_key(t, ed, "a"); /* 0 */
    tokens_add_key(t, ec, "a"); /* 1 */
    tokens_add_key(t, ed, NULL);
    tokens_add_key(t, ed, "b");
    tokens_add_key(t, ed, "a");
    tokens_add_key(t, ed, "");
    const struct jws_key *first = key_set_next(t->keys, &any, NULL);
    assert_string_equal(choose(t, first, JWS_EDDSA, NULL), "02345");
    assert_string_equal(choose(t, first, JWS_EDDSA, "a"), "04");
    assert_string_equal(choose(t, first, JWS_EDDSA, "b"), "3");
    assert_string_equal(choose(t, first, JWS_EDDSA, ""), "5");
    assert_string_equal(choose(t, first, JWS_EDDSA, "c"), "2");
    assert_string_equal(choose(t, first, JWS_EDDSA, "../../etc/passwd"), "2");
    assert_string_equal(choose(t, first, JWS_ES256, "a"), "1");
    assert_string_equal(choose(t, first, JWS_ES256, "b"), "");
    assert_string_equal(choose(t, first, JWS_ES256, NULL), "1");
    assert_string_equal(choose(t, first, JWS_HS256, NULL), "");
    EVP_PKEY_free(ed);
    EVP_PKEY_free(ec);
}

/* ── memory ── */

static int load_with_little_memory(void *ctx)
{
    struct tokens *t = ctx;
    int err = load(t, "memory", KEYS_PUBLIC);
    t->message.len = 0;
    return err;
}

TEST(little_memory, tokens_setup, tokens_teardown)
{
    mk_test_write("memory", MK_STR("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"1\",\"x\":\"" OKP_X "\"}"));
    assert_true(mk_test_failing_allocs(load_with_little_memory, *state) >= 3);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
