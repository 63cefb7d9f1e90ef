// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses a server of a group: of those that are in use the backups only if there is no other, and of those
 * that are ejected only if too many are, or all. None that is down by its checks. Explains why there is none.
 */
#include "conf.h"
#include "groups.h"
#include "servers.h"

#include <monkey/base/time.h>
#include <monkey/log.h>

#include <errno.h>
#include <inttypes.h>

/* ── balancing ── */

static uint64_t add_weights(const struct candidate *c, unsigned n)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += c[i].weight;
    return sum;
}

/* Returns the candidate at a place on the line of all weights, without those of `left_out`. */
static int find_at(const struct candidate *c, unsigned n, uint64_t place, int left_out)
{
    for (unsigned i = 0; i < n; i++) {
        if ((int)i == left_out)
            continue;
        if (place < c[i].weight)
            return (int)i;
        place -= c[i].weight;
    }
    return -1;
}

/*
 * Tells whether `a`, with one more request, has no more to do for its weight than `b` has now. While servers are idle
 * the draw alone decides, so that their shares are those of the weights.
 */
static bool is_less_loaded(const struct candidate *a, const struct candidate *b)
{
    return ((uint64_t)a->load + 1) * b->weight <= (uint64_t)b->load * a->weight;
}

int balance_least_loaded(const struct candidate *c, unsigned n, uint64_t random)
{
    uint64_t sum = add_weights(c, n);
    if (!sum)
        return -1;
    int first = find_at(c, n, (random & UINT32_MAX) % sum, -1); /* each is drawn by its weight */
    uint64_t rest = sum - c[first].weight;
    int second = rest ? find_at(c, n, (random >> 32) % rest, first) : -1;
    return second >= 0 && is_less_loaded(&c[second], &c[first]) ? second : first;
}

int balance_first(const struct candidate *c, unsigned n)
{
    return find_at(c, n, 0, -1);
}

static uint64_t mix_bits(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A server of weight 3 takes part three times. */
static uint64_t get_score(const struct candidate *c, uint64_t key)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < c->weight; i++) {
        uint64_t score = mix_bits(key ^ mix_bits(c->hash + i));
        best = score > best ? score : best;
    }
    return best;
}

int balance_hash(const struct candidate *c, unsigned n, uint64_t key)
{
    uint64_t weights = add_weights(c, n), loads = 1, best = 0;
    int chosen = -1;
    for (unsigned i = 0; i < n; i++)
        loads += c[i].load;
    for (unsigned i = 0; i < n; i++) {
        if (!c[i].weight || (uint64_t)c[i].load * 4 * weights >= loads * 5 * c[i].weight)
            continue;
        uint64_t score = get_score(&c[i], key);
        if (chosen < 0 || score > best) {
            chosen = (int)i;
            best = score;
        }
    }
    return chosen;
}

/* Each gets credit by its weight; the one with the most pays for all. */
int balance_round_robin(const struct candidate *c, struct turn *const *turns, unsigned n)
{
    int best = -1;
    for (unsigned i = 0; i < n; i++) {
        turns[i]->credit += c[i].weight;
        if (c[i].weight && (best < 0 || turns[i]->credit > turns[best]->credit))
            best = (int)i;
    }
    if (best >= 0)
        turns[best]->credit -= (int64_t)add_weights(c, n);
    return best;
}

/* ── choosing ── */

enum { SLOW_PERCENT_LEAST = 10 };

/* The members that may get a request. */
struct choice {
    struct candidate candidates[GROUP_MEMBERS_MAX];
    struct turn *turns[GROUP_MEMBERS_MAX];
    struct member *members[GROUP_MEMBERS_MAX];
    unsigned n, n_usable; /* usable: those that are full, or not wanted, included */
    bool is_full;         /* another one would be there, if it had fewer requests */
};

