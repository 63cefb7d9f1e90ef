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
    unsigned count = 0;
    MK_LIST_EACH_ITEM(&h2->streams, struct mk__h2_stream, link, stream)
        count += is_stalled(stream, now);
    return count;
}

struct mk__conn *mk__h2_evict_find(const struct mk__context *http)
{
    uint64_t now = mk_loop_now_ms(http->loop);
    struct mk__conn *worst = NULL;
    unsigned most = STALLED_STREAMS_MAX;
    MK_LIST_EACH_ITEM(&http->conns, struct mk__conn, link, c) {
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
    if (!mk__context_is_low_on_memory(http))
        return;
    MK_LIST_EACH_ITEM(&http->conns, struct mk__conn, link, c) {
        if (!mk__h2_of(c) || c->state != MK__CONN_IDLE)
            continue;
        c->sock.readable = true; /* a request may have arrived: read before closing */
        c->task.fn(&c->task);    /* runs now, because a new connection needs the memory */
        if (--n == 0)
            return;
    }
}
