// SPDX-License-Identifier: Apache-2.0
/* Tokens of the RFCs and of libcrypto verify; none that was changed, or that lies about its algorithm, does. */
#include "tokens.h"

/* Reads a token and tries all keys. */
static bool is_signed(struct tokens *t, struct mk_str token)
{
    struct jws jws;
    const struct jws_key *key = NULL;
    char *guarded = mk_test_guarded(token.p, token.len);
    bool right = false;
    if (jws_read(&jws, mk_str(guarded, token.len), &t->arena) == TOKEN_OK)
        while (!right && (key = key_set_next(t->keys, &jws, key)))
            right = jws_verify(&jws, key);
    mk_test_unguard(guarded, token.len);
    return right;
}

TEST(rfc_vectors, tokens_setup, tokens_teardown)
{
    static const char *const tokens[] = {RFC7515_A1, RFC7515_A2, RFC7515_A3, RFC8037_A4};
    struct tokens *t = *state;
    tokens_read_keys(t, RFC_KEYS);
    assert_int_equal(key_set_count(t->keys), COUNT(tokens));
    for (size_t i = 0; i < COUNT(tokens); i++)
        if (!is_signed(t, mk_str_c(tokens[i])))
            fail_msg("vector %zu", i);
}

TEST(payload, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct jws jws;
    struct mk_str payload;
    assert_int_equal(jws_read(&jws, MK_STR(RFC8037_A4), &t->arena), TOKEN_OK);
    assert_int_equal(jws.alg, JWS_EDDSA);
    assert_null(jws.kid.p);
    assert_int_equal(jws.signature.len, 64);
    assert_int_equal(jws_payload(&jws, &t->arena, &payload), TOKEN_OK);
    assert_str_equal(payload, "Example of Ed25519 signing");
}

/* Each bit of a token counts: also the unused ones of a last digit, which other decoders ignore. */
TEST(each_change_is_found, tokens_setup, tokens_teardown)
{
    static const char *const tokens[] = {RFC7515_A1, RFC7515_A3, RFC8037_A4};
    struct tokens *t = *state;
    char copy[512];
    tokens_read_keys(t, RFC_KEYS);
    for (size_t i = 0; i < COUNT(tokens); i++)
        for (size_t at = 0; tokens[i][at]; at++)
            for (unsigned bit = 0; bit < 8; bit++) {
                size_t len = strlen(tokens[i]);
                memcpy(copy, tokens[i], len);
                copy[at] = (char)(copy[at] ^ (1 << bit));
                if (is_signed(t, mk_str(copy, len)))
                    fail_msg("token %zu, byte %zu, bit %u", i, at, bit);
                if (at % 32 == 0) {
                    mk_arena_release(&t->arena);
                    mk_arena_init(&t->arena, NULL, 1 << 20, NULL, 0);
                }
            }
}

TEST(each_cut_is_found, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    tokens_read_keys(t, RFC_KEYS);
    for (size_t len = 0; len < sizeof(RFC7515_A1) - 1; len++)
        assert_false(is_signed(t, mk_str(RFC7515_A1, len)));
}

static const char *write_header(enum jws_alg alg)
{
    static char header[32];
    snprintf(header, sizeof(header), "{\"alg\":\"%s\"}", jws_alg_name(alg));
    return header;
}

TEST(own_keys, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    for (unsigned alg = 0; alg < JWS_ALGS; alg++) {
        EVP_PKEY *key = tokens_make_key(alg), *other = alg <= JWS_HS512 ? NULL : tokens_make_key(alg);
        if (!other)
            other = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, (const unsigned char *)RFC7515_A1, 64);
        tokens_add_key_for(t, key, alg, NULL);
        if (!is_signed(t, tokens_sign_by(t, key, alg, write_header(alg), "{}")))
            fail_msg("%s", jws_alg_name(alg));
        assert_false(is_signed(t, tokens_sign_by(t, other, alg, write_header(alg), "{}")));
        EVP_PKEY_free(key);
        EVP_PKEY_free(other);
    }
}

TEST(second_name, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_EDDSA);
    tokens_add_key(t, key, NULL);
    assert_true(is_signed(t, tokens_sign(t, key, "{\"alg\":\"Ed25519\"}", "{}")));
    EVP_PKEY_free(key);
}

