// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the answers of name servers (RFC 1035, RFC 2782): c-ares returns them whole, and its parser of SRV records has
 * no TTL. Pure; allocates nothing.
 */
#ifndef UPSTREAM_DNS_ANSWER_H
#define UPSTREAM_DNS_ANSWER_H

#include <monkey/base/str.h>

#include <stdint.h>

enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_AAAA = 28, DNS_SRV = 33 };
enum { DNS_CLASS_IN = 1, DNS_NAME_BYTES_MAX = 255 };

struct dns_record {
    uint32_t ttl_s;                  /* the smallest one of the record and of the aliases that lead to it */
    const uint8_t *address;          /* of A (4 bytes) and AAAA (16 bytes) */
    uint16_t priority, weight, port; /* of SRV, as the next one */
    struct mk_str target;            /* a host name in lower case; empty: there is no such service */
};

/* `record` and what it points to are valid until it returns. */
typedef void (*dns_record_fn)(const struct dns_record *record, void *ctx);

/*
 * Calls `fn` for each record of a type (DNS_A, DNS_AAAA or DNS_SRV) that a message has for the name in its question, or
 * for the one that this is an alias of.
 * Returns the number of records, or -EBADMSG: the message is malformed, and some records may have been passed on.
 */
int dns_answer_each(struct mk_str message, uint16_t type, dns_record_fn fn, void *ctx);

#endif
