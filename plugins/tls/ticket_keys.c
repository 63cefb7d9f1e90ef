// SPDX-License-Identifier: Apache-2.0
/*
 * Rotates ticket keys and parses their file (ticket_keys.h).
 */
#include "ticket_keys.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(sizeof(struct ticket_key) == 80, "as it lies in a file");

int ticket_keys_rotate(struct ticket_keys *keys, uint64_t now_ms, uint64_t lifetime_ms)
{
    assert(lifetime_ms > 0);
    uint64_t age = now_ms - keys->created_ms;
    struct ticket_key fresh;
    if (keys->n && age < lifetime_ms)
        return 0;
    if (RAND_bytes((unsigned char *)&fresh, sizeof(fresh)) != 1)
        return -EIO;
    bool keeps = keys->n && age < 2 * lifetime_ms; /* else all tickets of the old key have expired */
    if (keeps)
        keys->items[1] = keys->items[0];
    else
        OPENSSL_cleanse(keys, sizeof(*keys));
    keys->items[0] = fresh;
    keys->n = keeps ? 2 : 1;
    keys->created_ms = now_ms;
    OPENSSL_cleanse(&fresh, sizeof(fresh));
    return 0;
}

bool ticket_keys_parse(struct ticket_keys *keys, struct mk_str bytes, struct mk_buf *fault)
{
    size_t n = bytes.len / sizeof(struct ticket_key);
    if (!bytes.len || bytes.len % sizeof(struct ticket_key) || n > TICKET_KEYS_MAX) {
        mk_buf_addf(fault, "has %zu bytes, but each key has 80 (openssl rand 80), and there are 1 to %d of them",
                    bytes.len, TICKET_KEYS_MAX);
        return false;
    }
    memcpy(keys->items, bytes.p, bytes.len);
    keys->n = (unsigned)n;
    for (unsigned i = 0; i < n; i++)
        if (ticket_keys_find(keys, keys->items[i].name) != &keys->items[i]) {
            mk_buf_addf(fault, "has two keys of the same name (their first 16 bytes)");
            return false;
        }
    return true;
}

const struct ticket_key *ticket_keys_find(const struct ticket_keys *keys, const unsigned char *name)
{
    assert(keys->n <= TICKET_KEYS_MAX);
    for (unsigned i = 0; i < keys->n; i++)
        if (CRYPTO_memcmp(keys->items[i].name, name, TICKET_NAME_BYTES) == 0)
            return &keys->items[i];
    return NULL;
}

void ticket_keys_wipe(struct ticket_keys *keys)
{
    OPENSSL_cleanse(keys, sizeof(*keys));
}
