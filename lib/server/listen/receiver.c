// SPDX-License-Identifier: Apache-2.0
/*
 * Takes connections from the main thread (server/listen/receiver.h): each arrives as the first event of a descriptor
 * that the main thread has added to this worker's epoll queue.
 */
#include "server/listen/receiver.h"

#include "server/listen/balance.h"

#include <errno.h>
#include <unistd.h>

static void on_handoff(struct mk__handoff *handoff, int fd, uint32_t sequence, uint32_t events)
{
    struct mk__thread *t = MK_CONTAINER_OF(handoff, struct mk__thread, handoff);
    const struct mk__listener *listener = mk__balance_find_listener(t->handoff_slots, fd, sequence);
    if (!listener)
        return;
    int err = t->closing ? -ESHUTDOWN : mk__handoff_admit(handoff, fd, sequence, events);
    if (err == 0) {
        err = mk__thread_serve_fd(t, listener, fd);
        handoff->events = 0; /* the connection may have been closed before it took them */
    } else {
        close(fd);
        mk__thread_conn_freed(t);
    }
    if (err == -ENOMEM)
        t->load.out_of_memory = true;
}

static void on_balancer_end(struct mk_message *message)
{
    struct mk__thread *t = MK_CONTAINER_OF(message, struct mk__thread, load.end_message);
    t->load.enabled = false;
    mk__thread_begin_drain(t);
}

void mk__receiver_open(struct mk__thread *t, bool enabled)
{
    t->closing = false;
    t->load = (struct mk__worker_load){.enabled = enabled, .end_message.fn = on_balancer_end};
    mk__handoff_init(&t->handoff, &t->account, on_handoff);
    t->loop.handoff = &t->handoff;
}

void mk__receiver_close(struct mk__thread *t)
{
    t->closing = true;
    while (mk__thread_load(&t->load) && mk__loop_turn(&t->loop) == 0)
        ;
    mk__handoff_release(&t->handoff);
}

void mk__receiver_count_accepted(struct mk__thread *t)
{
    atomic_fetch_sub_explicit(&t->load.closed, 1, memory_order_relaxed);
}

void mk__receiver_count_closed(struct mk__thread *t)
{
    atomic_fetch_add_explicit(&t->load.closed, 1, memory_order_relaxed);
    if (t->load.out_of_memory)
        t->load.out_of_memory = false;
}
