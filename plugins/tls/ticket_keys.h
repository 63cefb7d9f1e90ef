// SPDX-License-Identifier: Apache-2.0
/*
 * Keys of session tickets. Those of the process rotate and outlive reloads; those of a file are as long as that is
 * loaded. Pure but for the randomness; no lock.
 */
#ifndef TLS_TICKET_KEYS_H
#define TLS_TICKET_KEYS_H

#include <monkey/buf.h>

#include <stdbool.h>
#include <stdint.h>

enum { TICKET_NAME_BYTES = 16, TICKET_SECRET_BYTES = 32, TICKET_KEYS_MAX = 8 };

/* As it lies in a file: 80 bytes. */
struct ticket_key {
    unsigned char name[TICKET_NAME_BYTES];
    unsigned char mac[TICKET_SECRET_BYTES];
    unsigned char cipher[TICKET_SECRET_BYTES];
};

/* The first makes tickets, all of them open them. */
struct ticket_keys {
    struct ticket_key items[TICKET_KEYS_MAX];
    unsigned n;
    uint64_t created_ms; /* the first of random ones */
};

/*
 * Random keys at this moment: one for the present and one for the past `lifetime_ms`; older ones are forgotten. 0, or
 * -EIO when there is no randomness (the keys stay as they were).
 */
int ticket_keys_rotate(struct ticket_keys *keys, uint64_t now_ms, uint64_t lifetime_ms);

/* The bytes of a file. False with a sentence when they are no keys. */
bool ticket_keys_parse(struct ticket_keys *keys, struct mk_str bytes, struct mk_buf *fault);

/* The key of that name; NULL: nobody's. */
const struct ticket_key *ticket_keys_find(const struct ticket_keys *keys, const unsigned char *name);

void ticket_keys_wipe(struct ticket_keys *keys);

#endif
