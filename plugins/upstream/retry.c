// SPDX-License-Identifier: Apache-2.0
#include "conf.h"

static const char *const kinds[] = {
    [RETRY_CONNECT] = "Connect", [RETRY_IDEMPOTENT] = "Idempotent", [RETRY_OFF] = "Off"};

static bool parse_kind(struct mk_str word, uint8_t *ret)
{
    for (uint8_t i = 0; i < MK_COUNT_OF(kinds); i++)
        if (mk_str_ieq(word, mk_str_c(kinds[i]))) {
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
    uint32_t i = parse_kind(value->words[0], &retry->kind);
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
