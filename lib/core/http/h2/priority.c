// SPDX-License-Identifier: Apache-2.0
/*
 * The lists of http/h2/priority.h. In a list, streams that are not incremental precede those that are, in the order of
 * their numbers.
 */
#include "http/h2/priority.h"

#include <assert.h>

void mk__h2_scheduler_init(struct mk__h2_scheduler *o)
{
    *o = (struct mk__h2_scheduler){.n_early = 0};
    for (unsigned i = 0; i < MK__H2_URGENCIES; i++)
        mk_list_init(&o->ready[i]);
}

void mk__h2_priority_init(struct mk__h2_priority *p, int32_t id)
{
    *p = (struct mk__h2_priority){.id = id, .urgency = MK__H2_URGENCY_DEFAULT};
    mk_list_init(&p->node);
}

struct mk__h2_priority *mk__h2_scheduler_put_early(struct mk__h2_scheduler *o, int32_t id)
{
    assert(id > 0);
    struct mk__h2_priority *p = NULL;
    for (unsigned i = 0; i < MK__H2_EARLY_MAX && !p; i++)
        p = o->early[i].id == id ? &o->early[i] : NULL;
    if (!p)
        p = &o->early[o->n_early++ % MK__H2_EARLY_MAX];
    mk__h2_priority_init(p, id);
    return p;
}

void mk__h2_scheduler_take_early(const struct mk__h2_scheduler *o, struct mk__h2_priority *p)
{
    const unsigned n = o->n_early < MK__H2_EARLY_MAX ? o->n_early : MK__H2_EARLY_MAX;
    for (unsigned i = 0; i < n; i++)
        if (o->early[i].id == p->id) {
            p->urgency = o->early[i].urgency;
            p->incremental = o->early[i].incremental;
            p->updated = true;
        }
}

/* Returns the first stream that follows `p`, or the end of the list. Requests come in order: it is near the end. */
static struct mk_list *find_position(struct mk_list *list, const struct mk__h2_priority *p)
{
    struct mk_list *at = list;
    while (!p->incremental && at->prev != list) {
        const struct mk__h2_priority *other = MK_CONTAINER_OF(at->prev, struct mk__h2_priority, node);
        if (!other->incremental && other->id < p->id)
            break;
        at = at->prev;
    }
    return at;
}

void mk__h2_scheduler_add(struct mk__h2_scheduler *o, struct mk__h2_priority *p)
{
    assert(p->urgency < MK__H2_URGENCIES);
    if (mk_list_empty(&p->node))
        mk_list_add(find_position(&o->ready[p->urgency], p), &p->node);
}

void mk__h2_scheduler_remove(struct mk__h2_priority *p)
{
    mk_list_del(&p->node);
}

void mk__h2_scheduler_rotate(struct mk__h2_scheduler *o, struct mk__h2_priority *p)
{
    if (!p->incremental || mk_list_empty(&p->node))
        return;
    mk_list_del(&p->node);
    mk__h2_scheduler_add(o, p);
}

struct mk__h2_priority *mk__h2_scheduler_pick(const struct mk__h2_scheduler *o,
                                              bool (*may)(struct mk__h2_priority *p, void *ctx), void *ctx)
{
    for (unsigned i = 0; i < MK__H2_URGENCIES; i++) {
        MK_LIST_EACH_ITEM(&o->ready[i], struct mk__h2_priority, node, p) {
            if (may(p, ctx))
                return p;
        }
    }
    return NULL;
}

/* Reads a member of the dictionary (RFC 8941 section 3.2), without its parameters. */
static void read_member(struct mk_str member, uint8_t *urgency, bool *incremental)
{
    member = mk_str_trim(mk_str_until(member, ";"));
    if (member.len == 3 && member.p[0] == 'u' && member.p[1] == '=' && member.p[2] >= '0' && member.p[2] <= '7')
        *urgency = (uint8_t)(member.p[2] - '0');
    else if (mk_str_eq(member, MK_STR("i")) || mk_str_eq(member, MK_STR("i=?1")))
        *incremental = true;
    else if (mk_str_eq(member, MK_STR("i=?0")))
        *incremental = false;
}

void mk__h2_priority_parse(struct mk__h2_scheduler *o, struct mk__h2_priority *p, struct mk_str field)
{
    uint8_t urgency = MK__H2_URGENCY_DEFAULT;
    bool incremental = false, is_ready = !mk_list_empty(&p->node);
    struct mk_str member;
    while (mk_str_next(&field, &member))
        read_member(member, &urgency, &incremental);
    mk__h2_scheduler_remove(p);
    p->urgency = urgency;
    p->incremental = incremental;
    if (is_ready)
        mk__h2_scheduler_add(o, p);
}
