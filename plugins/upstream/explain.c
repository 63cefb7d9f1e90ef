// SPDX-License-Identifier: Apache-2.0
/*
 * Explains why a group has no server (explain.h).
 */
#include "explain.h"

#include <monkey/time.h>

#include <errno.h>
#include <inttypes.h>

static void add_count(struct mk_buf *out, unsigned n, const char *text)
{
    if (n)
        mk_buf_addf(out, ", %u %s", n, text);
}

/* A server is counted once: what an operator has set comes first. */
static void add_states(const struct mk_upstream_group *group, struct mk_buf *out)
{
    const struct members *members = group_members(group);
    unsigned states[ADMIN_STATES] = {0}, down = 0, ejected = 0;
    uint64_t now_ms = mk_time_monotonic_ms();
    for (unsigned i = 0; i < members->n; i++) {
        const struct member *m = &members->items[i];
        enum admin_state state = member_state(m);
        states[state]++;
        if (state == ADMIN_UP && server_is_down(m->server))
            down++;
        else if (state == ADMIN_UP)
            ejected += server_is_ejected(m->server, now_ms);
    }
    mk_buf_addf(out, ": of %u", members->n);
    add_count(out, states[ADMIN_DOWN], "set down");
    add_count(out, states[ADMIN_DRAIN], "set to drain");
    add_count(out, down, "down by Check");
    add_count(out, ejected, "ejected by EjectAfter");
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
    else {
        mk_buf_adds(out, MK_STR("no server of the group can be used"));
        add_states(group, out);
    }
}
