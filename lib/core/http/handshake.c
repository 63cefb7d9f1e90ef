// SPDX-License-Identifier: Apache-2.0
/*
 * The handshake queue of http/handshake.h. A waiting connection is linked by the node of its task, so that cancelling
 * the task removes it from the queue.
 */
#include "http/handshake.h"

#include "loop/loop.h"

#include <assert.h>

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
        struct mk_task *waiting = MK_LIST_FIRST(&http->handshake_queue, struct mk_task, node);
        assert(!http->handshake_step);
        http->handshake_step = waiting;
        mk_list_del(&waiting->node);
        waiting->fn(waiting);
        http->handshake_step = NULL;
    }
    if (!mk_list_empty(&http->handshake_queue))
        mk_task_schedule(http->loop, task);
}

void mk__handshake_init(struct mk__context *http)
{
    mk_list_init(&http->handshake_queue);
    mk_task_init(&http->handshake_task, run_handshake_queue);
}

bool mk__handshake_can_step(struct mk__context *http, struct mk_task *task)
{
    if (http->handshake_step == task)
        return true;
    if (!mk_list_empty(&task->node))
        return false; /* it waits in the queue already, or it will run in this turn */
    if (mk_list_empty(&http->handshake_queue) && use_step(http))
        return true;
    mk_list_add(&http->handshake_queue, &task->node);
    mk_task_schedule(http->loop, &http->handshake_task);
    return false;
}
