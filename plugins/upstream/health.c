// SPDX-License-Identifier: Apache-2.0
#include "conf.h"
#include "servers.h"

#include <monkey/base/dial.h>

#include <errno.h>
#include <string.h>

static const struct {
    const char *word;
    size_t offset;
} kinds[] = {
    {"Refused", offsetof(struct eject_on, refused)},
    {"Timeout", offsetof(struct eject_on, timeout)},
    {"Reset", offsetof(struct eject_on, reset)},
};

static bool parse_kind(struct mk_str word, struct eject_on *on)
{
    for (size_t i = 0; i < MK_COUNT_OF(kinds); i++)
        if (mk_str_ieq(word, mk_str_c(kinds[i].word))) {
            *(bool *)((char *)on + kinds[i].offset) = true;
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
        if (!parse_kind(value->words[i], on) && mk_status_set_add(&on->statuses, value->words[i]) < 0) {
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

/* Tells whether results of the other kind have begun. */
static bool is_changing(const struct health_state *s)
{
    return s->in_row && s->has_passed != (s->health == HEALTH_UP);
}

uint32_t health_get_wait_ms(const struct health_state *s, const struct health_rules *rules, uint32_t random)
{
    uint32_t ms = is_changing(s) ? rules->interval_ms / FAST_SHARE : rules->interval_ms;
    uint64_t less = (uint64_t)ms * (JITTER_MIN + random % (JITTER_MAX - JITTER_MIN + 1)) / 1000;
    ms -= (uint32_t)less;
    return ms > FAST_MS_MIN ? ms : FAST_MS_MIN;
}
