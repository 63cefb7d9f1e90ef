// SPDX-License-Identifier: Apache-2.0
/*
 * A list of the archives that are made (archive_slots.h). There are few of them, so that those of a client are counted.
 */
#include "archive_slots.h"

#include <errno.h>
#include <pthread.h>

/* static: archives of the process */
static struct {
    pthread_mutex_t lock;
    struct mk_list all;
    int64_t n;
} slots = {PTHREAD_MUTEX_INITIALIZER, {&slots.all, &slots.all}, 0};

static bool is_same_client(const struct mk_address *a, const struct mk_address *b)
{
    size_t bytes = a->family == AF_INET6 ? 8 : sizeof(a->bytes);
    return a->family == b->family && memcmp(a->bytes, b->bytes, bytes) == 0;
}

static int64_t count_slots(const struct mk_address *client)
{
    int64_t count = 0;
    MK_LIST_EACH_ITEM(&slots.all, struct archive_slot, node, slot)
        count += is_same_client(&slot->client, client);
    return count;
}

int archive_slot_take(struct archive_slot *slot, const struct mk_address *client, const struct listing_limits *limits)
{
    slot->client = *client;
    pthread_mutex_lock(&slots.lock);
    int err = slots.n >= limits->archives ? -EAGAIN : count_slots(client) >= limits->archives_per_client ? -EDQUOT : 0;
    if (err == 0) {
        mk_list_add(&slots.all, &slot->node);
        slots.n++;
    }
    pthread_mutex_unlock(&slots.lock);
    return err;
}

void archive_slot_release(struct archive_slot *slot)
{
    pthread_mutex_lock(&slots.lock);
    mk_list_del(&slot->node);
    slots.n--;
    pthread_mutex_unlock(&slots.lock);
}
