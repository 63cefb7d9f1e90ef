// SPDX-License-Identifier: Apache-2.0
/* Level 2: a channel that frees what was not received. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Channels that free");

int freed;

void free_value(void *value)
{
    mem->free(value);
    freed++;
}

void producer(void *data)
{
    int i;

    for (i = 0; i < 4; i++)
        dthread->chan_send(data, mem->alloc(16));
    dthread->chan_end(data);
}

void consumer(void *data)
{
    mem->free(dthread->chan_recv(data));
}

void cb_channel(duda_request_t *dr)
{
    duda_dthread_channel_t *chan = dthread->chan_create(4, free_value);
    duda_dthread_channel_t *plain = dthread->chan_create(2);
    int from = dthread->create(producer, chan), to = dthread->create(consumer, chan);

    dthread->chan_set_sender(chan, from);
    dthread->chan_set_receiver(chan, to);
    dthread->resume(to);
    freed = 0;
    dthread->chan_free(chan);
    dthread->chan_free(plain);
    response->http_status(dr, 200);
    response->printf(dr, "%i", freed);
    response->end(dr, NULL);
}

int duda_main()
{
    router->map("/channel/", cb_channel);
    return 0;
}
