// SPDX-License-Identifier: Apache-2.0
/*
 * Explains why a group has no server (explain.h).
 */
#include "explain.h"

#include <monkey/base/time.h>

#include <errno.h>
#include <inttypes.h>

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
