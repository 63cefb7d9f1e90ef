// SPDX-License-Identifier: Apache-2.0
/*
 * Bearer tokens. An input that has no NUL is the value of Authorization: what verifies must be the text that was
 * signed, digit by digit. Otherwise the header and the payload are on the two sides of the NUL, and are signed here:
 * then only they decide.
 */
#include <stdlib.h>

#include <monkey/base/base64.h>

#include "../../plugins/auth/token.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

#define SECRET "0123456789abcdef0123456789abcdef"

/* The secret, and the public keys of RFC 7515 and RFC 8037. */
static const char keys_text[] =
    "{\"keys\":[{\"kty\":\"oct\",\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"},"
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"},"
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\",\"kid\":\"1\"}]}";

static const struct mk_str issuers[] = {{"joe", 3}}, audiences[] = {{"api", 3}}, scopes[] = {{"read", 4}};
static const struct claims_need needs[] = {{{"a.b", 3}, {"1", 1}}, {{"c", 1}, {NULL, 0}}};
static const struct claims_rules all_rules[] = {
    {.expiry_optional = true},
    {.leeway_s = 60},
    {.issuers = {issuers, 1}, .audiences = {audiences, 1}, .expiry_optional = true},
    {.scopes = {scopes, 1}, .needs = needs, .needs_n = 2, .expiry_optional = true},
};

static struct key_set *make_keys(void)
{
    struct mk_buf message;
    struct key_set *keys = key_set_new();
    mk_buf_init(&message, 4096);
    CHECK(keys && keys_read(keys, KEYS_PUBLIC, "keys", mk_str_c(keys_text), &message) == 0 && !message.len);
    return keys;
}

static void check_text(const struct jws *jws, struct mk_str token)
{
    struct mk_buf again;
    mk_buf_init(&again, 65536);
    mk_buf_adds(&again, jws->signed_text);
    mk_buf_addc(&again, '.');
    mk_base64_encode(&again, jws->signature.p, jws->signature.len, MK_BASE64_URL);
    CHECK(mk_str_eq(mk_buf_str(&again), token));
    mk_buf_release(&again);
}

static enum token_result decide(const struct key_set *keys, struct mk_str token, struct mk_arena *arena)
{
    struct bearer_decision d, cached;
    enum token_result first = TOKEN_OK;
    struct text_cache *cache = text_cache_new(NULL, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX);
    for (size_t i = 0; i < sizeof(all_rules) / sizeof(all_rules[0]); i++) {
        bearer_decide(&d, token, keys, &all_rules[i], 1000, arena);
        CHECK(!d.claims.p == (d.result != TOKEN_OK));
        for (unsigned n = 0; n < 2; n++) {
            token_cache_decide(cache, &cached, token, keys, &all_rules[i], 1000, arena);
            CHECK(cached.result == d.result && cached.end_ms == d.end_ms && mk_str_eq(cached.claims, d.claims) &&
                  mk_str_eq(cached.subject, d.subject));
        }
        first = i ? first : d.result;
    }
    text_cache_free(cache);
    return first;
}

static void check_field(const struct key_set *keys, struct mk_str value, struct mk_arena *arena)
{
    struct mk_str token;
    struct jws jws;
    if (bearer_find(value, &token) != TOKEN_OK)
        return;
    if (jws_read(&jws, token, arena) == TOKEN_OK)
        check_text(&jws, token);
    decide(keys, token, arena);
}

static void sign(struct mk_buf *token)
{
    unsigned char mac[32];
    size_t len = 0;
    CHECK(EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, SECRET, sizeof(SECRET) - 1, (unsigned char *)token->data,
                    token->len, mac, sizeof(mac), &len));
    mk_buf_addc(token, '.');
    mk_base64_encode(token, mac, len, MK_BASE64_URL);
}

static void check_signed(const struct key_set *keys, struct mk_str header, struct mk_str payload,
                         struct mk_arena *arena)
{
    struct mk_buf token;
    struct jws jws;
    mk_buf_init(&token, 1 << 20);
    mk_base64_encode(&token, header.p, header.len, MK_BASE64_URL);
    mk_buf_addc(&token, '.');
    mk_base64_encode(&token, payload.p, payload.len, MK_BASE64_URL);
    sign(&token);
    enum token_result read = jws_read(&jws, mk_buf_str(&token), arena),
                      result = decide(keys, mk_buf_str(&token), arena);
    if (read != TOKEN_OK)
        CHECK(result == read);
    else
        CHECK((jws.alg == JWS_HS256) == (result != TOKEN_KEY && result != TOKEN_SIGNATURE));
    mk_buf_release(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct key_set *keys;
    struct mk_arena arena;
    char *copy = malloc(len + !len);
    if (!keys)
        keys = make_keys();
    memcpy(copy, data, len);
    mk_arena_init(&arena, NULL, 1 << 22, NULL, 0);
    const char *nul = memchr(copy, '\0', len);
    size_t first = nul ? (size_t)(nul - copy) : len;
    if (nul)
        check_signed(keys, mk_str(copy, first), mk_str(nul + 1, len - first - 1), &arena);
    else
        check_field(keys, mk_str(copy, len), &arena);
    mk_arena_release(&arena);
    free(copy);
    return 0;
}