/* A key verifies its own algorithm only, whatever the header says, also of one type. */
TEST(algorithm_confusion, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    for (unsigned alg = 0; alg < JWS_ALGS; alg++) {
        EVP_PKEY *key = tokens_make_key(alg);
        for (unsigned says = 0; says < JWS_ALGS; says++) {
            struct jws jws;
            struct mk_str token = tokens_sign_by(t, key, alg, write_header(says), "{}");
            struct jws_key right = {.alg = alg, .pkey = key}, wrong = {.alg = says, .pkey = key};
            assert_int_equal(jws_read(&jws, token, &t->arena), TOKEN_OK);
            assert_int_equal(jws_verify(&jws, &right), says == alg);
            assert_int_equal(jws_verify(&jws, &wrong), says == alg);
        }
        EVP_PKEY_free(key);
    }
}

/* The salt of RSASSA-PSS has the length of the digest, and no other (RFC 7518 section 3.5). */
TEST(salt, tokens_setup, tokens_teardown)
{
    static const int lengths[] = {RSA_PSS_SALTLEN_DIGEST, 0, 20, RSA_PSS_SALTLEN_MAX};
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_PS256);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct jws jws;
        unsigned char sig[256];
        size_t size = sizeof(sig);
        EVP_PKEY_CTX *params;
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        assert_int_equal(jws_read(&jws, tokens_sign_by(t, key, JWS_PS256, write_header(JWS_PS256), "{}"), &t->arena),
                         TOKEN_OK);
        assert_int_equal(EVP_DigestSignInit(ctx, &params, EVP_sha256(), NULL, key), 1);
        assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(params, RSA_PKCS1_PSS_PADDING), 1);
        assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(params, lengths[i]), 1);
        assert_int_equal(EVP_DigestSign(ctx, sig, &size, (const unsigned char *)jws.signed_text.p, jws.signed_text.len),
                         1);
        EVP_MD_CTX_free(ctx);
        jws.signature = mk_str((char *)sig, size);
        assert_int_equal(jws_verify(&jws, &(struct jws_key){.alg = JWS_PS256, .pkey = key}), i == 0);
    }
    EVP_PKEY_free(key);
}

/* The public key is no secret: it must not be the secret of HMAC, in any of its forms. */
TEST(public_key_as_secret, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    char *pem;
    unsigned char *der = NULL;
    EVP_PKEY *key = tokens_make_key(JWS_RS256);
    BIO *bio = BIO_new(BIO_s_mem());
    tokens_add_key(t, key, NULL);
    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    long len = BIO_get_mem_data(bio, &pem), der_len = i2d_PUBKEY(key, &der);
    const struct mk_str secrets[] = {mk_str(pem, (size_t)len), mk_str(pem, (size_t)len - 1),
                                     mk_str((char *)der, (size_t)der_len), MK_STR(RSA_A2)};
    for (size_t i = 0; i < COUNT(secrets); i++) {
        EVP_PKEY *mac =
            EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, (const unsigned char *)secrets[i].p, secrets[i].len);
        struct mk_str token = tokens_sign(t, mac, "{\"alg\":\"HS256\"}", "{}");
        assert_false(is_signed(t, token));
        assert_int_equal(tokens_decide(t, token, &(struct claims_rules){0}, 0).result, TOKEN_KEY);
        EVP_PKEY_free(mac);
    }
    OPENSSL_free(der);
    BIO_free(bio);
    EVP_PKEY_free(key);
}

