// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's step to another generation (server/worker.h). The process context allocates whatever is needed; the
 * worker only swaps pointers, between two turns of its connections.
 */
#include "server/worker.h"

#include <monkey/log.h>

#include <errno.h>

int mk__adoption_prepare(struct mk__adoption *a, struct mk__worker *w, struct mk__generation *g, unsigned workers,
                         const struct mk__sockets *sockets)
{
    *a = (struct mk__adoption){.worker = w};
    a->pin = mk__pin_new(w, g);
    int err = a->pin ? mk__http_prepare(&w->http, &g->http, &a->buffers) : -ENOMEM;
    if (err == 0 && workers)
        err = mk__acceptors_make(&a->acceptors, sockets, w->index, workers);
    return err;
}

void mk__adoption_free(struct mk__adoption *a)
{
    mk__acceptors_free(&a->acceptors);
    mk__http_buffers_free(&a->buffers);
    if (a->pin)
        mk__pin_free(a->pin);
    a->pin = NULL;
}

static int find(const struct mk__acceptors *list, const struct mk__acceptor *wanted)
{
    for (unsigned i = 0; i < list->n; i++)
        if (list->items[i]->event.fd == wanted->event.fd && list->items[i]->listening == wanted->listening)
            return (int)i;
    return -1;
}

/* Goes on with the acceptors that both lists have. */
static void keep_old(struct mk__acceptors *old, struct mk__acceptors *next)
{
    for (unsigned i = 0; i < next->n; i++) {
        int k = find(old, next->items[i]);
        if (k < 0)
            continue;
        struct mk__acceptor *kept = old->items[k];
        old->items[k] = next->items[i];
        next->items[i] = kept;
    }
}

/* An address that nobody wants any more is closed; a socket that another worker watches from now on is left to it. */
static void change_acceptors(struct mk__worker *w, struct mk__acceptors *next)
{
    struct mk__acceptors old = w->acceptors;
    keep_old(&old, next);
    w->acceptors = *next;
    *next = old;
    for (unsigned i = 0; i < w->acceptors.n; i++) {
        struct mk__acceptor *a = w->acceptors.items[i];
        int err = a->open ? 0 : mk__worker_accept(w, a);
        if (err < 0)
            mk_log_error("worker %u: cannot accept at %.*s: %s", w->index, MK_STR_ARG(a->listening->text),
                         strerror(-err));
    }
    for (unsigned i = 0; i < old.n; i++)
        if (old.items[i]->listening->kept)
            mk__acceptor_leave(old.items[i]);
        else
            mk__acceptor_close(old.items[i]);
}

static void adopt(struct mk_message *message)
{
    struct mk__adoption *a = MK_OWNER(message, struct mk__adoption, message);
    struct mk__worker *w = a->worker;
    struct mk_pin *before = w->pin;
    const struct mk__generation *g = a->pin->generation;
    change_acceptors(w, &a->acceptors); /* those who wait at a closed address still come under the old generation */
    w->pin = a->pin;
    a->pin = NULL;
    w->account.bytes_max = g->settings->memory_bytes_max;
    mk__http_adopt(&w->http, &g->http, &a->buffers);
    mk__pin_take(before);
    mk__pin_drop(before);
    sem_post(a->taken);
}

void mk__adoption_send(struct mk__adoption *a, sem_t *taken)
{
    a->taken = taken;
    a->message.fn = adopt;
    mk_post(&a->worker->loop, &a->message);
}
