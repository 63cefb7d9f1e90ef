// SPDX-License-Identifier: Apache-2.0
/* How often the token of a request is verified. */
#include "plugins/auth/token_refusals.h"

#include "tokens.h"

static const struct claims_rules rules[3];

/* Decides as token_login_holds() does. Returns how many of the decisions took a verification. */
static unsigned count_verifications(struct tokens *t, struct token_refusal **first, struct mk_str token, unsigned times)
{
    unsigned verified = 0;
    for (unsigned i = 0; i < times; i++) {
        struct bearer_decision d;
        const struct claims_rules *which = &rules[i % COUNT(rules)];
        if (token_refusals_has(*first, which, t->keys))
            continue;
        verified++;
        bearer_decide(&d, token, t->keys, which, 0, &t->arena);
        assert_int_equal(d.result, TOKEN_SIGNATURE);
        *first = token_refusals_add(*first, which, t->keys, &t->arena);
        assert_non_null(*first);
    }
    return verified;
}

static void change_keys(struct tokens *t, struct mk_str secret)
{
    key_set_free(t->keys);
    t->keys = key_set_new();
    assert_int_equal(keys_read(t->keys, KEYS_SECRET, "x", secret, &t->message), 0);
}

TEST(a_forged_token, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct token_refusal *first = NULL;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct mk_str token = tokens_sign(t, key, "{\"alg\":\"HS256\"}", "{\"sub\":\"ada\",\"exp\":100}");
    change_keys(t, MK_STR(SECRET "1"));
    assert_int_equal(count_verifications(t, &first, token, 1), 1);
    assert_int_equal(count_verifications(t, &first, token, 100000), COUNT(rules) - 1);
    change_keys(t, MK_STR(SECRET "2"));
    assert_int_equal(count_verifications(t, &first, token, 100000), COUNT(rules));
    change_keys(t, MK_STR(SECRET "1")); /* the keys of before */
    assert_int_equal(count_verifications(t, &first, token, 100000), 0);
    EVP_PKEY_free(key);
}

/* Without memory the list is as before. */
TEST(no_memory, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct mk_arena arena;
    change_keys(t, MK_STR(SECRET));
    struct token_refusal *first = token_refusals_add(NULL, &rules[0], t->keys, &t->arena);
    mk_arena_init(&arena, NULL, 1, NULL, 0);
    assert_null(token_refusals_add(first, &rules[1], t->keys, &arena));
    mk_arena_release(&arena);
    assert_true(token_refusals_has(first, &rules[0], t->keys));
    assert_false(token_refusals_has(first, &rules[1], t->keys));
}
