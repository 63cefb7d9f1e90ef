// SPDX-License-Identifier: Apache-2.0
/* The list of names. */
#include "files3.h"

inline int is_wanted(struct name *n)
{
    return strcmp(n->text, "bob") != 0;
}

int add_name(char *text)
{
    struct name *n = monkey->mem_alloc(sizeof(struct name));
    n->text = monkey->str_dup(text);
    mk_list_add(&n->_head, &names);
    return 0;
}

void remove_name(struct name *n)
{
    mk_list_del(&n->_head);
    monkey->mem_free(n->text);
    monkey->mem_free(n);
}

void cb_list(duda_request_t *dr)
{
    struct mk_list *head, *tmp;
    struct name *n;

    visits++;
    response->http_status(dr, 200);
    response->printf(dr, "%s %i:", greeting, visits);
    mk_list_foreach_safe(head, tmp, &names)
    {
        n = mk_list_entry(head, struct name, _head);
        if (is_wanted(n))
            response->printf(dr, " %s", n->text);
        else if (visits > 1)
            remove_name(n);
    }
    n = mk_list_entry_first(&names, struct name, _head);
    response->printf(dr, " %s", n->text);
    n = mk_list_entry_last(&names, struct name, _head);
    response->printf(dr, " %s", n->text);
    response->end(dr, NULL);
}
