// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of services and their workers: a struct, and behind it the slots of its features.
 */
#include "service/service.h"

#include "common/heap.h"

enum { SLOT_ALIGNMENT = 16 };

static size_t get_bytes(const struct feature *f, bool is_worker)
{
    size_t bytes = is_worker ? f->worker_bytes : f->service_bytes;
    return (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

/* Returns the bytes of a struct of `head` bytes with its slots. Sets where these are, if `memory` is not NULL. */
static size_t place_slots(const struct feature *rows, bool is_worker, size_t head, char *memory, void **slots)
{
    size_t at = (head + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    for (unsigned i = 0; i < FEATURES; i++) {
        size_t bytes = get_bytes(&rows[i], is_worker);
        if (memory && bytes)
            slots[i] = memory + at;
        at += bytes;
    }
    return at;
}

struct service *service_new(const struct feature *rows)
{
    size_t bytes = place_slots(rows, false, sizeof(struct service), NULL, NULL);
    struct service *s = heap_zalloc(bytes);
    if (!s)
        return NULL;
    s->bytes = bytes;
    s->features = rows;
    place_slots(rows, false, sizeof(*s), (char *)s, s->slots);
    return s;
}

void service_free(struct service *s)
{
    heap_free(s, s->bytes);
}

struct service_worker *service_worker_new(struct service *s)
{
    size_t bytes = place_slots(s->features, true, sizeof(struct service_worker), NULL, NULL);
    struct service_worker *w = heap_zalloc(bytes);
    if (!w)
        return NULL;
    w->bytes = bytes;
    w->service = s;
    place_slots(s->features, true, sizeof(*w), (char *)w, w->slots);
    return w;
}

void service_worker_free(struct service_worker *w)
{
    heap_free(w, w->bytes);
}