TEST(headers, tokens_setup, tokens_teardown)
{
    static const struct {
        const char *header;
        enum token_result result;
    } cases[] = {
        {"{\"alg\":\"HS256\"}", TOKEN_OK},
        {" {\"alg\" : \"HS256\", \"typ\":\"JWT\", \"cty\":1, \"jku\":\"http://x/\", \"jwk\":{}}\r\n", TOKEN_OK},
        {"{\"alg\":\"none\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"None\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"NONE\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"nOnE\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\" none\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"n\\u006fne\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"hs256\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"HS256 \"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"HS2567\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"HS25\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"HS384\"}", TOKEN_OK},
        {"{\"alg\":\"RS1\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"PS224\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"ES256K\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"EDDSA\"}", TOKEN_ALGORITHM},
        {"{\"alg\":\"HS256\\u0000\"}", TOKEN_HEADER},
        {"{\"alg\":null}", TOKEN_HEADER},
        {"{\"alg\":[\"HS256\"]}", TOKEN_HEADER},
        {"{\"alg\":0}", TOKEN_HEADER},
        {"{}", TOKEN_HEADER},
        {"{\"ALG\":\"HS256\"}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"alg\":\"none\"}", TOKEN_HEADER},
        {"{\"alg\":\"none\",\"alg\":\"HS256\"}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"\\u0061lg\":\"HS256\"}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"kid\":1}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"kid\":null}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"crit\":[]}", TOKEN_CRITICAL},
        {"{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}", TOKEN_CRITICAL},
        {"{\"alg\":\"none\",\"crit\":null}", TOKEN_CRITICAL},
        {"", TOKEN_MALFORMED},
        {"[]", TOKEN_HEADER},
        {"\"HS256\"", TOKEN_HEADER},
        {"{\"alg\":\"HS256\"} x", TOKEN_HEADER},
        {"{\"alg\":\"HS256\"", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"x\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"x\":\"\xff\"}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"x\":1e999}", TOKEN_HEADER},
        {"{\"alg\":\"HS256\",\"x\":99999999999999999999999}", TOKEN_HEADER},
    };
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct jws jws;
    for (size_t i = 0; i < COUNT(cases); i++) {
        enum token_result result = jws_read(&jws, tokens_sign(t, key, cases[i].header, "{}"), &t->arena);
        if (result != cases[i].result)
            fail_msg("%s: %s", cases[i].header, token_result_meaning(result)->reason);
    }
    EVP_PKEY_free(key);
}

TEST(forms, tokens_setup, tokens_teardown)
{
    static const char *const wrong[] = {
        "",
        ".",
        "..",
        "...",
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJIUzI1NiJ9.",
        "eyJhbGciOiJIUzI1NiJ9.e30",
        ".e30.AAAA",
        "eyJhbGciOiJIUzI1NiJ9.e30.AAAA.",
        "eyJhbGciOiJIUzI1NiJ9.e30.AAAA..",
        ".eyJhbGciOiJIUzI1NiJ9.e30.AAAA",
        "eyJhbGciOiJIUzI1NiJ9.e30.AAAA.e30.AAAA",
        "eyJhbGciOiJIUzI1NiJ9.e30.AAA=",
        "eyJhbGciOiJIUzI1NiJ9.e30.AAA+",
        "eyJhbGciOiJIUzI1NiJ9.e30.AAA/",
        "eyJhbGciOiJIUzI1NiJ9.e30.A",
        "eyJhbGciOiJIUzI1NiJ9.e30.AB",
        "eyJhbGciOiJIUzI1NiJ9=.e30.AAAA",
        "eyJhbGciOiJIUzI1NiJ9 .e30.AAAA",
        "eyJhbGciOiJIUzI1NiJ9.e30.AA\nAA",
        "eyJhbGciOiJIUzI1NiJ9.e30. AAAA",
    };
    struct tokens *t = *state;
    struct jws jws;
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (jws_read(&jws, mk_str_c(wrong[i]), &t->arena) != TOKEN_MALFORMED)
            fail_msg("%s", wrong[i]);
    assert_int_equal(jws_read(&jws, MK_STR("eyJhbGciOiJIUzI1NiJ9.e30."), &t->arena), TOKEN_OK); /* but unsigned */
    assert_int_equal(jws_read(&jws, MK_STR_NONE, &t->arena), TOKEN_MALFORMED);
}

TEST(length, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct jws jws;
    static char text[JWS_BYTES_MAX + 1];
    size_t head = sizeof("eyJhbGciOiJIUzI1NiJ9.") - 1;
    memset(text, 'A', sizeof(text));
    memcpy(text, "eyJhbGciOiJIUzI1NiJ9.", head);
    text[JWS_BYTES_MAX - 5] = '.';
    assert_int_equal(jws_read(&jws, mk_str(text, JWS_BYTES_MAX), &t->arena), TOKEN_OK);
    assert_int_equal(jws_read(&jws, mk_str(text, JWS_BYTES_MAX + 1), &t->arena), TOKEN_TOO_LONG);
}

