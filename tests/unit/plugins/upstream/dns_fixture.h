// SPDX-License-Identifier: Apache-2.0
/*
 * A name server in a thread of the test, over UDP: answers from a table. A name without rows does not exist.
 */
#ifndef MK_UNIT_UPSTREAM_DNS_FIXTURE_H
#define MK_UNIT_UPSTREAM_DNS_FIXTURE_H

#include "plugins/upstream/conf.h"

/* What the server does for a name and type. */
enum dns_answer { ANSWER, ANSWER_SERVFAIL, ANSWER_NOTHING, ANSWER_GARBAGE };

struct dns_row {
    const char *name;
    const char *data; /* "127.0.0.1", "::1", or "PRIORITY WEIGHT PORT TARGET"; NULL: no record */
    uint16_t type, ttl_s;
    enum dns_answer answer;
};

/* Starts the server, whose table ends with a row without a name. May be changed while no question is on its way. */
void dns_fixture_open(const struct dns_row *rows);
void dns_fixture_set(const struct dns_row *rows);
void dns_fixture_close(void);
/* For lookup_query.servers. */
struct lookup_servers dns_fixture_servers(void);
/* Returns how many questions have come. */
unsigned dns_fixture_questions(void);

#endif
