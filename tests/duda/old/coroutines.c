// SPDX-License-Identifier: Apache-2.0
/* Level 2: coroutines that resume each other, and channels between them. */
#include "webservice.h"

DUDA_REGISTER("Duda I/O", "coroutines");

struct work {
    duda_dthread_channel_t *channel;
    int values[5], sum, sent, ended;
    int seen[2]; /* what the producer has seen of itself and of the consumer */
    int consumer;
};

static void consume(void *data)
{
    struct work *work = data;
    while (!dthread->chan_done(work->channel)) {
        int *value = dthread->chan_recv(work->channel);
        if (value)
            work->sum = work->sum * 10 + *value;
    }
    work->ended++;
}

static void produce(void *data)
{
    struct work *work = data;
    work->seen[0] = dthread->running();
    work->seen[1] = dthread->status(work->consumer);
    for (int i = 0; i < 5; i++) {
        work->values[i] = i + 1;
        if (dthread->chan_send(work->channel, &work->values[i]) == DTHREAD_CHANNEL_OK)
            work->sent++;
    }
    dthread->chan_end(work->channel);
    work->ended++;
}

/* Ends after one value, and so goes back to the callback: the producer, resumed there, has no receiver any more. */
static void consume_one(void *data)
{
    struct work *work = data;
    dthread->chan_recv(work->channel);
    work->ended++;
}

static void cb_pass(duda_request_t *dr, void (*consumer)(void *), int size)
{
    struct work work = {0};
    work.channel = dthread->chan_create(size);
    int cid = dthread->create(consumer, &work), pid = dthread->create(produce, &work);
    int ready = dthread->status(cid);
    work.consumer = cid;
    dthread->chan_set_sender(work.channel, pid);
    dthread->chan_set_receiver(work.channel, cid);
    dthread->resume(cid);
    if (dthread->status(pid) == DTHREAD_SUSPEND)
        dthread->resume(pid);
    response->http_status(dr, 200);
    response->printf(dr, "ids %d %d ready %d sum %d sent %d ended %d seen %d %d dead %d %d running %d", cid, pid, ready,
                     work.sum, work.sent, work.ended, work.seen[0], work.seen[1], dthread->status(cid),
                     dthread->status(pid), dthread->running());
    dthread->chan_free(work.channel);
    response->end(dr, NULL);
}

void cb_small(duda_request_t *dr)
{
    cb_pass(dr, consume, 0);
}

void cb_large(duda_request_t *dr)
{
    cb_pass(dr, consume, 16);
}

void cb_broken(duda_request_t *dr)
{
    cb_pass(dr, consume_one, 0);
}

static char steps[64];

static void step(const char *text)
{
    size_t n = strlen(steps);
    snprintf(steps + n, sizeof(steps) - n, "%s", text);
}

static void inner(void *data)
{
    step("i");
    dthread->yield();
    step("j");
}

static void outer(void *data)
{
    step("o");
    dthread->resume(*(int *)data);
    step("p");
}

/* yield() goes to the callback, and the end of `inner` to the one that has resumed it first. */
void cb_nested(duda_request_t *dr)
{
    int id = dthread->create(inner, NULL);
    int out = dthread->create(outer, &id);
    steps[0] = 0;
    dthread->resume(out);
    step("m");
    int suspended = dthread->status(id) == DTHREAD_SUSPEND && dthread->status(out) == DTHREAD_SUSPEND;
    dthread->resume(id);
    step("n");
    response->http_status(dr, 200);
    response->printf(dr, "%s %d %d %d", steps, suspended, dthread->status(id), dthread->status(out));
    response->end(dr, NULL);
}

/* It is left when the service ends. */
void cb_left(duda_request_t *dr)
{
    dthread->resume(dthread->create(inner, NULL));
    dthread->resume(77);
    response->http_status(dr, 200);
    response->printf(dr, "left");
    response->end(dr, NULL);
}

int duda_main()
{
    router->map("/small", cb_small);
    router->map("/large", cb_large);
    router->map("/broken", cb_broken);
    router->map("/nested", cb_nested);
    router->map("/left", cb_left);
    return 0;
}
