// SPDX-License-Identifier: Apache-2.0
/* Summer of 2013: coroutines were a package, before the object `dthread`. */
#include "webservice.h"
#include "packages/coro/coro.h"

DUDA_REGISTER("Old services", "Coro");

struct words {
    channel_t *channel;
    duda_request_t *dr;
};

void print_words(void *data)
{
    struct words *words = data;
    char *word;

    response->http_status(words->dr, 200);
    while (!coro->chan_done(words->channel)) {
        word = coro->chan_recv(words->channel);
        response->printf(words->dr, "%s ", word);
        monkey->mem_free(word);
    }
    response->end(words->dr, NULL);
}

void send_words(void *data)
{
    channel_t *channel = data;

    coro->chan_send(channel, monkey->str_dup("one"));
    coro->chan_send(channel, monkey->str_dup("two"));
    coro->chan_send(channel, monkey->str_dup("three"));
    coro->chan_end(channel);
}

void cb_words(duda_request_t *dr)
{
    struct words *words = monkey->mem_alloc(sizeof(*words));
    int receiver, sender;

    words->channel = coro->chan_create(0, monkey->mem_free);
    words->dr = dr;
    receiver = coro->create(print_words, words);
    sender = coro->create(send_words, words->channel);
    coro->chan_set_sender(words->channel, sender);
    coro->chan_set_receiver(words->channel, receiver);
    coro->resume(receiver);
    coro->chan_free(words->channel);
    monkey->mem_free(words);
}

int duda_main()
{
    duda_load_package(coro, "coro");
    map->static_add("/words", "cb_words");
    return 0;
}
