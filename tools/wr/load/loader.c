// SPDX-License-Identifier: Apache-2.0
/*
 * Hands out requests, and counts what has become of them (loader.h).
 */
#include "loader.h"

#include <stdio.h>

/* ── the schedule ── */

uint64_t loader_find_start_ns(const struct loader *l, uint64_t n)
{
    return l->start_ns + (uint64_t)((double)(n * l->plan->threads + l->index) * l->interval_ns);
}

uint64_t loader_count_starts(const struct loader *l, uint64_t at_ns)
{
    double n = (double)(at_ns - l->start_ns) / l->interval_ns - l->index;
    return at_ns <= l->start_ns || n < 0 ? 0 : (uint64_t)(n / l->plan->threads) + 1;
}

static bool take_start(struct loader *l, uint64_t now_ns, uint64_t *ret_start_ns)
{
    if (l->due_ns > now_ns)
        return false;
    *ret_start_ns = l->due_ns;
    if (l->starts < l->late_until && l->due_ns >= l->count_from_ns)
        l->counts.late_starts++;
    l->due_ns = loader_find_start_ns(l, ++l->starts);
    return true;
}

bool loader_take(struct loader *l, uint64_t now_ns, struct flight *ret)
{
    uint64_t start_ns = now_ns;
    if (l->stopped || (l->has_quota && !l->quota) || (l->plan->rate > 0 && !take_start(l, now_ns, &start_ns)))
        return false;
    ret->start_ns = start_ns;
    ret->receipts = 0;
    ret->counted = start_ns >= l->count_from_ns;
    ret->path = paths_pick(&l->plan->paths, &l->picker);
    if (l->has_quota && ret->counted)
        l->quota--;
    return true;
}

bool loader_may_send(const struct loader *l, const struct conn *c)
{
    return !l->plan->broadcast || (c == l->conns && l->counts.opened >= l->conns_n);
}

/* ── counting ── */

void loader_finish(struct loader *l, const struct flight *flight)
{
    l->finished += flight->counted;
    if (l->has_quota && l->finished == l->wanted)
        l->stopped = true;
}

void loader_note_error(struct loader *l, enum load_error error, bool counted, const char *format, ...)
{
    l->counts.errors[error] += counted;
    if (l->first_error[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(l->first_error, sizeof(l->first_error), format, args);
    va_end(args);
}

/* ── the time that counts ── */

void loader_end_phase(struct mk_timer *timer)
{
    struct loader *l = MK_CONTAINER_OF(timer, struct loader, phase);
    if (l->count_from_ns != UINT64_MAX) {
        l->stopped = true;
        return;
    }
    l->count_from_ns = loader_now_ns();
    getrusage(RUSAGE_THREAD, &l->usage_from);
    if (l->plan->duration > 0)
        mk_timer_arm(&l->loop, timer, (uint32_t)(l->plan->duration * 1000));
}

void loader_begin(struct loader *l, uint64_t now_ns)
{
    if (l->plan->warm_up > 0) {
        mk_timer_arm(&l->loop, &l->phase, (uint32_t)(l->plan->warm_up * 1000));
        return;
    }
    loader_end_phase(&l->phase);
    l->count_from_ns = now_ns;
}
