// SPDX-License-Identifier: Apache-2.0
/*
 * The steps of http/shake.h. A connection that waits for its step lies in the queue by the node of its task, so that
 * cancelling the task takes it out.
 */
#include "http/shake.h"

#include "loop/loop.h"

enum { STEPS_PER_TURN = 4 };

/* Takes a step from the budget of this turn, if there is one left. */
static bool spend_step(struct mk__http *http)
{
    if (http->steps_turn != http->loop->turns)
        http->steps = 0;
    http->steps_turn = http->loop->turns;
    if (http->steps >= STEPS_PER_TURN)
        return false;
    http->steps++;
    return true;
}

static void run_step_queue(struct mk_task *task)
{
    struct mk__http *http = MK_OWNER(task, struct mk__http, step_task);
    while (!mk_list_empty(&http->step_queue) && spend_step(http)) {
        struct mk__conn *c = MK_LIST_FIRST(&http->step_queue, struct mk__conn, task.node);
        http->step_of = c;
        mk_list_del(&c->task.node);
        c->task.fn(&c->task);
        http->step_of = NULL;
    }
    if (!mk_list_empty(&http->step_queue))
        mk_task_schedule(http->loop, task);
}

void mk__shake_init(struct mk__http *http)
{
    mk_list_init(&http->step_queue);
    mk_task_init(&http->step_task, run_step_queue);
}

bool mk__shake_may(struct mk__conn *c)
{
    struct mk__http *http = c->http;
    if (http->step_of == c)
        return true;
    if (!mk_list_empty(&c->task.node))
        return false; /* it is in the queue already, or its task is about to run */
    if (mk_list_empty(&http->step_queue) && spend_step(http))
        return true;
    mk_list_add(&http->step_queue, &c->task.node);
    mk_task_schedule(http->loop, &http->step_task);
    return false;
}

int mk__shake_step(struct mk__conn *c)
{
    int r = c->peer.awaited ? mk__client_announce_raw(&c->peer, c->http, c->stream.io.fd) : 0;
    return r == 0 ? c->stream.io.transport->handshake(&c->stream.io) : r;
}
