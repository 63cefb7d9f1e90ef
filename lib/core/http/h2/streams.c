// SPDX-License-Identifier: Apache-2.0
/*
 * The table of http/h2/streams.h. Concurrent streams have consecutive numbers as a rule, so that they are spread evenly
 * over the buckets.
 */
#include "http/h2/streams.h"

#include <assert.h>
#include <stddef.h>

static struct mk__h2_streams_node *const *get_bucket(const struct mk__h2_streams *t, int32_t id)
{
    return &t->buckets[(uint32_t)id / 2 % MK__H2_STREAMS_BUCKETS];
}

void mk__h2_streams_open(struct mk__h2_streams *t, int32_t id)
{
    assert(id > t->last_id && t->is_even == (id % 2 == 0));
    t->skipped_from = t->last_id ? t->last_id + 2 : 1 + t->is_even;
    t->last_id = id;
}

void mk__h2_streams_add(struct mk__h2_streams *t, struct mk__h2_streams_node *node, int32_t id)
{
    struct mk__h2_streams_node **bucket = (struct mk__h2_streams_node **)(uintptr_t)get_bucket(t, id);
    assert(id <= t->last_id && !mk__h2_streams_find(t, id));
    *node = (struct mk__h2_streams_node){*bucket, id};
    *bucket = node;
    t->n++;
}

void mk__h2_streams_remove(struct mk__h2_streams *t, struct mk__h2_streams_node *node)
{
    struct mk__h2_streams_node **at = (struct mk__h2_streams_node **)(uintptr_t)get_bucket(t, node->id);
    while (*at != node) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = node->next;
    t->n--;
}

struct mk__h2_streams_node *mk__h2_streams_find(const struct mk__h2_streams *t, int32_t id)
{
    struct mk__h2_streams_node *node = *get_bucket(t, id);
    while (node && node->id != id)
        node = node->next;
    return node;
}

void mk__h2_streams_note_reset(struct mk__h2_streams *t, int32_t id)
{
    t->resets[t->n_resets++ % MK__H2_STREAMS_RESETS] = id;
}

/* Returns whether a closed stream may have been reset here: it is one of the last ones, or there were too many. */
static bool was_reset(const struct mk__h2_streams *t, int32_t id)
{
    for (unsigned i = 0; i < MK__H2_STREAMS_RESETS; i++)
        if (t->resets[i] == id)
            return true;
    return t->n_resets > MK__H2_STREAMS_RESETS && id < t->resets[t->n_resets % MK__H2_STREAMS_RESETS];
}

enum mk__h2_streams_state mk__h2_streams_classify(const struct mk__h2_streams *t, int32_t id)
{
    if (id > t->last_id || t->is_even != (id % 2 == 0)) /* no stream of this side */
        return MK__H2_STREAMS_IDLE;
    if (mk__h2_streams_find(t, id))
        return MK__H2_STREAMS_OPEN;
    if (id >= t->skipped_from && id < t->last_id)
        return MK__H2_STREAMS_SKIPPED;
    return was_reset(t, id) ? MK__H2_STREAMS_RESET : MK__H2_STREAMS_CLOSED;
}
