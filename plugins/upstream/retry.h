// SPDX-License-Identifier: Apache-2.0
/*
 * When a request goes to another server: the value of Retry, and the budget of a group. Pure, but for the clock that is
 * given.
 */
#ifndef UPSTREAM_RETRY_H
#define UPSTREAM_RETRY_H

#include <monkey/conf.h>
#include <monkey/status_set.h>
#include <monkey/upstreams.h>

#include <stdatomic.h>

enum retry_kind { RETRY_CONNECT, RETRY_IDEMPOTENT, RETRY_OFF };

struct retry {
    uint8_t kind; /* enum retry_kind */
    struct mk_status_set statuses;
};

/* Parses `Off`, or `Connect` or `Idempotent` and statuses, into a struct retry; mk_conf_parse_fn. */
int retry_parse(const struct mk_conf_value *value, void *retry, struct mk_arena *arena, struct mk_buf *error);

/* Tells whether a server is among the tries. */
bool retry_has_tried(const struct mk_upstream_tries *tries, const struct mk_upstream_server *server);

/* Tells whether the last try failed in a way that another one may follow. */
bool retry_allows(const struct retry *retry, const struct mk_upstream_tries *tries);

enum { RETRY_WINDOW_S = 10, RETRY_SLOTS = 16, RETRIES_LEAST = 3 };

/*
 * The requests and retries of the last ten seconds. Threads share it without a lock: where a second begins some may not
 * be counted.
 */
struct retry_budget {
    struct retry_second {
        _Atomic uint64_t second;
        _Atomic uint32_t requests, retries;
    } slots[RETRY_SLOTS];
};

void retry_budget_note_request(struct retry_budget *budget, uint64_t now_ms);
void retry_budget_note_retry(struct retry_budget *budget, uint64_t now_ms);
/* Tells whether there were fewer retries than RETRIES_LEAST, or than `percent` of the requests. */
bool retry_budget_allows(struct retry_budget *budget, uint64_t now_ms, uint64_t percent);

#endif
