// SPDX-License-Identifier: Apache-2.0
/*
 * Keys of session tickets. Those of the process rotate and outlive reloads; those of a file are as long as that is
 * loaded. Pure but for the randomness; no lock.
 */
#ifndef TLS_TICKETS_H
#define TLS_TICKETS_H

#include <monkey/buf.h>

#include <stdbool.h>
#include <stdint.h>

enum { TICKET_NAME_BYTES = 16, TICKET_SECRET_BYTES = 32, TICKETS_MAX = 8 };

/* As it lies in a file: 80 bytes. */
struct ticket_key {
    unsigned char name[TICKET_NAME_BYTES];
    unsigned char mac[TICKET_SECRET_BYTES];
    unsigned char cipher[TICKET_SECRET_BYTES];
};

/* The first makes tickets, all of them open them. */
struct ticket_keys {
    struct ticket_key items[TICKETS_MAX];
    unsigned n;
    uint64_t made_ms; /* the first of random ones */
};

/*
 * Random keys at this moment: one for the present and one for the past `lifetime_ms`; older ones are forgotten. 0, or
 * -EIO when there is no randomness (the keys stay as they were).
 */
int tickets_turn(struct ticket_keys *keys, uint64_t now_ms, uint64_t lifetime_ms);

/* The bytes of a file. False with a sentence when they are no keys. */
bool tickets_read(struct ticket_keys *keys, struct mk_str bytes, struct mk_buf *fault);

/* The key of that name; NULL: nobody's. */
const struct ticket_key *tickets_find(const struct ticket_keys *keys, const unsigned char *name);

void tickets_forget(struct ticket_keys *keys);

#endif
