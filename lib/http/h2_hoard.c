// SPDX-License-Identifier: Apache-2.0
/*
 * The search of http/h2_hoard.h.
 */
#include "http/h2_hoard.h"

#include "http/h2.h"
#include "loop/loop.h"

enum { FEW = 8, PATIENCE_MS = 1000 };

static bool waits_for_client(const struct mk__h2_stream *s, uint64_t now)
{
    if (!s->req || !s->armed || (s->wait != MK__H2_SEND && s->wait != MK__H2_BODY))
        return false;
    return now + s->req->limits->timeout_ms[mk__h2_waits[s->wait].limit] >= s->timer.deadline_ms + PATIENCE_MS;
}

static unsigned count_waiting(const struct mk__h2 *h2, uint64_t now)
{
    struct mk_list *n, *save;
    unsigned count = 0;
    MK_LIST_EACH(&h2->streams, n, save)
        count += waits_for_client(MK_OWNER(n, struct mk__h2_stream, link), now);
    return count;
}

struct mk__conn *mk__h2_hoard_find(const struct mk__context *http)
{
    uint64_t now = mk_loop_now_ms(http->loop);
    struct mk__conn *hoarder = NULL;
    struct mk_list *n, *save;
    unsigned most = FEW;
    MK_LIST_EACH(&http->conns, n, save) {
        struct mk__conn *c = MK_OWNER(n, struct mk__conn, link);
        unsigned waiting = c->h2 && !c->running ? count_waiting(c->h2, now) : 0;
        if (waiting > most) {
            most = waiting;
            hoarder = c;
        }
    }
    if (hoarder)
        mk__h2_manners_tell(hoarder->h2, MK__H2_HOARDS, FEW);
    return hoarder;
}

void mk__h2_hoard_give_up(struct mk__context *http, unsigned n)
{
    struct mk_list *node, *save;
    if (!mk__context_is_low_on_memory(http))
        return;
    MK_LIST_EACH(&http->conns, node, save) {
        struct mk__conn *c = MK_OWNER(node, struct mk__conn, link);
        if (!c->h2 || c->state != MK__CONN_IDLE)
            continue;
        c->sock.readable = true; /* a request may be on its way into our hands */
        c->task.fn(&c->task);    /* at once: whoever has come needs the room now */
        if (--n == 0)
            return;
    }
}