/* Signatures that are no signatures: empty, of zeros (CVE-2022-21449), too short or long, and DER. */
TEST(hollow_signatures, tokens_setup, tokens_teardown)
{
    static const char *const headers[] = {"eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJSUzI1NiJ9", "eyJhbGciOiJFUzI1NiJ9",
                                          "eyJhbGciOiJFZERTQSJ9"};
    static const unsigned char zeros[300], ones[64] = {[31] = 1, [63] = 1};
    static const size_t lens[] = {0, 1, 31, 32, 33, 63, 64, 65, 70, 72, 96, 128, 255, 256, 257, 300};
    struct tokens *t = *state;
    tokens_read_keys(t, RFC_KEYS);
    for (size_t i = 0; i < COUNT(headers); i++)
        for (size_t k = 0; k <= COUNT(lens); k++) {
            t->token.len = 0;
            mk_buf_addf(&t->token, "%s.e30.", headers[i]);
            mk_base64_encode(&t->token, k < COUNT(lens) ? zeros : ones, k < COUNT(lens) ? lens[k] : 64, MK_BASE64_URL);
            assert_false(is_signed(t, mk_buf_str(&t->token)));
        }
}

TEST(signature_in_der, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    unsigned char sig[128];
    EVP_PKEY *key = tokens_make_key(JWS_ES256);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t len = sizeof(sig);
    tokens_add_key(t, key, NULL);
    mk_buf_addf(&t->token, "eyJhbGciOiJFUzI1NiJ9.e30");
    assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(ctx, sig, &len, (unsigned char *)t->token.data, t->token.len), 1);
    mk_buf_addc(&t->token, '.');
    mk_base64_encode(&t->token, sig, len, MK_BASE64_URL);
    assert_false(is_signed(t, mk_buf_str(&t->token)));
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
}

/* The parts of two valid tokens are not a valid third one. */
TEST(swapped_parts, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    char one[512], two[512];
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    tokens_add_key(t, key, NULL);
    struct mk_str token = tokens_sign(t, key, "{\"alg\":\"HS256\"}", "{\"sub\":\"ada\"}");
    snprintf(one, sizeof(one), "%.*s", MK_STR_ARG(token));
    token = tokens_sign(t, key, "{\"alg\":\"HS256\",\"typ\":\"JWT\"}", "{\"sub\":\"root\"}");
    snprintf(two, sizeof(two), "%.*s", MK_STR_ARG(token));
    char *parts[2][3] = {{one}, {two}};
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 1; k < 3; k++) {
            parts[i][k] = strchr(parts[i][k - 1], '.') + 1;
            parts[i][k][-1] = '\0';
        }
    for (unsigned n = 0; n < 8; n++) {
        t->token.len = 0;
        mk_buf_addf(&t->token, "%s.%s.%s", parts[n & 1][0], parts[n >> 1 & 1][1], parts[n >> 2][2]);
        assert_int_equal(is_signed(t, mk_buf_str(&t->token)), n == 0 || n == 7);
    }
    EVP_PKEY_free(key);
}

TEST(long_kid, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    char header[400], kid[JWS_KID_BYTES_MAX + 2];
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct jws jws;
    for (size_t len = JWS_KID_BYTES_MAX; len <= JWS_KID_BYTES_MAX + 1; len++) {
        memset(kid, 'k', len);
        kid[len] = '\0';
        snprintf(header, sizeof(header), "{\"alg\":\"HS256\",\"kid\":\"%s\"}", kid);
        assert_int_equal(jws_read(&jws, tokens_sign(t, key, header, "{}"), &t->arena),
                         len == JWS_KID_BYTES_MAX ? TOKEN_OK : TOKEN_HEADER);
    }
    EVP_PKEY_free(key);
}

static int read_with_little_memory(void *ctx)
{
    struct mk_arena arena;
    struct jws jws;
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    enum token_result result = jws_read(&jws, MK_STR("eyJhbGciOiJIUzI1NiIsImtpZCI6IjEifQ.e30.AAAA"), &arena);
    mk_arena_release(&arena);
    assert_true(result == TOKEN_OK || result == TOKEN_MEMORY);
    return result == TOKEN_OK ? 0 : -1;
}

TEST(little_memory, tokens_setup, tokens_teardown)
{
    assert_true(mk_test_failing_allocs(read_with_little_memory, NULL) > 0);
}
