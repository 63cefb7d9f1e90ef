// SPDX-License-Identifier: Apache-2.0
/*
 * The handshake queue of http/handshake.h. A waiting connection is linked by the node of its task, so that cancelling
 * the task removes it from the queue.
 */
#include "http/handshake.h"

#include "loop/loop.h"

enum { STEPS_PER_TURN = 4 };

/* Takes a step from the budget of this turn. Returns false if none is left. */
static bool use_step(struct mk__context *http)
{
    if (http->handshake_turn != http->loop->turns)
        http->handshake_steps = 0;
    http->handshake_turn = http->loop->turns;
    if (http->handshake_steps >= STEPS_PER_TURN)
        return false;
    http->handshake_steps++;
    return true;
}

static void run_handshake_queue(struct mk_task *task)
{
    struct mk__context *http = MK_CONTAINER_OF(task, struct mk__context, handshake_task);
    while (!mk_list_empty(&http->handshake_queue) && use_step(http)) {
        struct mk__conn *c = MK_LIST_FIRST(&http->handshake_queue, struct mk__conn, task.node);
        http->handshaking_conn = c;
        mk_list_del(&c->task.node);
        c->task.fn(&c->task);
        http->handshaking_conn = NULL;
    }
    if (!mk_list_empty(&http->handshake_queue))
        mk_task_schedule(http->loop, task);
}

void mk__handshake_init(struct mk__context *http)
{
    mk_list_init(&http->handshake_queue);
    mk_task_init(&http->handshake_task, run_handshake_queue);
}

bool mk__handshake_can_step(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    if (http->handshaking_conn == c)
        return true;
    if (!mk_list_empty(&c->task.node))
        return false; /* it waits in the queue already, or its task will run in this turn */
    if (mk_list_empty(&http->handshake_queue) && use_step(http))
        return true;
    mk_list_add(&http->handshake_queue, &c->task.node);
    mk_task_schedule(http->loop, &http->handshake_task);
    return false;
}

int mk__handshake_run_step(struct mk__conn *c)
{
    int r = c->peer.expects_proxy_header ? mk__client_addr_recv_proxy_header(&c->peer, c->http, c->sock.io.fd) : 0;
    return r == 0 ? c->sock.io.transport->handshake(&c->sock.io) : r;
}
