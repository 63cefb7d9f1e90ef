// SPDX-License-Identifier: Apache-2.0
/*
 * Request references (server/worker/request_ref.h). Only the worker reads its slots. Other threads post to its loop,
 * which the register's lock keeps open meanwhile.
 */
#include "server/worker/request_ref.h"

#include "http/request.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { WORKERS_MAX = 4096, SLOTS_FIRST = 64 };

/* Static, because a reference may be kept longer than the server. */
static struct {
    pthread_rwlock_t lock;
    struct registry_entry {
        struct mk__request_refs *refs; /* NULL: free */
        struct mk_loop *loop;          /* NULL: the worker accepts no more calls */
        uint64_t worker;
    } entries[WORKERS_MAX];
} registry = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static uint64_t next_number(void)
{
    static _Atomic uint64_t numbers;
    return atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
}

/* ── the register ── */

int mk__request_ref_open(struct mk__request_refs *t, struct mk_loop *loop, struct mk_account *account)
{
    *t = (struct mk__request_refs){.worker = next_number(), .account = account};
    pthread_rwlock_wrlock(&registry.lock);
    while (t->entry < WORKERS_MAX && registry.entries[t->entry].refs)
        t->entry++;
    bool found = t->entry < WORKERS_MAX;
    if (found)
        registry.entries[t->entry] = (struct registry_entry){t, loop, t->worker};
    pthread_rwlock_unlock(&registry.lock);
    return found ? 0 : -ENOBUFS;
}

static void set_entry(const struct mk__request_refs *t, struct registry_entry entry)
{
    assert(t->entry < WORKERS_MAX && registry.entries[t->entry].refs == t);
    pthread_rwlock_wrlock(&registry.lock);
    registry.entries[t->entry] = entry;
    pthread_rwlock_unlock(&registry.lock);
}

void mk__request_ref_close(struct mk__request_refs *t)
{
    set_entry(t, (struct registry_entry){.refs = t});
}

void mk__request_ref_release(struct mk__request_refs *t)
{
    set_entry(t, (struct registry_entry){.refs = NULL});
    mk_account_free(t->account, t->slots, t->size * sizeof(*t->slots));
}

/* ── slots ── */

struct slot_owner {
    struct mk__request_refs *refs;
    uint32_t slot;
};

static void free_slot(void *ctx)
{
    struct slot_owner *owner = ctx;
    assert(owner->slot < owner->refs->size && owner->refs->slots[owner->slot].req);
    owner->refs->slots[owner->slot].req = NULL;
    if (owner->slot < owner->refs->free)
        owner->refs->free = owner->slot;
}

static int grow_slots(struct mk__request_refs *t)
{
    uint32_t size = t->size ? t->size * 2 : SLOTS_FIRST;
    struct mk__request_ref_slot *slots = mk_account_zalloc(t->account, size * sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    if (t->size)
        memcpy(slots, t->slots, t->size * sizeof(*slots));
    mk_account_free(t->account, t->slots, t->size * sizeof(*slots));
    t->slots = slots;
    t->size = size;
    return 0;
}

/* Gives the exchange the lowest free slot, until its arena is released. Returns 0 or -ENOMEM. */
static int claim_slot(struct mk__request_refs *t, struct mk_request *req)
{
    while (t->free < t->size && t->slots[t->free].req)
        t->free++;
    if (t->free == t->size && grow_slots(t) < 0)
        return -ENOMEM;
    struct slot_owner *owner = mk_arena_alloc(mk_request_arena(req), sizeof(*owner));
    if (!owner)
        return -ENOMEM;
    *owner = (struct slot_owner){t, t->free};
    if (mk_arena_defer(mk_request_arena(req), free_slot, owner) < 0)
        return -ENOMEM;
    assert(t->free < t->size && !t->slots[t->free].req);
    t->slots[t->free] = (struct mk__request_ref_slot){req, next_number()};
    req->ref = ++t->free;
    return 0;
}

int mk__request_ref_create(struct mk__request_refs *t, struct mk_request *req, struct mk_request_ref *ret)
{
    int err = req->ref ? 0 : claim_slot(t, req);
    if (err == 0)
        *ret = (struct mk_request_ref){t->entry, req->ref - 1, t->worker, t->slots[req->ref - 1].exchange};
    return err;
}

/* ── calls ── */

/* Runs in the worker's thread, or, for the last messages, in the one that closes it: the entry still exists then. */
static void run_call(struct mk_message *message)
{
    struct mk_request_call *call = MK_CONTAINER_OF(message, struct mk_request_call, message);
    assert(call->ref.entry < WORKERS_MAX && registry.entries[call->ref.entry].refs);
    const struct mk__request_refs *t = registry.entries[call->ref.entry].refs;
    const struct mk__request_ref_slot *slot = call->ref.slot < t->size ? &t->slots[call->ref.slot] : NULL;
    call->fn(call, slot && slot->exchange == call->ref.exchange ? slot->req : NULL);
}

int mk_request_ref_call(struct mk_request_call *call)
{
    int err = -ESRCH;
    if (call->ref.entry >= WORKERS_MAX)
        return err;
    const struct registry_entry *entry = &registry.entries[call->ref.entry];
    call->message.fn = run_call;
    pthread_rwlock_rdlock(&registry.lock);
    if (entry->loop && entry->worker == call->ref.worker) {
        mk_post(entry->loop, &call->message);
        err = 0;
    }
    pthread_rwlock_unlock(&registry.lock);
    return err;
}
