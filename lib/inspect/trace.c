// SPDX-License-Identifier: Apache-2.0
/*
 * Tells of the changes of connections that are traced (<monkey/inspect.h>). Others cost a look at a bit.
 */
#include "inspect/conns.h"

#include <assert.h>
#include <errno.h>

static bool is_traced(const struct mk_inspect_trace *trace, const struct mk__conn *c)
{
    return trace->id ? trace->id == c->handle.id : mk_address_equal(&trace->peer, &c->handle.peer.address);
}

/* A connection was accepted: it is traced if a trace is about its peer. */
void mk__inspect_trace_open(struct mk__inspector *i, struct mk__conn *c)
{
    struct mk__inspect_conns *all = MK_CONTAINER_OF(i, struct mk__inspect_conns, base);
    MK_LIST_EACH_ITEM(&all->traces, const struct mk_inspect_trace, node, trace) {
        c->traced |= !trace->id && is_traced(trace, c);
    }
    if (c->traced)
        mk__inspect_conns_id(c);
}

void mk__inspect_trace_state(struct mk__inspector *i, const struct mk__conn *c, enum mk__conn_state next)
{
    struct mk__inspect_conns *all = MK_CONTAINER_OF(i, struct mk__inspect_conns, base);
    struct mk_inspect_change change = {
        .id = c->handle.id,
        .peer = c->handle.peer.address,
        .before = mk_inspect_core.conn_states[c->state].name,
        .after = mk_inspect_core.conn_states[next].name,
        .time_us = mk_loop_now_us(c->http->loop),
        .requests = c->requests,
    };
    MK_LIST_EACH_ITEM(&all->traces, struct mk_inspect_trace, node, trace) {
        if (is_traced(trace, c))
            trace->fn(trace, &change);
    }
}

int mk__inspect_trace_start(struct mk_inspect_trace *trace, struct mk__context *http)
{
    struct mk__inspect_conns *all = mk__inspect_conns_get(http);
    assert(trace->fn);
    if (!all)
        return -ENOMEM;
    mk_list_init(&trace->node);
    mk_list_add(&all->traces, &trace->node);
    trace->inspector = all;
    return 0;
}

int mk_inspect_trace_start(struct mk_inspect_trace *trace, const struct mk_worker *worker)
{
    return mk__inspect_trace_start(trace, &mk__inspect_core_thread(worker)->http);
}

void mk_inspect_trace_stop(struct mk_inspect_trace *trace)
{
    mk_list_del(&trace->node);
    mk__inspect_conns_put(trace->inspector);
    trace->inspector = NULL;
}
