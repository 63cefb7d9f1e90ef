// SPDX-License-Identifier: Apache-2.0
/* Level 1: clients that wait for a message, which one client or a thread sends to all of them. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Comet");

struct waiting {
    duda_request_t *dr;
    struct mk_list _head;
};

duda_global_t waiters;
char message[64];

void *cb_waiters(void *data)
{
    static struct mk_list all[64];
    static int n;
    struct mk_list *list = &all[__sync_fetch_and_add(&n, 1)];

    mk_list_init(list);
    return list;
}

void cb_wait(duda_request_t *dr)
{
    struct mk_list *list = global->get(waiters);
    struct waiting *w = monkey->mem_alloc(sizeof(struct waiting));

    w->dr = dr;
    mk_list_add(&w->_head, list);
    response->http_status(dr, 200);
    response->http_header(dr, "X-Wait: yes");
    response->wait(dr);
}

/* Runs in each worker. */
void cb_signal(int fd, uint64_t number)
{
    struct mk_list *head, *tmp, *list = global->get(waiters);

    mk_list_foreach_safe(head, tmp, list)
    {
        struct waiting *w = mk_list_entry(head, struct waiting, _head);

        mk_list_del(&w->_head);
        if (request->validate_request(w->dr) == MK_TRUE) {
            response->cont(w->dr);
            response->printf(w->dr, "%s %lu\n", message, (unsigned long)number);
            response->finalize(w->dr, NULL);
        }
        monkey->mem_free(w);
    }
}

void cb_waiting(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i", mk_list_size(global->get(waiters)));
    response->end(dr, NULL);
}

void cb_send(duda_request_t *dr)
{
    char *text = qs->get(dr, "text");

    if (!text || strlen(text) >= sizeof(message)) {
        response->http_status(dr, 400);
        response->end(dr, NULL);
    }
    snprintf(message, sizeof(message), "%s", text);
    event->signal(7);
    response->http_status(dr, 204);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_global_init(&waiters, cb_waiters, NULL);
    duda_event_set_signal_callback(cb_signal);
    map->static_add("/waiting/", "cb_waiting");
    map->static_add("/wait/", "cb_wait");
    map->static_add("/send/", "cb_send");
    return 0;
}
