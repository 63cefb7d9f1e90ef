// SPDX-License-Identifier: Apache-2.0
/*
 * Keys of session tickets. The process has random ones, which rotate and outlive reloads; a generation may have those
 * of a file. No locks here: the caller serializes the calls.
 */
#ifndef TLS_TICKET_KEYS_H
#define TLS_TICKET_KEYS_H

#include <monkey/base/buf.h>

#include <stdbool.h>
#include <stdint.h>

enum { TICKET_NAME_BYTES = 16, TICKET_SECRET_BYTES = 32, TICKET_KEYS_MAX = 8 };

/* The format of a file: 80 bytes for each. */
struct ticket_key {
    unsigned char name[TICKET_NAME_BYTES];
    unsigned char mac[TICKET_SECRET_BYTES];
    unsigned char cipher[TICKET_SECRET_BYTES];
};

/* The first key encrypts tickets, all keys decrypt them. */
struct ticket_keys {
    struct ticket_key items[TICKET_KEYS_MAX];
    unsigned n;
    uint64_t created_ms; /* when items[0] was made; random keys only */
};

/*
 * Makes a new random key if the current one is older than `lifetime_ms`; keeps one for the time before, and wipes older
 * ones.
 * Returns 0, or -EIO (no randomness; the keys stay as they were).
 */
int ticket_keys_rotate(struct ticket_keys *keys, uint64_t now_ms, uint64_t lifetime_ms);

/* Reads keys from the bytes of a file. Returns false, and says in `fault` what is wrong. */
bool ticket_keys_parse(struct ticket_keys *keys, struct mk_str bytes, struct mk_buf *fault);

/* Returns the key of that name; NULL if there is none. */
const struct ticket_key *ticket_keys_find(const struct ticket_keys *keys, const unsigned char *name);

void ticket_keys_wipe(struct ticket_keys *keys);

#endif
