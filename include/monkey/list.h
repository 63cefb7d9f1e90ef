// SPDX-License-Identifier: Apache-2.0
/*
 * A doubly linked ring that lives inside the structs that it links. An empty list, and a node that is in
 * no list, point to themselves; `mk_list_del` on such a node does nothing.
 */
#ifndef MONKEY_LIST_H
#define MONKEY_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

struct mk_list {
    struct mk_list *next, *prev;
};

static inline void mk_list_init(struct mk_list *l)
{
    l->next = l->prev = l;
}

static inline bool mk_list_empty(const struct mk_list *l)
{
    return l->next == l;
}

/* Appends `n`, which must be in no list, at the end of `l`. */
static inline void mk_list_add(struct mk_list *l, struct mk_list *n)
{
    n->prev = l->prev;
    n->next = l;
    l->prev->next = n;
    l->prev = n;
}

static inline void mk_list_del(struct mk_list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    mk_list_init(n);
}

/* Moves all of `from` to the end of `to`. */
static inline void mk_list_join(struct mk_list *to, struct mk_list *from)
{
    if (mk_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    mk_list_init(from);
}

#define MK_LIST_FIRST(l, type, member) MK_CONTAINER_OF((l)->next, type, member)

/* Walks `l`; the current node may be deleted. `n` and `save` are `struct mk_list *`. */
#define MK_LIST_EACH(l, n, save) for ((n) = (l)->next, (save) = (n)->next; (n) != (l); (n) = (save), (save) = (n)->next)

#endif
