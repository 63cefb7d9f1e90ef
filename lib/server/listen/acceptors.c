// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of acceptors (server/listen/acceptors.h): made by the thread that starts or reloads, opened, replaced and
 * closed in the thread of their loop.
 */
#include "server/listen/acceptors.h"

#include <monkey/arena.h>
#include <monkey/log.h>

#include <errno.h>

void mk__acceptors_free(struct mk__acceptors *list)
{
    for (unsigned i = 0; i < list->n; i++)
        mk_account_free(NULL, list->items[i], sizeof(*list->items[i]));
    mk_account_free(NULL, list->items, list->n * sizeof(struct mk__acceptor *));
    *list = (struct mk__acceptors){0};
}

static int add_acceptor(struct mk__acceptors *list, const struct mk__listener *listener, int fd)
{
    struct mk__acceptor **items = mk_account_alloc(NULL, (list->n + 1) * sizeof(struct mk__acceptor *));
    struct mk__acceptor *one = mk_account_alloc(NULL, sizeof(*one));
    if (!items || !one) {
        mk_account_free(NULL, items, 0);
        mk_account_free(NULL, one, 0);
        return -ENOMEM;
    }
    *one = (struct mk__acceptor){.event.fd = fd, .listener = listener};
    if (list->n)
        memcpy(items, list->items, list->n * sizeof(*items));
    items[list->n++] = one;
    mk_account_free(NULL, list->items, 0);
    list->items = items;
    return 0;
}

int mk__acceptors_make(struct mk__acceptors *list, const struct mk__listeners *listeners, unsigned index,
                       unsigned loops)
{
    struct mk_list *n, *save;
    *list = (struct mk__acceptors){0};
    MK_LIST_EACH(&listeners->open, n, save) {
        const struct mk__listener *one = MK_CONTAINER_OF(n, struct mk__listener, node);
        for (unsigned i = 0; one->kept; i++) {
            int fd = mk__listeners_worker_fd(one, index, loops, i);
            if (fd < 0)
                break;
            if (add_acceptor(list, one, fd) < 0) {
                mk__acceptors_free(list);
                return -ENOMEM;
            }
        }
    }
    return 0;
}

int mk__acceptors_open(struct mk__acceptors *list, mk__acceptors_open_fn open, void *ctx)
{
    int result = 0;
    for (unsigned i = 0; i < list->n; i++) {
        struct mk__acceptor *a = list->items[i];
        int err = a->open ? 0 : open(ctx, a);
        if (err == 0)
            continue;
        mk_log_error("cannot accept at %.*s: %s", MK_STR_ARG(a->listener->text), strerror(-err));
        result = err;
    }
    return result;
}

void mk__acceptors_close(struct mk__acceptors *list)
{
    for (unsigned i = 0; i < list->n; i++)
        mk__acceptor_close(list->items[i]);
}

static int find_acceptor(const struct mk__acceptors *list, const struct mk__acceptor *wanted)
{
    for (unsigned i = 0; i < list->n; i++)
        if (list->items[i]->event.fd == wanted->event.fd && list->items[i]->listener == wanted->listener)
            return (int)i;
    return -1;
}

/* Moves the acceptors that both lists have from `old` to `next`: they stay open. */
static void keep_unchanged(struct mk__acceptors *old, struct mk__acceptors *next)
{
    for (unsigned i = 0; i < next->n; i++) {
        int k = find_acceptor(old, next->items[i]);
        if (k < 0)
            continue;
        struct mk__acceptor *kept = old->items[k];
        old->items[k] = next->items[i];
        next->items[i] = kept;
    }
}

void mk__acceptors_replace(struct mk__acceptors *list, struct mk__acceptors *next, mk__acceptors_open_fn open,
                           void *ctx)
{
    struct mk__acceptors old = *list;
    keep_unchanged(&old, next);
    *list = *next;
    *next = old;
    mk__acceptors_open(list, open, ctx);
    for (unsigned i = 0; i < list->n; i++)
        mk__acceptor_update_fd_limit(list->items[i]);
    for (unsigned i = 0; i < old.n; i++)
        if (old.items[i]->listener->kept)
            mk__acceptor_stop(old.items[i]);
        else
            mk__acceptor_close(old.items[i]);
}