/* A number of SplitMix64, whose state threads share. */
static uint64_t get_random(struct mk_upstream_group *group)
{
    uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = atomic_fetch_add_explicit(&group->seed, step, memory_order_relaxed) + step;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void log_ejected(const struct mk_upstream_group *group, unsigned ejected, unsigned n, bool too_many)
{
    struct mk_str name = group->conf->name;
    if (too_many)
        mk_log_limited(MK_LOG_WARN, group,
                       "upstream %.*s: %u of %u servers are ejected, more than EjectMost (%d %%): all are tried",
                       MK_STR_ARG(name), ejected, n, (int)group->conf->eject_most);
    else
        mk_log_limited(MK_LOG_INFO, group, "upstream %.*s: %u of %u servers are ejected: only the others get requests",
                       MK_STR_ARG(name), ejected, n);
}

/* Tells whether more are ejected than EjectMost allows. */
static bool are_too_many_ejected(struct mk_upstream_group *group, const struct members *members, uint64_t now_ms)
{
    unsigned ejected = 0;
    for (unsigned i = 0; i < members->n; i++)
        ejected += server_is_ejected(members->items[i].server, now_ms);
    bool too_many = ejected * 100 > (uint64_t)group->conf->eject_most * members->n;
    _Atomic bool *known = &group->tries_ejected;
    if (atomic_load_explicit(known, memory_order_relaxed) != too_many && atomic_exchange(known, too_many) != too_many)
        log_ejected(group, ejected, members->n, too_many);
    return too_many;
}

/*
 * Returns the weight of a server, in percent of 1 with SlowStart: one that is in use again begins with little. Hash has
 * no slow start, since a key would have two servers meanwhile.
 */
static uint32_t get_weight(const struct mk_upstream_group *group, const struct member *m, uint64_t now_ms)
{
    uint32_t slow_ms = group->conf->slow_start_ms;
    if (!slow_ms || group->conf->balance == UPSTREAM_HASH)
        return member_weight(m);
    uint64_t from = atomic_load_explicit(&m->server->slow_from_ms, memory_order_relaxed);
    uint64_t percent = !from ? 100 : now_ms < from ? 0 : (now_ms - from) * 100 / slow_ms;
    percent = percent < SLOW_PERCENT_LEAST ? SLOW_PERCENT_LEAST : percent > 100 ? 100 : percent;
    return member_weight(m) * (uint32_t)percent;
}

static void add_candidate(struct mk_upstream_group *group, struct member *m, uint64_t now_ms, struct choice *c)
{
    uint32_t load = atomic_load(&m->server->load);
    if (group->conf->max_connections && load >= group->conf->max_connections) {
        c->is_full = true;
        return;
    }
    c->candidates[c->n] = (struct candidate){.weight = get_weight(group, m, now_ms), .load = load, .hash = m->hash};
    c->turns[c->n] = &m->turn;
    c->members[c->n++] = m;
}

static bool is_usable(const struct member *m, const struct criteria *criteria, bool backups, bool with_ejected)
{
    return member_takes(m, false) && m->line->is_backup == backups &&
           !retry_has_tried(criteria->tries, &m->server->base) &&
           (with_ejected || !server_is_ejected(m->server, criteria->now_ms));
}

/* Of the members of a line, which are in the order of their priorities, only those with the smallest one are used. */
static void collect_members(struct mk_upstream_group *group, struct members *members, const struct criteria *criteria,
                            bool backups, bool with_ejected, struct choice *ret)
{
    const struct member *preferred = NULL; /* the first usable one of the line */
    for (unsigned i = 0; i < members->n; i++) {
        struct member *m = &members->items[i];
        if (!is_usable(m, criteria, backups, with_ejected))
            continue;
        preferred = preferred && preferred->line == m->line ? preferred : m;
        ret->n_usable += m->priority == preferred->priority;
        if (m->priority == preferred->priority && (!criteria->only || criteria->only == m->server))
            add_candidate(group, m, criteria->now_ms, ret);
    }
}

/* Servers of the group before backups; then both again with those that are ejected. */
static void find_members(struct mk_upstream_group *group, const struct criteria *criteria, struct choice *ret)
{
    struct members *members = group_members(group);
    bool with_ejected = criteria->is_probe || are_too_many_ejected(group, members, criteria->now_ms);
    ret->n = ret->n_usable = 0;
    ret->is_full = false;
    for (unsigned step = with_ejected ? 2 : 0; step < 4 && !ret->n_usable; step++)
        collect_members(group, members, criteria, step % 2, step >= 2, ret);
}

static int balance_members(struct mk_upstream_group *group, const uint64_t *key, const struct choice *c)
{
    int chosen;
    if (group->conf->balance == UPSTREAM_HASH && key)
        return balance_hash(c->candidates, c->n, *key);
    switch (group->conf->balance) {
    case UPSTREAM_FIRST:
        return balance_first(c->candidates, c->n);
    case UPSTREAM_ROUND_ROBIN:
        lock_take(&group->turns_lock);
        chosen = balance_round_robin(c->candidates, c->turns, c->n);
        lock_release(&group->turns_lock);
        return chosen;
    default:
        return balance_least_loaded(c->candidates, c->n, get_random(group));
    }
}

/*
 * The server that the request's cookie names, before any other one: it also takes requests while it drains, and they
 * wait for it while it is full.
 */
static struct member *find_sticky(struct mk_upstream_group *group, const struct criteria *criteria, bool *ret_is_full)
{
    const struct server *sticky = criteria->preference->sticky;
    struct members *members = group_members(group);
    MK_UNINITIALIZED struct choice choice;
    choice.n = 0;
    choice.is_full = false;
    for (unsigned i = 0; i < members->n; i++) {
        struct member *m = &members->items[i];
        if (m->server == sticky && member_takes(m, true) && !retry_has_tried(criteria->tries, &sticky->base) &&
            !server_is_ejected(m->server, criteria->now_ms))
            add_candidate(group, m, criteria->now_ms, &choice);
    }
    bool is_other = choice.n && criteria->only && criteria->only != sticky;
    *ret_is_full = choice.is_full || (is_other && !criteria->is_probe); /* with Hold any that responds will do */
    return choice.n && !is_other ? choice.members[0] : NULL;
}

struct member *choice_make(struct mk_upstream_group *group, const struct criteria *criteria, bool *ret_is_full)
{
    MK_UNINITIALIZED struct choice choice;
    struct member *sticky = criteria->preference->sticky ? find_sticky(group, criteria, ret_is_full) : NULL;
    if (sticky || (criteria->preference->sticky && *ret_is_full))
        return sticky;
    find_members(group, criteria, &choice);
    *ret_is_full = choice.is_full;
    int chosen = balance_members(group, criteria->preference->key, &choice);
    return chosen < 0 ? NULL : choice.members[chosen];
}

/* ── explaining ── */

enum { COUNTS_BYTES = 160 };

/* Of the servers of a group: each is counted once, and what an operator has set comes first. */
struct counts {
    unsigned states[ADMIN_STATES], down, ejected, weightless;
};

static void count_member(struct counts *counts, const struct member *m, uint64_t now_ms)
{
    enum admin_state state = member_state(m);
    if (state != ADMIN_UP)
        counts->states[state]++;
    else if (server_is_down(m->server))
        counts->down++;
    else if (server_is_ejected(m->server, now_ms))
        counts->ejected++;
    else
        counts->weightless += !member_weight(m);
}

static void add_count(struct mk_buf *out, unsigned n, const char *text)
{
    if (n)
        mk_buf_addf(out, ", %u %s", n, text);
}

static void add_counts(const struct counts *counts, struct mk_buf *out)
{
    add_count(out, counts->states[ADMIN_DOWN], "set down");
    add_count(out, counts->states[ADMIN_DRAIN], "set to drain");
    add_count(out, counts->down, "down by Check");
    add_count(out, counts->ejected, "ejected by EjectAfter");
    add_count(out, counts->weightless, "with weight 0");
}

static void add_states(const struct mk_upstream_group *group, struct mk_buf *out)
{
    const struct members *members = group_members(group);
    struct counts counts = {.down = 0};
    MK_BUF_ON_STACK(list, COUNTS_BYTES);
    uint64_t now_ms = mk_time_monotonic_ms();
    for (unsigned i = 0; i < members->n; i++)
        count_member(&counts, &members->items[i], now_ms);
    add_counts(&counts, &list);
    if (!members->n)
        mk_buf_adds(out, MK_STR(": it has no servers: its names have no addresses"));
    else if (list.len)
        mk_buf_addf(out, ": of %u%.*s", members->n, MK_STR_ARG(mk_buf_str(&list)));
    else if (members->n == 1)
        mk_buf_adds(out, MK_STR(": its server could not be reached"));
    else
        mk_buf_addf(out, ": none of its %u servers could be reached", members->n);
}

void explain_failure(const struct mk_upstream_group *group, int err, struct mk_buf *out)
{
    const struct upstream_conf *conf = group->conf;
    uint32_t ms = conf->queue_timeout_ms;
    if (err == -EBUSY)
        mk_buf_addf(out,
                    "all servers of the group have MaxConnections, and Queue is full (they are %" PRId64 " and %" PRId64
                    ")",
                    conf->max_connections, conf->queue);
    else if (err == -ETIMEDOUT)
        mk_buf_addf(out, "no server of the group had room within QueueTimeout (it is %u %s)",
                    ms % 1000 ? ms : ms / 1000, ms % 1000 ? "ms" : "s");
    else if (err == -ENOMEM)
        mk_buf_adds(out, MK_STR("there is no memory for the wait for a server of the group"));
    else {
        mk_buf_adds(out, MK_STR("no server of the group can be used"));
        add_states(group, out);
    }
}
