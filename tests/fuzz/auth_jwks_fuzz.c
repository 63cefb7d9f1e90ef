// SPDX-License-Identifier: Apache-2.0
/*
 * Files of keys: JWK sets and PEM, or a secret if the first byte is 'S'. What is read without an error holds keys, each
 * of which verifies one algorithm only; what is wrong is said in a sentence of printable text.
 */
#include <stdlib.h>

#include "../../plugins/auth/token.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static void check_keys(const struct key_set *keys)
{
    static const char zeros[64];
    unsigned n = 0;
    for (unsigned alg = 0; alg < JWS_ALGS; alg++) {
        struct jws jws = {.alg = alg, .signed_text = MK_STR("e30.e30"), .signature = mk_str(zeros, sizeof(zeros))};
        for (const struct jws_key *key = NULL; (key = key_set_next(keys, &jws, key)); n++) {
            CHECK(key->alg == alg && !jws_verify(&jws, key));
            jws.kid = key->kid;
            CHECK(key_set_next(keys, &jws, NULL));
            jws.kid = MK_STR_NONE;
        }
    }
    CHECK(n == key_set_count(keys));
}

static void check_message(const struct mk_buf *message)
{
    for (size_t i = 0; i < message->len; i++)
        CHECK(message->data[i] >= ' ' && message->data[i] < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    enum keys_kind kind = len && *data == 'S' ? KEYS_SECRET : KEYS_PUBLIC;
    size_t skipped = kind == KEYS_SECRET;
    struct key_set *keys = key_set_new();
    struct mk_buf message;
    char *copy = malloc(len + !len);
    memcpy(copy, data + skipped, len - skipped);
    mk_buf_init(&message, 1 << 16);
    int err = keys_read(keys, kind, "file", mk_str(copy, len - skipped), &message);
    CHECK(err == 0 ? key_set_count(keys) > 0 : message.len > 0);
    check_message(&message);
    check_keys(keys);
    mk_buf_release(&message);
    key_set_free(keys);
    free(copy);
    return 0;
}
