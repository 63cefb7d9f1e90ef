// SPDX-License-Identifier: Apache-2.0
/*
 * Tickets (server/ticket.h). A worker alone looks into its slots; other threads only post to its loop, and the
 * register's lock keeps that loop alive meanwhile.
 */
#include "server/ticket.h"

#include "server/worker.h"

#include <errno.h>
#include <pthread.h>

enum { WORKERS_MAX = 4096, SLOTS_FIRST = 64 };

/* Of the process, since a ticket may be kept longer than anything else. */
static struct {
    pthread_rwlock_t lock;
    struct place {
        struct mk__tickets *tickets; /* NULL: free */
        struct mk_loop *loop;        /* NULL: it ends */
        uint64_t worker;
    } places[WORKERS_MAX];
} book = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static uint64_t next_number(void)
{
    static _Atomic uint64_t numbers;
    return atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
}

/* ── the register ── */

int mk__tickets_open(struct mk__tickets *t, struct mk_loop *loop, struct mk_account *account)
{
    *t = (struct mk__tickets){.worker = next_number(), .account = account};
    pthread_rwlock_wrlock(&book.lock);
    while (t->place < WORKERS_MAX && book.places[t->place].tickets)
        t->place++;
    bool found = t->place < WORKERS_MAX;
    if (found)
        book.places[t->place] = (struct place){t, loop, t->worker};
    pthread_rwlock_unlock(&book.lock);
    return found ? 0 : -ENOBUFS;
}

static void set_place(const struct mk__tickets *t, struct place place)
{
    pthread_rwlock_wrlock(&book.lock);
    book.places[t->place] = place;
    pthread_rwlock_unlock(&book.lock);
}

void mk__tickets_close(struct mk__tickets *t)
{
    set_place(t, (struct place){.tickets = t});
}

void mk__tickets_release(struct mk__tickets *t)
{
    set_place(t, (struct place){.tickets = NULL});
    mk_account_free(t->account, t->slots, t->size * sizeof(*t->slots));
}

/* ── slots ── */

struct claim {
    struct mk__tickets *tickets;
    uint32_t slot;
};

static void free_slot(void *ctx)
{
    struct claim *claim = ctx;
    claim->tickets->slots[claim->slot].req = NULL;
    if (claim->slot < claim->tickets->free)
        claim->tickets->free = claim->slot;
}

static int grow(struct mk__tickets *t)
{
    uint32_t size = t->size ? t->size * 2 : SLOTS_FIRST;
    struct mk__ticket_slot *slots = mk_account_alloc(t->account, size * sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    memset(slots, 0, size * sizeof(*slots));
    if (t->size)
        memcpy(slots, t->slots, t->size * sizeof(*slots));
    mk_account_free(t->account, t->slots, t->size * sizeof(*slots));
    t->slots = slots;
    t->size = size;
    return 0;
}

/* The lowest free slot, for this exchange. */
static int claim_slot(struct mk__tickets *t, struct mk_request *req, uint32_t *ret_slot)
{
    while (t->free < t->size && t->slots[t->free].req)
        t->free++;
    if (t->free == t->size && grow(t) < 0)
        return -ENOMEM;
    struct claim *claim = mk_arena_alloc(mk_request_arena(req), sizeof(*claim));
    if (!claim)
        return -ENOMEM;
    *claim = (struct claim){t, t->free};
    if (mk_arena_defer(mk_request_arena(req), free_slot, claim) < 0)
        return -ENOMEM;
    t->slots[t->free] = (struct mk__ticket_slot){req, next_number()};
    *ret_slot = t->free++;
    return 0;
}

int mk__tickets_give(struct mk__tickets *t, struct mk_request *req, struct mk_ticket *ret)
{
    uint32_t slot;
    int err = claim_slot(t, req, &slot);
    if (err == 0)
        *ret = (struct mk_ticket){t->place, slot, t->worker, t->slots[slot].exchange};
    return err;
}

int mk_request_ticket(struct mk_request *req, struct mk_ticket *ret)
{
    return mk__tickets_give(&mk_request_worker(req)->thread->tickets, req, ret);
}

/* ── calls ── */

/* In the worker's thread, or, of the last mail, in the one that closes it: its place is still taken then. */
static void answer(struct mk_message *message)
{
    struct mk_call *call = MK_OWNER(message, struct mk_call, message);
    const struct mk__tickets *t = book.places[call->ticket.place].tickets;
    const struct mk__ticket_slot *slot = call->ticket.slot < t->size ? &t->slots[call->ticket.slot] : NULL;
    call->fn(call, slot && slot->exchange == call->ticket.exchange ? slot->req : NULL);
}

int mk_ticket_call(struct mk_call *call)
{
    int err = -ESRCH;
    if (call->ticket.place >= WORKERS_MAX)
        return err;
    const struct place *place = &book.places[call->ticket.place];
    call->message.fn = answer;
    pthread_rwlock_rdlock(&book.lock);
    if (place->loop && place->worker == call->ticket.worker) {
        mk_post(place->loop, &call->message);
        err = 0;
    }
    pthread_rwlock_unlock(&book.lock);
    return err;
}
