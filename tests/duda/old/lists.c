// SPDX-License-Identifier: Apache-2.0
/* Level 1: a list of the server's kind, of which requests add and remove elements. */
#include "mk_list.h"
#include "webservice.h"

DUDA_REGISTER("Old services", "Lists");

struct word {
    char text[32];
    struct mk_list _head;
};

struct mk_list words;

void cb_add(duda_request_t *dr)
{
    struct word *word = mem->alloc_z(sizeof(*word));

    snprintf(word->text, sizeof(word->text), "%s", qs->get(dr, "word"));
    mk_list_add(&word->_head, &words);
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

void cb_remove(duda_request_t *dr)
{
    struct mk_list *head, *tmp;
    struct word *word;

    mk_list_foreach_safe(head, tmp, &words)
    {
        word = mk_list_entry(head, struct word, _head);
        if (qs->cmp(dr, "word", word->text) != 0)
            continue;
        mk_list_del(&word->_head);
        mem->free(word);
    }
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

void cb_show(duda_request_t *dr)
{
    struct mk_list *head;

    response->http_status(dr, 200);
    if (mk_list_is_empty(&words) == 0)
        response->print(dr, "empty", 5);
    mk_list_foreach(head, &words)
    {
        struct word *word = mk_list_entry(head, struct word, _head);
        response->printf(dr, "%s ", word->text);
    }
    response->end(dr, NULL);
}

int duda_main()
{
    mk_list_init(&words);
    map->static_add("/add", "cb_add");
    map->static_add("/remove", "cb_remove");
    map->static_root("cb_show");
    return 0;
}
