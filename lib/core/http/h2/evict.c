// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the connections that http/h2/evict.h describes.
 */
#include "http/h2/evict.h"

#include "http/h2/h2.h"
#include "loop/loop.h"

enum { STALLED_STREAMS_MAX = 8, STALLED_MS = 1000 };

static bool is_stalled(const struct mk__h2_stream *s, uint64_t now)
{
    if (!s->req || !s->armed || !mk__h2_stream_states[s->state].can_stall)
        return false;
    return now + s->req->limits->timeout_ms[mk__h2_stream_states[s->state].timeout] >=
           s->timer.deadline_ms + STALLED_MS;
}

static unsigned count_stalled(const struct mk__h2 *h2, uint64_t now)
{
    struct mk_list *n, *save;
    unsigned count = 0;
    MK_LIST_EACH(&h2->streams, n, save)
        count += is_stalled(MK_CONTAINER_OF(n, struct mk__h2_stream, link), now);
    return count;
}

struct mk__conn *mk__h2_evict_find(const struct mk__context *http)
{
    uint64_t now = mk_loop_now_ms(http->loop);
    struct mk__conn *worst = NULL;
    struct mk_list *n, *save;
    unsigned most = STALLED_STREAMS_MAX;
    MK_LIST_EACH(&http->conns, n, save) {
        struct mk__conn *c = MK_CONTAINER_OF(n, struct mk__conn, link);
        unsigned waiting = mk__h2_of(c) && !c->running ? count_stalled(mk__h2_of(c), now) : 0;
        if (waiting > most) {
            most = waiting;
            worst = c;
        }
    }
    if (worst)
        mk__h2_flood_log(mk__h2_of(worst), MK__H2_FLOOD_STALLED_STREAMS, STALLED_STREAMS_MAX);
    return worst;
}

void mk__h2_evict_close_idle(struct mk__context *http, unsigned n)
{
    struct mk_list *node, *save;
    if (!mk__context_is_low_on_memory(http))
        return;
    MK_LIST_EACH(&http->conns, node, save) {
        struct mk__conn *c = MK_CONTAINER_OF(node, struct mk__conn, link);
        if (!mk__h2_of(c) || c->state != MK__CONN_IDLE)
            continue;
        c->sock.readable = true; /* a request may have arrived: read before closing */
        c->task.fn(&c->task);    /* runs now, because a new connection needs the memory */
        if (--n == 0)
            return;
    }
}
