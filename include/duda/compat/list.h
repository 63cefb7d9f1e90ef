// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the list, and the lines that the configuration object returns in one.
 */
#ifndef DUDA_COMPAT_LIST_H
#define DUDA_COMPAT_LIST_H

#ifdef DUDA_FRAMEWORK

#include <monkey/base/list.h>

#else

#include <stddef.h>

/* A node, or the head of a ring. */
struct mk_list {
    struct mk_list *next, *prev;
};

/* Initializes the head of an empty list. */
static inline __attribute__((unused)) void mk_list_init(struct mk_list *list)
{
    list->next = list;
    list->prev = list;
}

/* Appends a node. */
static inline __attribute__((unused)) void mk_list_add(struct mk_list *node, struct mk_list *head)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/* Removes a node from its list. */
static inline __attribute__((unused)) void mk_list_del(struct mk_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->prev = NULL;
    node->next = NULL;
}

/* Returns 0 if the list is empty, else -1. */
static inline __attribute__((unused)) int mk_list_is_empty(struct mk_list *head)
{
    return head->next == head ? 0 : -1;
}

/* Returns the number of nodes. */
static inline __attribute__((unused)) int mk_list_size(struct mk_list *head)
{
    struct mk_list *i; /* declared here for -std=gnu89 */
    int n = 0;
    for (i = head->next; i != head; i = i->next)
        n++;
    return n;
}

#define mk_list_foreach(current, head) for ((current) = (head)->next; (current) != (head); (current) = (current)->next)
#define mk_list_foreach_r(current, head) \
    for ((current) = (head)->prev; (current) != (head); (current) = (current)->prev)
/* The current node may be removed. */
#define mk_list_foreach_safe(current, following, head) \
    for ((current) = (head)->next, (following) = (current)->next; (current) != (head); \
         (current) = (following), (following) = (current)->next)

#define mk_list_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))
#define mk_list_entry_first(head, type, member) mk_list_entry((head)->next, type, member)
#define mk_list_entry_last(head, type, member) mk_list_entry((head)->prev, type, member)
#define mk_list_entry_next(node, type, member, head) \
    ((node)->next == (head) ? mk_list_entry_first(head, type, member) : mk_list_entry((node)->next, type, member))

#define duda_string_line mk_string_line

#endif

/* An element of a list of strings. */
struct mk_string_line {
    char *val;
    int len;
    struct mk_list _head;
};

#endif
