// SPDX-License-Identifier: Apache-2.0
/*
 * A doubly linked ring of nodes embedded in structs. An empty list, and a node that is in no list, point to themselves;
 * mk_list_del() does nothing for such a node.
 */
#ifndef MONKEY_LIST_H
#define MONKEY_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "../status.h"

MK_C_BEGIN

struct mk_list {
    struct mk_list *next, *prev;
};

/* Initializes a list, or a node that is in no list. */
static inline void mk_list_init(struct mk_list *l)
{
    l->next = l->prev = l;
}

/* Returns true if the list has no nodes, or if a node is in no list. */
static inline bool mk_list_empty(const struct mk_list *l)
{
    return l->next == l;
}

/* Appends `n`, which must be in no list, to `l`. */
static inline void mk_list_add(struct mk_list *l, struct mk_list *n)
{
    assert(n != l && l->prev->next == l);
    n->prev = l->prev;
    n->next = l;
    l->prev->next = n;
    l->prev = n;
}

/* Removes `n` from its list. */
static inline void mk_list_del(struct mk_list *n)
{
    assert(n->prev->next == n && n->next->prev == n);
    n->prev->next = n->next;
    n->next->prev = n->prev;
    mk_list_init(n);
}

/* Moves all nodes of `from` to the end of `to`. */
static inline void mk_list_join(struct mk_list *to, struct mk_list *from)
{
    assert(to != from);
    if (mk_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    mk_list_init(from);
}

/* The struct that holds the first node of `l`, which must not be empty. */
#define MK_LIST_FIRST(l, type, member) MK_CONTAINER_OF((l)->next, type, member)

/* Visits the nodes of `l`; the current node may be deleted. `n` and `save` are `struct mk_list *`. */
#define MK_LIST_EACH(l, n, save) for ((n) = (l)->next, (save) = (n)->next; (n) != (l); (n) = (save), (save) = (n)->next)

/*
 * Visits the structs that hold the nodes of `l`, as `item`, which is declared for the loop; the current one may be
 * deleted. For those of a list of `struct job { struct mk_list node; ... }`:
 *
 *     MK_LIST_EACH_ITEM(&jobs, struct job, node, job)
 *         run_job(job);
 */
#define MK_LIST_EACH_ITEM(l, type, member, item) \
    for (type *item = MK_CONTAINER_OF((l)->next, type, member), *item##_next; \
         !mk__list_is_head((l), item, offsetof(type, member)) && \
         ((item##_next = MK_CONTAINER_OF((item)->member.next, type, member)), true); \
         item = item##_next)

/* Tells whether the node at an offset of a struct is the list itself: then there is no struct. */
static inline bool mk__list_is_head(const struct mk_list *l, const void *item, size_t offset)
{
    return (const char *)item + offset == (const char *)l;
}

MK_C_END

#endif
