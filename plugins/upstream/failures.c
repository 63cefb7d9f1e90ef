// SPDX-License-Identifier: Apache-2.0
/*
 * What is a failure of a server (EjectOn), what follows for the request (Retry), and what checks say. Pure.
 */
#include "conf.h"
#include "servers.h"

#include <monkey/base/dial.h>

#include <errno.h>
#include <string.h>

/* ── EjectOn, EjectSlower ── */

static const struct {
    const char *word;
    size_t offset;
} eject_kinds[] = {
    {"Refused", offsetof(struct eject_on, refused)},
    {"Timeout", offsetof(struct eject_on, timeout)},
    {"Reset", offsetof(struct eject_on, reset)},
};

static bool parse_eject_kind(struct mk_str word, struct eject_on *on)
{
    for (size_t i = 0; i < MK_COUNT_OF(eject_kinds); i++)
        if (mk_str_ieq(word, mk_str_c(eject_kinds[i].word))) {
            *(bool *)((char *)on + eject_kinds[i].offset) = true;
            return true;
        }
    return false;
}

int eject_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct eject_on *on = field;
    (void)arena;
    *on = (struct eject_on){0};
    for (uint32_t i = 0; i < value->n; i++)
        if (!parse_eject_kind(value->words[i], on) && mk_status_set_add(&on->statuses, value->words[i]) < 0) {
            mk_buf_addf(error, "it takes Refused, Timeout, Reset and statuses such as 502-504, not \"%.*s\"",
                        MK_STR_ARG(value->words[i]));
            return -EINVAL;
        }
    return 0;
}

bool eject_is_failure(const struct eject_on *on, uint32_t slower_ms, const struct mk_upstream_outcome *outcome)
{
    if (!outcome->err)
        return mk_status_set_has(&on->statuses, outcome->status) || (slower_ms && outcome->head_ms > slower_ms);
    if (outcome->err == -ETIMEDOUT)
        return on->timeout;
    return outcome->is_connected ? on->reset : on->refused;
}

/* What a connection has come to, in the words of a proxy. */
static const char *describe_error(int err)
{
    static const struct {
        int err;
        const char *text;
    } rows[] = {
        {-ETIMEDOUT, "no response in time"},
        {-EPIPE, "the connection has ended before the response"},
        {-EINVAL, "a malformed response"},
        {-EMSGSIZE, "a head that is too long"},
        {-ENOBUFS, "too many headers"},
        {-ELOOP, "too many interim responses"},
        {-EPROTO, "an upgrade that was not asked for, or fails"},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].err == err)
            return rows[i].text;
    return strerror(-err);
}

void eject_write_reason(const struct mk_upstream_outcome *outcome, struct mk_buf *out)
{
    if (!outcome->err)
        mk_buf_addf(out, "status %u after %u ms", outcome->status, outcome->head_ms);
    else if (!outcome->is_connected)
        mk_buf_addf(out, "%s", mk_dial_error(outcome->err));
    else
        mk_buf_addf(out, "%s", describe_error(outcome->err));
}

/* ── Retry ── */

static const char *const retry_kinds[] = {
    [RETRY_CONNECT] = "Connect", [RETRY_IDEMPOTENT] = "Idempotent", [RETRY_OFF] = "Off"};

static bool parse_retry_kind(struct mk_str word, uint8_t *ret)
{
    for (uint8_t i = 0; i < MK_COUNT_OF(retry_kinds); i++)
        if (mk_str_ieq(word, mk_str_c(retry_kinds[i]))) {
            *ret = i;
            return true;
        }
    return false;
}

int retry_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct retry *retry = field;
    (void)arena;
    *retry = (struct retry){.kind = RETRY_CONNECT};
    uint32_t i = parse_retry_kind(value->words[0], &retry->kind);
    bool is_right = retry->kind != RETRY_OFF || value->n == 1;
    for (; is_right && i < value->n; i++)
        is_right = mk_status_set_add(&retry->statuses, value->words[i]) == 0;
    if (is_right)
        return 0;
    return mk_conf_fail(error, "it takes Off, or Connect or Idempotent, and statuses such as 502 503 429");
}

bool retry_has_tried(const struct mk_upstream_tries *tries, const struct mk_upstream_server *server)
{
    for (unsigned i = 0; i < tries->n; i++)
        if (tries->servers[i] == server)
            return true;
    return false;
}

bool retry_allows(const struct retry *retry, const struct mk_upstream_tries *tries)
{
    switch (tries->failure) {
    case MK_UPSTREAM_SENT:
        return retry->kind == RETRY_IDEMPOTENT;
    case MK_UPSTREAM_STATUS:
        return mk_status_set_has(&retry->statuses, tries->status);
    default:
        return retry->kind != RETRY_OFF;
    }
}

/* ── the budget ── */

/* Returns the slot of a second, which one thread empties when it begins. */
static struct retry_second *find_slot(struct retry_budget *budget, uint64_t second)
{
    struct retry_second *slot = &budget->slots[second % RETRY_SLOTS];
    uint64_t old = atomic_load_explicit(&slot->second, memory_order_relaxed);
    if (old != second && atomic_compare_exchange_strong(&slot->second, &old, second)) {
        atomic_store_explicit(&slot->requests, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->retries, 0, memory_order_relaxed);
    }
    return slot;
}

void retry_budget_note_request(struct retry_budget *budget, uint64_t now_ms)
{
    atomic_fetch_add_explicit(&find_slot(budget, now_ms / 1000)->requests, 1, memory_order_relaxed);
}

void retry_budget_note_retry(struct retry_budget *budget, uint64_t now_ms)
{
    atomic_fetch_add_explicit(&find_slot(budget, now_ms / 1000)->retries, 1, memory_order_relaxed);
}

bool retry_budget_allows(struct retry_budget *budget, uint64_t now_ms, uint64_t percent)
{
    uint64_t now = now_ms / 1000, requests = 0, retries = 0;
    for (unsigned i = 0; i < RETRY_SLOTS; i++) {
        struct retry_second *slot = &budget->slots[i];
        if (atomic_load_explicit(&slot->second, memory_order_relaxed) + RETRY_WINDOW_S <= now)
            continue;
        requests += atomic_load_explicit(&slot->requests, memory_order_relaxed);
        retries += atomic_load_explicit(&slot->retries, memory_order_relaxed);
    }
    return retries < RETRIES_LEAST || retries * 100 < requests * percent;
}

/* ── checks ── */

enum { FAST_SHARE = 5, FAST_MS_MIN = 100 };
enum { JITTER_MIN = 100, JITTER_MAX = 250 }; /* per mille */

struct health_state health_next(struct health_state s, const struct health_rules *rules, bool has_passed)
{
    bool is_first = s.in_row == 0;
    s.in_row = has_passed == s.has_passed && s.in_row < UINT32_MAX ? s.in_row + 1 : 1;
    s.has_passed = has_passed;
    if (is_first || s.in_row >= (has_passed ? rules->up : rules->down))
        s.health = has_passed ? HEALTH_UP : HEALTH_DOWN;
    return s;
}

uint32_t health_get_wait_ms(const struct health_state *s, const struct health_rules *rules, uint32_t random)
{
    uint32_t ms =
        s->in_row && s->has_passed != (s->health == HEALTH_UP) ? rules->interval_ms / FAST_SHARE : rules->interval_ms;
    uint64_t less = (uint64_t)ms * (JITTER_MIN + random % (JITTER_MAX - JITTER_MIN + 1)) / 1000;
    ms -= (uint32_t)less;
    return ms > FAST_MS_MIN ? ms : FAST_MS_MIN;
}
