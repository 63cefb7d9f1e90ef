// SPDX-License-Identifier: Apache-2.0
#include "rules.h"

#include <stdatomic.h>

/* Zeroed when the window is over and nothing is checked. */
struct failures_record {
    uint64_t until_ms; /* end of the window; 0: none has begun */
    uint32_t count, running;
};

struct mk_client_table *failures_new(void)
{
    return mk_client_table_new(FAILURES_CLIENTS, sizeof(struct failures_record), 0, 0);
}

static bool is_counted(const struct mk_address *client)
{
    return client->family != AF_UNIX;
}

static void unlock_record(struct mk_client_table *t, struct failures_record *r)
{
    mk_client_table_unlock(t, r, r->running ? MK_CLIENT_IN_USE : r->until_ms);
}

uint32_t failures_wait_ms(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                          const struct failures_limits *limits)
{
    uint32_t wait_ms = 0;
    struct failures_record *r = NULL;
    if (limits->max && is_counted(client))
        r = mk_client_table_find(t, client, now_ms);
    if (!r)
        return 0;
    if (r->count >= limits->max && r->until_ms > now_ms)
        wait_ms = (uint32_t)(r->until_ms - now_ms);
    unlock_record(t, r);
    return wait_ms;
}

bool failures_begin(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                    const struct failures_limits *limits)
{
    if (!is_counted(client))
        return true;
    struct failures_record *r = mk_client_table_lock(t, client, now_ms);
    uint64_t count = r->until_ms > now_ms ? r->count : 0;
    bool begun = r->running < limits->running && (!limits->max || count + r->running < limits->max);
    r->running += begun;
    unlock_record(t, r);
    return begun;
}

/* Counts one more failure. Returns true if it was the last one that is allowed. */
static bool count_failure(struct failures_record *r, uint64_t now_ms, const struct failures_limits *limits)
{
    if (r->until_ms <= now_ms)
        r->count = 0;
    if (!r->count++)
        r->until_ms = now_ms + limits->time_ms;
    return r->count == limits->max;
}

bool failures_end(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                  const struct failures_limits *limits, bool failed)
{
    if (!is_counted(client))
        return false;
    struct failures_record *r = mk_client_table_lock(t, client, now_ms);
    r->running -= r->running > 0; /* an entry that was evicted begins anew */
    bool last = failed && count_failure(r, now_ms, limits);
    unlock_record(t, r);
    return last;
}

bool failures_add(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms,
                  const struct failures_limits *limits)
{
    if (!is_counted(client))
        return false;
    struct failures_record *r = mk_client_table_lock(t, client, now_ms);
    bool last = count_failure(r, now_ms, limits);
    unlock_record(t, r);
    return last;
}

uint64_t failures_take_evictions(struct failures_evictions *e, struct mk_client_table *t, uint64_t now_ms)
{
    uint64_t last = atomic_load(&e->checked_ms);
    if (now_ms < last + FAILURES_EVICTIONS_MS || !atomic_compare_exchange_strong(&e->checked_ms, &last, now_ms))
        return 0;
    uint64_t count = mk_client_table_counts(t).evicted;
    return count - atomic_exchange(&e->count, count);
}
