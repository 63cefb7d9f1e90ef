// SPDX-License-Identifier: Apache-2.0
/*
 * The steps of http/shake.h.
 */
#include "http/shake.h"

#include "loop/loop.h"

enum { HANDSHAKES_PER_TURN = 4 };

bool mk__shake_may(struct mk__conn *c)
{
    struct mk__http *http = c->http;
    if (http->steps_turn != http->loop->turns)
        http->steps = 0;
    http->steps_turn = http->loop->turns;
    if (http->steps++ < HANDSHAKES_PER_TURN)
        return true;
    mk_task_schedule(http->loop, &c->task);
    return false;
}

int mk__shake_step(struct mk__conn *c)
{
    int r = c->peer.awaited ? mk__client_announce_raw(&c->peer, c->http, c->stream.io.fd) : 0;
    return r == 0 ? c->stream.io.transport->handshake(&c->stream.io) : r;
}
