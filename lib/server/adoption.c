// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's step to another generation (server/worker.h), in two parts: first the plugins start in the worker's
 * thread, which may fail; when that has gone well in all workers, each swaps pointers, between two turns of its
 * connections. The process context has allocated whatever is needed.
 */
#include "server/worker.h"

#include <errno.h>

int mk__adoption_prepare(struct mk__adoption *a, struct mk__worker *w, struct mk_generation *g, unsigned workers,
                         bool fed, const struct mk__sockets *sockets)
{
    *a = (struct mk__adoption){.worker = w, .fed = fed};
    if (!workers && !fed)
        return 0;
    a->next = mk__pin_new(w, g);
    int err = a->next ? mk__http_prepare(&w->http, &g->http, &a->buffers) : -ENOMEM;
    if (err == 0 && workers)
        err = mk__acceptors_make(&a->acceptors, sockets, w->index, workers);
    return err;
}

void mk__adoption_free(struct mk__adoption *a)
{
    mk__acceptors_free(&a->acceptors);
    mk__http_buffers_free(&a->buffers);
    if (a->next)
        mk__pin_free(a->next);
    a->next = NULL;
}

static struct mk__adoption *adoption_of(struct mk_message *message)
{
    return MK_OWNER(message, struct mk__adoption, message);
}

/* What clients hold must not keep plugins from starting: MemoryLimit bounds connections, and may be reached. */
static int start_plugins(struct mk__adoption *a)
{
    struct mk_account *account = &a->worker->account;
    size_t bytes_max = account->bytes_max;
    account->bytes_max = 0;
    int err = mk__pin_start(a->next);
    account->bytes_max = bytes_max;
    return err;
}

static void begin(struct mk_message *message)
{
    struct mk__adoption *a = adoption_of(message);
    if (a->next)
        a->err = start_plugins(a);
    sem_post(a->done);
}

static void abandon(struct mk_message *message)
{
    struct mk__adoption *a = adoption_of(message);
    if (a->next)
        mk__pin_free(a->next);
    a->next = NULL;
    sem_post(a->done);
}

static void change_generation(struct mk__worker *w, struct mk__adoption *a)
{
    struct mk_worker *before = w->now;
    const struct mk_generation *g = a->next->generation;
    w->now = a->next;
    a->next = NULL;
    w->account.bytes_max = g->settings->memory_bytes_max;
    mk__http_adopt(&w->http, &g->http, &a->buffers);
    mk__pin_retire(before);
}

static void complete(struct mk_message *message)
{
    struct mk__adoption *a = adoption_of(message);
    /* those who wait at an address that is closed now still come under the old generation */
    mk__acceptors_change(&a->worker->acceptors, &a->acceptors, mk__worker_accept, a->worker);
    a->worker->feed.on = a->fed;
    if (a->next)
        change_generation(a->worker, a);
    sem_post(a->done);
}

static void send_part(struct mk__adoption *a, mk_message_fn part, sem_t *done)
{
    a->done = done;
    a->message.fn = part;
    mk_post(&a->worker->loop, &a->message);
}

void mk__adoption_begin(struct mk__adoption *a, sem_t *done)
{
    send_part(a, begin, done);
}

void mk__adoption_abandon(struct mk__adoption *a, sem_t *done)
{
    send_part(a, abandon, done);
}

void mk__adoption_complete(struct mk__adoption *a, sem_t *done)
{
    send_part(a, complete, done);
}
